//! What the driver needs of the outside world.

use std::collections::BTreeSet;
use std::error::Error;
use std::future::Future;
use std::ops::AddAssign;
use std::time::Duration;

use domain::{Key, Need, State};
use events::{EventId, Timestamp, TraceId};
use thiserror::Error;

use crate::Plan;

/// Where state is read and plans are committed.
pub trait Ledger: Send + Sync {
    /// A plan in the ledger's own terms.
    type Request: Send + Sync;

    /// Reads rows and ranges consistently. Every key gets a row, an absent one with version 0; every range gets its first
    /// rows up to its limit, over as many pages as that takes.
    fn fetch(&self, needs: &BTreeSet<Need>) -> impl Future<Output = Result<(State, Cost), FetchError>> + Send;

    /// Puts a plan into the ledger's own terms, once: what is sent again is the same request to the letter, so that its
    /// token never meets another one.
    ///
    /// # Errors
    /// The plan cannot be expressed.
    fn prepare(&self, plan: &Plan) -> Result<Self::Request, CommitError>;

    /// Carries out a request, all of it or nothing.
    fn commit(
        &self,
        request: &Self::Request,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Cost, CommitError>> + Send;
}

/// Whether a plan is sent for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It is.
    First,
    /// The very same plan was sent before and may have been carried out: what then stands there is its own success.
    Again,
}

/// What the ledger spent, refused requests included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Requests sent.
    pub calls: u32,
    /// Read request units consumed.
    pub read_units: f64,
    /// Write request units consumed by the tables themselves.
    pub write_units: f64,
    /// Write request units consumed by their indexes.
    pub index_write_units: f64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.index_write_units += other.index_write_units;
    }
}

/// Why rows could not be read.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The ledger did not answer, or refused for load.
    #[error("the ledger cannot be read now")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// What stands under this key is not a row.
    #[error("what stands at {key} is not a row")]
    NotARow {
        /// Which key.
        key: Key,
        /// What is wrong with it.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Why a plan was not carried out, or may not have been.
#[derive(Debug, Error)]
pub enum CommitError {
    /// Conditions did not hold; nothing was written. Without any refusal named, nothing is known but that the plan must be
    /// made anew.
    #[error("{} of the plan's conditions did not hold", refusals.len())]
    Refused {
        /// Which ones.
        refusals: Vec<Refusal>,
        /// What the refused request spent.
        cost: Cost,
    },
    /// The same request may be sent again as it is.
    #[error("the ledger is busy: {busy:?}")]
    Busy {
        /// With what.
        busy: Busy,
        /// What it says of it.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The request can never succeed.
    #[error("the ledger calls the plan invalid: {reason}")]
    Invalid {
        /// What the ledger says of it.
        reason: String,
    },
}

/// A condition that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The event's claim exists.
    Claimed(EventId),
    /// The row at this key is not as its guard or check demands.
    Row(Key),
}

/// Why the same request may succeed when it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Another transaction is under way on one of the items.
    Conflict,
    /// Throughput is exceeded.
    Throttled,
    /// There was no answer; the plan may have been carried out.
    NoAnswer,
}

/// Time.
pub trait Clock: Send + Sync {
    /// Returns the current moment.
    fn now(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// Random bits for jitter, shards and tokens.
pub trait Random: Send + Sync {
    /// Returns 64 random bits.
    fn bits(&self) -> u64;

    /// Returns a duration between zero and `limit`: full jitter.
    fn up_to(&self, limit: Duration) -> Duration {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX - 1);
        Duration::from_millis(self.bits() % (millis + 1))
    }
}

/// The queue that the batch came from, as far as messages can be hidden or shown again.
pub trait Visibility: Send + Sync {
    /// Changes when messages become visible again. Best effort.
    fn change(&self, changes: Vec<VisibilityChange>) -> impl Future<Output = Result<(), VisibilityError>> + Send;
}

/// Where letters are sent.
pub trait Notifier<L>: Send + Sync {
    /// Sends a letter, which goes on with the trace of the request that caused it. `key` is the same whenever the same letter is
    /// sent again.
    fn send(&self, key: &str, trace_id: TraceId, letter: &L) -> impl Future<Output = Result<(), NotifyError>> + Send;
}

/// A letter that was not taken. It is sent again later, whatever the reason: who refuses today may have a wrong setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the letter was not taken: {reason}")]
pub struct NotifyError {
    /// Why.
    pub reason: String,
}

impl<L: Ledger> Ledger for &L {
    type Request = L::Request;

    fn fetch(&self, needs: &BTreeSet<Need>) -> impl Future<Output = Result<(State, Cost), FetchError>> + Send {
        (**self).fetch(needs)
    }

    fn prepare(&self, plan: &Plan) -> Result<Self::Request, CommitError> {
        (**self).prepare(plan)
    }

    fn commit(
        &self,
        request: &Self::Request,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Cost, CommitError>> + Send {
        (**self).commit(request, attempt)
    }
}

impl<C: Clock> Clock for &C {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        (**self).sleep(duration)
    }
}

impl<R: Random> Random for &R {
    fn bits(&self) -> u64 {
        (**self).bits()
    }
}

impl<V: Visibility> Visibility for &V {
    fn change(&self, changes: Vec<VisibilityChange>) -> impl Future<Output = Result<(), VisibilityError>> + Send {
        (**self).change(changes)
    }
}

/// A message's new visibility timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibilityChange {
    /// Handle of the receipt.
    pub receipt_handle: String,
    /// From now on.
    pub timeout: Duration,
}

/// Some visibility timeouts were not changed; the messages come back when the queue's own timeout ends.
#[derive(Debug, Error)]
#[error("{failed} visibility timeouts were not changed")]
pub struct VisibilityError {
    /// How many.
    pub failed: usize,
    /// The first error.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}
