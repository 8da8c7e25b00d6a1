//! The topology as a table in Markdown, with what the templates say about each mapping.

use std::fmt::Write as _;

use events::EventType;

use super::{ConsumerEntry, Topology};
use crate::model::{Model, QueueMapping};

/// Type of the event that every consumer gets.
const CANARY: &str = EventType::CanarySent.as_str();
/// More types than this are a number in a table.
const TYPES_NAMED_MAX: usize = 6;

/// Writes a line for each consumer: its events and queue, what it keeps, and how the template maps the one to the other.
pub fn table(topology: &Topology, model: &Model) -> String {
    let mut text = String::from(
        "| events | consumer | queue | keeps | batch | window | at once | receives |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for consumer in &topology.consumers {
        let mapping = model.queue_mappings.iter().find(|mapping| is_named(&mapping.queue, consumer.queue));
        let (batch, window, at_once) = mapping.map_or_else(|| ("-".into(), "-".into(), "-".into()), numbers);
        let ConsumerEntry { name, queue, keeps, .. } = consumer;
        let _ = writeln!(
            text,
            "| {} | `{name}` | `{queue}` | {keeps} | {batch} | {window} | {at_once} | {} |",
            types(consumer, topology),
            receives_max(consumer, model)
        );
    }
    text
}

fn types(consumer: &ConsumerEntry, topology: &Topology) -> String {
    // Canaries go everywhere and mean nothing.
    let named: Vec<&str> = consumer.events.iter().copied().filter(|name| *name != CANARY).collect();
    if named.len() > TYPES_NAMED_MAX {
        return format!("{} of {} types", named.len(), topology.events.len() - 1);
    }
    named.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn numbers(mapping: &QueueMapping) -> (String, String, String) {
    let at_once = mapping.maximum_concurrency.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
    (mapping.batch_size.to_string(), format!("{} s", mapping.batching_window.as_secs()), at_once)
}

fn receives_max(consumer: &ConsumerEntry, model: &Model) -> String {
    let queue = model.queues.iter().find(|queue| is_named(&queue.name, consumer.queue));
    let policy = queue.and_then(|queue| queue.attributes.get("RedrivePolicy"));
    let policy: Option<serde_json::Value> = policy.and_then(|policy| serde_json::from_str(policy).ok());
    policy.and_then(|policy| policy["maxReceiveCount"].as_u64()).map_or_else(|| "-".to_owned(), |most| most.to_string())
}

/// Returns whether a physical name is a name behind some prefix.
fn is_named(physical: &str, name: &str) -> bool {
    physical.strip_suffix(name).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('-'))
        && !physical.ends_with(&format!("dead-letters{}", ending(name)))
}

fn ending(name: &str) -> &str {
    if name.ends_with(".fifo") { ".fifo" } else { "" }
}
