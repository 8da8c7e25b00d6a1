//! Queues that do as they are told, records of the stream, and the relay between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::metrics::Metrics;
use aws::publisher::{BATCH_BYTES_MAX, Failure, Fault, Message, SendBatch};
use outbox_relay::Relay;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const PREFIX: &str = "https://sqs.test/1/engine-";

/// Queues that take everything, but for what they were told to refuse.
#[derive(Default)]
pub(crate) struct Queues {
    /// By queue and part of the body: how many times it is refused, and how.
    refusals: Mutex<Vec<(&'static str, String, usize, Fault)>>,
    pub(crate) taken: Mutex<BTreeMap<String, Vec<Message>>>,
    pub(crate) batches: Mutex<Vec<usize>>,
}

impl Queues {
    pub(crate) fn refusing(refusals: &[(&'static str, &str, usize, Fault)]) -> Self {
        let refusals = refusals.iter().map(|(queue, part, times, fault)| (*queue, (*part).to_owned(), *times, *fault));
        Self { refusals: Mutex::new(refusals.collect()), ..Self::default() }
    }

    fn refusal(&self, queue: &str, message: &Message) -> Option<Failure> {
        let mut refusals = self.refusals.lock().unwrap();
        let refusal = refusals
            .iter_mut()
            .find(|(name, part, times, _)| *name == queue && message.body.contains(part.as_str()) && *times > 0)?;
        refusal.2 -= 1;
        Some(Failure { fault: refusal.3, reason: "told so".to_owned() })
    }

    pub(crate) fn events(&self, queue: &str) -> Vec<u64> {
        self.bodies(queue).iter().map(|body| body["payload"]["white"]["games"].as_u64().unwrap()).collect()
    }

    pub(crate) fn bodies(&self, queue: &str) -> Vec<Value> {
        let taken = self.taken.lock().unwrap();
        let messages = taken.get(queue).map_or(&[][..], Vec::as_slice);
        messages.iter().map(|message| serde_json::from_str(&message.body).unwrap()).collect()
    }
}

impl SendBatch for &Queues {
    async fn send_batch(&self, queue_url: &str, messages: &[&Message]) -> Result<Vec<Result<(), Failure>>, Failure> {
        assert!(messages.len() <= 10);
        assert!(messages.iter().map(|message| message.bytes()).sum::<usize>() <= BATCH_BYTES_MAX);
        let groups: Vec<&str> =
            messages.iter().filter_map(|message| Some(message.fifo.as_ref()?.group_id.as_str())).collect();
        assert_eq!(groups.iter().collect::<BTreeSet<_>>().len(), groups.len(), "a group is twice in one batch");
        self.batches.lock().unwrap().push(messages.len());
        let queue = queue_url.strip_prefix(PREFIX).unwrap();
        let results = messages.iter().map(|message| match self.refusal(queue, message) {
            Some(failure) => Err(failure),
            None => {
                let mut taken = self.taken.lock().unwrap();
                taken.entry(queue.to_owned()).or_default().push((*message).clone());
                Ok(())
            }
        });
        Ok(results.collect())
    }
}

pub(crate) fn event(number: u64) -> Value {
    let side = |player_id: &str| {
        json!({"M": {
            "player_id": {"S": player_id}, "username": {"S": "Zoë"},
            "rating": {"N": "1500"}, "games": {"N": number.to_string()},
        }})
    };
    json!({"M": {
        "event_id": {"S": format!("0193f8a0-0000-7000-8000-{number:012}")},
        "aggregate_type": {"S": "game"},
        "aggregate_id": {"S": format!("game-{number}")},
        "version": {"N": "1"},
        "event_type": {"S": "game_ended"},
        "schema_version": {"N": "1"},
        "occurred_at": {"S": "2026-11-30T18:00:00.000Z"},
        "trace_id": {"S": "4bf92f3577b34da6a3ce929d0e0e4736"},
        "payload": {"M": {
            "time_control": {"S": "blitz"}, "result": {"S": "1-0"}, "white": side("w"), "black": side("b"),
        }},
    }})
}

pub(crate) fn insert(number: u64, event: Value) -> Value {
    json!({
        "eventID": "x", "eventName": "INSERT", "eventSource": "aws:dynamodb",
        "dynamodb": {
            "Keys": {"pk": {"S": format!("GAME#game-{number}")}, "sk": {"S": "GAME"}},
            "NewImage": {"pk": {"S": format!("GAME#game-{number}")}, "version": {"N": "1"}, "event": event},
            "SequenceNumber": number.to_string(),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    })
}

pub(crate) fn game(number: u64) -> Value {
    insert(number, event(number))
}

pub(crate) fn later() -> Instant {
    Instant::now() + Duration::from_secs(50)
}

/// A relay that sends to these queues and whose metrics nobody reads.
pub(crate) fn relay_to(queues: &Queues) -> Relay<&Queues> {
    Relay::new(queues, PREFIX, Metrics::new("engine", |_| {}))
}

/// Relays records and returns the lines in which that is counted.
pub(crate) async fn measured(queues: &Queues, records: Vec<Value>) -> Vec<Value> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&lines);
    let metrics = Metrics::new("engine", move |line| written.lock().unwrap().push(serde_json::from_str(line).unwrap()));
    Relay::new(queues, PREFIX, metrics).handle(&json!({"Records": records}), later()).await.unwrap();
    lines.lock().unwrap().clone()
}

/// Relays records and returns the positions that are held.
pub(crate) async fn relay(queues: &Queues, records: Vec<Value>) -> Vec<String> {
    let response = relay_to(queues).handle(&json!({"Records": records}), later()).await.unwrap();
    let answer = serde_json::to_value(&response).unwrap();
    let failures = answer["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}
