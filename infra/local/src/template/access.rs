//! Who may call the routes of an HTTP API: its authorizers, and what each route says about them. What is not understood is an
//! error, for a route that is open by mistake looks like one that works.

use std::collections::BTreeMap;

use super::error::{Place, TemplateError};
use super::fields::{Fields, Property};
use super::findings::Findings;
use crate::model::{Access, JwtAuthorizer};

/// The word for a route that no authorizer guards.
const NO_AUTHORIZER: &str = "NONE";
/// Where an identity source finds a header.
const HEADER: &str = "$request.header.";

/// The authorizers of an API.
#[derive(Debug, Clone, Default)]
pub(super) struct Authorizers {
    by_name: BTreeMap<String, Declared>,
    default: Option<Declared>,
}

#[derive(Debug, Clone)]
struct Declared {
    authorizer: JwtAuthorizer,
    scopes: Vec<String>,
}

impl Authorizers {
    /// Returns who may call a route that says nothing about it.
    pub(super) fn of_a_route_that_says_nothing(&self) -> Access {
        self.default
            .clone()
            .map_or(Access::Anyone, |Declared { authorizer, scopes }| Access::Token { authorizer, scopes })
    }

    fn named(&self, name: &Property<'_>) -> Result<Declared, TemplateError> {
        let declared = self.by_name.get(name.text()?).cloned();
        declared.ok_or_else(|| name.invalid("the name of a JWT authorizer of the API"))
    }
}

/// Reads the `Auth` of an API, and returns besides what was not asked for.
///
/// # Errors
/// Authorizers other than JWT authorizers with the token in a header, and a default that is none of them.
pub(super) fn read_authorizers(auth: Property<'_>) -> Result<(Authorizers, Vec<Place>), TemplateError> {
    let mut auth = auth.fields()?;
    let mut left_over = Vec::new();
    let mut authorizers = Authorizers::default();
    if let Some(iam) = auth.take("EnableIamAuthorizer")?
        && iam.boolean()?
    {
        return Err(iam.invalid("false, since nobody checks permissions here"));
    }
    if let Some(declared) = auth.take("Authorizers")? {
        for (name, authorizer) in declared.fields()?.all()? {
            let mut fields = authorizer.fields()?;
            authorizers.by_name.insert(name, read_authorizer(&mut fields, &mut left_over)?);
            left_over.extend(fields.left_over(&[]));
        }
    }
    if let Some(name) = auth.take("DefaultAuthorizer")? {
        authorizers.default = Some(authorizers.named(&name)?);
    }
    left_over.extend(auth.left_over(&[]));
    Ok((authorizers, left_over))
}

/// Reads the `Auth` of a route.
///
/// # Errors
/// An authorizer that the API does not have, scopes without one, and `NONE` where there is no default to leave out.
pub(super) fn read_route(
    auth: Property<'_>,
    authorizers: &Authorizers,
    findings: &mut Findings,
) -> Result<Access, TemplateError> {
    let place = auth.place.clone();
    let mut auth = auth.fields()?;
    let name = auth.take("Authorizer")?;
    let scopes = auth.take("AuthorizationScopes")?;
    findings.left_over(auth, &[]);
    let declared = match name {
        Some(name) if name.text()? == NO_AUTHORIZER => {
            return match (&authorizers.default, scopes) {
                (Some(_), None) => Ok(Access::Anyone),
                (None, _) => Err(name.invalid("an authorizer, since the API has no default that could be left out")),
                (Some(_), Some(scopes)) => Err(scopes.invalid("left out, since nobody looks at a token here")),
            };
        }
        Some(name) => authorizers.named(&name)?,
        None => {
            let missing = || TemplateError::MissingProperty { place: place.property("Authorizer", place.line) };
            authorizers.default.clone().ok_or_else(missing)?
        }
    };
    let own = scopes.map(texts).transpose()?.filter(|scopes| !scopes.is_empty());
    Ok(Access::Token { authorizer: declared.authorizer, scopes: own.unwrap_or(declared.scopes) })
}

fn read_authorizer(fields: &mut Fields<'_>, left_over: &mut Vec<Place>) -> Result<Declared, TemplateError> {
    let source = fields.require("IdentitySource")?;
    let header = source.text()?.strip_prefix(HEADER).filter(|header| !header.is_empty());
    let header = header.ok_or_else(|| source.invalid(&format!("{HEADER} and a header's name")))?.to_ascii_lowercase();
    let mut configuration = fields.require("JwtConfiguration")?.fields()?;
    let issuer = either(&mut configuration, "issuer", "Issuer")?.text()?.to_owned();
    let audiences = texts(either(&mut configuration, "audience", "Audience")?)?;
    left_over.extend(configuration.left_over(&[]));
    let scopes = fields.take("AuthorizationScopes")?.map(texts).transpose()?.unwrap_or_default();
    Ok(Declared { authorizer: JwtAuthorizer { header, issuer, audiences }, scopes })
}

/// SAM takes the names of OpenAPI and those of CloudFormation.
fn either<'t>(fields: &mut Fields<'t>, name: &str, other: &str) -> Result<Property<'t>, TemplateError> {
    match fields.take(other)? {
        Some(property) => Ok(property),
        None => fields.require(name),
    }
}

fn texts(list: Property<'_>) -> Result<Vec<String>, TemplateError> {
    list.items()?.iter().map(|item| item.text().map(str::to_owned)).collect()
}
