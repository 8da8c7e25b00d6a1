//! An event source mapping from a queue: gathers batches, invokes the function with them, deletes what succeeded. What
//! failed is left to the queue's visibility timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use queue::{Delivery, QueueKind, QueueName, ReceiptHandle, ReceiveRequest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::batch::{Batch, event};
use super::fifo;
use super::hostile::{Disturber, Held, Hostility, Order};
use super::queue_event::{Copy, Record};
use super::response::{self, Verdict};
use super::{Progress, backoff};
use crate::lambda::Invoke;
use crate::model::QueueMapping;
use crate::sqs::Broker;

/// Longest wait for the first message of a batch.
pub(super) const POLL: Duration = Duration::from_secs(20);

/// Records that may be held back at once to be shuffled, in batches.
const HELD_BATCHES_MAX: usize = 8;

/// Smallest number of records that may be held back at once to be shuffled.
const HELD_MIN: usize = 1_000;

/// Wait after the second failed invocation in a row; it doubles with every further one.
const FAILURE_BACKOFF: Duration = Duration::from_secs(1);

/// Longest wait after failed invocations.
const FAILURE_BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Wait after a receive that was refused.
const REFUSED_WAIT: Duration = Duration::from_secs(1);

/// The queue that a mapping reads.
pub trait Source: Send + Sync + 'static {
    /// Waits for messages, and returns as soon as there are any: at most `max`, after at most `wait`.
    fn receive(&self, max: usize, visibility_timeout: Option<Duration>, wait: Duration)
    -> BoxFuture<'_, Vec<Delivery>>;

    /// Deletes received messages; a handle that is not valid any more is passed over.
    fn delete<'a>(&'a self, receipts: &'a [ReceiptHandle]) -> BoxFuture<'a, ()>;

    /// Makes received messages visible again; a handle that is not valid any more is passed over.
    fn release<'a>(&'a self, receipts: &'a [ReceiptHandle]) -> BoxFuture<'a, ()>;
}

/// A queue of the broker.
#[derive(Debug, Clone)]
pub struct BrokerQueue {
    /// The broker.
    pub broker: Broker,
    /// The queue's name.
    pub queue: QueueName,
}

impl Source for BrokerQueue {
    fn receive(
        &self,
        max: usize,
        visibility_timeout: Option<Duration>,
        wait: Duration,
    ) -> BoxFuture<'_, Vec<Delivery>> {
        let request = ReceiveRequest { max, visibility_timeout };
        async move {
            match self.broker.receive(&self.queue, request, wait).await {
                Ok(deliveries) => deliveries,
                Err(error) => {
                    tracing::warn!(queue = %self.queue, %error, "messages were not received");
                    tokio::time::sleep(REFUSED_WAIT).await;
                    Vec::new()
                }
            }
        }
        .boxed()
    }

    fn delete<'a>(&'a self, receipts: &'a [ReceiptHandle]) -> BoxFuture<'a, ()> {
        for error in self.broker.delete_many(&self.queue, receipts).into_iter().filter_map(Result::err) {
            tracing::debug!(queue = %self.queue, %error, "a message was not deleted");
        }
        futures::future::ready(()).boxed()
    }

    fn release<'a>(&'a self, receipts: &'a [ReceiptHandle]) -> BoxFuture<'a, ()> {
        let changes: Vec<_> = receipts.iter().map(|receipt| (receipt.clone(), Duration::ZERO)).collect();
        for error in self.broker.change_visibility_many(&self.queue, &changes).into_iter().filter_map(Result::err) {
            tracing::debug!(queue = %self.queue, %error, "a message was not made visible");
        }
        futures::future::ready(()).boxed()
    }
}

/// An event source mapping from a queue.
pub struct Mapping {
    /// What the template declares.
    pub declared: QueueMapping,
    /// The queue.
    pub source: Arc<dyn Source>,
    /// The function.
    pub function: Arc<dyn Invoke>,
    /// Concurrent invocations where the template declares no maximum.
    pub concurrency_default: usize,
    /// Time in flight instead of the queue's own.
    pub visibility_timeout: Option<Duration>,
    /// How deliveries are disturbed.
    pub hostility: Hostility,
    /// Where the mapping tells what it does.
    pub progress: Arc<Progress>,
}

