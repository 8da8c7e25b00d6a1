//! Tokens as the gateway hands them on: the claims in the request's context.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use lambda_http::request::RequestContext;
use serde_json::{Value, json};

/// Everything that a token can be good for.
pub(crate) const ALL_SCOPES: &str = "games:write moderate operate";

/// Who sends what names nobody.
const ANYBODY: &str = "ann";

/// Returns what the gateway says of a token.
pub(crate) fn authorizer(subject: &str, scopes: &str) -> Value {
    let mut claims = json!({
        "iss": "https://issuer.test", "aud": "players-engine", "sub": subject, "iat": "1796061000", "exp": "1796064600",
    });
    if !scopes.is_empty() {
        claims["scope"] = json!(scopes);
    }
    json!({"jwt": {"claims": claims, "scopes": null}})
}

/// Gives a request the token of somebody.
pub(crate) fn sent_by(subject: &str, scopes: &str, mut request: Request<Body>) -> Request<Body> {
    let http = json!({"method": "GET", "path": "/", "protocol": "", "sourceIp": "", "userAgent": ""});
    let context = json!({"stage": "$default", "timeEpoch": 0, "http": http, "authorizer": authorizer(subject, scopes)});
    let context = serde_json::from_value(context).unwrap();
    request.extensions_mut().insert(RequestContext::ApiGatewayV2(context));
    request
}

/// Gives a request a token with all scopes of the player whom its path or its body names. Tests of anything but access need no
/// more; whom the path or the body names is not trusted, which other tests see to.
pub(crate) async fn sent_by_whom_it_names(request: Request<Body>) -> Request<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let fields: Value = serde_json::from_slice(&body).unwrap_or_default();
    let segments: Vec<&str> = parts.uri.path().split('/').collect();
    let in_path = match segments[..] {
        ["", "players", player_id, _, ..] => Some(player_id),
        ["", "posts", _, "reactions", player_id] => Some(player_id),
        _ => None,
    };
    let in_body = || fields["author_id"].as_str().or_else(|| fields["player_id"].as_str());
    let subject = in_path.or_else(in_body).unwrap_or(ANYBODY).to_owned();
    sent_by(&subject, ALL_SCOPES, Request::from_parts(parts, Body::from(body)))
}
