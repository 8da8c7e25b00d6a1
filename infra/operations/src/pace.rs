//! How fast messages are sent. Waits for nothing itself: it says how long to wait.

use std::num::NonZeroU32;
use std::time::Duration;

/// Lets so many messages through in a second, evenly: after a pause there is no rush to catch up.
#[derive(Debug, Clone)]
pub struct Pace {
    per_second: Option<NonZeroU32>,
    /// The moment, since any beginning, from which on the next messages may go.
    free_at: Duration,
}

impl Pace {
    /// Lets through so many messages in a second; without a number as many as there are.
    pub fn new(per_second: Option<NonZeroU32>) -> Self {
        Self { per_second, free_at: Duration::ZERO }
    }

    /// Returns how many messages go at once, at most, so that no second has more than its share.
    pub fn at_once(&self, limit: usize) -> usize {
        self.per_second.map_or(limit, |rate| limit.min(usize::try_from(rate.get()).unwrap_or(limit)))
    }

    /// Returns how long these messages have to wait at `now`, a moment since the same beginning as every time. They count as sent
    /// when that time has passed.
    pub fn wait(&mut self, now: Duration, messages: usize) -> Duration {
        let Some(rate) = self.per_second else { return Duration::ZERO };
        let start = self.free_at.max(now);
        let share = Duration::from_nanos(1_000_000_000_u64.div_ceil(rate.get().into()));
        self.free_at = start + share * u32::try_from(messages).unwrap_or(u32::MAX);
        start - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_messages_than_the_rate() {
        let mut random = fastrand::Rng::with_seed(7);
        for rate in [1, 3, 10, 250] {
            let mut pace = Pace::new(NonZeroU32::new(rate));
            let (mut now, mut sent) = (Duration::ZERO, Vec::new());
            for _ in 0..500 {
                let messages = random.usize(1..=pace.at_once(10));
                now += pace.wait(now, messages);
                sent.extend(std::iter::repeat_n(now, messages));
                now += Duration::from_millis(random.u64(0..40));
            }
            for (index, start) in sent.iter().enumerate() {
                let within = sent[index..].iter().take_while(|at| **at < *start + Duration::from_secs(1)).count();
                // The last batch of a second begins within it.
                assert!(within < rate as usize + pace.at_once(10), "{within} of {rate} in the second from {start:?}");
            }
        }
    }

    #[test]
    fn messages_that_are_slow_anyway_do_not_wait_and_the_pause_is_not_made_up_for() {
        let mut pace = Pace::new(NonZeroU32::new(10));
        assert_eq!(pace.wait(Duration::ZERO, 10), Duration::ZERO);
        assert_eq!(pace.wait(Duration::from_secs(60), 10), Duration::ZERO);
        assert_eq!(pace.wait(Duration::from_secs(60), 10), Duration::from_secs(1));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pace = Pace::new(None);
        assert_eq!((pace.at_once(10), pace.wait(Duration::ZERO, 1_000)), (10, Duration::ZERO));
    }
}
