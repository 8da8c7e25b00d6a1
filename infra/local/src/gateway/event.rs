//! A request as the event that API Gateway sends to a function: payload format 2.0. Sends nothing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use time::OffsetDateTime;
use time::macros::format_description;
use uuid::Uuid;

use super::authorizer::Authorized;
use super::routes::{Match, decode_percent};
use crate::lambda::ACCOUNT_ID;

/// Id of the only API there is.
const API_ID: &str = "local";

/// Stage of the only API there is; it does not appear in paths.
const STAGE: &str = "$default";

/// Content types whose bodies are text; all others are sent in base64.
const TEXT_TYPES: [&str; 4] = ["text/", "application/json", "application/xml", "application/javascript"];

/// What an event is built from.
pub(super) struct Source<'a> {
    pub(super) matched: &'a Match<'a>,
    pub(super) parts: &'a Parts,
    pub(super) body: &'a Bytes,
    pub(super) client: SocketAddr,
    /// Of a request whose route asks for a token.
    pub(super) authorized: Option<&'a Authorized>,
}

/// Returns the event of a request.
pub(super) fn build(source: &Source<'_>) -> Bytes {
    let route = source.matched.route;
    let route_key = match route.path.as_str() {
        "$default" => route.path.clone(),
        path => format!("{} {path}", route.method),
    };
    let uri = &source.parts.uri;
    let (body, is_base64_encoded) = body(&source.parts.headers, source.body);
    let event = Event {
        version: "2.0",
        route_key: &route_key,
        raw_path: uri.path(),
        raw_query_string: uri.query().unwrap_or_default(),
        cookies: cookies(&source.parts.headers),
        headers: headers(source),
        query_string_parameters: query(uri.query().unwrap_or_default()),
        path_parameters: Some(&source.matched.parameters).filter(|parameters| !parameters.is_empty()),
        request_context: context(source, &route_key),
        body,
        is_base64_encoded,
    };
    // Strings, numbers and maps of strings always have a JSON form.
    serde_json::to_vec(&event).unwrap_or_default().into()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    version: &'static str,
    route_key: &'a str,
    raw_path: &'a str,
    raw_query_string: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cookies: Option<Vec<String>>,
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query_string_parameters: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_parameters: Option<&'a BTreeMap<String, String>>,
    request_context: RequestContext<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    is_base64_encoded: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext<'a> {
    account_id: &'static str,
    api_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    authorizer: Option<Authorizer<'a>>,
    domain_name: String,
    domain_prefix: &'static str,
    http: Http<'a>,
    request_id: String,
    route_key: &'a str,
    stage: &'static str,
    time: String,
    time_epoch: u64,
}

#[derive(Serialize)]
struct Authorizer<'a> {
    jwt: &'a Authorized,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Http<'a> {
    method: &'a str,
    path: &'a str,
    protocol: &'static str,
    source_ip: String,
    user_agent: String,
}

fn context<'a>(source: &Source<'a>, route_key: &'a str) -> RequestContext<'a> {
    let now = SystemTime::now();
    let clf = format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");
    RequestContext {
        account_id: ACCOUNT_ID,
        api_id: API_ID,
        authorizer: source.authorized.map(|jwt| Authorizer { jwt }),
        domain_name: text(&source.parts.headers, header::HOST),
        domain_prefix: API_ID,
        http: Http {
            method: source.parts.method.as_str(),
            path: source.parts.uri.path(),
            protocol: "HTTP/1.1",
            source_ip: source.client.ip().to_string(),
            user_agent: text(&source.parts.headers, header::USER_AGENT),
        },
        request_id: Uuid::new_v4().to_string(),
        route_key,
        stage: STAGE,
        time: OffsetDateTime::from(now).format(&clf).unwrap_or_default(),
        time_epoch: u64::try_from(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or_default(),
    }
}

/// Returns all headers in lower case, repeated ones joined by commas, without cookies, with those that API Gateway adds.
fn headers(source: &Source<'_>) -> BTreeMap<String, String> {
    let headers = &source.parts.headers;
    let mut joined: BTreeMap<String, String> = headers
        .keys()
        .filter(|name| *name != header::COOKIE)
        .map(|name| (name.as_str().to_owned(), text(headers, name)))
        .collect();
    let client = source.client.ip().to_string();
    let forwarded = match joined.remove("x-forwarded-for") {
        Some(before) => format!("{before}, {client}"),
        None => client,
    };
    joined.insert("x-forwarded-for".to_owned(), forwarded);
    joined.insert("x-forwarded-proto".to_owned(), "http".to_owned());
    joined
}

fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> String {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(",")
}

fn cookies(headers: &HeaderMap) -> Option<Vec<String>> {
    let lines = headers.get_all(header::COOKIE).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let cookies: Vec<_> =
        lines.flat_map(|line| line.split(';').map(|cookie| cookie.trim().to_owned()).collect::<Vec<_>>()).collect();
    Some(cookies).filter(|cookies| !cookies.is_empty())
}

/// Returns the parameters of a query, decoded, repeated ones joined by commas.
fn query(raw: &str) -> Option<BTreeMap<String, String>> {
    let mut parameters: BTreeMap<String, String> = BTreeMap::new();
    for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| decode_percent(&text.replace('+', " "));
        parameters
            .entry(decode(name))
            .and_modify(|values| {
                values.push(',');
                values.push_str(&decode(value));
            })
            .or_insert_with(|| decode(value));
    }
    Some(parameters).filter(|parameters| !parameters.is_empty())
}

