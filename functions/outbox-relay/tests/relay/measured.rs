//! What the relay counts: what it sent to whom, what it put aside, what holds the stream.

use aws::publisher::Fault;
use serde_json::{Value, json};

use crate::support::{Queues, event, game, insert, measured};

/// The record of a canary.
fn canary(number: u64) -> Value {
    let mut canary = event(number);
    let fields = canary["M"].as_object_mut().unwrap();
    fields.insert("event_type".to_owned(), json!({"S": "canary_sent"}));
    fields.insert("aggregate_type".to_owned(), json!({"S": "canary"}));
    fields.insert("payload".to_owned(), json!({"M": {}}));
    insert(number, canary)
}

fn published(lines: &[Value]) -> Vec<(&str, u64)> {
    let published = lines.iter().filter_map(|line| Some((line["Consumer"].as_str()?, line["Published"].as_u64()?)));
    published.collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_counted_by_consumer() {
    let lines = measured(&Queues::default(), vec![game(1), game(2)]).await;
    let expected = [("game-ended", 2), ("game-ended-statistics", 2), ("activity", 2), ("active-players", 2)];
    assert_eq!(published(&lines), expected);
    assert_eq!(lines.len(), expected.len(), "nothing was rejected or held: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_canary_goes_to_every_queue_and_counts_for_none() {
    let queues = Queues::default();
    assert_eq!(measured(&queues, vec![canary(1)]).await, Vec::<Value>::new());
    let taken = queues.taken.lock().unwrap();
    let expected = events::Consumer::ALL.map(|consumer| consumer.queue_name().to_owned());
    assert_eq!(
        taken.keys().cloned().collect::<Vec<_>>(),
        std::collections::BTreeSet::from(expected).into_iter().collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn only_what_a_queue_took_counts_for_it() {
    let never = "0193f8a0-0000-7000-8000-000000000002";
    let later = "0193f8a0-0000-7000-8000-000000000003";
    let queues = Queues::refusing(&[
        ("activity", never, usize::MAX, Fault::Message),
        ("game-ended", later, usize::MAX, Fault::Passing),
    ]);
    let lines = measured(&queues, (1..=3).map(game).collect()).await;
    let expected = [("game-ended", 2), ("game-ended-statistics", 3), ("activity", 2), ("active-players", 3)];
    assert_eq!(published(&lines), expected);
    let own: Vec<&Value> = lines.iter().filter(|line| line["Function"] == "outbox-relay").collect();
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0]["RelayRejected"], &own[0]["RelayHeld"]), (&json!(1), &json!(1)));
}
