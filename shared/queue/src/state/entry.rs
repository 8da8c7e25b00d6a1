//! What a queue keeps about a message, what comes in and what goes out, and what it counts. No behaviour of a queue.

use std::sync::Arc;

use crate::message::Message;
use crate::name::QueueName;
use crate::time::Timestamp;

/// A message's place in its queue, in the order of arrival.
pub(crate) type Key = u64;

/// How many messages a queue holds, by what they are waiting for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that are not hidden. A FIFO queue may still hold them back, behind others of their group.
    pub visible: usize,
    /// Messages that were received, and neither deleted nor visible again.
    pub in_flight: usize,
    /// Messages whose delay has not passed.
    pub delayed: usize,
}

impl Counts {
    /// Returns how many messages the queue holds in all.
    pub const fn total(&self) -> usize {
        self.visible + self.in_flight + self.delayed
    }
}

/// What happened in a queue since it was created. What went in (`sent`, `moved_in`) is always what went out (`deleted`,
/// `expired`, `purged`, `moved_out`) and what is still there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages sent to it.
    pub sent: u64,
    /// Messages sent to it in vain, since their deduplication id was known: they are in no other number.
    pub deduplicated: u64,
    /// Messages that arrived as another queue's dead letters.
    pub moved_in: u64,
    /// Receives, of the same message again included.
    pub received: u64,
    /// Messages deleted with a receipt handle.
    pub deleted: u64,
    /// Messages whose retention had passed.
    pub expired: u64,
    /// Messages removed by a purge.
    pub purged: u64,
    /// Messages moved to the dead letter queue.
    pub moved_out: u64,
}

/// A message on its way into a queue.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) message: Arc<Message>,
    pub(crate) receive_count: u32,
    pub(crate) first_received_at: Option<Timestamp>,
    pub(crate) dead_letter_source: Option<QueueName>,
}

/// A message that a receive took.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) key: Key,
    pub(crate) receive: u64,
    pub(crate) message: Arc<Message>,
    pub(crate) receive_count: u32,
    pub(crate) first_received_at: Timestamp,
    pub(crate) dead_letter_source: Option<QueueName>,
}

/// Why a visibility cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchangeable {
    Missing,
    NotInFlight,
    BeyondLimit,
}

/// How a receive of a message stands to the message's last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The message is not in the queue any more.
    Gone,
    /// It is the last one, and the message is in flight under it.
    InFlight,
    /// It is the last one, and the message is visible again.
    Ended,
    /// There was a later one.
    Overtaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Ready,
    Delayed,
    InFlight,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) message: Arc<Message>,
    pub(super) arrived_at: Timestamp,
    pub(super) place: Place,
    pub(super) visible_at: Timestamp,
    /// Receives from every queue that the message was in.
    pub(super) receive_count: u32,
    /// Receives from this queue: what its redrive policy counts.
    pub(super) received_here: u32,
    pub(super) first_received_at: Option<Timestamp>,
    pub(super) last_received_at: Timestamp,
    pub(super) last_receive: Option<u64>,
    pub(super) dead_letter_source: Option<QueueName>,
}

impl Entry {
    /// Returns the message as the receive took it that was its last.
    pub(super) fn taken(&self, key: Key, receive: u64, first_received_at: Timestamp) -> Taken {
        Taken {
            key,
            receive,
            message: Arc::clone(&self.message),
            receive_count: self.receive_count,
            first_received_at,
            dead_letter_source: self.dead_letter_source.clone(),
        }
    }

    pub(super) fn into_arrival(self) -> Arrival {
        Arrival {
            message: self.message,
            receive_count: self.receive_count,
            first_received_at: self.first_received_at,
            dead_letter_source: self.dead_letter_source,
        }
    }
}
