//! Who acts, and what that player may do. Nothing of a request says so but the claims of the token that the gateway has accepted:
//! neither its path nor its body. A request without them is refused, however it came here.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use events::PlayerId;
use lambda_http::request::RequestContext;

use crate::problem::{Kind, Place, Problem};

/// Header with the token.
const AUTHORIZATION: &str = "Authorization";
/// Claim that says for whom a token was made.
const SUBJECT: &str = "sub";
/// Claims of which the first that there is says what a token is good for.
const SCOPES: [&str; 2] = ["scope", "scp"];

/// Whoever sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    subject: String,
    scopes: Vec<String>,
}

/// What a token may be good for besides acting for its player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Telling what became of games.
    GamesWrite,
    /// Restricting and reinstating players.
    Moderate,
    /// Running the shop, and looking after what went wrong.
    Operate,
}

impl Scope {
    const fn as_str(self) -> &'static str {
        match self {
            Self::GamesWrite => "games:write",
            Self::Moderate => "moderate",
            Self::Operate => "operate",
        }
    }
}

impl Actor {
    /// Refuses whoever is not the player that a place in the request names.
    pub(crate) fn must_be(&self, player_id: &PlayerId, place: Place) -> Result<(), Problem> {
        if self.is(player_id) { Ok(()) } else { Err(forbidden(place, "is not the player of the token")) }
    }

    /// Refuses whoever is neither the player that a place in the request names nor has a scope.
    pub(crate) fn must_be_or_have(&self, player_id: &PlayerId, scope: Scope, place: Place) -> Result<(), Problem> {
        if self.has(scope) { Ok(()) } else { self.must_be(player_id, place) }
    }

    /// Refuses whoever is not the player whose something is that a place in the request names.
    pub(crate) fn must_own(&self, owner_id: &PlayerId, place: Place) -> Result<(), Problem> {
        if self.is(owner_id) { Ok(()) } else { Err(forbidden(place, "is another player's")) }
    }

    /// Refuses whoever does not have a scope.
    pub(crate) fn must_have(&self, scope: Scope) -> Result<(), Problem> {
        if self.has(scope) {
            return Ok(());
        }
        Err(forbidden(Place::Header(AUTHORIZATION), &format!("has a token without the scope {}", scope.as_str())))
    }

    /// Returns the player of the token, whom a body may name once more.
    pub(crate) fn player(&self, named: Option<PlayerId>, pointer: &str) -> Result<PlayerId, Problem> {
        let player_id = match named {
            Some(named) => named,
            None => self.subject.parse().map_err(|error: events::InvalidId| {
                forbidden(Place::Header(AUTHORIZATION), &format!("has a token whose subject is no player: {error}"))
            })?,
        };
        self.must_be(&player_id, Place::Pointer(pointer.to_owned()))?;
        Ok(player_id)
    }

    /// Returns whether a token has a scope.
    pub(crate) fn has(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|own| own == scope.as_str())
    }

    fn is(&self, player_id: &PlayerId) -> bool {
        self.subject == player_id.as_str()
    }

    fn of(context: Option<&RequestContext>) -> Option<Self> {
        let Some(RequestContext::ApiGatewayV2(context)) = context else { return None };
        let claims = &context.authorizer.as_ref()?.jwt.as_ref()?.claims;
        let subject = claims.get(SUBJECT).filter(|subject| !subject.is_empty())?.clone();
        let scopes = SCOPES.iter().find_map(|name| claims.get(*name)).map(|text| scopes(text)).unwrap_or_default();
        Some(Self { subject, scopes })
    }
}

impl<S: Sync> FromRequestParts<S> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let actor = Self::of(parts.extensions.get::<RequestContext>());
        actor.ok_or_else(|| {
            Problem::new(Kind::Unauthenticated, "The request has no token that the gateway has accepted.")
                .with_error(Place::Header(AUTHORIZATION), "has no token of a player")
        })
    }
}

fn forbidden(place: Place, detail: &str) -> Problem {
    Problem::new(Kind::Forbidden, "The token is for somebody else, or not for this.").with_error(place, detail)
}

/// Reads scopes: a text, or a list as API Gateway writes it, in brackets.
fn scopes(text: &str) -> Vec<String> {
    let list = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    list.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn actor(authorizer: &Value) -> Option<Actor> {
        let http = json!({"method": "GET", "path": "/", "protocol": "", "sourceIp": "", "userAgent": ""});
        let context = json!({"stage": "$default", "timeEpoch": 0, "http": http, "authorizer": authorizer});
        let context = serde_json::from_value(context).unwrap();
        Actor::of(Some(&RequestContext::ApiGatewayV2(context)))
    }

    fn with_claims(claims: Value) -> Option<Actor> {
        actor(&json!({"jwt": {"claims": claims, "scopes": null}}))
    }

    #[test]
    fn nobody_acts_without_the_subject_of_a_token() {
        assert_eq!(Actor::of(None), None);
        for authorizer in [json!(null), json!({}), json!({"jwt": null}), json!({"lambda": {"sub": "ann"}})] {
            assert_eq!(actor(&authorizer), None, "{authorizer}");
        }
        for claims in [json!(null), json!({}), json!({"sub": ""}), json!({"username": "ann", "scope": "operate"})] {
            assert_eq!(with_claims(claims.clone()), None, "{claims}");
        }
    }

    #[test]
    fn scopes_are_read_as_the_gateway_hands_them_on() {
        for (claims, expected) in [
            (json!({"sub": "ann"}), vec![]),
            (json!({"sub": "ann", "scope": "moderate operate"}), vec!["moderate", "operate"]),
            (json!({"sub": "ann", "scp": "[moderate operate]"}), vec!["moderate", "operate"]),
            (json!({"sub": "ann", "scope": "[]", "scp": "operate"}), vec![]),
        ] {
            let actor = with_claims(claims.clone()).unwrap();
            assert_eq!(
                (actor.subject.as_str(), actor.scopes),
                ("ann", expected.into_iter().map(str::to_owned).collect()),
                "{claims}"
            );
        }
        let almost = with_claims(json!({"sub": "ann", "scope": "operate:read Moderate games"})).unwrap();
        assert!(![Scope::GamesWrite, Scope::Moderate, Scope::Operate].iter().any(|scope| almost.has(*scope)));
    }

    #[test]
    fn a_subject_acts_for_itself_and_is_compared_as_it_stands() {
        let place = || Place::Parameter("player_id".to_owned());
        let ann = with_claims(json!({"sub": "ann"})).unwrap();
        assert!(ann.must_be(&"ann".parse().unwrap(), place()).is_ok());
        for other in ["Ann", "anna", "bea"] {
            assert!(ann.must_be(&other.parse().unwrap(), place()).is_err(), "{other}");
        }
        assert_eq!(ann.player(None, "#/player_id").unwrap().as_str(), "ann");
        assert!(ann.player(Some("bea".parse().unwrap()), "#/player_id").is_err());
        assert!(with_claims(json!({"sub": "no player"})).unwrap().player(None, "#/player_id").is_err());
    }
}