impl Mapping {
    /// Carries records from the queue to the function until it is dropped. Batches under way then still end.
    pub async fn run(self) {
        let concurrency = self.declared.maximum_concurrency.unwrap_or(self.concurrency_default).max(1);
        let permits = Arc::new(Semaphore::new(concurrency));
        let mut intake = Intake::new(&self);
        let forgetter = match self.kind() {
            QueueKind::Standard => None,
            QueueKind::Fifo => Some(fifo::Forgetter::new(self.disturber("acknowledgements"))),
        };
        let consumer = Arc::new(Consumer { mapping: self, forgetter, failures_in_a_row: AtomicU32::new(0) });
        loop {
            // Without a free place no message is received: it would only wait in flight.
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                return;
            };
            let wait = consumer.failure_backoff();
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let batch = match &mut intake {
                Intake::Standard(gatherer) => gatherer.gather(&consumer.mapping).await,
                Intake::Fifo(intake) => intake.gather(&consumer.mapping).await,
            };
            tokio::spawn(Arc::clone(&consumer).consume(batch, permit));
        }
    }

    /// The kind of the queue. What is no name of a queue here is not the name of a FIFO queue.
    fn kind(&self) -> QueueKind {
        QueueName::parse(&self.declared.queue).map_or(QueueKind::Standard, |name| name.kind())
    }

    fn disturber(&self, purpose: &str) -> Disturber {
        Disturber::new(self.hostility, &format!("{} {}{purpose}", self.declared.queue, self.declared.function))
    }
}

/// Makes batches of what the queue has.
enum Intake {
    Standard(Gatherer),
    Fifo(fifo::Intake),
}

impl Intake {
    fn new(mapping: &Mapping) -> Self {
        match mapping.kind() {
            QueueKind::Standard => Self::Standard(Gatherer::new(mapping)),
            QueueKind::Fifo => Self::Fifo(fifo::Intake::new(mapping.disturber(""))),
        }
    }
}

/// Receives messages of a standard queue and makes batches of them.
struct Gatherer {
    disturber: Disturber,
    held: Held<Record>,
    held_max: usize,
}

impl Gatherer {
    fn new(mapping: &Mapping) -> Self {
        let disturber = mapping.disturber("");
        let held_max = (HELD_BATCHES_MAX * mapping.declared.batch_size).max(HELD_MIN);
        Self { disturber, held: Held::default(), held_max }
    }

    /// Waits for a first record, and then until the batch is full, by number or payload, or its window is over.
    async fn gather(&mut self, mapping: &Mapping) -> Vec<Record> {
        let mut batch = Batch::new(mapping.declared.batch_size);
        let mut window_end = None;
        loop {
            let now = Instant::now();
            while let Some(record) = self.held.take_due(now) {
                if let Err(record) = batch.add(record) {
                    self.held.hold(now, record);
                    return batch.into_records();
                }
            }
            if !batch.is_empty() {
                let end = *window_end.get_or_insert(now + mapping.declared.batching_window);
                if batch.is_full() || now >= end {
                    return batch.into_records();
                }
            }
            let next = [window_end, self.held.next_due()].into_iter().flatten().min().unwrap_or(now + POLL);
            self.receive(mapping, batch.room(), next).await;
        }
    }

    /// Receives messages until a time at the latest.
    async fn receive(&mut self, mapping: &Mapping, room: usize, until: Instant) {
        let room = match self.disturber.order() {
            Order::AsRead => room,
            Order::Shuffled => self.held_max.saturating_sub(self.held.len()),
        };
        if room == 0 {
            return tokio::time::sleep_until(until).await;
        }
        let wait = until.saturating_duration_since(Instant::now());
        let received = mapping.source.receive(room, mapping.visibility_timeout, wait).await;
        let now = Instant::now();
        for delivery in &received {
            self.hold(mapping, Record::new(&mapping.declared.queue, delivery), now);
        }
    }

