//! Drafts: decisions on their way to a plan. A draft of one decision is checked for what would not survive a redelivery;
//! drafts are merged, each item once; a sealed draft is a plan.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use domain::{Check, Content, Deltas, Guard, Key, Spread, Write};
use events::{Consumer, EventId, Timestamp};
use thiserror::Error;

use crate::plan::{BYTES_MAX, Claim, Conditions, ITEM_BYTES_MAX, ITEMS_MAX, Operation, Plan};
use crate::size::item_bytes;
use crate::weakness::{Weakness, weakened};

/// How long a claim is kept after its commit.
pub const CLAIM_TTL: Duration = Duration::from_hours(30 * 24);
/// Age at which an event is never applied through a claim any more, since its claim may have been forgotten.
pub const CLAIM_AGE_MAX: Duration = Duration::from_hours(29 * 24);
/// How far ahead of this clock an event's id may be minted, for clocks that differ. Further ahead, the claim would be
/// forgotten before the event counts as old.
const CLOCK_SKEW_MAX: Duration = Duration::from_hours(12);
/// Bytes of a claim item, at most.
const CLAIM_BYTES: usize = 160;
/// Bytes that one counter adds to an item, besides its name.
const COUNTER_BYTES: usize = 21;

/// In whose name and when a decision is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// The consumer.
    pub consumer: Consumer,
    /// The event that is decided on.
    pub event_id: EventId,
    /// The current moment.
    pub now: Timestamp,
}

/// A decision that cannot be committed safely.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// There is nothing to write.
    #[error("the decision writes nothing")]
    Empty,
    /// A delta beside a row that is merely newer: after a redelivery nothing would stop the delta.
    #[error("the delta at {key} stands beside a write guarded by a source version alone")]
    DeltaWithNewer {
        /// Where the delta goes.
        key: Key,
    },
    /// The decision writes an item twice, or checks a version that it does not write on.
    #[error("the decision contradicts itself at {key}")]
    Contradiction {
        /// Which item.
        key: Key,
    },
    /// The event is older than claims are kept.
    #[error("too old for a claim: event {event_id} was minted at {minted_at}")]
    TooOld {
        /// The event.
        event_id: EventId,
        /// When its id was minted.
        minted_at: Timestamp,
    },
    /// The event's id is from the future.
    #[error("minted in the future: event {event_id} claims {minted_at}")]
    FromTheFuture {
        /// The event.
        event_id: EventId,
        /// When its id claims to be minted.
        minted_at: Timestamp,
    },
    /// More items than a transaction takes.
    #[error("the decision has {items} items, more than {ITEMS_MAX}")]
    TooManyItems {
        /// How many.
        items: usize,
    },
    /// More bytes than a transaction takes.
    #[error("the decision has {bytes} bytes, more than {BYTES_MAX}")]
    TooManyBytes {
        /// How many.
        bytes: usize,
    },
    /// More bytes than an item takes.
    #[error("item {key} has {bytes} bytes, more than {ITEM_BYTES_MAX}")]
    ItemTooLarge {
        /// Which item.
        key: Key,
        /// How many.
        bytes: usize,
    },
}

/// Decisions on their way to a plan, each item once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    claims: BTreeMap<EventId, Claim>,
    rows: BTreeMap<Key, Operation>,
    additions: BTreeMap<(Key, Spread), Deltas>,
    bytes: usize,
}

impl Draft {
    /// Drafts one decision. A delta that no row and no new item anchors gets the event's claim.
    ///
    /// # Errors
    /// The decision cannot be committed safely, or is too large.
    pub fn new(scope: Scope, writes: Vec<Write>, checks: Vec<Check>) -> Result<Self, PlanError> {
        let mut draft = Self::default();
        let mut anchored = false;
        let mut newer = false;
        for write in writes {
            match &write {
                Write::Create { .. } | Write::Replace { guard: Guard::Unchanged(_), .. } => anchored = true,
                Write::Replace { guard: Guard::Newer(_), .. } => newer = true,
                Write::Add { .. } => {}
            }
            draft.add_write(write)?;
        }
        for check in checks {
            draft.add_check(check)?;
        }
        if let (false, Some((key, _))) = (anchored, draft.additions.keys().next()) {
            // A row that is only newer is no anchor: after a redelivery, an event in between decides whether the delta is
            // added a second time.
            if newer && !weakened(Weakness::DeltaBesideNewer) {
                return Err(PlanError::DeltaWithNewer { key: key.clone() });
            }
            if !newer {
                draft.add_claim(scope)?;
            }
        }
        draft.within_limits()
    }

    /// Returns the number of items.
    pub fn items(&self) -> usize {
        self.claims.len() + self.rows.len() + self.additions.len()
    }

    /// Returns the keys of the rows that are written.
    pub(crate) fn written_rows(&self) -> impl Iterator<Item = &Key> {
        self.rows.iter().filter(|(_, operation)| !matches!(operation, Operation::Check(_))).map(|(key, _)| key)
    }

