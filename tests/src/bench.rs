//! What benchmarks share: real time, and batches of events as a queue delivers them.

use std::time::{Duration, Instant};

use consumer::{Clock, Delivery, Random};
use events::{Event, Timestamp};
use testkit::sample::now;

/// Real time, counted from the moment at which the sample events were minted: on any day they are young enough for claims.
#[derive(Debug, Clone, Copy)]
pub struct RealTime {
    started: Instant,
}

impl Default for RealTime {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for RealTime {
    fn now(&self) -> Timestamp {
        now() + self.started.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

impl Random for RealTime {
    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// Returns a batch with one delivery of each event.
pub fn deliveries(events: &[Event]) -> Vec<Delivery> {
    let delivery = |(position, event): (usize, &Event)| Delivery {
        message_id: position.to_string().try_into().expect("not empty"),
        receipt_handle: None,
        receive_count: 1,
        group: None,
        body: event.encode().into_bytes(),
    };
    events.iter().enumerate().map(delivery).collect()
}

/// Returns a deadline that no benchmark comes to.
pub fn no_deadline() -> Timestamp {
    now() + Duration::from_hours(24 * 365)
}
