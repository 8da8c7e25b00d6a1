//! What a batch adds up to: how many records had which outcome, and how late they were. Pure sums; who writes them, and where
//! to, is not known here.

use events::Timestamp;

use crate::delivery::{BatchReport, Outcome};
use crate::ports::Cost;

/// A batch in numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Messages in the batch, canaries among them.
    pub records: u64,
    /// Records whose decision has been committed.
    pub applied: u64,
    /// Records whose decision had been committed before.
    pub duplicate: u64,
    /// Records behind newer state.
    pub stale: u64,
    /// Records with nothing to do.
    pub ignored: u64,
    /// Records that wait for something that is missing.
    pub waiting: u64,
    /// Records that have waited in vain.
    pub unresolved: u64,
    /// Records that can never succeed.
    pub rejected: u64,
    /// Records that went back to the queue for another reason than to wait.
    pub retried: u64,
    /// Canaries.
    pub canaries: u64,
    /// Milliseconds from the event to the end of the batch, for every record that was applied.
    pub lags_ms: Vec<u64>,
    /// The same for every canary.
    pub canary_lags_ms: Vec<u64>,
    /// What the ledger spent.
    pub cost: Cost,
}

impl Tally {
    /// Returns the records, other than canaries, that came to an end: none of them has to come again to be done or given up.
    pub fn processed(&self) -> u64 {
        self.applied + self.duplicate + self.stale + self.ignored + self.unresolved + self.rejected
    }
}

impl BatchReport {
    /// Adds up a batch that ended at this moment.
    pub fn tally(&self, ended_at: Timestamp) -> Tally {
        let mut tally = Tally { records: self.records.len() as u64, cost: self.cost, ..Tally::default() };
        for record in &self.records {
            let lag = || record.occurred_at.map(|occurred_at| lag_ms(occurred_at, ended_at));
            let count = match record.outcome {
                Outcome::Applied => {
                    tally.lags_ms.extend(lag());
                    &mut tally.applied
                }
                Outcome::Canary => {
                    tally.canary_lags_ms.extend(lag());
                    &mut tally.canaries
                }
                Outcome::Duplicate => &mut tally.duplicate,
                Outcome::Stale => &mut tally.stale,
                Outcome::Ignored(_) => &mut tally.ignored,
                Outcome::Unresolved(_) => &mut tally.unresolved,
                Outcome::Waiting(_) => &mut tally.waiting,
                Outcome::Retry(_) => &mut tally.retried,
                Outcome::Rejected(_) => &mut tally.rejected,
            };
            *count += 1;
        }
        tally
    }
}

/// Business time comes from other clocks: what seems to happen later than now has no lag.
fn lag_ms(occurred_at: Timestamp, ended_at: Timestamp) -> u64 {
    u64::try_from(ended_at.as_millis() - occurred_at.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::RecordReport;

    fn report(outcomes: &[(Outcome, Option<i64>)]) -> BatchReport {
        let record = |(outcome, occurred_at): &(Outcome, Option<i64>)| RecordReport {
            message_id: "m".to_owned().try_into().unwrap(),
            occurred_at: occurred_at.map(Timestamp::from_millis),
            outcome: outcome.clone(),
        };
        BatchReport { records: outcomes.iter().map(record).collect(), cost: Cost { calls: 3, ..Cost::default() } }
    }

    #[test]
    fn every_record_counts_once_under_its_outcome() {
        let why = || "why".to_owned();
        let outcomes = [
            Outcome::Applied,
            Outcome::Duplicate,
            Outcome::Stale,
            Outcome::Ignored(why()),
            Outcome::Unresolved(why()),
            Outcome::Waiting(why()),
            Outcome::Retry(why()),
            Outcome::Rejected(why()),
            Outcome::Canary,
        ];
        let records: Vec<_> = outcomes.into_iter().map(|outcome| (outcome, Some(0))).collect();
        let tally = report(&records).tally(Timestamp::from_millis(5));
        let counts = [tally.applied, tally.duplicate, tally.stale, tally.ignored, tally.unresolved];
        assert_eq!(counts, [1; 5]);
        assert_eq!([tally.waiting, tally.retried, tally.rejected, tally.canaries], [1; 4]);
        assert_eq!((tally.records, tally.processed(), tally.cost.calls), (9, 6, 3));
    }

    #[test]
    fn only_what_was_applied_and_canaries_have_a_lag_and_never_a_negative_one() {
        let records = [
            (Outcome::Applied, Some(400)),
            (Outcome::Stale, Some(1)),
            (Outcome::Applied, Some(2_000)),
            (Outcome::Canary, Some(990)),
        ];
        let tally = report(&records).tally(Timestamp::from_millis(1_000));
        assert_eq!((tally.lags_ms, tally.canary_lags_ms), (vec![600, 0], vec![10]));
    }

    #[test]
    fn a_canary_is_not_work_that_was_done() {
        let tally = report(&[(Outcome::Canary, Some(0))]).tally(Timestamp::from_millis(0));
        assert_eq!((tally.canaries, tally.processed()), (1, 0));
    }
}
