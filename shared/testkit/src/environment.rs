//! Time and chance under a test's control, and a queue that remembers what was asked of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use consumer::{Clock, Random, Visibility, VisibilityChange, VisibilityError};
use events::Timestamp;

/// A clock that moves only when someone sleeps or the test says so, and a seeded stream of bits.
#[derive(Debug)]
pub struct ManualEnvironment {
    now_ms: AtomicI64,
    state: AtomicU64,
}

impl ManualEnvironment {
    /// Starts at a moment with a seed.
    pub fn new(now: Timestamp, seed: u64) -> Self {
        Self { now_ms: AtomicI64::new(now.as_millis()), state: AtomicU64::new(seed) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.now_ms.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    /// Time passes as soon as a sleeper is waited for: whoever waits beside it on something that is ready goes first.
    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

impl Random for ManualEnvironment {
    /// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
    fn bits(&self) -> u64 {
        let state = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A queue that remembers changes of visibility.
#[derive(Debug, Default)]
pub struct RecordedVisibility {
    changes: Mutex<Vec<VisibilityChange>>,
}

impl RecordedVisibility {
    /// Takes the changes that were asked for since the last call.
    pub fn take(&self) -> Vec<VisibilityChange> {
        self.changes.lock().map(|mut changes| std::mem::take(&mut *changes)).unwrap_or_default()
    }
}

impl Visibility for RecordedVisibility {
    async fn change(&self, changes: Vec<VisibilityChange>) -> Result<(), VisibilityError> {
        if let Ok(mut recorded) = self.changes.lock() {
            recorded.extend(changes);
        }
        Ok(())
    }
}
