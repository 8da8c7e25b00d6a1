//! The logs in CloudWatch, on a server that answers as Logs Insights does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::config::{BehaviorVersion, Credentials, Region};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use operations::trace::{Insights, Logs, SAVED_EVENT, StepKind};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::trace::{followed, scene};

/// What was asked, and how a query ends.
#[derive(Clone)]
struct Server {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    polls: Arc<Mutex<u32>>,
    status: &'static str,
    /// Log groups with their lines.
    lines: Arc<Vec<(String, String)>>,
}

async fn answer(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let target = headers["x-amz-target"].to_str().unwrap().to_owned();
    server.asked.lock().unwrap().push((target.clone(), body));
    match target.as_str() {
        "Logs_20140328.StartQuery" => Json(json!({"queryId": "q-1"})).into_response(),
        "Logs_20140328.GetQueryResults" => {
            let mut polls = server.polls.lock().unwrap();
            *polls += 1;
            // Every query runs for two polls.
            if *polls % 3 != 0 {
                return Json(json!({"status": "Running", "results": []})).into_response();
            }
            let field = |name: &str, value: &str| json!({"field": name, "value": value});
            let result = |(group, line): &(String, String)| {
                json!([
                    field("@timestamp", "2026-11-30 18:00:00.003"),
                    field("@log", &format!("000000000000:{group}")),
                    field("@message", line),
                    field("@ptr", "p"),
                ])
            };
            let results: Vec<Value> = server.lines.iter().map(result).collect();
            Json(json!({"status": server.status, "results": results})).into_response()
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Serves the lines of the scene, and returns logs that ask there.
async fn logs(status: &'static str) -> (Logs, Server) {
    let folder = tempfile::tempdir().unwrap();
    scene(folder.path());
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let group = format!("/aws/lambda/{}", path.file_stem().unwrap().to_str().unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        lines.extend(text.lines().map(|line| (group.clone(), line.to_owned())));
    }
    let server = Server { asked: Arc::default(), polls: Arc::default(), status, lines: Arc::new(lines) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = aws_sdk_cloudwatchlogs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("a", "s", None, None, "test"))
        .endpoint_url(endpoint);
    let insights = Insights::new(Client::from_conf(config.build()), "players-engine");
    (Logs::Insights(insights.ask_every(Duration::from_millis(1))), server)
}

#[tokio::test]
async fn the_life_of_an_event_is_asked_for_by_the_saved_queries_in_all_log_groups() {
    let (logs, server) = logs("Complete").await;
    // The server does not filter: what is not about the event must not become part of its trace.
    let life = logs.life(followed()).await.unwrap().unwrap();
    assert_eq!(life.event.steps.iter().filter(|step| step.kind == StepKind::Delivery).count(), 4, "{life}");
    let asked = server.asked.lock().unwrap().clone();
    let started: Vec<&Value> =
        asked.iter().filter(|(target, _)| target.ends_with("StartQuery")).map(|(_, body)| body).collect();
    assert_eq!(started.len(), 2);
    assert_eq!(started[0]["queryString"], SAVED_EVENT.replace("EVENT_ID", &followed().to_string()));
    assert!(started[1]["queryString"].as_str().unwrap().contains("4bf92f3577b34da6a3ce929d0e0e4736"));
    let groups = started[0]["logGroupNames"].as_array().unwrap();
    assert_eq!(groups.len(), 14);
    assert!(groups.contains(&json!("/aws/lambda/players-engine-order-changed")));
    let minted_at = followed().minted_at().as_seconds();
    let start = started[0]["startTime"].as_i64().unwrap();
    assert!(start <= minted_at && start >= minted_at - 60, "{start}");
}

#[tokio::test]
async fn a_query_that_fails_is_an_error() {
    let (logs, _) = logs("Failed").await;
    let error = logs.life(followed()).await.unwrap_err();
    assert!(aws::telemetry::chain(&error).contains("Failed"), "{error}");
}
