//! A simulated world: clients, stream, relay, queues, mappings and any number of instances that run the production driver and
//! deciders on the in-memory ledger, in one thread, with a manual clock and one seed. No real time and no IO: the same seed
//! gives the same run to the byte.
//!
//! A world goes wrong in every way that its seed says, then nothing goes wrong any more, and when everything has come to rest
//! the checks compare its tables with a fold of the unique events in their order.

mod campaign;
mod hazards;
mod sabotage;
mod trace;

mod checks;
mod commands;
mod core;
mod deciders;
mod history;
mod instances;
mod lanes;
mod letters;
mod orders;
mod port;
mod probes;
mod slot;
mod stream;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use consumer::{BatchReport, Driver, EffectDriver, Weakness, with_weakness};
use events::{Consumer, QueueOrder};
use fastrand::Rng;
use queue::{Configuration, Queues, Receipts};
use thiserror::Error;

pub use campaign::{Campaign, Results, explained};
pub use hazards::{Hazard, Hazards};
pub use sabotage::{Misjudgement, Sabotage, Slip};
pub use trace::Trace;

use self::core::Core;
use self::deciders::Role;
use self::instances::{InvocationId, Start};
use self::port::{Port, Shared, lock};
use self::stream::Shard;
use self::traffic::Traffic;
use crate::sample;

/// Things that happen in a world before it counts as one that never comes to rest.
const STEPS_MAX: u64 = 200_000;
/// `maxReceiveCount` as in the templates.
const RECEIVES_DECLARED: u32 = 20;
/// How long a letter may take, as in the function that sends them.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Parts of the stream.
const SHARDS: usize = 2;

/// A world that did not end right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("seed {seed}: {check}: {what}")]
pub struct Failure {
    /// The seed that gives this run again.
    pub seed: u64,
    /// Which check found it.
    pub check: &'static str,
    /// What is wrong.
    pub what: String,
    /// By which names the trace knows what it is about; none if it is about all of it.
    pub about: Vec<String>,
}

/// What happened in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Things that happened, one after the other.
    pub steps: u64,
    /// Events that were published.
    pub events: usize,
    /// Messages that were sent to queues.
    pub messages: usize,
    /// Times that a driver came to an outcome for a record.
    pub outcomes: usize,
}

/// Runs the world of a seed, with sabotages if any, and checks how it ends.
///
/// # Errors
/// The first check that fails.
pub fn run(seed: u64, sabotages: &[Sabotage]) -> Result<Summary, Failure> {
    simulate(seed, sabotages, Trace::default()).0
}

/// Runs the world of a seed like [`run`], and keeps its trace.
pub fn traced(seed: u64, sabotages: &[Sabotage]) -> (Result<Summary, Failure>, Trace) {
    simulate(seed, sabotages, Trace::kept())
}

fn simulate(seed: u64, sabotages: &[Sabotage], trace: Trace) -> (Result<Summary, Failure>, Trace) {
    let weaknesses: BTreeSet<Weakness> = sabotages
        .iter()
        .filter_map(|sabotage| match sabotage {
            Sabotage::Driver(weakness) => Some(*weakness),
            Sabotage::Ledger(_) | Sabotage::Decider(_) | Sabotage::Frame(_) => None,
        })
        .collect();
    let mut world = World::new(seed, sabotages.iter().copied().collect(), trace);
    let result = with_weakness(weaknesses, || world.live());
    let trace = std::mem::take(&mut lock(&world.core).trace);
    (result, trace)
}

/// The world and the code that runs in it.
struct World {
    seed: u64,
    steps: u64,
    core: Shared,
    tasks: BTreeMap<InvocationId, Task>,
}

/// An invocation's code.
struct Task {
    future: Pin<Box<dyn Future<Output = BatchReport> + Send>>,
    woken: Arc<Woken>,
}