    /// Returns the keys of the rows that are checked and not written.
    pub(crate) fn checked_rows(&self) -> impl Iterator<Item = &Key> {
        self.rows.iter().filter(|(_, operation)| matches!(operation, Operation::Check(_))).map(|(key, _)| key)
    }

    /// Returns the operation on a row.
    pub(crate) fn row(&self, key: &Key) -> Option<&Operation> {
        self.rows.get(key)
    }

    /// Returns the targets of additions, with their spread.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &(Key, Spread)> {
        self.additions.keys()
    }

    /// Returns whether the draft is one guarded write, which needs no transaction.
    pub(crate) fn is_lone_write(&self) -> bool {
        self.items() == 1 && self.written_rows().next().is_some()
    }

    /// Takes in a draft that was decided on what this one leaves behind.
    ///
    /// # Errors
    /// Gives the other draft back where the two do not fit into one plan; this one is as it was.
    pub fn absorb(&mut self, other: Self) -> Result<(), Box<Self>> {
        if self.counts_on_a_row_of(&other) || other.counts_on_a_row_of(self) {
            return Err(Box::new(other));
        }
        let mut merged_rows = BTreeMap::new();
        for (key, later) in &other.rows {
            match self.rows.get(key).map(|earlier| merged(earlier, later)) {
                None => {}
                Some(Some(operation)) => {
                    merged_rows.insert(key.clone(), operation);
                }
                Some(None) => return Err(Box::new(other)),
            }
        }
        let new_additions = other.additions.keys().filter(|target| !self.additions.contains_key(target)).count();
        let new_rows = other.rows.len() - merged_rows.len();
        let items = self.items() + other.claims.len() + new_rows + new_additions;
        if items > ITEMS_MAX || self.bytes + other.bytes > BYTES_MAX {
            return Err(Box::new(other));
        }
        self.bytes += other.bytes;
        self.claims.extend(other.claims);
        for (key, operation) in other.rows {
            let operation = merged_rows.remove(&key).unwrap_or(operation);
            self.rows.insert(key, operation);
        }
        for (target, deltas) in other.additions {
            match self.additions.entry(target) {
                Entry::Vacant(vacant) => {
                    vacant.insert(deltas);
                }
                Entry::Occupied(mut occupied) => {
                    for (counter, delta) in deltas {
                        *occupied.get_mut().entry(counter).or_default() += delta;
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes the draft a plan. Spread targets go to the shard with this number, counted round.
    pub fn seal(self, token: u128, shard: u8) -> Plan {
        let mut operations = self.rows;
        for ((target, spread), mut deltas) in self.additions {
            deltas.retain(|_, delta| *delta != 0);
            if deltas.is_empty() {
                continue;
            }
            let key = if spread == Spread::NONE { target } else { target.shard(shard % spread.shards()) };
            operations.insert(key, Operation::Add(deltas));
        }
        Plan { token, claims: self.claims, operations }
    }

    /// Whether a counter of this draft stands where the other one has a row: no plan has both, each item being there once.
    fn counts_on_a_row_of(&self, other: &Self) -> bool {
        self.additions.keys().any(|(target, spread)| spread.keys(target).iter().any(|key| other.rows.contains_key(key)))
    }

    fn add_write(&mut self, write: Write) -> Result<(), PlanError> {
        let (key, operation) = match write {
            Write::Create { key, attributes } => (key, Operation::Create(attributes)),
            Write::Replace { key, content, guard } => {
                let conditions = match guard {
                    Guard::Newer(source_version) => Conditions { unchanged: None, newer: Some(source_version) },
                    Guard::Unchanged(version) => Conditions { unchanged: Some(version), newer: None },
                };
                (key, Operation::Replace { content, conditions })
            }
            Write::Add { key, deltas, spread } => return self.add_addition(key, deltas, spread),
        };
        let bytes = operation_bytes(&key, &operation);
        if bytes > ITEM_BYTES_MAX {
            return Err(PlanError::ItemTooLarge { key, bytes });
        }
        self.bytes += bytes;
        let taken = self.additions.keys().any(|(target, _)| *target == key);
        match self.rows.entry(key) {
            Entry::Vacant(vacant) if !taken => {
                vacant.insert(operation);
                Ok(())
            }
            Entry::Vacant(vacant) => Err(PlanError::Contradiction { key: vacant.into_key() }),
            Entry::Occupied(occupied) => Err(PlanError::Contradiction { key: occupied.key().clone() }),
        }
    }

    fn add_addition(&mut self, key: Key, deltas: Deltas, spread: Spread) -> Result<(), PlanError> {
        if self.rows.contains_key(&key) {
            return Err(PlanError::Contradiction { key });
        }
        self.bytes += key.partition.len() + key.sort.len();
        self.bytes += deltas.keys().map(|name| name.len() + COUNTER_BYTES).sum::<usize>();
        let sums = self.additions.entry((key, spread)).or_default();
        for (counter, delta) in deltas {
            *sums.entry(counter).or_default() += delta;
        }
        Ok(())
    }

    fn add_check(&mut self, check: Check) -> Result<(), PlanError> {
        let Check { key, version } = check;
        self.bytes += key.partition.len() + key.sort.len();
        match self.rows.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Operation::Check(version));
            }
            Entry::Occupied(mut occupied) => match merged(&Operation::Check(version), occupied.get()) {
                Some(operation) => {
                    occupied.insert(operation);
                }
                None => {
                    return Err(PlanError::Contradiction { key: occupied.key().clone() });
                }
            },
        }
        Ok(())
    }

    fn add_claim(&mut self, scope: Scope) -> Result<(), PlanError> {
        let Scope { consumer, event_id, now } = scope;
        let minted_at = event_id.minted_at();
        if now.since(minted_at) > CLAIM_AGE_MAX && !weakened(Weakness::AgeGateRemoved) {
            return Err(PlanError::TooOld { event_id, minted_at });
        }
        if minted_at.since(now) > CLOCK_SKEW_MAX {
            return Err(PlanError::FromTheFuture { event_id, minted_at });
        }
        if weakened(Weakness::ClaimLeftOut) {
            return Ok(());
        }
        self.bytes += CLAIM_BYTES;
        let kept = if weakened(Weakness::ClaimForgottenEarly) { CLAIM_TTL / 3 } else { CLAIM_TTL };
        self.claims.insert(event_id, Claim { consumer, event_id, expires_at: now + kept });
        Ok(())
    }

    fn within_limits(self) -> Result<Self, PlanError> {
        let writes = self.written_rows().next().is_some() || !self.additions.is_empty();
        let items = self.items();
        if !writes {
            Err(PlanError::Empty)
        } else if items > ITEMS_MAX {
            Err(PlanError::TooManyItems { items })
        } else if self.bytes > BYTES_MAX {
            Err(PlanError::TooManyBytes { bytes: self.bytes })
        } else {
            Ok(self)
        }
    }
}

fn operation_bytes(key: &Key, operation: &Operation) -> usize {
    match operation {
        Operation::Create(attributes) | Operation::Replace { content: Content::Row(attributes), .. } => {
            item_bytes(&key.partition, &key.sort, attributes)
        }
        Operation::Replace { content: Content::Tombstone, .. } | Operation::Add(_) | Operation::Check(_) => {
            item_bytes(&key.partition, &key.sort, &domain::Attributes::new())
        }
    }
}

/// Returns the one operation that does what `earlier` and then `later` do, `later` having been decided on what `earlier`
/// leaves behind. `None` where there is no such operation: then they belong in two plans.
fn merged(earlier: &Operation, later: &Operation) -> Option<Operation> {
    match (earlier, later) {
        (Operation::Check(before), Operation::Check(after)) => (before == after).then(|| earlier.clone()),
        (Operation::Check(0), Operation::Create(_)) => Some(later.clone()),
        (Operation::Check(version), Operation::Replace { content, conditions }) => {
            let holds = conditions.unchanged.is_none_or(|unchanged| unchanged == *version);
            let conditions = Conditions { unchanged: Some(*version), newer: conditions.newer };
            holds.then(|| Operation::Replace { content: content.clone(), conditions })
        }
        (Operation::Create(_), Operation::Check(1)) => Some(earlier.clone()),
        (Operation::Replace { conditions, .. }, Operation::Check(version)) => {
            let next = conditions.unchanged? + 1;
            (next == *version).then(|| earlier.clone())
        }
        (Operation::Create(_), Operation::Replace { content: Content::Row(attributes), conditions }) => {
            let expected = Conditions { unchanged: Some(1), newer: None };
            (*conditions == expected).then(|| Operation::Create(attributes.clone()))
        }
        (
            Operation::Replace { content: earlier_content, conditions: earlier_conditions },
            Operation::Replace { content: later_content, conditions: later_conditions },
        ) => merged_replace((earlier_content, *earlier_conditions), (later_content, *later_conditions)),
        (Operation::Check(_) | Operation::Create(_), Operation::Create(_) | Operation::Replace { .. })
        | (Operation::Create(_), Operation::Check(_))
        | (Operation::Replace { .. }, Operation::Create(_))
        | (Operation::Add(_), _)
        | (_, Operation::Add(_)) => None,
    }
}

/// The last decided content wins, except that a lower source version never overwrites a higher one; the guards are those of
/// the row as it was fetched, the strictest of them.
fn merged_replace(earlier: (&Content, Conditions), later: (&Content, Conditions)) -> Option<Operation> {
    let follows = match (earlier.1.unchanged, later.1.unchanged) {
        (Some(fetched), Some(overlaid)) => fetched + 1 == overlaid,
        (None, Some(overlaid)) => overlaid > 0,
        (Some(_) | None, None) => true,
    };
    let later_wins = match (earlier.1.newer, later.1.newer) {
        (Some(before), Some(after)) => before < after,
        (Some(_) | None, None) | (None, Some(_)) => true,
    };
    let fetched = earlier.1.unchanged.or(later.1.unchanged.map(|overlaid| overlaid.saturating_sub(1)));
    let conditions = Conditions { unchanged: fetched, newer: earlier.1.newer.max(later.1.newer) };
    let content = if later_wins { later.0 } else { earlier.0 };
    follows.then(|| Operation::Replace { content: content.clone(), conditions })
}
