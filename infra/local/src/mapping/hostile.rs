//! Deliveries as bad as at-least-once delivery in any order allows: repeated, late, out of order. Seeded; decides, but
//! delivers nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Longest time by which a shuffled delivery is late.
const LATE_MAX: Duration = Duration::from_secs(2);

/// Longest time after which a repeated delivery comes.
const REPEAT_LATE_MAX: Duration = Duration::from_secs(4);

/// One of so many repeated deliveries comes together with the first one.
const REPEATS_AT_ONCE: u32 = 4;

/// How deliveries are disturbed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hostility {
    /// Probability that a record is delivered again, 0 to 1.
    pub duplicate: f64,
    /// Whether deliveries are reordered.
    pub order: Order,
    /// Seed of all decisions.
    pub seed: u64,
}

impl Default for Hostility {
    /// Returns no hostility at all.
    fn default() -> Self {
        Self { duplicate: 0.0, order: Order::AsRead, seed: 0 }
    }
}

/// The order of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As the source gives them.
    AsRead,
    /// Mixed across a large window.
    Shuffled,
}

/// Takes the decisions for one mapping.
#[derive(Debug)]
pub(super) struct Disturber {
    hostility: Hostility,
    random: fastrand::Rng,
}

impl Disturber {
    /// Returns the decisions of a mapping; `name` makes those of different mappings independent.
    pub(super) fn new(hostility: Hostility, name: &str) -> Self {
        let seed = name.bytes().fold(hostility.seed, |seed, byte| {
            seed.rotate_left(5).wrapping_mul(0x517c_c1b7_2722_0a95) ^ u64::from(byte)
        });
        Self { hostility, random: fastrand::Rng::with_seed(seed) }
    }

    pub(super) fn order(&self) -> Order {
        self.hostility.order
    }

    /// Decides whether something is delivered again.
    pub(super) fn repeats(&mut self) -> bool {
        self.random.f64() < self.hostility.duplicate
    }

    /// Decides how many records a batch may have, of so many at most.
    pub(super) fn batch_size(&mut self, most: usize) -> usize {
        match self.hostility.order {
            Order::AsRead => most,
            Order::Shuffled => self.random.usize(1..=most.max(1)),
        }
    }

    /// Decides how late a first delivery is.
    pub(super) fn first_delay(&mut self) -> Duration {
        match self.hostility.order {
            Order::AsRead => Duration::ZERO,
            Order::Shuffled => LATE_MAX.mul_f64(self.random.f64()),
        }
    }

    /// Decides how much later than the first delivery a repeated one is.
    pub(super) fn repeat_delay(&mut self) -> Duration {
        match self.random.u32(0..REPEATS_AT_ONCE) {
            0 => Duration::ZERO,
            _ => REPEAT_LATE_MAX.mul_f64(self.random.f64()),
        }
    }

    /// Decides how many of the last `count` deliveries come again, at least one.
    pub(super) fn rewind(&mut self, count: usize) -> usize {
        if count == 0 { 0 } else { self.random.usize(1..=count) }
    }

    /// Mixes records of different items; those of one item stay in their order.
    pub(super) fn mix<T, K: Ord + Clone>(&mut self, records: Vec<T>, item: impl Fn(&T) -> K) -> Vec<T> {
        let mut turns: Vec<K> = records.iter().map(&item).collect();
        self.random.shuffle(&mut turns);
        let mut by_item: BTreeMap<K, VecDeque<T>> = BTreeMap::new();
        for record in records {
            by_item.entry(item(&record)).or_default().push_back(record);
        }
        turns.iter().filter_map(|turn| by_item.get_mut(turn)?.pop_front()).collect()
    }
}

/// Things that wait for their time.
#[derive(Debug)]
pub(super) struct Held<T> {
    by_time: BTreeMap<(Instant, u64), T>,
    next: u64,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), next: 0 }
    }
}

impl<T> Held<T> {
    /// Keeps something until its time.
    pub(super) fn hold(&mut self, until: Instant, thing: T) {
        self.by_time.insert((until, self.next), thing);
        self.next += 1;
    }

    /// Takes the first thing whose time has come. Things of the same time come in the order in which they were held.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<T> {
        let first = self.by_time.first_entry()?;
        if first.key().0 <= now { Some(first.remove()) } else { None }
    }

    /// Returns when the next thing's time comes.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disturber(duplicate: f64) -> Disturber {
        Disturber::new(Hostility { duplicate, order: Order::Shuffled, seed: 7 }, "mapping")
    }

    #[test]
    fn repeats_come_as_often_as_they_should() {
        let repeats = |duplicate| {
            let mut disturber = disturber(duplicate);
            (0..10_000).filter(|_| disturber.repeats()).count()
        };

        assert_eq!(repeats(0.0), 0);
        assert_eq!(repeats(1.0), 10_000);
        assert!((2_800..3_200).contains(&repeats(0.3)));
    }

    #[test]
    fn the_same_seed_gives_the_same_decisions_and_another_mapping_gives_others() {
        let decisions = |name| {
            let hostility = Hostility { duplicate: 0.5, order: Order::Shuffled, seed: 7 };
            let mut disturber = Disturber::new(hostility, name);
            (0..64).map(|_| disturber.repeats()).collect::<Vec<_>>()
        };

        assert_eq!(decisions("one"), decisions("one"));
        assert_ne!(decisions("one"), decisions("two"));
    }

    #[test]
    fn mixing_loses_nothing_and_keeps_the_order_of_each_item() {
        let records: Vec<(u32, u32)> = (0..300).map(|number| (number % 7, number)).collect();

        let mixed = disturber(0.0).mix(records.clone(), |record| record.0);

        assert_ne!(mixed, records);
        for item in 0..7 {
            let of = |records: &[(u32, u32)]| -> Vec<_> {
                records.iter().copied().filter(|record| record.0 == item).collect()
            };
            assert_eq!(of(&mixed), of(&records));
        }
        assert_eq!(mixed.len(), records.len());
    }

    #[test]
    fn held_things_come_at_their_time() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut held = Held::default();
        held.hold(later, "later");
        held.hold(now, "first");
        held.hold(now, "second");

        assert_eq!([held.take_due(now), held.take_due(now), held.take_due(now)], [Some("first"), Some("second"), None]);
        assert_eq!((held.len(), held.next_due()), (1, Some(later)));
        assert_eq!(held.take_due(later), Some("later"));
    }
}
