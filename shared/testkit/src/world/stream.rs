//! The stream of the records and the relay: every event of a shard goes to all its queues, in order, at least once.

use std::time::Duration;

use events::Event;

use super::core::Core;
use super::deciders::Role;
use super::hazards::Hazard;
use super::history::Body;
use super::sabotage::Slip;

/// Records of one relay invocation, at most.
const BATCH_MAX: usize = 10;
/// Longest delay of a message that overtakes or is overtaken: SQS promises no order at all.
const DELAY_MS_MAX: u64 = 600_000;

/// A part of the stream that keeps its order.
#[derive(Debug, Default)]
pub(super) struct Shard {
    records: Vec<Event>,
    /// Records before it have been relayed.
    position: usize,
    /// Whether the relay is at work on it.
    running: bool,
}

impl Core {
    /// Publishes an event, as the write of its record does.
    pub(super) fn publish(&mut self, event: Event) {
        // As a table's partitions do: what happens to one item stays in one shard.
        let shard = event.aggregate_id.bytes().map(usize::from).sum::<usize>() % self.shards.len();
        self.note(|_| format!("{} published as {} on shard {shard}", event.aggregate_id, event.event_id));
        self.history.events.push(event.clone());
        self.shards[shard].records.push(event);
        self.wake_relay(shard);
    }

    fn wake_relay(&mut self, shard: usize) {
        let Shard { records, position, running } = &mut self.shards[shard];
        if !*running && *position < records.len() {
            *running = true;
            let delay = self.millis(1, 300);
            self.after(delay, move |core| core.relay(shard));
        }
    }

    /// Relays a batch, and again from the same position if anything goes wrong.
    fn relay(&mut self, shard: usize) {
        let Shard { records, position, .. } = &self.shards[shard];
        let end = records.len().min(*position + self.random.usize(1..=BATCH_MAX));
        let batch = records[*position..end].to_vec();
        if self.slips(Slip::PositionBeforeSending) {
            self.shards[shard].position = end;
        }
        for event in batch {
            if self.strikes(Hazard::RelayCrash) {
                return self.relay_again(shard, "crashed");
            }
            for role in Role::of(event.payload.event_type()) {
                self.relay_to(role, &event);
            }
        }
        if self.strikes(Hazard::RelayAnswerLost) {
            return self.relay_again(shard, "lost its answer");
        }
        self.shards[shard].position = end;
        self.shards[shard].running = false;
        self.wake_relay(shard);
    }

    fn relay_again(&mut self, shard: usize, what: &str) {
        self.note(|core| format!("the relay of shard {shard} {what} at position {}", core.shards[shard].position));
        self.shards[shard].running = false;
        self.wake_relay(shard);
    }

    fn relay_to(&mut self, role: Role, event: &Event) {
        let times = 1 + usize::from(self.strikes(Hazard::SentTwice));
        for _ in 0..times {
            let delay = if self.strikes(Hazard::Delayed) { self.millis(1_000, DELAY_MS_MAX) } else { Duration::ZERO };
            self.send(role, event.encode(), Body::Event(event.event_id), delay);
        }
    }
}
