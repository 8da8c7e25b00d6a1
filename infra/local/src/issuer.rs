//! The local issuer: signs tokens that the HTTP API of every stack on this machine accepts. It checks none, and asks nobody who
//! they are.

mod key;
mod rsa;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::Header;
use serde::Serialize;

use crate::model::{Access, JwtAuthorizer, Model};

pub use key::{KeyError, PublicKeys, SigningKey, default_path};

/// The algorithm of the tokens.
const ALGORITHM: jsonwebtoken::Algorithm = jsonwebtoken::Algorithm::RS256;

/// Whom a token is for, and what it is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The player, or whoever else acts.
    pub subject: &'a str,
    /// What the subject may do besides acting for itself.
    pub scopes: &'a [String],
    /// How long it is good for.
    pub lifetime: Duration,
}

/// Signs tokens for an API.
#[derive(Debug, Clone)]
pub struct Issuer {
    key: SigningKey,
    authorizer: JwtAuthorizer,
}

/// The claims of a token.
#[derive(Debug, Serialize)]
struct Claims<'a> {
    iss: &'a str,
    /// Absent if the authorizer names none; then it accepts no token.
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a String>,
    sub: &'a str,
    iat: u64,
    exp: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    scope: String,
}

impl Issuer {
    /// Signs tokens that an authorizer accepts.
    pub fn new(key: SigningKey, authorizer: JwtAuthorizer) -> Self {
        Self { key, authorizer }
    }

    /// Returns a token.
    ///
    /// # Errors
    ///
    /// When it cannot be signed.
    pub fn token(&self, grant: &Grant<'_>) -> Result<String, KeyError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let claims = Claims {
            iss: &self.authorizer.issuer,
            aud: self.authorizer.audiences.first(),
            sub: grant.subject,
            iat: now.as_secs(),
            exp: (now + grant.lifetime).as_secs(),
            scope: grant.scopes.join(" "),
        };
        let header = Header { kid: Some(self.key.id().to_owned()), ..Header::new(ALGORITHM) };
        self.key.sign(&header, &claims)
    }

    /// Returns the keys with which its tokens are checked.
    pub fn public_keys(&self) -> PublicKeys {
        self.key.public_keys()
    }
}

/// Returns the first authorizer that a route asks, if any route asks one.
pub fn authorizer(model: &Model) -> Option<&JwtAuthorizer> {
    model.routes.iter().find_map(|route| match &route.access {
        Access::Token { authorizer, .. } => Some(authorizer),
        Access::Anyone => None,
    })
}