/// Whether an invocation's code has something to go on with.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    fn new(seed: u64, sabotages: BTreeSet<Sabotage>, trace: Trace) -> Self {
        let mut random = Rng::with_seed(seed);
        let receipts = if random.bool() { Receipts::Any } else { Receipts::LatestOnly };
        let queues = Queues::new(Configuration { seed: random.u64(..), receipts, ..Configuration::default() });
        let core = Core::new(sample::now(), random, queues, sabotages, trace);
        Self { seed, steps: 0, core: Arc::new(Mutex::new(core)), tasks: BTreeMap::new() }
    }

    /// Lets everything happen, and checks how it ends.
    fn live(&mut self) -> Result<Summary, Failure> {
        self.begin()?;
        self.come_to_rest()?;
        let ages = self.ages();
        for age in ages {
            self.grow_older(age);
            self.come_to_rest()?;
        }
        self.recover();
        self.come_to_rest()?;
        let mut core = lock(&self.core);
        checks::run(&mut core).map_err(|(check, broken)| Failure {
            seed: self.seed,
            check,
            what: broken.what,
            about: broken.about,
        })?;
        let outcomes = core.history.messages.values().map(|story| story.outcomes.len()).sum();
        let (events, messages) = (core.history.events.len(), core.history.messages.len());
        Ok(Summary { steps: self.steps, events, messages, outcomes })
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let mut core = lock(&self.core);
        core.hazards = Hazards::drawn(&mut core.random);
        core.shards = (0..SHARDS).map(|_| Shard::default()).collect();
        // As declared, or so few that an outage fills the dead letter queues.
        let max_receive_count = [RECEIVES_DECLARED, RECEIVES_DECLARED, 2, 4][core.random.usize(0..4)];
        for role in Role::all() {
            let max_receive_count = match role.queue_order() {
                QueueOrder::Standard => max_receive_count,
                // A message may hold those behind it for half of the receives that are declared, so fewer would not do.
                QueueOrder::FifoByAggregate => RECEIVES_DECLARED,
            };
            core.add_lane(role, max_receive_count).map_err(|error| self.failure("queues", error.to_string()))?;
        }
        let traffic = Traffic {
            players: core.random.u32(2..=5),
            games: core.random.u32(0..=8),
            acts: core.random.u32(0..=8),
            commands: core.random.u32(0..=7),
            span: core.millis(100, 60_000),
        };
        core.note(|core| format!("{traffic:?}, {max_receive_count} receives, {:?}", core.hazards));
        core.plan_traffic(traffic);
        Ok(())
    }

    /// Returns how much time passes before each time that dead letters are redriven. Most worlds end young; some live on
    /// until their claims are forgotten.
    fn ages(&self) -> Vec<Duration> {
        let mut core = lock(&self.core);
        let count = [0, 0, 0, 1, 5][core.random.usize(0..5)];
        let day_ms = 86_400_000;
        (0..count).map(|_| core.millis(5 * day_ms, 9 * day_ms)).collect()
    }

    /// Lets days pass, publishes some events again and redrives what is in the dead letter queues. It may go wrong again.
    fn grow_older(&self, age: Duration) {
        let mut core = lock(&self.core);
        let swept = core.random.u8(0..4) > 0 && !core.slips(Slip::NeverSwept);
        core.let_days_pass(age, swept);
        if core.random.bool() {
            core.hazards = Hazards::default();
        }
        core.redrive();
        core.republish();
    }

    /// From now on nothing goes wrong any more, and an operator redrives everything once.
    fn recover(&self) {
        let mut core = lock(&self.core);
        core.note(|_| "nothing goes wrong any more".to_owned());
        core.hazards = Hazards::default();
        core.redrive();
    }

    /// Lets things happen until nothing does any more.
    fn come_to_rest(&mut self) -> Result<(), Failure> {
        loop {
            self.run_instances();
            if !lock(&self.core).step() {
                return Ok(());
            }
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(self.failure("rest", format!("no rest after {STEPS_MAX} steps")));
            }
        }
    }

    /// Runs the code of every instance that can go on, until each of them waits.
    fn run_instances(&mut self) {
        let starting = lock(&self.core).take_starting();
        for start in starting {
            let (id, task) = (start.id, self.task(start));
            self.tasks.insert(id, task);
        }
        let woken = self.tasks.iter().filter(|(_, task)| task.woken.0.load(Ordering::Relaxed)).map(|(id, _)| *id);
        for id in woken.collect::<Vec<_>>() {
            let (alive, awake) = {
                let core = lock(&self.core);
                (core.is_alive(id), core.is_awake(id))
            };
            if alive && !awake {
                continue;
            }
            let report = if alive { self.poll(id) } else { None };
            // An instance may have died while it ran.
            if report.is_some() || !lock(&self.core).is_alive(id) {
                self.tasks.remove(&id);
            }
            if let Some(report) = report {
                lock(&self.core).report(id, &report);
            }
        }
    }

    fn poll(&mut self, id: InvocationId) -> Option<BatchReport> {
        let task = self.tasks.get_mut(&id)?;
        task.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.woken));
        match task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(report) => Some(report),
            Poll::Pending => None,
        }
    }

    fn task(&self, start: Start) -> Task {
        let Start { id, role, batch, deadline, skew_ms } = start;
        let decider = role.decider(lock(&self.core).misjudgements());
        let port = Port { core: Arc::clone(&self.core), invocation: id, skew_ms };
        let driver = Driver {
            consumer: role.consumer(),
            decider,
            ledger: port.clone(),
            environment: port.clone(),
            visibility: port.clone(),
        };
        let future: Pin<Box<dyn Future<Output = BatchReport> + Send>> =
            if role == Role::Production(Consumer::NotificationRequested) {
                let driver = EffectDriver { driver, notifier: Some(port), send_timeout: SEND_TIMEOUT };
                Box::pin(async move { driver.handle(&batch, deadline).await })
            } else {
                Box::pin(async move { driver.handle(&batch, deadline).await })
            };
        Task { future, woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    fn failure(&self, check: &'static str, what: String) -> Failure {
        Failure { seed: self.seed, check, what, about: Vec::new() }
    }
}
