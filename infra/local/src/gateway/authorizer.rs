//! Whether a request's token lets it through, as API Gateway's JWT authorizers decide
//! ([documentation](https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html)). Knows no function.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};

use super::response::message;
use crate::issuer::PublicKeys;
use crate::model::JwtAuthorizer;

/// What may stand before a token.
const BEARER: &str = "Bearer ";

/// What a token says, as the function is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Authorized {
    /// Values that are no texts have become some; those that are null are left out.
    claims: BTreeMap<String, String>,
    /// The token's scopes, where the route asks for some.
    scopes: Option<Vec<String>>,
}

/// Why a request is not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// There is no token.
    NoToken,
    /// The token is not good, for the reason that is told, if one is told.
    InvalidToken(Option<&'static str>),
    /// The token has none of these scopes.
    InsufficientScope(Vec<String>),
}

/// Checks the token of a request at a moment.
///
/// # Errors
///
/// When there is none, or it is not good enough.
pub(super) fn check(
    authorizer: &JwtAuthorizer,
    scopes: &[String],
    keys: &PublicKeys,
    headers: &HeaderMap,
    now: SystemTime,
) -> Result<Authorized, Denied> {
    let mut values = headers.get_all(authorizer.header.as_str()).iter();
    let value = values.next().ok_or(Denied::NoToken)?;
    let value = value.to_str().ok().filter(|_| values.next().is_none()).ok_or(Denied::InvalidToken(None))?;
    let claims = keys.claims(value.strip_prefix(BEARER).unwrap_or(value)).ok_or(Denied::InvalidToken(None))?;
    check_claims(&claims, authorizer, now)?;
    let granted = granted(&claims);
    if !scopes.is_empty() && !scopes.iter().any(|scope| granted.contains(scope)) {
        return Err(Denied::InsufficientScope(scopes.to_vec()));
    }
    let claims = claims.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect();
    Ok(Authorized { claims, scopes: Some(granted).filter(|_| !scopes.is_empty()) })
}

