//! Event source mappings: carry records from queues and table streams to functions, as Lambda documents it. They start
//! no process and keep no record.

mod batch;
mod fifo;
mod hostile;
pub mod queue;
mod queue_event;
mod response;
pub mod stream;
mod stream_event;
mod stream_lane;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub use hostile::{Hostility, Order};

/// What a mapping has done and what it holds at the moment.
#[derive(Debug, Default)]
pub struct Progress {
    pending: AtomicUsize,
    done: AtomicU64,
    batches: AtomicU64,
    failed_batches: AtomicU64,
    discarded: AtomicU64,
}

impl Progress {
    /// Returns the records read from the source that have not come to an end yet, repeated deliveries included.
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::SeqCst)
    }

    /// Returns the records acknowledged so far, each counted once.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// Returns the batches that a function was invoked with so far.
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::SeqCst)
    }

    /// Returns the batches that failed, as a whole or in part.
    pub fn failed_batches(&self) -> u64 {
        self.failed_batches.load(Ordering::SeqCst)
    }

    /// Returns the records that were given up after their last retry.
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::SeqCst)
    }

    fn read(&self, records: usize) {
        self.pending.fetch_add(records, Ordering::SeqCst);
    }

    fn ended(&self, records: usize) {
        self.pending.fetch_sub(records, Ordering::SeqCst);
    }
}

/// Returns the wait before the next attempt after a number of failures in a row, doubling from `first`.
fn backoff(failures_in_a_row: u32, first: Duration, longest: Duration) -> Duration {
    match failures_in_a_row {
        0 => Duration::ZERO,
        failures => first.saturating_mul(1 << (failures - 1).min(16)).min(longest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_its_limit() {
        let wait = |failures| backoff(failures, Duration::from_millis(100), Duration::from_secs(10)).as_millis();

        assert_eq!([0, 1, 2, 3, 8, 100].map(wait), [0, 100, 200, 400, 10_000, 10_000]);
    }
}