    fn hold(&mut self, mapping: &Mapping, record: Record, now: Instant) {
        let due = now + self.disturber.first_delay();
        if self.disturber.repeats() {
            mapping.progress.read(1);
            self.held.hold(due + self.disturber.repeat_delay(), record.repeated());
        }
        mapping.progress.read(1);
        self.held.hold(due, record);
    }
}

/// Invokes the function and settles what became of a batch.
struct Consumer {
    mapping: Mapping,
    forgetter: Option<fifo::Forgetter>,
    failures_in_a_row: AtomicU32,
}

impl Consumer {
    async fn consume(self: Arc<Self>, batch: Vec<Record>, permit: OwnedSemaphorePermit) {
        let progress = &self.mapping.progress;
        let verdict = self.invoke(&batch).await;
        progress.batches.fetch_add(1, Ordering::SeqCst);
        if verdict != Some(Verdict::Success) {
            progress.failed_batches.fetch_add(1, Ordering::SeqCst);
        }
        let settled = batch.iter().filter(|record| record.copy == Copy::Received && succeeded(&verdict, record));
        let settled: Vec<&Record> = settled.collect();
        let (acknowledged, forgotten) = match &self.forgetter {
            Some(forgetter) => forgetter.divide(&settled),
            None => (settled, Vec::new()),
        };
        if !acknowledged.is_empty() {
            self.mapping.source.delete(&receipts(&acknowledged)).await;
        }
        if !forgotten.is_empty() {
            self.mapping.source.release(&receipts(&forgotten)).await;
        }
        progress.done.fetch_add(acknowledged.len() as u64, Ordering::SeqCst);
        progress.ended(batch.len());
        drop(permit);
    }

    /// Returns what the function said, or nothing if it said nothing.
    async fn invoke(&self, batch: &[Record]) -> Option<Verdict> {
        match self.mapping.function.invoke(event(batch)).await {
            Ok(response) => {
                self.failures_in_a_row.store(0, Ordering::Relaxed);
                let is_in_batch = |id: &str| batch.iter().any(|record| record.message_id == id);
                let verdict = response::read(&response, self.mapping.declared.failures, is_in_batch);
                self.log(batch, &verdict);
                Some(verdict)
            }
            Err(error) => {
                self.failures_in_a_row.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(function = self.mapping.declared.function, %error, "a whole batch failed");
                None
            }
        }
    }

    /// Says what a developer may have to know about a response.
    fn log(&self, batch: &[Record], verdict: &Verdict) {
        let function = &self.mapping.declared.function;
        match verdict {
            Verdict::Success => {}
            Verdict::Partial(failed) if self.forgetter.is_some() => {
                for group in fifo::out_of_order(batch, failed).into_iter().flatten() {
                    // A function that goes on without a record that can never succeed may mean it so.
                    tracing::debug!(%function, %group, "a record succeeded behind one of its group that failed");
                }
            }
            Verdict::Partial(_) => {}
            Verdict::WholeBatch(reason) => tracing::warn!(%function, %reason, "a whole batch failed"),
        }
    }

    /// Returns how long to wait before the next batch: not at all after a single failure, which may be an accident.
    fn failure_backoff(&self) -> Duration {
        let failures = self.failures_in_a_row.load(Ordering::Relaxed);
        backoff(failures.saturating_sub(1), FAILURE_BACKOFF, FAILURE_BACKOFF_MAX)
    }
}

fn receipts(records: &[&Record]) -> Vec<ReceiptHandle> {
    records.iter().map(|record| record.receipt.clone()).collect()
}

fn succeeded(verdict: &Option<Verdict>, record: &Record) -> bool {
    match verdict {
        Some(Verdict::Success) => true,
        Some(Verdict::Partial(failed)) => !failed.contains(&record.message_id),
        Some(Verdict::WholeBatch(_)) | None => false,
    }
}
