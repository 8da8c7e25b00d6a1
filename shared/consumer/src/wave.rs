//! One wave of decisions: records are decided one by one, each on what was read overlaid with what the records before it
//! decided. Nothing is committed here.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::{Check, Content, Decider, Decision, Guard, Key, Need, Row, State, Write};
use events::{Consumer, Event, EventId};

use crate::delivery::Outcome;
use crate::draft::{Draft, PlanError, Scope};
use crate::plan::Operation;

/// A record that has no outcome yet.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Position in the batch.
    pub(crate) position: usize,
    /// Its message group, if its queue has any.
    pub(crate) group: Option<String>,
    /// Whether the rest of its group goes back with it.
    pub(crate) holds: bool,
    /// Its event.
    pub(crate) event: Event,
    /// What its decision depends on.
    pub(crate) needs: Vec<Need>,
    /// What it depends on besides, as was read in this wave.
    pub(crate) further: Vec<Need>,
    /// How often a transaction with it has been refused.
    pub(crate) refusals: u32,
    /// With how many records at most it may share a transaction from now on, itself included.
    pub(crate) share: usize,
    /// Rows that are known to be newer than what the event says of them.
    pub(crate) superseded: BTreeSet<Key>,
}

impl Record {
    /// Returns all that its decision depends on.
    pub(crate) fn all_needs(&self) -> impl Iterator<Item = &Need> {
        self.needs.iter().chain(&self.further)
    }

    /// Returns what records are ordered by: within a message group as the queue has them, else by aggregate and version.
    pub(crate) fn order(&self) -> (&str, u64, EventId) {
        match &self.group {
            Some(group) => (group, self.position as u64, self.event.event_id),
            None => (&self.event.aggregate_id, self.event.version, self.event.event_id),
        }
    }
}

/// How a decided record ends once all that it was decided on is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this outcome.
    Settled(Outcome),
    /// Not yet: it is decided on again.
    Again,
}

/// A record with its decision, which holds only once all that it was decided on is committed.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) record: Record,
    /// What it writes, if anything.
    pub(crate) draft: Option<Draft>,
    pub(crate) ending: Ending,
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
pub(crate) fn needs<D: Decider>(decider: &D, event: &Event) -> Result<Vec<Need>, Outcome> {
    catch_unwind(AssertUnwindSafe(|| decider.needs(event))).map_err(|panic| panicked(panic.as_ref()))
}

/// Asks a decider what an event needs besides, given what it named first.
pub(crate) fn further_needs<D: Decider>(decider: &D, record: &Record, state: &State) -> Result<Vec<Need>, Outcome> {
    let view = state.restricted(&record.needs);
    match catch_unwind(AssertUnwindSafe(|| decider.further_needs(&record.event, &view))) {
        Ok(Ok(needs)) => Ok(needs),
        Ok(Err(error)) => Err(Outcome::Retry(with_sources(&error))),
        Err(panic) => Err(panicked(panic.as_ref())),
    }
}

/// Decides records in their order. Behind one that does not end well, or not yet, the rest of its message group waits for
/// the next wave.
pub(crate) fn decide<D: Decider>(decider: &D, consumer: Consumer, records: Vec<Record>, fetched: State) -> Wave {
    let now = fetched.now();
    let mut overlay = Overlay { rows: fetched, written: BTreeSet::new() };
    let mut wave = Wave::default();
    let mut stopped: BTreeSet<String> = BTreeSet::new();
    for record in records {
        if record.group.as_ref().is_some_and(|group| stopped.contains(group)) {
            wave.deferred.push(record);
            continue;
        }
        let view = overlay.rows.restricted(record.all_needs());
        let decided = catch_unwind(AssertUnwindSafe(|| decider.decide(&record.event, &view)));
        let decision = match decided {
            Ok(Ok(decision)) => Ok(decision),
            Ok(Err(error)) => Err(Outcome::Retry(with_sources(&error))),
            Err(panic) => Err(panicked(panic.as_ref())),
        };
        let scope = Scope { consumer, event_id: record.event.event_id, now };
        let drafted = decision.map(|decision| drafted(scope, decision, &record.superseded));
        let group = record.group.clone();
        let goes_on = match drafted {
            Err(outcome) => {
                let goes_on = !record.holds;
                wave.settled.push((record, outcome));
                goes_on
            }
            // It has been carried out before. Shown to those that follow, its row would seem to change once more.
            Ok((Some(draft), _)) if overlay.recreates(&draft) => {
                wave.settled.push((record, Outcome::Duplicate));
                true
            }
            Ok((Some(draft), _)) if overlay.hides_source_version(&draft) => {
                wave.deferred.push(record);
                false
            }
            Ok((draft, ending)) => {
                draft.iter().for_each(|draft| overlay.lay(draft));
                let goes_on = match &ending {
                    Ending::Settled(outcome) => !(record.holds && outcome.may_succeed_later()),
                    Ending::Again => false,
                };
                wave.decided.push(Decided { record, draft, ending });
                goes_on
            }
        };
        stopped.extend(group.filter(|_| !goes_on));
    }
    wave
}

