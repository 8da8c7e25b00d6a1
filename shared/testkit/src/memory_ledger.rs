//! The in-memory twin of the DynamoDB ledger. The contract suite keeps the two alike.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use consumer::{Attempt, Busy, Claim, CommitError, Conditions, Cost, FetchError, Ledger, Operation, Plan, Refusal};
use domain::{Attributes, Content, Key, Need, Range, Row, State};
use events::{EventId, Timestamp};
use serde_json::Value;

/// What goes wrong with one of the next calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The next commit takes effect, but its answer is lost.
    AnswerLost,
    /// The next commit is refused for load and has no effect.
    Throttled,
    /// The next commit meets another transaction and has no effect.
    Conflict,
    /// The next commit meets another transaction on one item while a condition fails on another.
    ConflictBesideConditions,
    /// The next fetch leaves all keys but the first unprocessed at first.
    Unprocessed,
    /// The next range's first page ends after one row.
    SmallPage,
    /// The next fetch fails.
    Unreadable,
}

/// Claims, rows and counters in memory.
#[derive(Debug, Default)]
pub struct MemoryLedger {
    store: Mutex<Store>,
}

/// A way in which the ledger can be broken on purpose, so that a test can show that it would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flaw {
    /// A row is also replaced by what has the source version that it has already.
    NewerOrEqual,
    /// A row is replaced whatever its version.
    UnchangedIgnored,
    /// Checks hold whatever stands there.
    ChecksIgnored,
    /// Claims are not written with the plan, but by a write of their own, which someone has to ask for.
    ClaimsInSecondWrite,
    /// A claim whose expiry has passed is taken for absent.
    ExpiredClaimTakenAgain,
    /// A removed row leaves nothing behind.
    TombstoneDropped,
    /// Of the reasons of a refusal the first is not told.
    FirstReasonSwallowed,
    /// Consumers do not see whose claim it is.
    ClaimsShared,
}

/// The state of the tables, without locks, futures and faults: what DynamoDB does with a request when it gets to it.
#[derive(Debug, Default)]
pub(crate) struct Store {
    claims: BTreeMap<(String, EventId), Claim>,
    items: BTreeMap<Key, Item>,
    tokens: BTreeMap<u128, Plan>,
    faults: VecDeque<Fault>,
    invalid: BTreeSet<Key>,
    commits: u64,
    /// What is broken on purpose.
    flaws: BTreeSet<Flaw>,
    /// The present, which nothing but a flaw asks for: claims hold after their expiry.
    pub(crate) now: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Item {
    version: u64,
    source_version: Option<u64>,
    removed: bool,
    attributes: Attributes,
}

/// A plan, and whether it is one guarded write.
#[derive(Debug, Clone)]
pub struct MemoryRequest {
    plan: Plan,
}

impl MemoryLedger {
    /// Lets the next calls go wrong, in this order, each at the first call that it fits.
    pub fn inject(&self, fault: Fault) {
        self.store().faults.push_back(fault);
    }

    /// Takes back the faults that have not come about.
    pub fn heal(&self) {
        self.store().faults.clear();
    }

    /// Calls every plan invalid that has an operation on this item, as DynamoDB does with a value that it does not take.
    pub fn call_invalid(&self, key: Key) {
        self.store().invalid.insert(key);
    }

    /// Returns every item that is no claim, by key, as attributes; tombstones are left out.
    pub fn rows(&self) -> BTreeMap<Key, Attributes> {
        self.store().rows()
    }

    /// Returns how many claims there are.
    pub fn claims(&self) -> usize {
        self.store().claims.len()
    }

    /// Returns how many plans have been carried out.
    pub fn commits(&self) -> u64 {
        self.store().commits()
    }

