//! What no route is for, and the line that every request leaves in the log.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::Value;

use crate::stage::{Stage, canceled, game, log_lines, post};

#[tokio::test]
async fn an_unknown_resource_is_a_problem() {
    let stage = Stage::new().await;
    for path in ["/", "/games/g-1", "/players", "/players/", "/players/ann/games", "/leaderboards", "//players/ann"] {
        let answer = stage.send(Request::get(path).body(Body::empty()).unwrap()).await;
        let expected = if path == "/players" { StatusCode::METHOD_NOT_ALLOWED } else { StatusCode::NOT_FOUND };
        assert_eq!((answer.status, answer.places()), (expected, vec![]), "{path}");
    }
}

#[tokio::test]
async fn a_method_that_is_not_allowed_is_told_which_are() {
    let stage = Stage::new().await;
    for (method, path, allowed) in [
        ("GET", "/games", "POST"),
        ("DELETE", "/players/ann", "GET,HEAD"),
        ("PUT", "/players", "POST"),
        ("POST", "/leaderboards/blitz", "GET,HEAD"),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let answer = stage.send(request).await;
        assert_eq!((answer.status, answer.places()), (StatusCode::METHOD_NOT_ALLOWED, vec![]), "{method} {path}");
        assert_eq!(answer.headers["allow"], allowed, "{method} {path}");
    }
}

#[tokio::test]
async fn a_head_is_a_get_without_a_body() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    for (path, status) in [("/players/ann", StatusCode::OK), ("/players/nobody", StatusCode::NOT_FOUND)] {
        let answer = stage.send(Request::head(path).body(Body::empty()).unwrap()).await;
        assert_eq!((answer.status, answer.body), (status, Value::Null), "{path}");
    }
}

#[tokio::test]
async fn the_search_for_an_event_begins_at_its_request() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage.register("bea").await;
    let mut command = post("/games", game("g-1", ("ann", 1_510), ("bea", 1_490)));
    let trace = "Root=1-67891233-abcdef012345678912345678;Sampled=1";
    command.headers_mut().insert("x-amzn-trace-id", trace.parse().unwrap());
    stage.send(command).await;
    let line = line_of("67891233abcdef012345678912345678");
    assert_eq!(line["event_id"], stage.event("g-1").await.event_id.to_string());
    assert_eq!((&line["route"], &line["method"]), (&Value::from("/games"), &Value::from("POST")));
    assert_eq!((&line["status"], &line["level"]), (&Value::from(201), &Value::from("INFO")));
    assert!(line["latency_ms"].is_u64(), "{line}");
    let written = &lines_of("67891233abcdef012345678912345678")[0];
    assert_eq!((&written["event_id"], &written["event_type"]), (&line["event_id"], &Value::from("game_ended")));
    assert_eq!((&written["record"], &written["version"]), (&Value::from("GAME#g-1/GAME"), &Value::from(1)));

    let line = line_after(&stage, post("/games", game("g-1", ("ann", 1_510), ("bea", 1_490)))).await;
    assert_eq!(line["event_id"], stage.event("g-1").await.event_id.to_string());
    assert_eq!(line["status"], 200);
    let again = lines_of(line["trace_id"].as_str().unwrap());
    assert_eq!(again.len(), 1, "the same command again writes nothing: {again:?}");
}

#[tokio::test]
async fn every_request_leaves_a_line() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage.register("bea").await;
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let line = line_after(&stage, get("/players/ann")).await;
    assert_eq!((&line["route"], &line["status"]), (&Value::from("/players/{player_id}"), &Value::from(200)));
    assert_eq!(line["event_id"], Value::Null);

    let line = line_after(&stage, get("/nowhere")).await;
    assert_eq!((&line["route"], &line["status"], &line["level"]), (&"none".into(), &404.into(), &"INFO".into()));

    stage.fail("TransactWriteItems", [canceled(["ValidationError", "None", "None"])]);
    let line = line_after(&stage, post("/games", game("g-2", ("ann", 1_510), ("bea", 1_490)))).await;
    assert_eq!((&line["status"], &line["level"]), (&500.into(), &"ERROR".into()));
    assert!(line["error"].as_str().unwrap().contains("TransactWriteItems failed"), "{line}");
}

/// Sends a request with a trace of its own and returns its line.
async fn line_after(stage: &Stage, mut request: Request<Body>) -> Value {
    let trace_id = format!("{:032x}", fastrand::u128(1..));
    let traceparent = format!("00-{trace_id}-00f067aa0ba902b7-01");
    request.headers_mut().insert("traceparent", traceparent.parse().unwrap());
    stage.send(request).await;
    line_of(&trace_id)
}

/// Returns the one line of a trace that tells of an answer.
fn line_of(trace_id: &str) -> Value {
    let lines: Vec<Value> = lines_of(trace_id).into_iter().filter(|line| line["status"] != Value::Null).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

fn lines_of(trace_id: &str) -> Vec<Value> {
    log_lines().into_iter().filter(|line| line["trace_id"] == trace_id).collect()
}

#[tokio::test]
async fn every_request_is_counted_under_its_answer() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage.measured();
    stage.get("/players/ann").await;
    stage.get("/players/nobody").await;
    stage.get("/nowhere").await;
    let lines = stage.measured();
    let counted = |name: &str| lines.iter().filter(|line| line[name] == 1).count();
    assert_eq!((lines.len(), counted("Success"), counted("ClientError"), counted("ServerError")), (3, 1, 2, 0));
    assert!(lines.iter().all(|line| line["Function"] == "api" && line["LatencyMs"].is_u64()), "{lines:?}");
}
