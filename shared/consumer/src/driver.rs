//! The driver: takes a batch from the bytes of its messages to an outcome for each of them. It keeps nothing between
//! batches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::Decider;
use events::{Consumer, Disposition, Event, EventId, Payload, Timestamp};
use tracing::warn;

use crate::commit::{before, commit};
use crate::delivery::{BatchReport, Delivery, Outcome, RecordReport};
use crate::fifo::HOLDS_MAX;
use crate::group::pack;
use crate::ports::{Clock, Ledger, Random, Visibility, VisibilityChange};
use crate::reading::Reader;
use crate::report::{Batch, timeouts};
use crate::wave::{Ending, Record, decide, needs, with_sources};
use crate::weakness::{Weakness, weakened};

/// Time before the invocation's end at which nothing new is started.
const DEADLINE_MARGIN: Duration = Duration::from_millis(1_000);
/// Part of the margin that is kept for changing visibility and answering.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);
/// Records that are decided in one wave, at most: so much is lost when the deadline comes.
const WAVE_RECORDS_MAX: usize = 1_000;

/// Runs one consumer's decider over batches.
#[derive(Debug)]
pub struct Driver<D, L, E, V> {
    /// Which consumer it is.
    pub consumer: Consumer,
    /// What decides.
    pub decider: D,
    /// Where state is read and plans are committed.
    pub ledger: L,
    /// Time and chance.
    pub environment: E,
    /// The queue that batches come from.
    pub visibility: V,
}

impl<D: Decider, L: Ledger, E: Clock + Random, V: Visibility> Driver<D, L, E, V> {
    /// Handles a batch until `deadline`, the moment at which the invocation is stopped. Returns an outcome for every record.
    pub async fn handle(&self, deliveries: &[Delivery], deadline: Timestamp) -> BatchReport {
        let mut batch = Batch::new(deliveries);
        let mut pending = self.decoded(&mut batch);
        loop {
            pending = batch.without_held(pending);
            if pending.is_empty() {
                break;
            }
            if self.environment.now() + DEADLINE_MARGIN >= deadline {
                batch.settle_all(pending, &Outcome::Retry("not started before the invocation's deadline".to_owned()));
                break;
            }
            let rest = pending.split_off(pending.len().min(WAVE_RECORDS_MAX));
            let mut again = self.wave(pending, deadline, &mut batch).await;
            again.extend(rest);
            again.sort_by(|one, other| one.order().cmp(&other.order()));
            pending = again;
        }
        let outcomes = batch.outcomes();
        self.change_visibility(deliveries, &outcomes).await;
        batch.log(&outcomes);
        let records = deliveries
            .iter()
            .zip(outcomes)
            .enumerate()
            .map(|(position, (delivery, outcome))| RecordReport {
                message_id: delivery.message_id.clone(),
                occurred_at: batch.occurred_at(position),
                outcome,
            })
            .collect();
        BatchReport { records, cost: batch.cost }
    }

    /// Decodes each record on its own. Repeats of an event share the first one's outcome. A canary has arrived with that: no
    /// decider is asked.
    fn decoded(&self, batch: &mut Batch<'_>) -> Vec<Record> {
        let mut first_by_event: BTreeMap<EventId, usize> = BTreeMap::new();
        let mut records = Vec::new();
        for (position, delivery) in batch.deliveries.iter().enumerate() {
            let event = match self.event(delivery) {
                Ok(event) => event,
                Err(outcome) => {
                    batch.settle(position, outcome);
                    continue;
                }
            };
            batch.decoded(position, event.clone());
            let first = *first_by_event.entry(event.event_id).or_insert(position);
            if first != position && !weakened(Weakness::RepeatsByMessageId) {
                batch.repeated(position, first);
                continue;
            }
            if matches!(event.payload, Payload::CanarySent(_)) && !weakened(Weakness::CanaryDecided) {
                batch.settle(position, Outcome::Canary);
                continue;
            }
            match needs(&self.decider, &event) {
                Ok(needs) => records.push(Record {
                    position,
                    group: delivery.group.clone(),
                    holds: delivery.receive_count < HOLDS_MAX,
                    event,
                    needs,
                    further: Vec::new(),
                    refusals: 0,
                    share: usize::MAX,
                    superseded: BTreeSet::new(),
                }),
                Err(outcome) => batch.settle(position, outcome),
            }
        }
        records.sort_by(|one, other| one.order().cmp(&other.order()));
        records
    }

    fn event(&self, delivery: &Delivery) -> Result<Event, Outcome> {
        let event = Event::decode(&delivery.body).map_err(|error| match error.disposition() {
            Disposition::Retry | Disposition::Reject if weakened(Weakness::PoisonAcknowledged) => {
                Outcome::Ignored(with_sources(&error))
            }
            Disposition::Retry => Outcome::Retry(with_sources(&error)),
            Disposition::Reject => Outcome::Rejected(with_sources(&error)),
        })?;
        let event_type = event.payload.event_type();
        if event_type.consumers().iter().any(|consumer| consumer == self.consumer) {
            Ok(event)
        } else {
            Err(Outcome::Rejected(format!("{event_type} is not for {}", self.consumer)))
        }
    }

    /// Reads, decides, packs and commits once. Returns the records that are to be decided again.
    async fn wave(&self, records: Vec<Record>, deadline: Timestamp, batch: &mut Batch<'_>) -> Vec<Record> {
        let deadline = deadline_of_work(deadline);
        let reader = Reader { decider: &self.decider, ledger: &self.ledger, environment: &self.environment, deadline };
        let reading = reader.read(records).await;
        batch.cost += reading.cost;
        batch.settle_each(reading.failed);
        let records = batch.without_held(reading.records);
        let wave = decide(&self.decider, self.consumer, records, reading.state);
        batch.settle_each(wave.settled);
        let packing = pack(wave.decided);
        batch.settle_each(packing.settled.into_iter().map(|one| match one.ending {
            Ending::Settled(outcome) => (one.record, outcome),
            Ending::Again => (one.record, Outcome::Retry("nothing was written that it could go on from".to_owned())),
        }));
        let commits = commit(&self.ledger, &self.environment, packing.packs, deadline).await;
        batch.cost += commits.cost;
        batch.settle_each(commits.settled);
        let mut again = wave.deferred;
        again.extend(packing.deferred);
        again.extend(commits.again);
        again
    }

    /// Hides what goes back for a while, and shows what is rejected at once so that redrive takes it. The outcome stands
    /// whether or not the queue does so.
    pub(crate) async fn change_visibility(&self, deliveries: &[Delivery], outcomes: &[Outcome]) {
        let changes: Vec<VisibilityChange> = deliveries
            .iter()
            .zip(timeouts(deliveries, outcomes, &self.environment))
            .filter_map(|(delivery, timeout)| {
                Some(VisibilityChange { receipt_handle: delivery.receipt_handle.clone()?, timeout: timeout? })
            })
            .collect();
        if changes.is_empty() {
            return;
        }
        let limit = self.environment.now() + ANSWER_MARGIN;
        if let Some(Err(error)) = before(&self.environment, limit, self.visibility.change(changes)).await {
            warn!(failed = error.failed, error = with_sources(&error), "visibility not changed");
        }
    }
}

fn deadline_of_work(deadline: Timestamp) -> Timestamp {
    let margin = i64::try_from(ANSWER_MARGIN.as_millis()).unwrap_or(0);
    Timestamp::from_millis(deadline.as_millis() - margin)
}
