//! Effects outside the tables. A batch goes through the driver first, which commits the rows that say what is due. Then the truth
//! is read again, what is still to be sent is sent, several at once, and the driver notes how each errand ended. A record is done
//! only when that is noted: whatever happens before, it comes again and goes on from its row.
//!
//! Between the second reading and the arrival of a letter the truth can change. That window is as long as a send.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::{Courier, Decider, Decision, End, Errand, Need, RowError, State};
use events::{Event, EventId, Timestamp, TraceId};
use futures::future::join_all;
use tracing::{info, warn};

use crate::commit::before;
use crate::delivery::{BatchReport, Delivery, Outcome};
use crate::driver::Driver;
use crate::ports::{Clock, Cost, Ledger, Notifier, Random, Visibility};
use crate::wave::with_sources;
use crate::weakness::{Weakness, weakened};

/// Letters of a round, which are under way at the same time.
const SENDS_AT_ONCE: usize = 16;
/// Time that is kept for noting how errands ended.
const SETTLE_MARGIN: Duration = Duration::from_secs(5);

/// Runs one consumer's decider over batches, and its errands.
#[derive(Debug)]
pub struct EffectDriver<D, L, E, V, N> {
    /// What decides and commits.
    pub driver: Driver<D, L, E, V>,
    /// Where letters are sent; with nobody to send them to, they are dropped.
    pub notifier: Option<N>,
    /// How long a letter may take. A batch's letters, so many at once, must fit into the function's timeout.
    pub send_timeout: Duration,
}

impl<D, L, E, V, N> EffectDriver<D, L, E, V, N>
where
    D: Courier,
    L: Ledger,
    E: Clock + Random,
    V: Visibility,
    N: Notifier<D::Letter>,
{
    /// Handles a batch until `deadline`, the moment at which the invocation is stopped. Returns an outcome for every record.
    pub async fn handle(&self, deliveries: &[Delivery], deadline: Timestamp) -> BatchReport {
        let mut report = self.driver.handle(deliveries, deadline).await;
        let due = due(deliveries, &report);
        if due.is_empty() {
            return report;
        }
        let (ends, mut failed) = self.rounds(&due, deadline, &mut report.cost).await;
        failed.extend(self.settle(deliveries, &due, ends, deadline, &mut report.cost).await);
        self.give_back(deliveries, &failed, &mut report).await;
        report
    }

    /// Runs the errands of events, a round after the other, so that the truth is read just before each is run. When nobody has
    /// taken a letter of a round, those of the later rounds go back at once: whoever is not there costs one timeout a batch.
    async fn rounds(
        &self,
        due: &Due,
        deadline: Timestamp,
        cost: &mut Cost,
    ) -> (BTreeMap<EventId, End>, BTreeMap<EventId, Outcome>) {
        let events: Vec<&Event> = due.values().map(|(_, event)| event).collect();
        let (mut ends, mut failed) = (BTreeMap::new(), BTreeMap::new());
        let mut receiver = Receiver::Unknown;
        for round in events.chunks(SENDS_AT_ONCE) {
            let (errands, unread) = self.errands(round, cost).await;
            failed.extend(unread);
            let results = self.run(errands, due, receiver, deadline).await;
            receiver = receiver.after(&results);
            for (event_id, result) in results {
                match result {
                    Ok(end) => drop(ends.insert(event_id, end)),
                    Err(outcome) => drop(failed.insert(event_id, outcome)),
                }
            }
        }
        (ends, failed)
    }

    /// Reads the truth again, and says what is to be done.
    async fn errands(
        &self,
        events: &[&Event],
        cost: &mut Cost,
    ) -> (Vec<(EventId, Errand<D::Letter>)>, BTreeMap<EventId, Outcome>) {
        let decider = &self.driver.decider;
        let needs: BTreeSet<Need> = events.iter().flat_map(|event| decider.needs(event)).collect();
        let (mut errands, mut failed) = (Vec::new(), BTreeMap::new());
        let state = match self.driver.ledger.fetch(&needs).await {
            Ok((state, spent)) => {
                *cost += spent;
                state.at(self.driver.environment.now())
            }
            Err(error) => {
                let outcome = Outcome::Retry(with_sources(&error));
                failed.extend(events.iter().map(|event| (event.event_id, outcome.clone())));
                return (errands, failed);
            }
        };
        for event in events {
            match decider.errand(event, &state) {
                Ok(errand) => errands.push((event.event_id, errand)),
                Err(error) => drop(failed.insert(event.event_id, Outcome::Retry(with_sources(&error)))),
            }
        }
        (errands, failed)
    }

    /// Runs errands, several at once. Those that have nothing to do have no result.
    async fn run(
        &self,
        errands: Vec<(EventId, Errand<D::Letter>)>,
        due: &Due,
        receiver: Receiver,
        deadline: Timestamp,
    ) -> Vec<(EventId, Result<End, Outcome>)> {
        let errands = errands.into_iter().filter(|(_, errand)| !matches!(errand, Errand::Nothing));
        let runs = errands.map(|(event_id, errand)| async move {
            let (_, event) = &due[&event_id];
            let letter_key = match &errand {
                Errand::Send { key, .. } => Some(key.clone()),
                Errand::Drop | Errand::Nothing => None,
            };
            let result = match (errand, receiver) {
                (Errand::Send { .. }, Receiver::Silent) => {
                    Err(Outcome::Retry("not sent: none of the letters before it was taken".to_owned()))
                }
                (Errand::Send { key, letter }, Receiver::Unknown) => {
                    self.send(&key, event.trace_id, &letter, deadline).await
                }
                (Errand::Drop | Errand::Nothing, Receiver::Silent | Receiver::Unknown) => Ok(End::Suppressed),
            };
            if let Ok(end) = &result {
                log(event, letter_key.as_deref(), *end);
            }
            (event_id, result)
        });
        join_all(runs).await
    }

    async fn send(
        &self,
        key: &str,
        trace_id: TraceId,
        letter: &D::Letter,
        deadline: Timestamp,
    ) -> Result<End, Outcome> {
        let Some(notifier) = &self.notifier else { return Ok(End::Suppressed) };
        let environment = &self.driver.environment;
        let timeout = environment.now() + self.send_timeout;
        if timeout + SETTLE_MARGIN >= deadline {
            return Err(Outcome::Retry("not sent before the invocation's deadline".to_owned()));
        }
        match before(environment, timeout, notifier.send(key, trace_id, letter)).await {
            Some(Err(_)) | None if weakened(Weakness::FailureTakenForDelivered) => Ok(End::Delivered),
            Some(Ok(())) => Ok(End::Delivered),
            Some(Err(error)) => Err(Outcome::Retry(error.to_string())),
            None => Err(Outcome::Retry(format!("no answer within {} ms", self.send_timeout.as_millis()))),
        }
    }

    /// Notes how errands ended. Returns those for which that could not be noted.
    async fn settle(
        &self,
        deliveries: &[Delivery],
        due: &Due,
        ends: BTreeMap<EventId, End>,
        deadline: Timestamp,
        cost: &mut Cost,
    ) -> BTreeMap<EventId, Outcome> {
        if ends.is_empty() {
            return BTreeMap::new();
        }
        let ended: Vec<EventId> = ends.keys().copied().collect();
        let theirs: Vec<Delivery> = ended.iter().map(|event_id| deliveries[due[event_id].0].clone()).collect();
        let settling = Driver {
            consumer: self.driver.consumer,
            decider: Settling { courier: &self.driver.decider, ends },
            ledger: &self.driver.ledger,
            environment: &self.driver.environment,
            visibility: &self.driver.visibility,
        };
        // Boxed: a driver within a driver would be a future of twice the size.
        let report = Box::pin(settling.handle(&theirs, deadline)).await;
        *cost += report.cost;
        let outcomes = ended.into_iter().zip(report.records).map(|(event_id, record)| (event_id, record.outcome));
        outcomes.filter(|(_, outcome)| !outcome.acknowledges()).collect()
    }

    /// Puts failures into the report, and hides their messages for a while.
    async fn give_back(&self, deliveries: &[Delivery], failed: &BTreeMap<EventId, Outcome>, report: &mut BatchReport) {
        let mut outcomes = Vec::new();
        let mut theirs = Vec::new();
        for (position, delivery) in deliveries.iter().enumerate() {
            let Ok(event) = Event::decode(&delivery.body) else { continue };
            let Some(outcome) = failed.get(&event.event_id).cloned() else { continue };
            if !report.records[position].outcome.acknowledges() || weakened(Weakness::UnsentAcknowledged) {
                continue;
            }
            warn!(
                event_id = %event.event_id,
                event_type = event.payload.event_type().as_str(),
                aggregate_id = event.aggregate_id,
                version = event.version,
                trace_id = %event.trace_id,
                message_id = delivery.message_id.as_str(),
                receive_count = delivery.receive_count,
                outcome = outcome.name(),
                reason = outcome.reason(),
                "letter not sent"
            );
            report.records[position].outcome = outcome.clone();
            theirs.push(delivery.clone());
            outcomes.push(outcome);
        }
        self.driver.change_visibility(&theirs, &outcomes).await;
    }
}

