//! The driver's ports, for one invocation: each call becomes a request that the world answers in its own time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consumer::{
    Attempt, Clock, CommitError, Cost, FetchError, Ledger, Notifier, NotifyError, Plan, Random, Visibility,
    VisibilityChange, VisibilityError,
};
use domain::inbox::Letter;
use domain::{Need, State};
use events::{Timestamp, TraceId};

use super::core::Core;
use super::instances::{InvocationId, skewed};
use super::slot::Slot;

/// The world in the hands of its instances.
pub(super) type Shared = Arc<Mutex<Core>>;

/// Locks the world. Nobody holds it while it waits, so there is never anyone else.
pub(super) fn lock(core: &Shared) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ledger, clock, chance and queue as one invocation sees them.
#[derive(Clone)]
pub(super) struct Port {
    pub(super) core: Shared,
    pub(super) invocation: InvocationId,
    /// How far the instance's clock is ahead, in milliseconds.
    pub(super) skew_ms: i64,
}

impl Ledger for Port {
    type Request = Plan;

    async fn fetch(&self, needs: &BTreeSet<Need>) -> Result<(State, Cost), FetchError> {
        let slot = Slot::default();
        lock(&self.core).fetch(self.invocation, needs, slot.clone());
        slot.await
    }

    fn prepare(&self, plan: &Plan) -> Result<Plan, CommitError> {
        Ok(plan.clone())
    }

    async fn commit(&self, request: &Plan, attempt: Attempt) -> Result<Cost, CommitError> {
        let slot = Slot::default();
        lock(&self.core).commit(self.invocation, request.clone(), attempt, slot.clone());
        slot.await
    }
}

impl Clock for Port {
    fn now(&self) -> Timestamp {
        skewed(lock(&self.core).now, self.skew_ms)
    }

    async fn sleep(&self, duration: Duration) {
        let slot = Slot::default();
        let filled = slot.clone();
        lock(&self.core).after(duration, move |_| filled.fill(()));
        slot.await;
    }
}

impl Random for Port {
    fn bits(&self) -> u64 {
        lock(&self.core).random.u64(..)
    }
}

impl Visibility for Port {
    async fn change(&self, changes: Vec<VisibilityChange>) -> Result<(), VisibilityError> {
        let slot = Slot::default();
        lock(&self.core).change(self.invocation, changes, slot.clone());
        slot.await
    }
}

impl Notifier<Letter> for Port {
    async fn send(&self, key: &str, _: TraceId, letter: &Letter) -> Result<(), NotifyError> {
        let slot = Slot::default();
        lock(&self.core).send_letter(self.invocation, key, letter, slot.clone());
        slot.await
    }
}
