//! One wave of decisions: records are decided one by one, each on the fetched rows overlaid with what the records before it
//! decided. Nothing is committed here.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::{Content, Decider, Decision, Guard, Key, Row, State, Write};
use events::{Consumer, Event, Timestamp};

use crate::delivery::Outcome;
use crate::draft::{Draft, PlanError, Scope};
use crate::plan::Operation;

/// A record that has no outcome yet.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Position in the batch.
    pub(crate) position: usize,
    /// Its event.
    pub(crate) event: Event,
    /// The rows that its decision depends on.
    pub(crate) needs: Vec<Key>,
    /// How often a transaction with it has been refused.
    pub(crate) refusals: u32,
    /// With how many records at most it may share a transaction from now on, itself included.
    pub(crate) share: usize,
    /// Rows that are known to be newer than what the event says of them.
    pub(crate) superseded: BTreeSet<Key>,
}

/// A record with its decision, which holds only once all that it was decided on is committed.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) record: Record,
    /// What it writes, if anything.
    pub(crate) draft: Option<Draft>,
    /// Its outcome, provided that its group is committed.
    pub(crate) outcome: Outcome,
}

/// What a wave of decisions comes to.
#[derive(Debug, Default)]
pub(crate) struct Wave {
    /// Decisions to be committed.
    pub(crate) decided: Vec<Decided>,
    /// Records whose outcome does not depend on anyone's commit.
    pub(crate) settled: Vec<(Record, Outcome)>,
    /// Records to be decided again in the next wave.
    pub(crate) deferred: Vec<Record>,
}

/// Asks a decider for an event's needs; a panic is this record's failure alone.
pub(crate) fn needs<D: Decider>(decider: &D, event: &Event) -> Result<Vec<Key>, Outcome> {
    catch_unwind(AssertUnwindSafe(|| decider.needs(event))).map_err(|panic| panicked(panic.as_ref()))
}

/// Decides records in their order.
pub(crate) fn decide<D: Decider>(
    decider: &D,
    consumer: Consumer,
    now: Timestamp,
    records: Vec<Record>,
    fetched: State,
) -> Wave {
    let mut overlay = Overlay { rows: fetched, written: BTreeSet::new() };
    let mut wave = Wave::default();
    for record in records {
        let view: State = record
            .needs
            .iter()
            .filter_map(|key| overlay.rows.row(key).ok().map(|row| (key.clone(), row.clone())))
            .collect();
        let decided = catch_unwind(AssertUnwindSafe(|| decider.decide(&record.event, &view)));
        let decision = match decided {
            Ok(Ok(decision)) => decision,
            Ok(Err(error)) => {
                let reason = with_sources(&error);
                wave.settled.push((record, Outcome::Retry(reason)));
                continue;
            }
            Err(panic) => {
                let outcome = panicked(panic.as_ref());
                wave.settled.push((record, outcome));
                continue;
            }
        };
        let scope = Scope { consumer, event_id: record.event.event_id, now };
        match drafted(scope, decision, &record.superseded) {
            Ok(draft) if overlay.hides_source_version(&draft) => wave.deferred.push(record),
            Ok(draft) => {
                overlay.lay(&draft);
                wave.decided.push(Decided { record, draft: Some(draft), outcome: Outcome::Applied });
            }
            Err(outcome) => wave.decided.push(Decided { record, draft: None, outcome }),
        }
    }
    wave
}

/// Returns the draft of a decision, or the outcome of one that writes nothing.
fn drafted(scope: Scope, decision: Decision, superseded: &BTreeSet<Key>) -> Result<Draft, Outcome> {
    let (mut writes, checks) = match decision {
        Decision::Apply { writes, checks } => (writes, checks),
        Decision::Stale => return Err(Outcome::Stale),
        Decision::Ignore(reason) => return Err(Outcome::Ignored(reason)),
        Decision::Reject(reason) => return Err(Outcome::Rejected(reason)),
    };
    writes.retain(|write| match write {
        Write::Replace { key, guard: Guard::Newer(_), .. } => !superseded.contains(key),
        Write::Replace { .. } | Write::Create { .. } | Write::Add { .. } => true,
    });
    if writes.is_empty() && !superseded.is_empty() {
        return Err(Outcome::Stale);
    }
    Draft::new(scope, writes, checks).map_err(|error| match error {
        PlanError::Empty => Outcome::Ignored(error.to_string()),
        PlanError::DeltaWithNewer { .. }
        | PlanError::Contradiction { .. }
        | PlanError::TooOld { .. }
        | PlanError::FromTheFuture { .. }
        | PlanError::TooManyItems { .. }
        | PlanError::TooManyBytes { .. }
        | PlanError::ItemTooLarge { .. } => Outcome::Rejected(error.to_string()),
    })
}

/// The fetched rows under what has been decided on them.
struct Overlay {
    rows: State,
    written: BTreeSet<Key>,
}

impl Overlay {
    /// Returns whether the draft writes by source version over a row that this wave has written already. Which of the two
    /// is newer cannot be seen in the row, and a later reader would be shown the wrong one.
    fn hides_source_version(&self, draft: &Draft) -> bool {
        draft.written_rows().any(|key| {
            let by_source_version = match draft.row(key) {
                Some(Operation::Replace { conditions, .. }) => conditions.newer.is_some(),
                Some(Operation::Create(_) | Operation::Add(_) | Operation::Check(_)) | None => false,
            };
            by_source_version && self.written.contains(key) && self.rows.row(key).is_ok()
        })
    }

    /// Shows the draft's rows to the records that follow. However many of them write a row, it will be written once: its
    /// version goes up by one in all.
    fn lay(&mut self, draft: &Draft) {
        for key in draft.written_rows() {
            let attributes = match draft.row(key) {
                Some(Operation::Create(attributes)) => Some(attributes.clone()),
                Some(Operation::Replace { content: Content::Row(attributes), .. }) => Some(attributes.clone()),
                Some(Operation::Replace { content: Content::Tombstone, .. }) => None,
                Some(Operation::Add(_) | Operation::Check(_)) | None => continue,
            };
            let first = self.written.insert(key.clone());
            if let Ok(row) = self.rows.row(key) {
                let version = row.version + u64::from(first);
                self.rows.insert(key.clone(), Row { version, attributes });
            }
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Outcome::Retry(format!("the decider panicked: {message}"))
}

/// Returns an error's text with those of its sources.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
