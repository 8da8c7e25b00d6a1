//! What the kinds of queues differ in: which visible messages can be received, and in which order. It knows nothing of
//! time in flight, retention and counts, which they have in common.

use crate::fifo::Fifo;
use crate::message::Message;
use crate::name::QueueKind;
use crate::standard::Standard;
use crate::state::Key;
use crate::time::Timestamp;

/// The discipline of a queue. Every message in the queue is in it, from `enter` to `leave`; one that becomes visible or hidden
/// leaves and enters.
#[derive(Debug)]
pub(crate) enum Discipline {
    Standard(Standard),
    Fifo(Box<Fifo>),
}

/// Whether a message can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Visible { since: Timestamp },
    Hidden,
}

impl Discipline {
    pub(crate) fn of_kind(kind: QueueKind) -> Self {
        match kind {
            QueueKind::Standard => Self::Standard(Standard::default()),
            QueueKind::Fifo => Self::Fifo(Box::default()),
        }
    }

    pub(crate) fn enter(&mut self, key: Key, message: &Message, sight: Sight) {
        match self {
            Self::Standard(standard) => standard.enter(key, sight),
            Self::Fifo(fifo) => fifo.groups.enter(key, message, sight),
        }
    }

    pub(crate) fn leave(&mut self, key: Key, message: &Message, sight: Sight) {
        match self {
            Self::Standard(standard) => standard.leave(key, sight),
            Self::Fifo(fifo) => fifo.groups.leave(key, message),
        }
    }

    /// Returns what a receive can take now, in order.
    pub(crate) fn receivable(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        match self {
            Self::Standard(standard) => Box::new(standard.receivable()),
            Self::Fifo(fifo) => Box::new(fifo.groups.receivable()),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Standard(standard) => *standard = Standard::default(),
            Self::Fifo(fifo) => fifo.clear(),
        }
    }
}
