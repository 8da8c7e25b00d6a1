//! What is broken on purpose is found: each sabotage within a stated number of worlds.

use std::time::Duration;

use consumer::Weakness;
use events::Consumer;
use testkit::Flaw;
use testkit::world::{Campaign, Misjudgement, Sabotage, Slip, explained};

use Sabotage::{Decider, Driver, Frame, Ledger};

/// A sabotage, what is sabotaged, and within how many worlds it is found.
struct Case {
    sabotages: &'static [Sabotage],
    worlds: u64,
}

const CASES: &[Case] = &[
    Case { sabotages: &[Driver(Weakness::ClaimLeftOut)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::AgeGateRemoved)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::ClaimForgottenEarly)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::RepeatsByMessageId)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::PoisonAcknowledged)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::BusyTakenForDone)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::RefusalTakenForDone)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::RefusedDecisionForced)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::GroupSplit)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::GroupNotHeld)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::FailureTakenForDelivered)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::UnsentAcknowledged)], worlds: 100 },
    Case { sabotages: &[Driver(Weakness::CanaryDecided)], worlds: 1 },
    Case { sabotages: &[Decider(Misjudgement::GapsSkipped)], worlds: 500 },
    Case { sabotages: &[Decider(Misjudgement::GapsLeftListed)], worlds: 500 },
    Case { sabotages: &[Decider(Misjudgement::SnapshotsLeftOut)], worlds: 500 },
    Case { sabotages: &[Ledger(Flaw::NewerOrEqual)], worlds: 100 },
    Case { sabotages: &[Ledger(Flaw::UnchangedIgnored)], worlds: 100 },
    Case { sabotages: &[Ledger(Flaw::ChecksIgnored)], worlds: 100 },
    Case { sabotages: &[Ledger(Flaw::ClaimsInSecondWrite)], worlds: 100 },
    Case { sabotages: &[Ledger(Flaw::TombstoneDropped)], worlds: 100 },
    Case { sabotages: &[Ledger(Flaw::FirstReasonSwallowed)], worlds: 100 },
    Case { sabotages: &[Ledger(Flaw::ClaimsShared)], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::SameNumberIsNewer)], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RowsForgotten(Consumer::GameEnded))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RowsForgotten(Consumer::PostChanged))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RowsForgotten(Consumer::ReactionChanged))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RowsForgotten(Consumer::FollowChanged))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RestrictionsForgotten(Consumer::GameEnded))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RestrictionsForgotten(Consumer::PlayerChanged))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::RestrictionsForgotten(Consumer::NotificationRequested))], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::DeltaGuardedByNewer)], worlds: 100 },
    Case { sabotages: &[Decider(Misjudgement::DeltaGuardedByNewer), Driver(Weakness::DeltaBesideNewer)], worlds: 100 },
    Case { sabotages: &[Frame(Slip::AcknowledgedOnReceipt)], worlds: 100 },
    Case { sabotages: &[Frame(Slip::RetryNotReported)], worlds: 100 },
    Case { sabotages: &[Frame(Slip::NeighbourReported)], worlds: 100 },
    Case { sabotages: &[Frame(Slip::UnprocessedTakenForAbsent)], worlds: 100 },
    Case { sabotages: &[Frame(Slip::EventualReads)], worlds: 100 },
    Case { sabotages: &[Frame(Slip::PositionBeforeSending)], worlds: 100 },
    Case {
        sabotages: &[Ledger(Flaw::ExpiredClaimTakenAgain), Driver(Weakness::AgeGateRemoved), Frame(Slip::NeverSwept)],
        worlds: 100,
    },
];

#[test]
fn every_sabotage_is_found() {
    let mut survivors = Vec::new();
    for Case { sabotages, worlds } in CASES {
        let results = Campaign { seeds: 0..*worlds, time_max: Duration::MAX }.run(sabotages);
        match results.failures.first() {
            Some(failure) => println!("{sabotages:?}: {failure}"),
            None => survivors.push(format!("{sabotages:?} survives {worlds} worlds")),
        }
    }
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}

/// A claim holds after its expiry and no event that is older gets to it: either is enough by itself as long as the other
/// does its part, which is why the sabotage of the one shows only together with the other.
#[test]
fn without_the_age_gate_claims_that_are_never_deleted_are_enough() {
    let sabotages = [Driver(Weakness::AgeGateRemoved), Frame(Slip::NeverSwept)];
    let results = Campaign { seeds: 0..200, time_max: Duration::MAX }.run(&sabotages);
    if let Some(failure) = results.failures.first() {
        panic!("{}", explained(failure, &sabotages));
    }
}
