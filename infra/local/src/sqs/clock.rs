//! The broker's clock: milliseconds since the epoch that never go backwards, whatever happens to the system's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use queue::Timestamp;
use tokio::time::Instant;

/// A clock that starts at the system's time and runs with the runtime's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    started: Instant,
    started_at: Timestamp,
}

impl Clock {
    /// Starts the clock at the system's time.
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { started: Instant::now(), started_at: Timestamp::default().plus(since_epoch) }
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        self.started_at.plus(self.started.elapsed())
    }

    /// Returns the runtime's instant at which the clock shows a time.
    pub(super) fn instant(&self, timestamp: Timestamp) -> Instant {
        self.started + timestamp.since(self.started_at)
    }
}