    /// Puts a row there as its owner would, with the next version.
    pub fn put(&self, key: Key, attributes: Attributes) {
        self.store().put(key, attributes);
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for MemoryLedger {
    type Request = MemoryRequest;

    async fn fetch(&self, needs: &BTreeSet<Need>) -> Result<(State, Cost), FetchError> {
        let mut store = self.store();
        if store.take(&[Fault::Unreadable]).is_some() {
            return Err(FetchError::Unavailable("injected".into()));
        }
        let mut state = State::default();
        let mut cost = Cost::default();
        let is_key = |need: &&Need| matches!(need, Need::Key(_));
        if needs.iter().any(|need| is_key(&need)) {
            cost.calls += if store.take(&[Fault::Unprocessed]).is_some() { 2 } else { 1 };
        }
        for need in needs {
            match need {
                Need::Key(key) => {
                    state.insert(key.clone(), store.row(key));
                    cost.read_units += 1.0;
                }
                Need::Range(range) => {
                    let rows = store.range(range);
                    cost.calls += if store.take(&[Fault::SmallPage]).is_some() { 2 } else { 1 };
                    cost.read_units += rows.len() as f64;
                    state.insert_range(range.clone(), rows);
                }
            }
        }
        Ok((state, cost))
    }

    fn prepare(&self, plan: &Plan) -> Result<MemoryRequest, CommitError> {
        Ok(MemoryRequest { plan: plan.clone() })
    }

    async fn commit(&self, request: &MemoryRequest, attempt: Attempt) -> Result<Cost, CommitError> {
        let mut store = self.store();
        let plan = &request.plan;
        if let Some((key, _)) = plan.operations().find(|(key, _)| store.invalid.contains(key)) {
            return Err(CommitError::Invalid { reason: format!("item {key} is not taken") });
        }
        let fault =
            store.take(&[Fault::AnswerLost, Fault::Throttled, Fault::Conflict, Fault::ConflictBesideConditions]);
        let busy = |busy| Err(CommitError::Busy { busy, source: None });
        match fault {
            Some(Fault::Throttled) => busy(Busy::Throttled),
            Some(Fault::Conflict) => busy(Busy::Conflict),
            Some(Fault::AnswerLost) => {
                store.carry_out(plan, attempt)?;
                busy(Busy::NoAnswer)
            }
            Some(Fault::ConflictBesideConditions | Fault::Unprocessed | Fault::SmallPage | Fault::Unreadable)
            | None => store.carry_out(plan, attempt),
        }
    }
}

impl Store {
    /// Makes an empty store that is broken on purpose.
    pub(crate) fn flawed(flaws: BTreeSet<Flaw>) -> Self {
        Self { flaws, ..Self::default() }
    }

    /// Returns whether the store is broken in this way.
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }

    /// Returns a row as a read finds it.
    pub(crate) fn row(&self, key: &Key) -> Row {
        self.items.get(key).map(Item::row).unwrap_or_default()
    }

    /// Returns every item that is no claim, by key, as attributes; tombstones are left out.
    pub(crate) fn rows(&self) -> BTreeMap<Key, Attributes> {
        let standing = self.items.iter().filter(|(_, item)| !item.removed);
        standing.map(|(key, item)| (key.clone(), item.attributes.clone())).collect()
    }

    /// Puts a row there as its owner would, with the next version.
    pub(crate) fn put(&mut self, key: Key, attributes: Attributes) {
        let item = self.items.entry(key).or_default();
        item.version += 1;
        item.removed = false;
        item.attributes = attributes;
    }

    /// Returns how many plans have been carried out.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    /// Writes the claims of a plan by themselves.
    pub(crate) fn claim(&mut self, plan: &Plan) {
        for claim in plan.claims() {
            self.claims.insert(self.claimant(claim), claim.clone());
        }
    }

    /// Deletes the claims whose expiry has passed, as time to live does some day, and returns them.
    pub(crate) fn sweep(&mut self, now: Timestamp) -> Vec<Claim> {
        let (expired, kept) =
            std::mem::take(&mut self.claims).into_iter().partition(|(_, claim)| claim.expires_at <= now);
        self.claims = kept;
        expired.into_values().collect()
    }

    /// Forgets all tokens, as DynamoDB does with those older than ten minutes.
    pub(crate) fn forget_tokens(&mut self) {
        self.tokens.clear();
    }

    fn claimant(&self, claim: &Claim) -> (String, EventId) {
        let shared = self.has(Flaw::ClaimsShared);
        (if shared { String::new() } else { claim.consumer.to_string() }, claim.event_id)
    }

    /// Takes the first of the planned faults if it is one of these.
    fn take(&mut self, fitting: &[Fault]) -> Option<Fault> {
        let fits = self.faults.front().is_some_and(|fault| fitting.contains(fault));
        if fits { self.faults.pop_front() } else { None }
    }

    /// Returns the rows of a range as a read finds them.
    pub(crate) fn range(&self, range: &Range) -> Vec<(Key, Row)> {
        let behind = self.items.range(range.start()..).filter(|(key, _)| **key != range.start());
        let rows = behind.take_while(|(key, _)| range.covers(key));
        rows.take(range.limit).map(|(key, item)| (key.clone(), item.row())).collect()
    }

    pub(crate) fn carry_out(&mut self, plan: &Plan, attempt: Attempt) -> Result<Cost, CommitError> {
        let lone = plan.lone_write();
        let factor = if lone.is_some() { 1.0 } else { 2.0 };
        let cost = Cost { calls: 1, write_units: plan.items() as f64 * factor, ..Cost::default() };
        if let (None, Some(sent)) = (lone, self.tokens.get(&plan.token())) {
            let same = sent == plan;
            return if same { Ok(cost) } else { Err(CommitError::Refused { refusals: Vec::new(), cost }) };
        }
        let mut refusals: Vec<Refusal> = self.refusals(plan);
        if !refusals.is_empty() {
            if self.has(Flaw::FirstReasonSwallowed) {
                refusals.remove(0);
            }
            let own = lone.is_some_and(|(key, operation)| attempt == Attempt::Again && self.stands(key, operation));
            return if own { Ok(cost) } else { Err(CommitError::Refused { refusals, cost }) };
        }
        if !self.has(Flaw::ClaimsInSecondWrite) {
            self.claim(plan);
        }
        for (key, operation) in plan.operations() {
            if !matches!(operation, Operation::Check(_)) {
                let item = self.items.entry(key.clone()).or_default();
                *item = item.after(operation);
                if item.removed && self.has(Flaw::TombstoneDropped) {
                    self.items.remove(key);
                }
            }
        }
        if lone.is_none() {
            self.tokens.insert(plan.token(), plan.clone());
        }
        self.commits += 1;
        Ok(cost)
    }

    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        let expired = |claim: &Claim| self.now.is_some_and(|now| claim.expires_at <= now);
        let claimed = |claim: &&Claim| {
            let standing = self.claims.get(&self.claimant(claim));
            standing.is_some_and(|claim| !self.has(Flaw::ExpiredClaimTakenAgain) || !expired(claim))
        };
        let absent = Item::default();
        let claims = plan.claims().filter(claimed).map(|claim| Refusal::Claimed(claim.event_id));
        let rows = plan
            .operations()
            .filter(|(key, operation)| !self.allows(self.items.get(key).unwrap_or(&absent), operation))
            .map(|(key, _)| Refusal::Row(key.clone()));
        claims.chain(rows).collect()
    }

