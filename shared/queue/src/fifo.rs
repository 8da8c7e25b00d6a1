//! What only a FIFO queue has: groups with an order of their own, and what it remembers of sends and receives, so that either
//! can be repeated. It knows nothing of time in flight, retention and counts, which all queues have in common.

mod attempts;
mod deduplication;
mod groups;

use attempts::Attempts;
use deduplication::Deduplication;
use groups::Groups;

use crate::time::Timestamp;

/// What only a FIFO queue has.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    pub(crate) groups: Groups,
    pub(crate) deduplication: Deduplication,
    pub(crate) attempts: Attempts,
}

impl Fifo {
    /// Forgets sends and receives whose time to be repeated has passed.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        self.deduplication.forget(now);
        self.attempts.forget(now);
    }

    /// Removes every message. What was sent stays known: a message that was removed must not come back by being repeated.
    pub(crate) fn clear(&mut self) {
        self.groups = Groups::default();
        self.attempts = Attempts::default();
    }
}
