//! Time and chance of a running function.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use consumer::{Clock, Random};
use events::Timestamp;

/// The machine's clock and a generator seeded by it.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Clock for System {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

impl Random for System {
    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}