/// Returns the draft of a decision, if it writes anything, and how its record then ends.
fn drafted(scope: Scope, decision: Decision, superseded: &BTreeSet<Key>) -> (Option<Draft>, Ending) {
    let (writes, checks, ending) = match decision {
        Decision::Apply { writes, checks } => (writes, checks, Ending::Settled(Outcome::Applied)),
        Decision::Continue { writes, checks } => (writes, checks, Ending::Again),
        Decision::Wait { missing, writes, checks } => {
            (writes, checks, Ending::Settled(Outcome::Waiting(format!("versions {missing} are missing"))))
        }
        Decision::Unresolved { missing, writes, checks } => {
            (writes, checks, Ending::Settled(Outcome::Unresolved(format!("versions {missing} are missing"))))
        }
        Decision::Stale => return (None, Ending::Settled(Outcome::Stale)),
        Decision::Ignore(reason) => return (None, Ending::Settled(Outcome::Ignored(reason))),
        Decision::Reject(reason) => return (None, Ending::Settled(Outcome::Rejected(reason))),
    };
    let applies = ending == Ending::Settled(Outcome::Applied);
    match draft_of(scope, writes, checks, superseded) {
        Ok(draft) => (Some(draft), ending),
        Err(None) if applies && !superseded.is_empty() => (None, Ending::Settled(Outcome::Stale)),
        Err(None) if applies => (None, Ending::Settled(Outcome::Ignored(PlanError::Empty.to_string()))),
        Err(None) => (None, ending),
        Err(Some(error)) => (None, Ending::Settled(Outcome::Rejected(error.to_string()))),
    }
}

/// Drafts what is left of a decision's writes; an error of `None` means that nothing is.
fn draft_of(
    scope: Scope,
    mut writes: Vec<Write>,
    checks: Vec<Check>,
    superseded: &BTreeSet<Key>,
) -> Result<Draft, Option<PlanError>> {
    writes.retain(|write| match write {
        Write::Replace { key, guard: Guard::Newer(_), .. } => !superseded.contains(key),
        Write::Replace { .. } | Write::Create { .. } | Write::Add { .. } => true,
    });
    if writes.is_empty() {
        return Err(None);
    }
    Draft::new(scope, writes, checks).map_err(|error| match error {
        PlanError::Empty => None,
        PlanError::DeltaWithNewer { .. }
        | PlanError::Contradiction { .. }
        | PlanError::TooOld { .. }
        | PlanError::FromTheFuture { .. }
        | PlanError::TooManyItems { .. }
        | PlanError::TooManyBytes { .. }
        | PlanError::ItemTooLarge { .. } => Some(error),
    })
}

/// What was read under what has been decided on it.
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
            by_source_version && self.written.contains(key) && self.rows.covers(key)
        })
    }

    /// Returns whether the draft creates a row that was there when rows were read.
    fn recreates(&self, draft: &Draft) -> bool {
        draft.written_rows().any(|key| {
            let creates = matches!(draft.row(key), Some(Operation::Create(_)));
            creates && !self.written.contains(key) && self.rows.row(key).is_ok_and(|row| row.version > 0)
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
            if self.rows.covers(key) {
                let before = self.rows.row(key).map_or(0, |row| row.version);
                self.rows.insert(key.clone(), Row { version: before + u64::from(first), attributes });
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
