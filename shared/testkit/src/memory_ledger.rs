//! The in-memory twin of the DynamoDB ledger. The contract suite keeps the two alike.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use consumer::{Attempt, Busy, Claim, CommitError, Conditions, Cost, FetchError, Ledger, Operation, Plan, Refusal};
use domain::{Attributes, Content, Key, Need, Range, Row, State};
use events::EventId;
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

#[derive(Debug, Default)]
struct Store {
    claims: BTreeMap<(String, EventId), Claim>,
    items: BTreeMap<Key, Item>,
    tokens: BTreeMap<u128, Plan>,
    faults: VecDeque<Fault>,
    invalid: BTreeSet<Key>,
    commits: u64,
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

    /// Calls every plan invalid that has an operation on this item, as DynamoDB does with a value that it does not take.
    pub fn call_invalid(&self, key: Key) {
        self.store().invalid.insert(key);
    }

    /// Returns every item that is no claim, by key, as attributes; tombstones are left out.
    pub fn rows(&self) -> BTreeMap<Key, Attributes> {
        let store = self.store();
        let standing = store.items.iter().filter(|(_, item)| !item.removed);
        standing.map(|(key, item)| (key.clone(), item.attributes.clone())).collect()
    }

    /// Returns how many claims there are.
    pub fn claims(&self) -> usize {
        self.store().claims.len()
    }

    /// Returns how many plans have been carried out.
    pub fn commits(&self) -> u64 {
        self.store().commits
    }

    /// Puts a row there as its owner would, with the next version.
    pub fn put(&self, key: Key, attributes: Attributes) {
        let mut store = self.store();
        let item = store.items.entry(key).or_default();
        item.version += 1;
        item.removed = false;
        item.attributes = attributes;
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
                    state.insert(key.clone(), store.items.get(key).map(Item::row).unwrap_or_default());
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
    /// Takes the first of the planned faults if it is one of these.
    fn take(&mut self, fitting: &[Fault]) -> Option<Fault> {
        let fits = self.faults.front().is_some_and(|fault| fitting.contains(fault));
        if fits { self.faults.pop_front() } else { None }
    }

    fn range(&self, range: &Range) -> Vec<(Key, Row)> {
        let rows = self.items.iter().filter(|(key, _)| range.covers(key));
        rows.take(range.limit).map(|(key, item)| (key.clone(), item.row())).collect()
    }

    fn carry_out(&mut self, plan: &Plan, attempt: Attempt) -> Result<Cost, CommitError> {
        let lone = plan.lone_write();
        let factor = if lone.is_some() { 1.0 } else { 2.0 };
        let cost = Cost { calls: 1, write_units: plan.items() as f64 * factor, ..Cost::default() };
        if let (None, Some(sent)) = (lone, self.tokens.get(&plan.token())) {
            let same = sent == plan;
            return if same { Ok(cost) } else { Err(CommitError::Refused { refusals: Vec::new(), cost }) };
        }
        let refusals: Vec<Refusal> = self.refusals(plan);
        if !refusals.is_empty() {
            let own = lone.is_some_and(|(key, operation)| attempt == Attempt::Again && self.stands(key, operation));
            return if own { Ok(cost) } else { Err(CommitError::Refused { refusals, cost }) };
        }
        for claim in plan.claims() {
            self.claims.insert((claim.consumer.to_string(), claim.event_id), claim.clone());
        }
        for (key, operation) in plan.operations() {
            if !matches!(operation, Operation::Check(_)) {
                let item = self.items.entry(key.clone()).or_default();
                *item = item.after(operation);
            }
        }
        if lone.is_none() {
            self.tokens.insert(plan.token(), plan.clone());
        }
        self.commits += 1;
        Ok(cost)
    }

    fn refusals(&self, plan: &Plan) -> Vec<Refusal> {
        let claimed = |claim: &&Claim| self.claims.contains_key(&(claim.consumer.to_string(), claim.event_id));
        let absent = Item::default();
        let claims = plan.claims().filter(claimed).map(|claim| Refusal::Claimed(claim.event_id));
        let rows = plan
            .operations()
            .filter(|(key, operation)| !self.items.get(key).unwrap_or(&absent).allows(operation))
            .map(|(key, _)| Refusal::Row(key.clone()));
        claims.chain(rows).collect()
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
