//! The world's state and its time: a list of what happens when, in an order that the seed alone decides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use events::Timestamp;
use fastrand::Rng;
use queue::Queues;

use super::hazards::{Hazard, Hazards};
use super::history::History;
use super::instances::Instances;
use super::lanes::Lane;
use super::orders::Shop;
use super::sabotage::{Misjudgement, Sabotage, Slip};
use super::stream::Shard;
use super::trace::Trace;
use crate::Flaw;
use crate::memory_ledger::Store;

/// Something that happens at its time.
type Action = Box<dyn FnOnce(&mut Core) + Send>;

/// Everything in the world but the instances' own code.
pub(super) struct Core {
    pub(super) now: Timestamp,
    pub(super) random: Rng,
    pub(super) hazards: Hazards,
    pub(super) sabotages: BTreeSet<Sabotage>,
    pub(super) ledger: Store,
    /// Until when the tables refuse every request.
    pub(super) outage_until: Timestamp,
    pub(super) queues: Queues,
    pub(super) lanes: Vec<Lane>,
    pub(super) shards: Vec<Shard>,
    pub(super) instances: Instances,
    pub(super) shop: Shop,
    /// Whether what is sent is to be delivered although it was sent before.
    pub(super) sending_anew: bool,
    pub(super) history: History,
    pub(super) trace: Trace,
    agenda: BTreeMap<(Timestamp, u64), Action>,
    planned: u64,
}

impl Core {
    pub(super) fn new(
        now: Timestamp,
        random: Rng,
        queues: Queues,
        sabotages: BTreeSet<Sabotage>,
        trace: Trace,
    ) -> Self {
        let flaws: BTreeSet<Flaw> = sabotages
            .iter()
            .filter_map(|sabotage| match sabotage {
                Sabotage::Ledger(flaw) => Some(*flaw),
                Sabotage::Driver(_) | Sabotage::Decider(_) | Sabotage::Frame(_) => None,
            })
            .collect();
        Self {
            now,
            random,
            hazards: Hazards::default(),
            sabotages,
            ledger: Store::flawed(flaws),
            outage_until: now,
            queues,
            lanes: Vec::new(),
            shards: Vec::new(),
            instances: Instances::default(),
            shop: Shop::default(),
            sending_anew: false,
            history: History::default(),
            trace,
            agenda: BTreeMap::new(),
            planned: 0,
        }
    }

    /// Plans something for a moment; not before the present.
    pub(super) fn at(&mut self, moment: Timestamp, action: impl FnOnce(&mut Self) + Send + 'static) {
        self.planned += 1;
        self.agenda.insert((moment.max(self.now), self.planned), Box::new(action));
    }

    /// Plans something for later.
    pub(super) fn after(&mut self, delay: Duration, action: impl FnOnce(&mut Self) + Send + 'static) {
        self.at(self.now + delay, action);
    }

    /// Lets the next thing happen. Returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        let Some(((moment, _), action)) = self.agenda.pop_first() else { return false };
        self.now = self.now.max(moment);
        self.ledger.now = Some(self.now);
        action(self);
        true
    }

    /// Returns whether a hazard happens on this occasion.
    pub(super) fn strikes(&mut self, hazard: Hazard) -> bool {
        self.hazards.strikes(hazard, &mut self.random)
    }

    /// Returns a duration from `least` to `most` milliseconds.
    pub(super) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.random.u64(least..=most))
    }

    pub(super) fn slips(&self, slip: Slip) -> bool {
        self.sabotages.contains(&Sabotage::Frame(slip))
    }

    pub(super) fn misjudgements(&self) -> Vec<Misjudgement> {
        let sabotages = self.sabotages.iter();
        sabotages
            .filter_map(|sabotage| match sabotage {
                Sabotage::Decider(misjudgement) => Some(*misjudgement),
                Sabotage::Driver(_) | Sabotage::Ledger(_) | Sabotage::Frame(_) => None,
            })
            .collect()
    }

    /// Writes a line of the trace, if there is one.
    pub(super) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_kept() {
            let line = line(self);
            self.trace.add(self.now, &line);
        }
    }
}

/// Returns a moment as the queues count it.
pub(super) fn queue_time(moment: Timestamp) -> queue::Timestamp {
    queue::Timestamp::from_millis(u64::try_from(moment.as_millis()).unwrap_or(0))
}

/// Returns a moment of the queues as everyone else counts it.
pub(super) fn event_time(moment: queue::Timestamp) -> Timestamp {
    Timestamp::from_millis(i64::try_from(moment.as_millis()).unwrap_or(i64::MAX))
}
