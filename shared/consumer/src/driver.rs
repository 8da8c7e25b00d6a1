//! The driver: takes a batch from the bytes of its messages to an outcome for each of them. It keeps nothing between
//! batches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::{Decider, Key, State};
use events::{Consumer, Disposition, Event, EventId, Timestamp};
use tracing::{info, warn};

use crate::commit::{before, commit};
use crate::delivery::{BatchReport, Delivery, Outcome, RecordReport};
use crate::group::pack;
use crate::ports::{Clock, Cost, FetchError, Ledger, Random, Visibility, VisibilityChange};
use crate::wave::{Record, decide, needs, with_sources};
use crate::weakness::{Weakness, weakened};

/// Time before the invocation's end at which nothing new is started.
const DEADLINE_MARGIN: Duration = Duration::from_millis(1_000);
/// Part of the margin that is kept for changing visibility and answering.
const ANSWER_MARGIN: Duration = Duration::from_millis(500);
/// Records that are decided in one wave, at most: so much is lost when the deadline comes.
const WAVE_RECORDS_MAX: usize = 1_000;
/// How often rows are read again while the ledger is unavailable.
const FETCHES_MAX: u32 = 4;
/// Upper bound of the first wait before reading again; it doubles each time.
const FETCH_WAIT_MIN: Duration = Duration::from_millis(50);
/// Longest time that a failed message is hidden.
const BACKOFF_MAX: Duration = Duration::from_secs(15 * 60);

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
        let mut batch = Batch::new(deliveries.len());
        let mut pending = self.decoded(deliveries, &mut batch);
        while !pending.is_empty() {
            if self.environment.now() + DEADLINE_MARGIN >= deadline {
                batch.settle_all(pending, &Outcome::Retry("not started before the invocation's deadline".to_owned()));
                break;
            }
            let rest = pending.split_off(pending.len().min(WAVE_RECORDS_MAX));
            let mut again = self.wave(pending, deadline, &mut batch).await;
            again.extend(rest);
            again.sort_by(|one, other| order(&one.event).cmp(&order(&other.event)));
            pending = again;
        }
        let outcomes = batch.outcomes();
        self.change_visibility(deliveries, &outcomes).await;
        log(deliveries, &outcomes, &batch.events);
        let records = deliveries
            .iter()
            .zip(outcomes)
            .map(|(delivery, outcome)| RecordReport { message_id: delivery.message_id.clone(), outcome })
            .collect();
        BatchReport { records, cost: batch.cost }
    }

    /// Decodes each record on its own. Repeats of an event share the first one's outcome.
    fn decoded(&self, deliveries: &[Delivery], batch: &mut Batch) -> Vec<Record> {
        let mut first_by_event: BTreeMap<EventId, usize> = BTreeMap::new();
        let mut records = Vec::new();
        for (position, delivery) in deliveries.iter().enumerate() {
            let event = match self.event(delivery) {
                Ok(event) => event,
                Err(outcome) => {
                    batch.settle(position, outcome);
                    continue;
                }
            };
            batch.events[position] = Some(event.clone());
            let first = *first_by_event.entry(event.event_id).or_insert(position);
            if first != position && !weakened(Weakness::RepeatsByMessageId) {
                batch.repeats.push((position, first));
                continue;
            }
            match needs(&self.decider, &event) {
                Ok(needs) => records.push(Record {
                    position,
                    event,
                    needs,
                    refusals: 0,
                    share: usize::MAX,
                    superseded: BTreeSet::new(),
                }),
                Err(outcome) => batch.settle(position, outcome),
            }
        }
        records.sort_by(|one, other| order(&one.event).cmp(&order(&other.event)));
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

    /// Fetches, decides, packs and commits once. Returns the records that are to be decided again.
    async fn wave(&self, records: Vec<Record>, deadline: Timestamp, batch: &mut Batch) -> Vec<Record> {
        let (records, state) = self.fetched(records, deadline, batch).await;
        let now = self.environment.now();
        let wave = decide(&self.decider, self.consumer, now, records, state);
        batch.settle_each(wave.settled);
        let packing = pack(wave.decided);
        batch.settle_each(packing.settled.into_iter().map(|one| (one.record, one.outcome)));
        let commits = commit(&self.ledger, &self.environment, packing.packs, deadline_of_work(deadline)).await;
        batch.cost += commits.cost;
        batch.settle_each(commits.settled);
        let mut again = wave.deferred;
        again.extend(packing.deferred);
        again.extend(commits.again);
        again
    }

    /// Reads the rows that records need. Records whose rows cannot be read go back.
    async fn fetched(&self, mut records: Vec<Record>, deadline: Timestamp, batch: &mut Batch) -> (Vec<Record>, State) {
        let mut failures = 0;
        loop {
            let keys: BTreeSet<Key> = records.iter().flat_map(|record| record.needs.iter().cloned()).collect();
            if keys.is_empty() {
                return (records, State::default());
            }
            let fetch = before(&self.environment, deadline_of_work(deadline), self.ledger.fetch(&keys)).await;
            let error = match fetch {
                Some(Ok((state, cost))) => {
                    batch.cost += cost;
                    return (records, state);
                }
                Some(Err(error)) => error,
                None => FetchError::Unavailable("no answer before the invocation's deadline".into()),
            };
            batch.cost.calls += 1;
            let reason = Outcome::Retry(with_sources(&error));
            match error {
                FetchError::NotARow { key, .. } => {
                    let (needing, others) = records.into_iter().partition(|record| record.needs.contains(&key));
                    batch.settle_all(needing, &reason);
                    records = others;
                }
                FetchError::Unavailable(_) => {
                    failures += 1;
                    let wait = self.environment.up_to(FETCH_WAIT_MIN * 2_u32.pow(failures));
                    if failures == FETCHES_MAX || self.environment.now() + wait >= deadline_of_work(deadline) {
                        batch.settle_all(records, &reason);
                        return (Vec::new(), State::default());
                    }
                    self.environment.sleep(wait).await;
                }
            }
        }
    }

    /// Hides what goes back for a while, and shows what is rejected at once so that redrive takes it. The outcome stands
    /// whether or not the queue does so.
    async fn change_visibility(&self, deliveries: &[Delivery], outcomes: &[Outcome]) {
        let changes: Vec<VisibilityChange> = deliveries
            .iter()
            .zip(outcomes)
            .filter_map(|(delivery, outcome)| {
                let receipt_handle = delivery.receipt_handle.clone()?;
                let timeout = match outcome {
                    Outcome::Retry(_) => self.backoff(delivery.receive_count),
                    Outcome::Rejected(_) => Duration::ZERO,
                    Outcome::Applied | Outcome::Duplicate | Outcome::Stale | Outcome::Ignored(_) => return None,
                };
                Some(VisibilityChange { receipt_handle, timeout })
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

    /// Exponential backoff with full jitter, in whole seconds: a queue knows no smaller unit.
    fn backoff(&self, receive_count: u32) -> Duration {
        let limit = Duration::from_secs(1 << receive_count.min(10)).min(BACKOFF_MAX);
        Duration::from_secs(self.environment.up_to(limit).as_millis().div_ceil(1_000) as u64)
    }
}

/// The outcomes of a batch as they come to be known.
struct Batch {
    outcomes: Vec<Option<Outcome>>,
    events: Vec<Option<Event>>,
    /// Positions of repeats, with the position of the record whose outcome they share.
    repeats: Vec<(usize, usize)>,
    cost: Cost,
}

impl Batch {
    fn new(records: usize) -> Self {
        Self { outcomes: vec![None; records], events: vec![None; records], repeats: Vec::new(), cost: Cost::default() }
    }

    fn settle(&mut self, position: usize, outcome: Outcome) {
        self.outcomes[position] = Some(outcome);
    }

    fn settle_each(&mut self, records: impl IntoIterator<Item = (Record, Outcome)>) {
        for (record, outcome) in records {
            self.settle(record.position, outcome);
        }
    }

    fn settle_all(&mut self, records: Vec<Record>, outcome: &Outcome) {
        for record in records {
            self.settle(record.position, outcome.clone());
        }
    }

    /// A record that no branch settled goes back: never is one lost for want of an outcome.
    fn outcomes(&self) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = self
            .outcomes
            .iter()
            .map(|outcome| outcome.clone().unwrap_or_else(|| Outcome::Retry("without an outcome".to_owned())))
            .collect();
        for (position, first) in &self.repeats {
            outcomes[*position] = match &outcomes[*first] {
                Outcome::Applied => Outcome::Duplicate,
                shared @ (Outcome::Duplicate
                | Outcome::Stale
                | Outcome::Ignored(_)
                | Outcome::Retry(_)
                | Outcome::Rejected(_)) => shared.clone(),
            };
        }
        outcomes
    }
}

fn order(event: &Event) -> (&str, u64, EventId) {
    (&event.aggregate_id, event.version, event.event_id)
}

fn deadline_of_work(deadline: Timestamp) -> Timestamp {
    let margin = i64::try_from(ANSWER_MARGIN.as_millis()).unwrap_or(0);
    Timestamp::from_millis(deadline.as_millis() - margin)
}

/// One line a record, with the event's identity: what happened to an event is a query.
fn log(deliveries: &[Delivery], outcomes: &[Outcome], events: &[Option<Event>]) {
    for ((delivery, outcome), event) in deliveries.iter().zip(outcomes).zip(events) {
        let event_id = event.as_ref().map(|event| event.event_id.to_string());
        let event_type = event.as_ref().map(|event| event.payload.event_type().as_str());
        let aggregate_id = event.as_ref().map(|event| event.aggregate_id.as_str());
        let version = event.as_ref().map(|event| event.version);
        let trace_id = event.as_ref().map(|event| event.trace_id.to_string());
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
        if outcome.acknowledges() {
            line!(info, "record handled");
        } else {
            line!(warn, "record not handled");
        }
    }
}