/// Returns the body as text or in base64, and whether it is the latter.
fn body(headers: &HeaderMap, body: &Bytes) -> (Option<String>, bool) {
    if body.is_empty() {
        return (None, false);
    }
    let content_type = text(headers, header::CONTENT_TYPE).to_ascii_lowercase();
    let is_text = content_type.is_empty() || TEXT_TYPES.iter().any(|text| content_type.starts_with(text));
    match std::str::from_utf8(body) {
        Ok(text) if is_text => (Some(text.to_owned()), false),
        Ok(_) | Err(_) => (Some(STANDARD.encode(body)), true),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use serde_json::{Value, json};

    use super::super::routes::Routes;
    use super::*;
    use crate::model::{Access, Route};

    fn event_of(request: Request<&'static [u8]>) -> Value {
        let route = |method: &str, path: &str| Route {
            method: method.to_owned(),
            path: path.to_owned(),
            function: "api".to_owned(),
            access: Access::Anyone,
        };
        let routes = Routes::new(&[route("POST", "/games"), route("GET", "/players/{player_id}")]);
        let (parts, body) = request.into_parts();
        let matched = routes.find(parts.method.as_str(), parts.uri.path()).unwrap();
        let client = SocketAddr::from(([127, 0, 0, 1], 5555));
        let body = Bytes::from_static(body);
        let event = build(&Source { matched: &matched, parts: &parts, body: &body, client, authorized: None });
        serde_json::from_slice(&event).unwrap()
    }

    #[test]
    fn an_event_has_the_fields_of_format_2() {
        let request = Request::get("/players/a%20b?x=1&y=2&x=3%2C4")
            .header("Host", "127.0.0.1:3000")
            .header("User-Agent", "test")
            .header("X-Many", "one")
            .header("x-many", "two")
            .header("Cookie", "a=1; b=2")
            .body(&b""[..])
            .unwrap();

        let event = event_of(request);

        assert_eq!(event["version"], "2.0");
        assert_eq!(event["routeKey"], "GET /players/{player_id}");
        assert_eq!(event["rawPath"], "/players/a%20b");
        assert_eq!(event["rawQueryString"], "x=1&y=2&x=3%2C4");
        assert_eq!(event["queryStringParameters"], json!({ "x": "1,3,4", "y": "2" }));
        assert_eq!(event["pathParameters"], json!({ "player_id": "a b" }));
        assert_eq!(event["cookies"], json!(["a=1", "b=2"]));
        assert_eq!(event["headers"]["x-many"], "one,two");
        assert_eq!(event["headers"].get("cookie"), None);
        assert_eq!(event["isBase64Encoded"], false);
        assert_eq!(event.get("body"), None);
        let context = &event["requestContext"];
        assert_eq!(context["stage"], "$default");
        assert_eq!(context.get("authorizer"), None);
        assert_eq!(
            context["http"],
            json!({
                "method": "GET",
                "path": "/players/a%20b",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "test",
            })
        );
        assert!(context["time"].as_str().unwrap().ends_with(" +0000"));
    }

    #[test]
    fn text_is_sent_as_it_is_and_all_else_in_base64() {
        let body_of = |content_type: &str, body: &'static [u8]| {
            let event = event_of(Request::post("/games").header("content-type", content_type).body(body).unwrap());
            (event["body"].as_str().unwrap().to_owned(), event["isBase64Encoded"].as_bool().unwrap())
        };

        assert_eq!(body_of("application/json; charset=utf-8", b"{}"), ("{}".to_owned(), false));
        assert_eq!(body_of("application/octet-stream", b"{}"), ("e30=".to_owned(), true));
        assert_eq!(body_of("application/json", b"\xff"), ("/w==".to_owned(), true));
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let event = event_of(Request::post("/games").body(&b""[..]).unwrap());

        for absent in ["cookies", "queryStringParameters", "pathParameters", "body"] {
            assert_eq!(event.get(absent), None, "{absent}");
        }
        assert_eq!(event["rawQueryString"], "");
    }
}
