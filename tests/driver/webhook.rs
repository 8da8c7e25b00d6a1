//! The webhook over HTTP: what is sent, and which answers count.

use std::sync::{Arc, Mutex};

use aws::webhook::Webhook;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use consumer::Notifier;
use events::TraceId;
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Seen = Arc<Mutex<Vec<(HeaderMap, String)>>>;

fn trace_id() -> TraceId {
    TraceId::mint(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736)
}

/// Serves answers with this status, and returns the URL.
async fn server(status: u16, seen: &Seen) -> String {
    let take = move |State(seen): State<Seen>, headers: HeaderMap, body: String| async move {
        seen.lock().unwrap().push((headers, body));
        StatusCode::from_u16(status).unwrap()
    };
    let router = Router::new().route("/in", post(take)).with_state(seen.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn a_letter_is_a_post_of_ascii_json_with_its_key_and_its_trace() {
    let seen = Seen::default();
    let webhook = Webhook::new(server(204, &seen).await);
    let letter = json!({"name": "\u{c6}nn"});
    assert_eq!(webhook.send("key-1", trace_id(), &letter).await, Ok(()));
    let (headers, body) = seen.lock().unwrap()[0].clone();
    assert_eq!(
        (&headers["idempotency-key"], &headers["content-type"]),
        (&"key-1".parse().unwrap(), &"application/json".parse().unwrap())
    );
    assert_eq!(TraceId::from_traceparent(headers["traceparent"].to_str().unwrap()), Some(trace_id()));
    assert!(body.is_ascii());
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), letter);
}

#[tokio::test]
async fn any_answer_but_a_success_is_no_delivery() {
    for (status, taken) in
        [(200, true), (202, true), (301, false), (400, false), (403, false), (429, false), (500, false)]
    {
        let webhook = Webhook::new(server(status, &Seen::default()).await);
        assert_eq!(webhook.send("key-1", trace_id(), &json!({})).await.is_ok(), taken, "{status}");
    }
}

#[tokio::test]
async fn nobody_there_is_no_delivery() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    for url in [url, "no url".to_owned()] {
        assert!(Webhook::new(url).send("key-1", trace_id(), &json!({})).await.is_err());
    }
}
