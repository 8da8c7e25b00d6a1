//! Ways in which the driver can be broken on purpose, so that tests can show that they would notice. Only the feature
//! `weakness` compiles them in, which tests alone switch on: without it [`weakened`] is `false` at compile time.

use std::collections::BTreeMap;

use crate::plan::{Conditions, Operation, Plan};

/// One safeguard that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weakness {
    /// Increments are committed without their claim.
    ClaimLeftOut,
    /// Events of any age are applied through a claim.
    AgeGateRemoved,
    /// Claims may be forgotten after ten days instead of thirty.
    ClaimForgottenEarly,
    /// A delta may stand beside a row that is guarded by its source version alone.
    DeltaBesideNewer,
    /// Repeats within a batch are told by their message id instead of their event id.
    RepeatsByMessageId,
    /// A body that does not decode is acknowledged.
    PoisonAcknowledged,
    /// A busy ledger is taken for one that has carried out the plan.
    BusyTakenForDone,
    /// A refused plan is taken for one that was carried out before.
    RefusalTakenForDone,
    /// A refused decision is sent again without its conditions instead of being made anew.
    RefusedDecisionForced,
    /// A record that goes back does not hold the rest of its message group.
    GroupNotHeld,
    /// A letter that was not taken is noted as delivered.
    FailureTakenForDelivered,
    /// A record whose letter was not taken is acknowledged.
    UnsentAcknowledged,
    /// The rows of a plan and its counters are committed one after the other.
    GroupSplit,
    /// A canary is handed to the decider.
    CanaryDecided,
}

/// Returns whether a safeguard is left out on this thread.
#[cfg(not(feature = "weakness"))]
pub(crate) const fn weakened(_weakness: Weakness) -> bool {
    false
}

/// Returns the plan without what it demands of the rows that it replaces and without its claims.
pub(crate) fn forced(plan: &Plan) -> Plan {
    let mut forced = Plan { token: !plan.token, claims: BTreeMap::new(), operations: plan.operations.clone() };
    forced.operations.retain(|_, operation| !matches!(operation, Operation::Create(_) | Operation::Check(_)));
    for operation in forced.operations.values_mut() {
        if let Operation::Replace { conditions, .. } = operation {
            *conditions = Conditions { unchanged: None, newer: None };
        }
    }
    forced
}

/// Returns the plan's rows and its counters as two plans, those that are empty left out.
pub(crate) fn split(plan: &Plan) -> Vec<Plan> {
    let (counters, rows): (BTreeMap<_, _>, BTreeMap<_, _>) =
        plan.operations.clone().into_iter().partition(|(_, operation)| matches!(operation, Operation::Add(_)));
    let rows = Plan { token: plan.token, claims: plan.claims.clone(), operations: rows };
    let counters = Plan { token: !plan.token, claims: BTreeMap::new(), operations: counters };
    [rows, counters].into_iter().filter(|part| part.items() > 0).collect()
}

#[cfg(feature = "weakness")]
pub(crate) use switched::weakened;
#[cfg(feature = "weakness")]
pub use switched::with_weakness;

#[cfg(feature = "weakness")]
mod switched {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::Weakness;

    thread_local! {
        static WEAKNESSES: RefCell<BTreeSet<Weakness>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Returns whether a safeguard is left out on this thread.
    pub(crate) fn weakened(weakness: Weakness) -> bool {
        WEAKNESSES.with_borrow(|weaknesses| weaknesses.contains(&weakness))
    }

    /// Runs `work` with safeguards left out on this thread, and puts them back.
    pub fn with_weakness<T>(weaknesses: BTreeSet<Weakness>, work: impl FnOnce() -> T) -> T {
        /// Puts them back also when `work` panics.
        struct Restored(BTreeSet<Weakness>);
        impl Drop for Restored {
            fn drop(&mut self) {
                WEAKNESSES.set(std::mem::take(&mut self.0));
            }
        }
        let _restored = Restored(WEAKNESSES.replace(weaknesses));
        work()
    }
}
