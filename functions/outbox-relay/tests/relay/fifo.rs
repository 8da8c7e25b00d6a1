//! Events on their way to a FIFO queue: in order within their aggregate.

use aws::publisher::{Fault, FifoPlace};
use serde_json::{Value, json};

use crate::support::{Queues, game, insert, relay};

const QUEUE: &str = "order-changed.fifo";

/// The record of an order's event; the position in the stream is its number.
fn order(number: u64, order_id: &str, version: u64) -> Value {
    let event = json!({"M": {
        "event_id": {"S": event_id(number)},
        "aggregate_type": {"S": "order"},
        "aggregate_id": {"S": order_id},
        "version": {"N": version.to_string()},
        "event_type": {"S": "order_paid"},
        "schema_version": {"N": "1"},
        "occurred_at": {"S": "2026-11-30T18:00:00.000Z"},
        "trace_id": {"S": "4bf92f3577b34da6a3ce929d0e0e4736"},
        "payload": {"M": {"amount_cents": {"N": "500"}}},
    }});
    insert(number, event)
}

fn event_id(number: u64) -> String {
    format!("0193f8a0-0000-7000-8000-{number:012}")
}

/// Which events a queue has, as order and version.
fn events(queues: &Queues) -> Vec<(String, u64)> {
    let bodies = queues.bodies(QUEUE);
    bodies
        .iter()
        .map(|body| (body["aggregate_id"].as_str().unwrap().to_owned(), body["version"].as_u64().unwrap()))
        .collect()
}

fn expected(events: &[(&str, u64)]) -> Vec<(String, u64)> {
    events.iter().map(|(order, version)| ((*order).to_owned(), *version)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_group_is_the_aggregate_and_the_event_goes_once() {
    let queues = Queues::default();
    assert!(relay(&queues, vec![order(1, "order-a", 7), game(2)]).await.is_empty());

    let taken = queues.taken.lock().unwrap();
    let place = FifoPlace { group_id: "order-a".to_owned(), deduplication_id: event_id(1) };
    assert_eq!(taken[QUEUE][0].fifo, Some(place));
    // A standard queue would refuse it.
    assert_eq!(taken["game-ended"][0].fifo, None);
}

#[tokio::test(start_paused = true)]
async fn events_of_an_aggregate_follow_one_another() {
    let queues = Queues::default();
    let records = vec![
        order(1, "a", 1),
        order(2, "b", 1),
        order(3, "a", 2),
        order(4, "c", 1),
        order(5, "a", 3),
        order(6, "b", 2),
    ];
    assert!(relay(&queues, records).await.is_empty());
    assert_eq!(events(&queues), expected(&[("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 3), ("b", 2)]));
}

#[tokio::test(start_paused = true)]
async fn behind_an_event_that_has_to_wait_none_of_its_aggregate_goes_out() {
    let waiting = format!("\"{}\"", event_id(2));
    let queues = Queues::refusing(&[(QUEUE, &waiting, usize::MAX, Fault::Passing)]);
    let records = vec![order(1, "b", 1), order(2, "a", 1), order(3, "c", 1), order(4, "a", 2), order(5, "a", 3)];
    assert_eq!(relay(&queues, records).await, ["2"]);
    assert_eq!(events(&queues), expected(&[("b", 1), ("c", 1)]));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_can_never_go_out_holds_nobody() {
    let poison = format!("\"{}\"", event_id(1));
    let queues = Queues::refusing(&[(QUEUE, &poison, 1, Fault::Message)]);
    assert!(relay(&queues, vec![order(1, "a", 1), order(2, "a", 2)]).await.is_empty());
    assert_eq!(events(&queues), expected(&[("a", 2)]));
    assert_eq!(queues.bodies("relay-rejected").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_an_aggregate_has_no_group_and_is_put_aside() {
    let mut nameless = order(1, "a", 1);
    nameless["dynamodb"]["NewImage"]["event"]["M"].as_object_mut().unwrap().remove("aggregate_id");
    let queues = Queues::default();
    assert!(relay(&queues, vec![nameless, order(2, "a", 2)]).await.is_empty());
    assert_eq!(events(&queues), expected(&[("a", 2)]));
    let rejected = queues.bodies("relay-rejected");
    assert!(rejected[0]["reason"].as_str().unwrap().contains("field aggregate_id"), "{}", rejected[0]["reason"]);
}
