//! The instances of one function: started when none is idle, stopped when idle for long. Knows no event source.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::error::InvokeError;
use super::instance::{Instance, Outcome};
use super::process::log_path;
use super::{Counters, PAYLOAD_BYTES_MAX, Scaling};
use crate::model::Function;

/// Instances that may vanish before they take an invocation, until that is the invocation's failure.
const TAKES_MAX: usize = 3;

/// Wait after the second failed start in a row; it doubles with every further one.
const START_BACKOFF: Duration = Duration::from_millis(200);

/// Longest wait between failing starts.
const START_BACKOFF_MAX: Duration = Duration::from_secs(10);

/// The instances of one function.
pub(super) struct Pool {
    function: Arc<Function>,
    scaling: Scaling,
    slots: Semaphore,
    state: Mutex<State>,
    waiting: AtomicUsize,
    in_flight: AtomicUsize,
    starts: AtomicU64,
    invocations: AtomicU64,
    errors: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Idle instances, the one idle for longest first.
    idle: Vec<Idle>,
    /// What kills an instance, by its number; instances that ended are removed when somebody looks.
    live: BTreeMap<u64, AbortHandle>,
    failed_start: Option<FailedStart>,
    reaper: Reaper,
}

struct Idle {
    instance: Instance,
    since: Instant,
}

/// The last start failed.
struct FailedStart {
    in_a_row: u32,
    retry_at: Instant,
    error: InvokeError,
}

/// Whether a task watches the idle instances.
#[derive(Default, PartialEq, Eq)]
enum Reaper {
    #[default]
    Absent,
    Watching,
}

impl Pool {
    pub(super) fn new(function: Function, scaling: Scaling) -> Self {
        Self {
            function: Arc::new(function),
            slots: Semaphore::new(scaling.instances_max.max(1)),
            scaling,
            state: Mutex::default(),
            waiting: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            starts: AtomicU64::new(0),
            invocations: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    /// Invokes the function once, on an idle instance or a new one; waits while all that may exist are working.
    pub(super) async fn invoke(self: Arc<Self>, payload: Bytes) -> Result<Bytes, InvokeError> {
        let function = || self.function.name.clone();
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(InvokeError::PayloadTooLarge { function: function(), bytes, bytes_max: PAYLOAD_BYTES_MAX });
        }
        let slot = {
            let _waiting = Gauge::enter(&self.waiting);
            self.slots.acquire().await.map_err(|_| InvokeError::Stopping { function: function() })?
        };
        let result = {
            let _in_flight = Gauge::enter(&self.in_flight);
            self.invoke_somewhere(payload).await
        };
        drop(slot);
        self.invocations.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = &result {
            self.errors.fetch_add(1, Ordering::Relaxed);
            self.log(error);
        }
        result
    }

    /// Returns what has happened so far and what is happening.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            instances: self.live().len(),
            waiting: self.waiting.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            starts: self.starts.load(Ordering::Relaxed),
            invocations: self.invocations.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }

    /// Returns what kills each living instance.
    pub(super) fn live(&self) -> Vec<AbortHandle> {
        let mut state = self.state();
        state.live.retain(|_, instance| !instance.is_finished());
        state.live.values().cloned().collect()
    }

    /// Kills all instances and refuses further invocations.
    pub(super) fn stop(&self) {
        self.slots.close();
        let mut state = self.state();
        state.idle.clear();
        for instance in state.live.values() {
            instance.abort();
        }
    }

    async fn invoke_somewhere(self: &Arc<Self>, payload: Bytes) -> Result<Bytes, InvokeError> {
        let mut exit = String::new();
        for _ in 0..TAKES_MAX {
            let mut instance = match self.take_idle() {
                Some(instance) => instance,
                None => self.start().await?,
            };
            match instance.invoke(payload.clone()).await {
                Outcome::Answered(answer) => {
                    self.release(instance);
                    return answer;
                }
                Outcome::Died(error) => return Err(error),
                Outcome::NotTaken { exit: reason } => exit = reason,
            }
        }
        Err(InvokeError::InitExit { function: self.function.name.clone(), exit })
    }

    /// Takes the instance that worked last, so that the others can grow old.
    fn take_idle(&self) -> Option<Instance> {
        let mut state = self.state();
        while let Some(idle) = state.idle.pop() {
            if idle.instance.is_alive() {
                return Some(idle.instance);
            }
        }
        None
    }

    async fn start(&self) -> Result<Instance, InvokeError> {
        if let Some(failed) = &self.state().failed_start
            && Instant::now() < failed.retry_at
        {
            return Err(failed.error.clone());
        }
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let launcher = self.scaling.launcher.as_ref();
        let register = |kill| {
            self.state().live.insert(number, kill);
        };
        let started = Instance::start(Arc::clone(&self.function), launcher, self.scaling.init_timeout, register).await;
        let mut state = self.state();
        match &started {
            Ok(_) => state.failed_start = None,
            Err(error) => {
                let in_a_row = state.failed_start.as_ref().map_or(0, |failed| failed.in_a_row) + 1;
                let retry_at = Instant::now() + start_backoff(in_a_row);
                state.failed_start = Some(FailedStart { in_a_row, retry_at, error: error.clone() });
            }
        }
        started
    }

    fn release(self: &Arc<Self>, instance: Instance) {
        if self.slots.is_closed() || !instance.is_alive() {
            return;
        }
        let mut state = self.state();
        state.idle.push(Idle { instance, since: Instant::now() });
        if state.reaper == Reaper::Absent {
            state.reaper = Reaper::Watching;
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Stops instances that were idle for too long. Returns when to look again, if there is anything to look at.
    fn stop_idle(&self) -> Option<Instant> {
        let now = Instant::now();
        let idle_max = self.scaling.idle;
        let mut state = self.state();
        state.idle.retain(|idle| idle.instance.is_alive() && idle.since + idle_max > now);
        let next = state.idle.first().map(|idle| idle.since + idle_max);
        if next.is_none() {
            state.reaper = Reaper::Absent;
        }
        next
    }

    /// Appends a failure to the function's log, next to what the function itself wrote. A log that cannot be written
    /// must not change the outcome.
    fn log(&self, error: &InvokeError) {
        let Some(logs) = &self.scaling.logs else { return };
        let path = log_path(logs, &self.function.name);
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
            let _ = writeln!(file, "[{}] {error}", error.error_type());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the idle instances of a pool for as long as it has any.
async fn reap(pool: Weak<Pool>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.stop_idle()) {
        tokio::time::sleep_until(next).await;
    }
}

/// Returns the wait after a number of failed starts in a row.
fn start_backoff(in_a_row: u32) -> Duration {
    match in_a_row {
        // A single failure may be an accident, for example a killed process.
        0 | 1 => Duration::ZERO,
        more => START_BACKOFF.saturating_mul(1 << (more - 2).min(10)).min(START_BACKOFF_MAX),
    }
}

/// Counts up for as long as it lives.
struct Gauge<'a>(&'a AtomicUsize);

impl<'a> Gauge<'a> {
    fn enter(gauge: &'a AtomicUsize) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_starts_wait_longer_and_longer_up_to_a_limit() {
        let waits: Vec<_> = [1, 2, 3, 4, 20, 60].into_iter().map(|n| start_backoff(n).as_millis()).collect();

        assert_eq!(waits, [0, 200, 400, 800, 10_000, 10_000]);
    }
}
