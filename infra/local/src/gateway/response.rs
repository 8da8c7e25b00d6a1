//! A function's response as the answer to the client: payload format 2.0, given or inferred. Invokes nothing.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

/// A response that names its status.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Structured {
    status_code: Value,
    #[serde(default)]
    headers: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    cookies: Option<Vec<String>>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: Option<bool>,
}

/// Returns the answer that a function's response means. One that makes no sense is an internal error, as in API Gateway.
pub(super) fn build(response: &[u8]) -> Response {
    let answer = match serde_json::from_slice::<Value>(response) {
        Ok(Value::Object(object)) if object.contains_key("statusCode") => structured(Value::Object(object)),
        Ok(other) => Some(inferred(&other)),
        Err(_) => None,
    };
    answer.unwrap_or_else(|| message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"))
}

/// Returns an answer of the gateway itself.
pub(super) fn message(status: StatusCode, text: &str) -> Response {
    json(status, serde_json::json!({ "message": text }).to_string())
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// JSON that names no status is the body of a success.
fn inferred(response: &Value) -> Response {
    let body = match response {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => response.to_string(),
    };
    json(StatusCode::OK, body)
}

fn structured(response: Value) -> Option<Response> {
    let structured: Structured = serde_json::from_value(response).ok()?;
    let body = match (structured.body, structured.is_base64_encoded) {
        (Some(body), Some(true)) => STANDARD.decode(body).ok()?,
        (Some(body), Some(false) | None) => body.into_bytes(),
        (None, _) => Vec::new(),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status(&structured.status_code)?;
    let headers = response.headers_mut();
    for (name, value) in structured.headers.unwrap_or_default() {
        let name = HeaderName::try_from(name).ok()?;
        // The connection's affair, not the function's.
        if name != header::CONTENT_LENGTH && name != header::TRANSFER_ENCODING && name != header::CONNECTION {
            headers.insert(name, header_value(&value)?);
        }
    }
    for cookie in structured.cookies.unwrap_or_default() {
        headers.append(header::SET_COOKIE, HeaderValue::try_from(cookie).ok()?);
    }
    headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("text/plain;charset=UTF-8"));
    Some(response)
}

/// A status may be a number or its digits.
fn status(value: &Value) -> Option<StatusCode> {
    let number = match value {
        Value::Number(number) => u16::try_from(number.as_u64()?).ok()?,
        Value::String(digits) => digits.parse().ok()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    if (100..=599).contains(&number) { StatusCode::from_u16(number).ok() } else { None }
}

/// A header's value may be a string, a number or a truth value.
fn header_value(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::String(text) => HeaderValue::try_from(text).ok(),
        Value::Number(_) | Value::Bool(_) => HeaderValue::try_from(value.to_string()).ok(),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn answer(response: &str) -> (u16, String, String) {
        let answer = build(response.as_bytes());
        let status = answer.status().as_u16();
        let content_type = answer.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, content_type, String::from_utf8(body.to_vec()).unwrap())
    }

    fn expected(status: u16, content_type: &str, body: &str) -> (u16, String, String) {
        (status, content_type.to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn a_response_with_a_status_is_taken_as_it_is() {
        let response = r#"{"statusCode":201,"headers":{"Content-Type":"application/json"},"body":"{\"a\":1}"}"#;
        assert_eq!(answer(response).await, expected(201, "application/json", r#"{"a":1}"#));
        assert_eq!(
            answer(r#"{"statusCode":"200","body":"aGk=","isBase64Encoded":true}"#).await,
            expected(200, "text/plain;charset=UTF-8", "hi")
        );
        assert_eq!(answer(r#"{"statusCode":204}"#).await, expected(204, "text/plain;charset=UTF-8", ""));
    }

    #[tokio::test]
    async fn a_response_without_a_status_is_the_body() {
        assert_eq!(answer(r#"{"a":1}"#).await, expected(200, "application/json", r#"{"a":1}"#));
        assert_eq!(answer(r#""hello""#).await, expected(200, "application/json", "hello"));
    }

    #[tokio::test]
    async fn a_malformed_response_is_an_internal_error() {
        let malformed = [
            "",
            "nonsense",
            r#"{"statusCode":"abc"}"#,
            r#"{"statusCode":99}"#,
            r#"{"statusCode":1000}"#,
            r#"{"statusCode":200,"body":{"a":1}}"#,
            r#"{"statusCode":200,"headers":"none"}"#,
            r#"{"statusCode":200,"headers":{"bad name":"x"}}"#,
            r#"{"statusCode":200,"body":"%%%","isBase64Encoded":true}"#,
        ];
        for response in malformed {
            let internal_error = expected(500, "application/json", r#"{"message":"Internal Server Error"}"#);
            assert_eq!(answer(response).await, internal_error, "{response}");
        }
    }

    #[test]
    fn every_cookie_gets_a_header_of_its_own() {
        let answer = build(br#"{"statusCode":200,"cookies":["a=1; Secure","b=2"]}"#);

        let cookies: Vec<_> = answer.headers().get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; Secure", "b=2"]);
    }
}
