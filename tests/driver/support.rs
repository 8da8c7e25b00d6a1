//! Deciders, batches and a driver for the driver's tests.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consumer::{Attempt, BatchReport, CommitError, Cost, Delivery, Driver, FetchError, Ledger, Outcome, Plan};
use domain::{Attributes, Content, Decider, Decision, Deltas, Guard, Key, Need, RowError, Spread, State, Write};
use events::{Consumer, Event, Timestamp};
use serde_json::json;
use testkit::sample::now;
use testkit::{ManualEnvironment, MemoryLedger, RecordedVisibility};

pub type TestDriver<D> = Driver<D, MemoryLedger, ManualEnvironment, RecordedVisibility>;

pub fn driver<D>(decider: D) -> TestDriver<D> {
    Driver {
        consumer: Consumer::GameEnded,
        decider,
        ledger: MemoryLedger::default(),
        environment: ManualEnvironment::new(now(), 7),
        visibility: RecordedVisibility::default(),
    }
}

/// The ledger in the hands of a decider, which plays the other writer.
pub struct Shared(Arc<MemoryLedger>);

impl Shared {
    pub fn of(ledger: &Arc<MemoryLedger>) -> Self {
        Self(ledger.clone())
    }
}

impl Ledger for Shared {
    type Request = <MemoryLedger as Ledger>::Request;

    async fn fetch(&self, needs: &BTreeSet<Need>) -> Result<(State, Cost), FetchError> {
        self.0.fetch(needs).await
    }

    fn prepare(&self, plan: &Plan) -> Result<Self::Request, CommitError> {
        self.0.prepare(plan)
    }

    async fn commit(&self, request: &Self::Request, attempt: Attempt) -> Result<Cost, CommitError> {
        self.0.commit(request, attempt).await
    }
}

/// Makes a driver on a ledger that others use too. Each has chance of its own, as each instance has.
pub fn sharing<D: Decider>(
    ledger: &Arc<MemoryLedger>,
    decider: D,
) -> Driver<D, Shared, ManualEnvironment, RecordedVisibility> {
    static SEED: AtomicU64 = AtomicU64::new(7);
    Driver {
        consumer: Consumer::GameEnded,
        decider,
        ledger: Shared(ledger.clone()),
        environment: ManualEnvironment::new(now(), SEED.fetch_add(1, Ordering::Relaxed)),
        visibility: RecordedVisibility::default(),
    }
}

/// A decider made of two functions.
pub struct Fake<N, F> {
    pub needs: N,
    pub decide: F,
}

impl<N, F> Decider for Fake<N, F>
where
    N: Fn(&Event) -> Vec<Need> + Send + Sync,
    F: Fn(&Event, &State) -> Decision + Send + Sync,
{
    fn needs(&self, event: &Event) -> Vec<Need> {
        (self.needs)(event)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        Ok((self.decide)(event, state))
    }
}

/// Decides without reading anything.
pub fn blind<F>(decide: F) -> impl Decider
where
    F: Fn(&Event) -> Decision + Send + Sync,
{
    Fake { needs: |_: &Event| Vec::new(), decide: move |event: &Event, _: &State| decide(event) }
}

/// Counts every event in one counter.
pub fn counting() -> impl Decider {
    blind(|_| apply(vec![add("count", 1)]))
}

/// Does something the first time that a decision is made, as another writer would between read and write.
pub struct Once(Mutex<bool>);

impl Once {
    pub fn new() -> Self {
        Self(Mutex::new(true))
    }

    pub fn first(&self) -> bool {
        std::mem::replace(&mut *self.0.lock().unwrap(), false)
    }
}

pub fn apply(writes: Vec<Write>) -> Decision {
    Decision::Apply { writes, checks: Vec::new() }
}

pub fn key(name: &str) -> Key {
    Key::view(format!("TEST#{name}"), "ROW")
}

pub fn need(name: &str) -> Need {
    Need::Key(key(name))
}

pub fn numbered(n: u64) -> Attributes {
    json!({"n": n}).as_object().cloned().unwrap()
}

pub fn row_number(state: &State, name: &str) -> (u64, Option<u64>) {
    let row = state.row(&key(name)).unwrap();
    (row.version, row.attributes.as_ref().and_then(|attributes| attributes["n"].as_u64()))
}

pub fn replace(name: &str, n: u64, guard: Guard) -> Write {
    Write::Replace { key: key(name), content: Content::Row(numbered(n)), guard }
}

pub fn add(name: &str, delta: i64) -> Write {
    Write::Add { key: key(name), deltas: Deltas::from([("n".to_owned(), delta)]), spread: Spread::NONE }
}

pub fn stored(ledger: &MemoryLedger, name: &str) -> Option<i64> {
    ledger.rows().get(&key(name)).and_then(|attributes| attributes["n"].as_i64())
}

pub fn delivery(position: usize, body: impl Into<Vec<u8>>) -> Delivery {
    Delivery {
        message_id: format!("message-{position}").try_into().unwrap(),
        receipt_handle: Some(format!("receipt-{position}")),
        receive_count: 1,
        group: None,
        body: body.into(),
    }
}

pub fn deliveries(events: &[Event]) -> Vec<Delivery> {
    events.iter().enumerate().map(|(position, event)| delivery(position, event.encode())).collect()
}

pub fn deadline() -> Timestamp {
    now() + Duration::from_secs(3_600)
}

pub async fn handle<D: Decider>(driver: &TestDriver<D>, events: &[Event]) -> Vec<Outcome> {
    outcomes(&driver.handle(&deliveries(events), deadline()).await)
}

pub async fn handle_body<D: Decider>(driver: &TestDriver<D>, body: impl Into<Vec<u8>>) -> Outcome {
    outcomes(&driver.handle(&[delivery(0, body)], deadline()).await).remove(0)
}

pub fn outcomes(report: &BatchReport) -> Vec<Outcome> {
    report.records.iter().map(|record| record.outcome.clone()).collect()
}

pub fn names(outcomes: &[Outcome]) -> Vec<&'static str> {
    outcomes.iter().map(Outcome::name).collect()
}
