//! The topology as a document: which events go through which queues to which consumers, as a table, as a picture and as JSON.
//! Runs nothing.

mod picture;
mod table;

use std::collections::BTreeMap;

use consumer::{CLAIM_AGE_MAX, CLAIM_TTL};
use events::{Consumer, EventType, QueueOrder, RELAY_REJECTED_QUEUE};
use serde::Serialize;

pub use picture::picture;
pub use table::table;

/// The function that sends events to queues.
const RELAY: &str = "outbox-relay";
/// The function that shows that the path is whole.
const CANARY: &str = "canary";
/// The function that answers requests.
const API: &str = "api";
/// Functions that are no consumers.
const OTHER_FUNCTIONS: [&str; 3] = [API, RELAY, CANARY];
/// The tables: the truth, what is derived from it, and what consumers remember.
const TABLES: [&str; 3] = ["records", "views", "ledger"];

/// What the code says about queues and consumers. The templates have to declare exactly this. Names are without the stack's
/// prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// Consumers of each type of events.
    pub events: BTreeMap<&'static str, Vec<&'static str>>,
    /// Consumers, each with its queue.
    pub consumers: Vec<ConsumerEntry>,
    /// Function that sends events.
    pub relay: &'static str,
    /// Queue for what the relay can never send.
    pub rejected_queue: &'static str,
    /// Function that answers requests.
    pub api: &'static str,
    /// All functions.
    pub functions: Vec<&'static str>,
    /// Tables.
    pub tables: [&'static str; 3],
    /// How claims protect against repetitions.
    pub claims: Claims,
}

/// A consumer and its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsumerEntry {
    /// Function.
    pub name: &'static str,
    /// Queue that its batches come from.
    pub queue: &'static str,
    /// Queue for what it cannot handle.
    pub dead_letter_queue: String,
    /// In which order the queue hands out messages: `standard` or `fifo`.
    pub order: &'static str,
    /// Types of the events that it gets.
    pub events: Vec<&'static str>,
    /// Types of the events that it writes itself.
    pub publishes: Vec<&'static str>,
    /// What it depends on outside the stack.
    pub external: Option<&'static str>,
    /// What it keeps true.
    pub keeps: &'static str,
}

/// How claims protect against repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Claims {
    /// How long a claim is kept, in seconds.
    pub kept_seconds: u64,
    /// Age from which an event is not applied through a claim any more, in seconds.
    pub event_age_seconds_max: u64,
}

impl Topology {
    /// Returns the topology of this code.
    pub fn of_code() -> Self {
        Self {
            events: EventType::ALL.into_iter().map(|event_type| (event_type.as_str(), consumers(event_type))).collect(),
            consumers: Consumer::ALL.into_iter().map(entry).collect(),
            relay: RELAY,
            rejected_queue: RELAY_REJECTED_QUEUE,
            api: API,
            functions: OTHER_FUNCTIONS.into_iter().chain(Consumer::ALL.into_iter().map(Consumer::as_str)).collect(),
            tables: TABLES,
            claims: Claims { kept_seconds: CLAIM_TTL.as_secs(), event_age_seconds_max: CLAIM_AGE_MAX.as_secs() },
        }
    }

    /// Returns the topology as JSON for tools.
    pub fn json(&self) -> String {
        // Texts and numbers can always be written.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn consumers(event_type: EventType) -> Vec<&'static str> {
    event_type.consumers().iter().map(Consumer::as_str).collect()
}

fn entry(consumer: Consumer) -> ConsumerEntry {
    let gets = |event_type: &EventType| event_type.consumers().iter().any(|other| other == consumer);
    let names = |types: &[EventType]| types.iter().map(|event_type| event_type.as_str()).collect();
    let (order, ending) = match consumer.queue_order() {
        QueueOrder::Standard => ("standard", ""),
        QueueOrder::FifoByAggregate => ("fifo", ".fifo"),
    };
    ConsumerEntry {
        name: consumer.as_str(),
        queue: consumer.queue_name(),
        dead_letter_queue: format!("{consumer}-dead-letters{ending}"),
        order,
        events: EventType::ALL.iter().filter(|event_type| gets(event_type)).map(|it| it.as_str()).collect(),
        publishes: names(consumer.publishes()),
        external: consumer.external(),
        keeps: consumer.keeps(),
    }
}
