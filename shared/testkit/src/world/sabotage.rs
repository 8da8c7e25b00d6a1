//! What a world can break on purpose: a sabotage that no check finds is a hole in the checks.

use consumer::Weakness;
use events::Consumer;

use crate::Flaw;

/// One thing that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sabotage {
    /// A safeguard of the driver.
    Driver(Weakness),
    /// A condition of the ledger.
    Ledger(Flaw),
    /// A decider.
    Decider(Misjudgement),
    /// What stands between the queue, the ledger and the driver.
    Frame(Slip),
}

/// A mistake in a decider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misjudgement {
    /// A game whose number the board has already is taken for a newer one: `<=` where `<` belongs.
    SameNumberIsNewer,
    /// Rows from which deltas are computed are guarded by their source version.
    DeltaGuardedByNewer,
    /// A consumer decides as if none of its rows were there yet.
    RowsForgotten(Consumer),
    /// A consumer takes restricted players for visible ones.
    RestrictionsForgotten(Consumer),
}

/// A mistake in an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slip {
    /// Messages are deleted as they are received.
    AcknowledgedOnReceipt,
    /// The report leaves out the records that go back.
    RetryNotReported,
    /// The report names the neighbour of each record that failed.
    NeighbourReported,
    /// Keys that a read left unprocessed are taken for absent.
    UnprocessedTakenForAbsent,
    /// Decisions read what was true a moment ago.
    EventualReads,
    /// The relay moves its position before it has sent.
    PositionBeforeSending,
    /// Time to live never deletes a claim. No mistake by itself: it shows what other safeguards are worth.
    NeverSwept,
}
