//! The receiver of notifications: what it takes, and how it fails when told to.

use std::net::{IpAddr, Ipv4Addr};

use local::model::{Function, Model};
use local::receiver::{Mode, Receiver};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::runtime::function;

async fn receiver() -> Receiver {
    Receiver::start(IpAddr::V4(Ipv4Addr::LOCALHOST)).await.unwrap()
}

async fn post(receiver: &Receiver, key: &str) -> StatusCode {
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client.post(receiver.url()).header("Idempotency-Key", key).header("traceparent", "00-t-s-01");
    let request = request.json(&json!({"n": key}));
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn a_letter_is_shown_with_its_trace_and_how_often_it_came() {
    let receiver = receiver().await;
    for key in ["a", "b", "a"] {
        assert_eq!(post(&receiver, key).await, StatusCode::NO_CONTENT);
    }
    let client = Client::builder().no_proxy().build().unwrap();
    let shown: Value = client.get(receiver.url() + "letters").send().await.unwrap().json().await.unwrap();
    let letter = |times, key| json!({"times": times, "traceparent": "00-t-s-01", "content": {"n": key}});
    assert_eq!(shown, json!({"a": letter(2, "a"), "b": letter(1, "b")}));
}

#[tokio::test]
async fn it_fails_when_told_to_and_takes_nothing_meanwhile() {
    let receiver = receiver().await;
    let client = Client::builder().no_proxy().build().unwrap();
    for (mode, status) in [("fail", 500), ("refuse", 403), ("take", 204)] {
        let set = client.put(receiver.url() + "mode").json(&json!({"mode": mode})).send().await.unwrap();
        assert_eq!(set.status(), StatusCode::OK);
        assert_eq!(post(&receiver, mode).await.as_u16(), status, "{mode}");
    }
    assert_eq!(receiver.letters().keys().collect::<Vec<_>>(), ["take"]);
    receiver.set_mode(Mode::Hang);
    let short = Client::builder().no_proxy().timeout(std::time::Duration::from_millis(100)).build().unwrap();
    let hung = short.post(receiver.url()).header("Idempotency-Key", "h").json(&json!({})).send().await;
    assert!(hung.unwrap_err().is_timeout());
}

#[tokio::test]
async fn functions_without_a_webhook_are_told_of_it() {
    let receiver = receiver().await;
    let with = |url: Option<&str>| {
        let mut function: Function = function(std::time::Duration::from_secs(1));
        function.environment.extend(url.map(|url| ("WEBHOOK_URL".to_owned(), url.to_owned())));
        function
    };
    let functions = vec![with(None), with(Some("")), with(Some("https://example.com"))];
    let mut model = Model { functions, ..Model::default() };
    receiver.announce(&mut model);
    let urls: Vec<Option<String>> =
        model.functions.iter().map(|function| function.environment.get("WEBHOOK_URL").cloned()).collect();
    assert_eq!(urls, [None, Some(receiver.url()), Some("https://example.com".to_owned())]);
}
