//! The API behind an API Gateway, as Lambda calls it.

use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Context, LambdaEvent, Service};
use serde_json::{Value, json};

use crate::stage::{Stage, game};
use crate::tokens::{ALL_SCOPES, authorizer};

/// An event of an HTTP API with payload format 2.0
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>).
fn event(method: &str, path: &str, query: &str, body: Option<Value>, is_base64: &str) -> Value {
    let subject = body.as_ref().and_then(|body| body["player_id"].as_str()).unwrap_or("server").to_owned();
    let body = body.map(|body| match is_base64 {
        "base64" => base64::Engine::encode(&base64::engine::general_purpose::STANDARD, body.to_string()),
        _ => body.to_string(),
    });
    json!({
        "version": "2.0",
        "routeKey": format!("{method} {path}"),
        "rawPath": path,
        "rawQueryString": query,
        "headers": {
            "content-type": "application/json",
            "host": "id.execute-api.us-east-1.amazonaws.com",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        },
        "requestContext": {
            "accountId": "000000000000", "apiId": "id", "authorizer": authorizer(&subject, ALL_SCOPES), "domainName": "id.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "id",
            "http": {
                "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test",
            },
            "requestId": "r", "routeKey": format!("{method} {path}"), "stage": "$default",
            "time": "30/Nov/2026:18:00:00 +0000", "timeEpoch": 1_796_061_600_000_u64,
        },
        "body": body,
        "isBase64Encoded": is_base64 == "base64",
    })
}

async fn invoke(stage: &Stage, event: Value) -> Value {
    let payload: LambdaRequest = serde_json::from_str(&event.to_string()).unwrap();
    let mut function = Adapter::from(stage.router.clone());
    let response = function.call(LambdaEvent { payload, context: Context::default() }).await.unwrap();
    serde_json::to_value(response).unwrap()
}

fn body(response: &Value) -> Value {
    assert_eq!(response["isBase64Encoded"], false, "{response}");
    serde_json::from_str(response["body"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn events_of_an_http_api_reach_the_routes() {
    let stage = Stage::new().await;
    for (player_id, coding) in [("ann", "plain"), ("bea", "base64")] {
        let command = json!({"player_id": player_id, "username": "Zoë"});
        let response = invoke(&stage, event("POST", "/players", "", Some(command.clone()), coding)).await;
        assert_eq!(response["statusCode"], 201, "{response}");
        assert_eq!(response["headers"]["location"], format!("/players/{player_id}"));
        assert_eq!(body(&response), command);
    }

    let command = game("g-1", ("ann", 1_510), ("bea", 1_490));
    let response = invoke(&stage, event("POST", "/games", "", Some(command), "plain")).await;
    assert_eq!(response["statusCode"], 201, "{response}");
    let written = stage.event("g-1").await;
    assert_eq!(written.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    stage.consume(&written).await;

    let first = invoke(&stage, event("GET", "/leaderboards/blitz", "limit=1", None, "plain")).await;
    assert_eq!(body(&first)["rows"][0]["player_id"], "ann");
    let cursor = body(&first)["next_cursor"].as_str().unwrap().to_owned();
    let query = format!("limit=1&cursor={cursor}");
    let second = invoke(&stage, event("GET", "/leaderboards/blitz", &query, None, "plain")).await;
    assert_eq!(body(&second)["rows"][0]["player_id"], "bea");
}

#[tokio::test]
async fn problems_leave_as_readable_text() {
    let stage = Stage::new().await;
    let response = invoke(&stage, event("POST", "/games", "", Some(json!({})), "plain")).await;
    assert_eq!(response["statusCode"], 400);
    assert_eq!(response["headers"]["content-type"], "application/problem+json");
    assert_eq!(body(&response)["errors"][0]["pointer"], "#/game_id");
}