    /// Whether an item lets an operation pass, as far as nothing is broken.
    fn allows(&self, item: &Item, operation: &Operation) -> bool {
        match operation {
            Operation::Check(_) if self.has(Flaw::ChecksIgnored) => true,
            Operation::Replace { conditions: Conditions { unchanged: Some(_), newer: None }, .. }
                if self.has(Flaw::UnchangedIgnored) =>
            {
                true
            }
            Operation::Replace { conditions: Conditions { newer, .. }, .. }
                if self.has(Flaw::NewerOrEqual) && newer.is_some() && item.source_version == *newer =>
            {
                true
            }
            Operation::Check(_) | Operation::Create(_) | Operation::Replace { .. } | Operation::Add(_) => {
                item.allows(operation)
            }
        }
    }

    /// Whether a row is what the operation would have made of it.
    fn stands(&self, key: &Key, operation: &Operation) -> bool {
        let Some(item) = self.items.get(key) else { return false };
        match operation {
            Operation::Create(_) => *item == Item::default().after(operation),
            Operation::Replace { conditions: Conditions { unchanged: Some(version), .. }, .. } => {
                let before = Item { version: *version, ..Item::default() };
                *item == before.after(operation)
            }
            Operation::Replace { conditions: Conditions { unchanged: None, newer }, .. } => {
                item.source_version == *newer
            }
            Operation::Add(_) | Operation::Check(_) => false,
        }
    }
}

impl Item {
    fn row(&self) -> Row {
        let attributes = (!self.removed).then(|| self.attributes.clone());
        Row { version: self.version, attributes }
    }

    fn allows(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Create(_) => self.version == 0,
            Operation::Check(version) => self.version == *version,
            Operation::Add(_) => true,
            Operation::Replace { conditions, .. } => {
                let unchanged = conditions.unchanged.is_none_or(|version| self.version == version);
                let source = match conditions.newer {
                    Some(newer) => self.source_version.is_none_or(|source_version| source_version < newer),
                    None => self.source_version.is_none(),
                };
                unchanged && source
            }
        }
    }

    fn after(&self, operation: &Operation) -> Self {
        let mut after = self.clone();
        match operation {
            Operation::Check(_) => return after,
            Operation::Create(attributes) => after.attributes = present(attributes),
            Operation::Replace { content, conditions } => {
                // A row that was read is replaced whole; one that nobody has read is laid over.
                if conditions.unchanged.is_some() {
                    after.attributes.clear();
                }
                after.removed = *content == Content::Tombstone;
                if let Content::Row(attributes) = content {
                    after.attributes.retain(|name, _| attributes.get(name).is_none_or(|value| !value.is_null()));
                    after.attributes.extend(present(attributes));
                }
                after.source_version = conditions.newer.or(after.source_version);
            }
            Operation::Add(deltas) => {
                for (name, delta) in deltas {
                    let before = after.attributes.get(name).and_then(Value::as_i64).unwrap_or(0);
                    after.attributes.insert(name.clone(), Value::from(before + delta));
                }
            }
        }
        after.version += 1;
        after
    }
}

fn present(attributes: &Attributes) -> Attributes {
    attributes.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}
