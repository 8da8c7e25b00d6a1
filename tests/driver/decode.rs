//! Each record is decoded on its own, and repeats of an event share an outcome.

use consumer::Outcome;
use serde_json::{Value, json};
use testkit::sample::{game_ended, player_id};

use crate::support::{counting, deadline, deliveries, delivery, driver, handle, handle_body, names, outcomes, stored};

fn event() -> events::Event {
    game_ended(1, (1, 1500, 1), (2, 1500, 1))
}

fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut body: Value = serde_json::from_str(&event().encode()).unwrap();
    change(&mut body);
    body.to_string()
}

async fn check_rejected(body: impl Into<Vec<u8>>, reason: &str) {
    let driver = driver(counting());
    let outcome = handle_body(&driver, body).await;
    let Outcome::Rejected(text) = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(reason), "{text}");
    assert_eq!(driver.ledger.rows().len(), 0);
}

async fn check_applied(body: String) {
    let driver = driver(counting());
    assert_eq!(handle_body(&driver, body).await, Outcome::Applied);
    assert_eq!(stored(&driver.ledger, "count"), Some(1));
}

#[tokio::test]
async fn a_body_that_is_no_event_is_rejected_by_name() {
    check_rejected("", "empty").await;
    check_rejected("  \n", "empty").await;
    check_rejected("not json", "envelope").await;
    check_rejected([0xff, 0xfe], "UTF-8").await;
    check_rejected("[]", "envelope").await;
    check_rejected("null", "envelope").await;
    check_rejected("{}", "event_id").await;
    check_rejected(changed(|body| body["event_id"] = json!("936da01f-9abd-4d9d-80c7-02af85c822a8")), "version 7").await;
    check_rejected(changed(|body| body["occurred_at"] = json!("yesterday")), "RFC 3339").await;
    check_rejected(changed(|body| body["version"] = json!(0)), "version").await;
    check_rejected(changed(|body| body["aggregate_type"] = json!("player")), "aggregate_type").await;
    check_rejected(changed(|body| body["payload"] = json!({})), "payload").await;
    check_rejected(changed(|body| body["payload"]["white"]["rating"] = json!(4001)), "4001").await;
    check_rejected(changed(|body| body["payload"]["white"]["rating"] = json!(1500.5)), "payload").await;
}

#[tokio::test]
async fn an_unknown_event_type_is_rejected() {
    check_rejected(changed(|body| body["event_type"] = json!("game_begun")), "game_begun").await;
}

#[tokio::test]
async fn a_newer_schema_version_is_retried() {
    let driver = driver(counting());
    let outcome = handle_body(&driver, changed(|body| body["schema_version"] = json!(2))).await;
    assert!(matches!(&outcome, Outcome::Retry(reason) if reason.contains("schema_version")), "{outcome:?}");
}

#[tokio::test]
async fn an_event_wrapped_by_sns_is_unwrapped() {
    let notification = json!({"Type": "Notification", "TopicArn": "arn:aws:sns:r:1:t", "Message": event().encode()});
    check_applied(notification.to_string()).await;
}

#[tokio::test]
async fn an_event_wrapped_by_eventbridge_is_unwrapped() {
    let event: Value = serde_json::from_str(&event().encode()).unwrap();
    check_applied(json!({"detail-type": "game_ended", "source": "games", "detail": event}).to_string()).await;
}

#[tokio::test]
async fn a_users_own_field_called_message_is_no_wrapper() {
    for (name, value) in [("Message", "hello"), ("Type", "Notification"), ("source", "me"), ("detail-type", "x")] {
        check_applied(changed(|body| body[name] = json!(value))).await;
    }
}

#[tokio::test]
async fn one_undecodable_record_leaves_the_others_alone() {
    let driver = driver(counting());
    let mut batch = deliveries(&[event(), game_ended(2, (1, 1510, 2), (2, 1490, 2))]);
    batch.insert(1, delivery(9, "not json"));
    let report = driver.handle(&batch, deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["applied", "rejected", "applied"]);
    let failures: Vec<&str> = report.failures().map(|id| id.as_str()).collect();
    assert_eq!(failures, ["message-9"]);
}

#[tokio::test]
async fn repeats_of_an_event_share_its_outcome() {
    let driver = driver(counting());
    let outcomes = handle(&driver, &[event(), event(), event()]).await;
    assert_eq!(names(&outcomes), ["applied", "duplicate", "duplicate"]);
    assert_eq!(stored(&driver.ledger, "count"), Some(1));
    let other = crate::support::driver(crate::support::blind(|_| domain::Decision::Reject("no".to_owned())));
    assert_eq!(names(&handle(&other, &[event(), event()]).await), ["rejected", "rejected"]);
}

#[tokio::test]
async fn what_is_sent_is_ascii_and_comes_back_the_same() {
    let mut event = event();
    let events::Payload::GameEnded(game) = &mut event.payload else { panic!("no game: {event:?}") };
    game.white.username = "Ænn \u{10348} \u{fffe}".parse().unwrap();
    let body = event.encode();
    assert!(body.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{body}");
    assert_eq!(events::Event::decode(body.as_bytes()).unwrap(), event);
    assert_eq!(game_ended(1, (1, 1, 1), (2, 1, 1)).aggregate_id, "game-00001");
    assert_eq!(player_id(1).as_str(), "player-00001");
}
