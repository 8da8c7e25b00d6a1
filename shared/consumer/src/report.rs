//! The outcomes of a batch as they come to be known, when what goes back is to be seen again, and one line a record.

use std::time::Duration;

use events::{Event, Timestamp};
use tracing::{error, info, warn};

use crate::delivery::{Delivery, Outcome};
use crate::fifo::{held, holder};
use crate::ports::{Cost, Random};
use crate::wave::Record;

/// How long a record that waits for something is hidden: until then the queue need not ask again.
pub const WAIT: Duration = Duration::from_secs(30);
/// Longest time that a failed message is hidden.
const BACKOFF_MAX: Duration = Duration::from_secs(15 * 60);

/// The outcomes of a batch as they come to be known.
pub(crate) struct Batch<'a> {
    pub(crate) deliveries: &'a [Delivery],
    outcomes: Vec<Option<Outcome>>,
    events: Vec<Option<Event>>,
    /// Positions of repeats, with the position of the record whose outcome they share.
    repeats: Vec<(usize, usize)>,
    pub(crate) cost: Cost,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(deliveries: &'a [Delivery]) -> Self {
        let records = deliveries.len();
        let (outcomes, events) = (vec![None; records], vec![None; records]);
        Self { deliveries, outcomes, events, repeats: Vec::new(), cost: Cost::default() }
    }

    /// Notes what a record says.
    pub(crate) fn decoded(&mut self, position: usize, event: Event) {
        self.events[position] = Some(event);
    }

    /// Returns when what a record tells happened, if it could be read.
    pub(crate) fn occurred_at(&self, position: usize) -> Option<Timestamp> {
        self.events[position].as_ref().map(|event| event.occurred_at)
    }

    /// Notes that a record says what one before it has said.
    pub(crate) fn repeated(&mut self, position: usize, first: usize) {
        self.repeats.push((position, first));
    }

    pub(crate) fn settle(&mut self, position: usize, outcome: Outcome) {
        self.outcomes[position] = Some(outcome);
    }

    pub(crate) fn settle_each(&mut self, records: impl IntoIterator<Item = (Record, Outcome)>) {
        for (record, outcome) in records {
            self.settle(record.position, outcome);
        }
    }

    pub(crate) fn settle_all(&mut self, records: Vec<Record>, outcome: &Outcome) {
        for record in records {
            self.settle(record.position, outcome.clone());
        }
    }

    /// Settles the records that go back with one of their group; returns the others.
    pub(crate) fn without_held(&mut self, records: Vec<Record>) -> Vec<Record> {
        let mut free = Vec::with_capacity(records.len());
        for record in records {
            match holder(self.deliveries, &self.outcomes, record.position) {
                Some(holder) => self.settle(record.position, held(&self.deliveries[holder])),
                None => free.push(record),
            }
        }
        free
    }

    /// Returns an outcome for every record. One that no branch settled goes back: never is one lost for want of an outcome.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = self
            .outcomes
            .iter()
            .map(|outcome| outcome.clone().unwrap_or_else(|| Outcome::Retry("without an outcome".to_owned())))
            .collect();
        for (position, first) in &self.repeats {
            outcomes[*position] = match &outcomes[*first] {
                // What has been done or announced is so once.
                Outcome::Applied | Outcome::Unresolved(_) => Outcome::Duplicate,
                shared @ (Outcome::Duplicate
                | Outcome::Stale
                | Outcome::Ignored(_)
                | Outcome::Waiting(_)
                | Outcome::Retry(_)
                | Outcome::Rejected(_)
                | Outcome::Canary) => shared.clone(),
            };
        }
        outcomes
    }

    /// Writes one line a record, with the event's identity: what happened to an event is a query.
    pub(crate) fn log(&self, outcomes: &[Outcome]) {
        for ((delivery, outcome), event) in self.deliveries.iter().zip(outcomes).zip(&self.events) {
            log(delivery, outcome, event.as_ref());
        }
    }
}

/// Returns for how long each record is to be hidden from now on; `None` for one that is done. What goes back is hidden for a
/// while, what is rejected not at all, so that redrive takes it, and the rest of a group for as long as the record that
/// holds it.
pub(crate) fn timeouts(
    deliveries: &[Delivery],
    outcomes: &[Outcome],
    environment: &impl Random,
) -> Vec<Option<Duration>> {
    let known: Vec<Option<Outcome>> = outcomes.iter().cloned().map(Some).collect();
    let mut timeouts: Vec<Option<Duration>> = Vec::with_capacity(outcomes.len());
    for (position, (delivery, outcome)) in deliveries.iter().zip(outcomes).enumerate() {
        let own = match outcome {
            Outcome::Waiting(_) => Some(WAIT),
            Outcome::Retry(_) => Some(backoff(delivery.receive_count, environment)),
            Outcome::Rejected(_) => Some(Duration::ZERO),
            Outcome::Applied
            | Outcome::Duplicate
            | Outcome::Stale
            | Outcome::Ignored(_)
            | Outcome::Unresolved(_)
            | Outcome::Canary => None,
        };
        let holder = own.and_then(|_| holder(deliveries, &known, position));
        timeouts.push(holder.map_or(own, |holder| timeouts[holder]));
    }
    timeouts
}

/// Exponential backoff with full jitter, in whole seconds: a queue knows no smaller unit.
fn backoff(receive_count: u32, environment: &impl Random) -> Duration {
    let limit = Duration::from_secs(1 << receive_count.min(10)).min(BACKOFF_MAX);
    Duration::from_secs(environment.up_to(limit).as_millis().div_ceil(1_000) as u64)
}

fn log(delivery: &Delivery, outcome: &Outcome, event: Option<&Event>) {
    let event_id = event.map(|event| event.event_id.to_string());
    let event_type = event.map(|event| event.payload.event_type().as_str());
    let aggregate_id = event.map(|event| event.aggregate_id.as_str());
    let version = event.map(|event| event.version);
    let trace_id = event.map(|event| event.trace_id.to_string());
    let message_id = delivery.message_id.as_str();
    let receive_count = delivery.receive_count;
    let (reason, outcome_name) = (outcome.reason(), outcome.name());
    macro_rules! line {
        ($level:ident, $message:literal) => {
            $level!(
                event_id,
                event_type,
                aggregate_id,
                version,
                trace_id,
                message_id,
                receive_count,
                outcome = outcome_name,
                reason,
                $message
            )
        };
    }
    match outcome {
        Outcome::Applied | Outcome::Duplicate | Outcome::Stale | Outcome::Ignored(_) | Outcome::Canary => {
            line!(info, "record handled");
        }
        Outcome::Waiting(_) => line!(info, "record waits"),
        Outcome::Unresolved(_) => line!(error, "gap unresolved"),
        Outcome::Retry(_) | Outcome::Rejected(_) => line!(warn, "record not handled"),
    }
}
