//! The life of an event, from the lines of a local stack's folder.

use std::path::Path;

use events::{Consumer, EventId, Timestamp, TraceId};
use operations::trace::{Folder, Life, Logs, SAVED_EVENT, SAVED_TRACE, StepKind};
use serde_json::{Value, json};
use testkit::sample::{event_id, now};

fn trace_id() -> TraceId {
    TraceId::mint(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736)
}

/// The event that everything is about.
pub(crate) fn followed() -> EventId {
    event_id(7, now())
}

/// Writes lines to a function's log, each with event, trace and moment.
pub(crate) fn log(folder: &Path, function: &str, event_id: EventId, lines: &[(u64, Value)]) {
    use std::io::Write;
    let path = folder.join(format!("players-engine-{function}.log"));
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    for (millis, fields) in lines {
        let at: Timestamp = now() + std::time::Duration::from_millis(*millis);
        let mut line =
            json!({"timestamp": at, "level": "INFO", "target": "t", "event_id": event_id, "trace_id": trace_id()});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        writeln!(file, "{line}").unwrap();
    }
}

/// A stack's logs of a follow that somebody is told of, among lines about others.
pub(crate) fn scene(folder: &Path) {
    let about = |fields: Value| {
        let mut all = json!({"event_type": "follow_started", "aggregate_id": "player-1/player-2", "version": 1});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        all
    };
    let event = followed();
    log(
        folder,
        "api",
        event,
        &[
            (
                3,
                about(
                    json!({"message": "record written", "record": "FOLLOWED#player-2/FOLLOWER#1", "method": "PUT", "route": "/r"}),
                ),
            ),
            (
                5,
                json!({"message": "request answered", "method": "PUT", "route": "/players/{player_id}/follows/{other}", "status": 201, "latency_ms": 5}),
            ),
        ],
    );
    log(
        folder,
        "outbox-relay",
        event,
        &[(
            20,
            about(json!({
                "message": "event sent", "outcome": "sent", "sequence_number": "7", "queues": "follow-changed fan-out activity active-players",
            })),
        )],
    );
    let delivery = |outcome: &str, count: u32, reason: Option<&str>| {
        about(json!({
            "message": "record handled", "outcome": outcome, "receive_count": count, "message_id": "m-1", "reason": reason,
        }))
    };
    log(
        folder,
        "follow-changed",
        event,
        &[(40, delivery("retry", 1, Some("the ledger is busy"))), (900, delivery("applied", 2, None))],
    );
    log(folder, "fan-out", event, &[(45, delivery("applied", 1, None))]);
    log(folder, "activity", event, &[(50, delivery("applied", 1, None))]);
    let told = event.derived(Consumer::FanOut, "n-1");
    let of = |fields: Value| {
        let mut all = json!({"event_type": "notification_requested", "aggregate_id": "n-1", "version": 1});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        all
    };
    log(
        folder,
        "notification-requested",
        told,
        &[
            (
                80,
                of(json!({"message": "record handled", "outcome": "applied", "receive_count": 1, "message_id": "m-2"})),
            ),
            (85, of(json!({"message": "letter handled", "letter": "delivered", "letter_key": "n-1"}))),
        ],
    );
    let later = event_id(8, now() + std::time::Duration::from_secs(1));
    log(folder, "api", later, &[(1_003, json!({"message": "record written", "record": "X/Y"}))]);
    std::fs::write(folder.join("players-engine-post-changed.log"), "no JSON\n{\"event_id\": 7}\n").unwrap();
}

async fn life(folder: &Path, event_id: EventId) -> Option<Life> {
    Logs::Folder(Folder::new(folder, "players-engine")).life(event_id).await.unwrap()
}

#[tokio::test]
async fn every_step_is_there_in_its_order_and_what_is_not_logged_is_named() {
    let folder = tempfile::tempdir().unwrap();
    scene(folder.path());
    let life = life(folder.path(), followed()).await.unwrap();
    let kinds: Vec<StepKind> = life.event.steps.iter().map(|step| step.kind).collect();
    use StepKind::{Delivery, Record, Relay, Request};
    assert_eq!(kinds, [Record, Request, Relay, Delivery, Delivery, Delivery, Delivery]);
    assert_eq!(life.event.not_delivered_to, ["active-players"]);
    assert_eq!(life.trace_id, Some(trace_id()));
    let text = life.to_string();
    for said in [
        "follow_started",
        "FOLLOWED#player-2/FOLLOWER#1 written",
        "answered 201 in 5 ms",
        "sent to follow-changed fan-out",
        "retry on receive 1, message m-1: the ledger is busy",
        "applied on receive 2",
        "active-players          not logged",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
}

#[tokio::test]
async fn what_grew_out_of_it_is_there_and_other_events_of_the_trace_are_not() {
    let folder = tempfile::tempdir().unwrap();
    scene(folder.path());
    let life = life(folder.path(), followed()).await.unwrap();
    assert_eq!(life.derived.len(), 1, "{life}");
    let told = &life.derived[0];
    assert_eq!(told.event_type.as_deref(), Some("notification_requested"));
    let kinds: Vec<StepKind> = told.steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, [StepKind::Delivery, StepKind::Letter]);
    assert!(life.to_string().contains("letter n-1 delivered"), "{life}");
}

#[tokio::test]
async fn lines_from_before_the_log_began_anew_count_too() {
    let folder = tempfile::tempdir().unwrap();
    scene(folder.path());
    let name = |ending| folder.path().join(format!("players-engine-api.{ending}"));
    std::fs::rename(name("log"), name("log.1")).unwrap();
    assert_eq!(life(folder.path(), followed()).await.unwrap().event.steps.len(), 7);
}

#[tokio::test]
async fn an_event_that_no_line_names_has_no_life_and_a_folder_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    scene(folder.path());
    assert_eq!(life(folder.path(), event_id(99, now())).await, None);
    let missing = Logs::Folder(Folder::new(folder.path().join("none"), "players-engine"));
    assert!(missing.life(followed()).await.unwrap_err().to_string().contains("none"));
}

#[tokio::test]
async fn the_last_reason_of_a_message_is_found_by_its_function() {
    let folder = tempfile::tempdir().unwrap();
    scene(folder.path());
    let logs = Logs::Folder(Folder::new(folder.path(), "players-engine"));
    let reasons = logs.reasons("follow-changed", &["m-1", "m-9"]).await.unwrap();
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), [("m-1".to_owned(), "the ledger is busy".to_owned())]);
    assert!(logs.reasons("activity", &["m-1"]).await.unwrap().is_empty());
}

#[test]
fn the_saved_queries_are_the_ones_that_are_run() {
    let template = include_str!("../../../queries.yaml");
    for query in [SAVED_EVENT, SAVED_TRACE] {
        let indented: String = query.lines().map(|line| format!("        {line}\n")).collect();
        assert!(template.contains(&indented), "infra/queries.yaml does not have\n{indented}");
    }
    for function in operations::trace::function_names() {
        let group = format!("- !Sub /aws/lambda/${{Prefix}}-{function}\n");
        assert_eq!(template.matches(&group).count(), 2, "{function}");
    }
}