impl Denied {
    /// Returns the answer to the client, with the challenge of [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750#section-3).
    pub(super) fn answer(&self) -> Response {
        let (mut response, challenge) = match self {
            Self::NoToken => (message(StatusCode::UNAUTHORIZED, "Unauthorized"), "Bearer".to_owned()),
            Self::InvalidToken(reason) => {
                let reason = reason.map(|reason| format!(" error_description=\"{reason}\"")).unwrap_or_default();
                let challenge = format!("Bearer scope=\"\" error=\"invalid_token\"{reason}");
                (message(StatusCode::UNAUTHORIZED, "Unauthorized"), challenge)
            }
            Self::InsufficientScope(scopes) => {
                let challenge = format!("Bearer scope=\"{}\" error=\"insufficient_scope\"", scopes.join(" "));
                (message(StatusCode::FORBIDDEN, "Forbidden"), challenge)
            }
        };
        // Scopes of a template could hold what no header may; then there is no challenge.
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Checks what the token says of itself, in the order of the documentation.
fn check_claims(claims: &Map<String, Value>, authorizer: &JwtAuthorizer, now: SystemTime) -> Result<(), Denied> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    if claims.get("iss").and_then(Value::as_str) != Some(&authorizer.issuer) {
        return Err(Denied::InvalidToken(None));
    }
    // `client_id` counts only where there is no audience.
    let audiences = claims.get("aud").or_else(|| claims.get("client_id"));
    if !authorizer.audiences.iter().any(|audience| names(audiences, audience)) {
        return Err(Denied::InvalidToken(Some("the token does not have a valid audience")));
    }
    let expires = claims.get("exp").and_then(Value::as_f64);
    let begun = |name| claims.get(name).is_none_or(|moment| moment.as_f64().is_some_and(|moment| moment <= now));
    if expires.is_some_and(|expires| now < expires) && begun("nbf") && begun("iat") {
        return Ok(());
    }
    Err(Denied::InvalidToken(None))
}

/// Returns whether a claim is a text or a list of texts with this one.
fn names(claim: Option<&Value>, text: &str) -> bool {
    match claim {
        Some(Value::String(only)) => only == text,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(text)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

/// Returns the scopes of a token: `scope`, or `scp`, as a text or a list.
fn granted(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(scopes)) => scopes.split_ascii_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(scopes)) => scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// Returns a claim as API Gateway hands it on: a list in brackets, its items apart by blanks. This is observed, not documented.
fn text(claim: &Value) -> Option<String> {
    match claim {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(format!("[{}]", items.iter().filter_map(text).collect::<Vec<_>>().join(" "))),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Some(claim.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jsonwebtoken::{Algorithm, Header};
    use serde_json::json;

    use super::*;
    use crate::issuer::SigningKey;

    const NOW: u64 = 1_796_000_000;

    fn authorizer() -> JwtAuthorizer {
        JwtAuthorizer {
            header: "authorization".to_owned(),
            issuer: "https://issuer.test".to_owned(),
            audiences: vec!["one".to_owned(), "other".to_owned()],
        }
    }

    fn decided(changed: &Value, scopes: &[&str]) -> Result<Authorized, Denied> {
        let mut claims = json!({"iss": "https://issuer.test", "aud": "one", "sub": "ann", "exp": NOW + 1});
        for (name, value) in changed.as_object().unwrap() {
            claims[name] = value.clone();
        }
        // What is null in a change is left out.
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let key = SigningKey::generate().unwrap();
        let header = Header { kid: Some(key.id().to_owned()), ..Header::new(Algorithm::RS256) };
        let token = key.sign(&header, &claims).unwrap();
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap())]);
        let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        check(&authorizer(), &scopes, &key.public_keys(), &headers, now)
    }

    #[test]
    fn good_claims_are_let_through() {
        for changed in [
            json!({}),
            json!({"aud": ["else", "other"]}),
            json!({"aud": null, "client_id": "one"}),
            json!({"nbf": NOW, "iat": NOW}),
            json!({"exp": NOW as f64 + 0.5, "nbf": NOW as f64 - 0.5}),
        ] {
            assert!(decided(&changed, &[]).is_ok(), "{changed}");
        }
    }

    #[test]
    fn bad_claims_are_not() {
        for changed in [
            json!({"iss": null}),
            json!({"iss": "https://issuer.test/"}),
            json!({"iss": ["https://issuer.test"]}),
            json!({"exp": null}),
            json!({"exp": NOW}),
            json!({"exp": "4000000000"}),
            json!({"nbf": NOW + 1}),
            json!({"nbf": "0"}),
            json!({"iat": NOW + 1}),
        ] {
            assert_eq!(decided(&changed, &[]), Err(Denied::InvalidToken(None)), "{changed}");
        }
        for changed in [
            json!({"aud": null}),
            json!({"aud": "two"}),
            json!({"aud": "two", "client_id": "one"}),
            json!({"aud": []}),
            json!({"aud": 1}),
        ] {
            let reason = Some("the token does not have a valid audience");
            assert_eq!(decided(&changed, &[]), Err(Denied::InvalidToken(reason)), "{changed}");
        }
    }

    #[test]
    fn one_of_the_routes_scopes_is_enough() {
        for changed in
            [json!({"scope": "a b"}), json!({"scope": ["a", "b"]}), json!({"scp": ["b", "a"]}), json!({"scp": "a"})]
        {
            assert!(decided(&changed, &["a", "c"]).is_ok(), "{changed}");
        }
        for changed in [json!({}), json!({"scope": "ab A"}), json!({"scope": 1}), json!({"scope": "b", "scp": "a"})] {
            let denied = Denied::InsufficientScope(vec!["a".to_owned(), "c".to_owned()]);
            assert_eq!(decided(&changed, &["a", "c"]), Err(denied), "{changed}");
        }
    }

    #[test]
    fn claims_become_texts_and_scopes_a_list_where_the_route_asks_for_some() {
        let claims = json!({"groups": ["a", 1], "verified": true, "address": {"city": "Berlin"}, "scope": "a b"});
        let expected = json!({
            "iss": "https://issuer.test", "aud": "one", "sub": "ann", "exp": (NOW + 1).to_string(),
            "groups": "[a 1]", "verified": "true", "address": "{\"city\":\"Berlin\"}", "scope": "a b",
        });

        let told = serde_json::to_value(decided(&claims, &["a"]).unwrap()).unwrap();
        assert_eq!(told, json!({"claims": expected, "scopes": ["a", "b"]}));
        let told = serde_json::to_value(decided(&claims, &[]).unwrap()).unwrap();
        assert_eq!(told, json!({"claims": expected, "scopes": null}));
    }

    #[test]
    fn a_header_with_anything_but_one_token_is_refused() {
        let keys = PublicKeys::default();
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        let denied = |values: &[&str]| {
            let headers = values.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap())).collect();
            check(&authorizer(), &[], &keys, &headers, now).unwrap_err()
        };

        assert_eq!(denied(&[]), Denied::NoToken);
        for values in [&[""][..], &["Bearer "], &["Basic YTpi"], &["a.b.c"], &["Bearer a.b.c", "Bearer a.b.c"]] {
            assert_eq!(denied(values), Denied::InvalidToken(None), "{values:?}");
        }
    }
}