/// What a batch knows of whoever takes letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// Nothing that speaks against sending.
    Unknown,
    /// None of a round's letters was taken.
    Silent,
}

impl Receiver {
    fn after(self, results: &[(EventId, Result<End, Outcome>)]) -> Self {
        let refused = results.iter().any(|(_, result)| result.is_err());
        let taken = results.iter().any(|(_, result)| *result == Ok(End::Delivered));
        match self {
            Self::Unknown if refused && !taken => Self::Silent,
            Self::Unknown | Self::Silent => self,
        }
    }
}

/// Events whose rows are committed, each with the position of its first record.
type Due = BTreeMap<EventId, (usize, Event)>;

fn due(deliveries: &[Delivery], report: &BatchReport) -> Due {
    let mut due = Due::new();
    for (position, (delivery, record)) in deliveries.iter().zip(&report.records).enumerate() {
        // A canary has no row, and nobody gets a letter about it.
        let has_row = record.outcome.acknowledges() && record.outcome != Outcome::Canary;
        if let (true, Ok(event)) = (has_row, Event::decode(&delivery.body)) {
            due.entry(event.event_id).or_insert((position, event));
        }
    }
    due
}

/// Writes the line of an errand that has ended. One that has not has a line that says why.
fn log(event: &Event, letter_key: Option<&str>, end: End) {
    let letter = match end {
        End::Delivered => "delivered",
        End::Suppressed => "suppressed",
    };
    info!(
        event_id = %event.event_id,
        event_type = event.payload.event_type().as_str(),
        aggregate_id = event.aggregate_id,
        version = event.version,
        trace_id = %event.trace_id,
        letter_key,
        letter,
        "letter handled"
    );
}

/// Decides how the ends of errands are noted.
struct Settling<'a, D> {
    courier: &'a D,
    ends: BTreeMap<EventId, End>,
}

impl<D: Courier> Decider for Settling<'_, D> {
    fn needs(&self, event: &Event) -> Vec<Need> {
        self.courier.needs(event)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        match self.ends.get(&event.event_id) {
            Some(end) => self.courier.settle(event, state, *end),
            None => Ok(Decision::Ignore("nothing was to be done".to_owned())),
        }
    }
}
