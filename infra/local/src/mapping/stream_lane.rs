//! One lane of a stream mapping: batches one after the other, each repeated until it succeeded, so that no record
//! overtakes another of its partition key. Reads no stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::batch::{Batch, event};
use super::hostile::{Disturber, Order};
use super::response::{self, Verdict};
use super::stream_event::{Delivery, Record};
use super::{Progress, backoff};
use crate::lambda::Invoke;
use crate::model::{Bisect, StreamMapping};

/// Wait after the first failure in a row; it doubles with every further one.
const RETRY_BACKOFF: Duration = Duration::from_millis(100);

/// Longest wait between retries.
const RETRY_BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Records of a window that is shuffled.
const SHUFFLE_MAX: usize = 1_000;

/// How long a window that is shuffled is gathered.
const SHUFFLE_WINDOW: Duration = Duration::from_millis(400);

/// One lane of a stream mapping.
pub(super) struct Lane {
    declared: StreamMapping,
    function: Arc<dyn Invoke>,
    progress: Arc<Progress>,
    disturber: Disturber,
    inbox: mpsc::Receiver<Record>,
    /// Records to be delivered before those of the inbox.
    waiting: VecDeque<Record>,
    /// The records acknowledged last, in the order of their delivery.
    history: VecDeque<Record>,
    failures_in_a_row: u32,
}

/// A batch, or what is left of it.
struct Part {
    records: Vec<Record>,
    retries: u32,
}

impl Lane {
    pub(super) fn new(
        declared: StreamMapping,
        function: Arc<dyn Invoke>,
        progress: Arc<Progress>,
        disturber: Disturber,
        inbox: mpsc::Receiver<Record>,
    ) -> Self {
        let (waiting, history) = Default::default();
        Self { declared, function, progress, disturber, inbox, waiting, history, failures_in_a_row: 0 }
    }

    /// Delivers what comes in until nothing more can come.
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.gather().await {
            let first = batch.iter().any(|record| record.delivery == Delivery::First);
            // The batch itself counts until it is decided that it does not come again.
            self.progress.read(1);
            self.deliver(batch).await;
            // Only news is repeated: a repetition of repetitions might never end.
            if first && self.disturber.repeats() {
                self.rewind();
            }
            self.progress.ended(1);
        }
    }

    /// Waits for a first record, and then until the batch is full, by number or payload, or its window is over.
    async fn gather(&mut self) -> Option<Vec<Record>> {
        if self.waiting.is_empty() {
            let first = self.inbox.recv().await?;
            self.waiting.push_back(first);
            if self.disturber.order() == Order::Shuffled {
                self.shuffle().await;
            }
        }
        let window_end = Instant::now() + self.declared.batching_window;
        let mut batch = Batch::new(self.declared.batch_size);
        while !batch.is_full() {
            let Some(record) = self.next(window_end).await else {
                break;
            };
            if let Err(record) = batch.add(record) {
                self.waiting.push_front(record);
                break;
            }
        }
        Some(batch.into_records())
    }

    /// Returns the next record, if there is one before the window ends. Shuffled windows are not mixed.
    async fn next(&mut self, window_end: Instant) -> Option<Record> {
        if let Some(record) = self.waiting.pop_front() {
            return Some(record);
        }
        match self.disturber.order() {
            Order::Shuffled => None,
            Order::AsRead => match self.inbox.try_recv() {
                Ok(record) => Some(record),
                Err(_) => timeout_at(window_end, self.inbox.recv()).await.ok().flatten(),
            },
        }
    }

    /// Gathers a large window and mixes the records of different items.
    async fn shuffle(&mut self) {
        let window_end = Instant::now() + SHUFFLE_WINDOW;
        while self.waiting.len() < SHUFFLE_MAX {
            match timeout_at(window_end, self.inbox.recv()).await {
                Ok(Some(record)) => self.waiting.push_back(record),
                Ok(None) | Err(_) => break,
            }
        }
        let window = std::mem::take(&mut self.waiting).into();
        self.waiting = self.disturber.mix(window, |record: &Record| Arc::clone(&record.item)).into();
    }

    /// Puts some of the records delivered last before those that wait, as if the lane had lost its position.
    fn rewind(&mut self) {
        let count = self.disturber.rewind(self.history.len());
        self.progress.read(count);
        for record in self.history.iter().rev().take(count) {
            self.waiting.push_front(record.repeated());
        }
    }

    /// Invokes the function with a batch until all of it is acknowledged or given up.
    async fn deliver(&mut self, records: Vec<Record>) {
        let mut parts = VecDeque::from([Part { records, retries: 0 }]);
        while let Some(part) = parts.pop_front() {
            if part.records.is_empty() {
                continue;
            }
            match self.invoke(&part.records).await {
                Some(Verdict::Success) => self.acknowledge(&part.records),
                Some(Verdict::Partial(failed)) => {
                    // The lowest failed position; for records as read that is the lowest sequence number.
                    let failed = |record: &Record| failed.contains(&*record.sequence_number);
                    let position = part.records.iter().position(failed).unwrap_or_default();
                    self.retry_from(part, position, &mut parts);
                }
                Some(Verdict::WholeBatch(_)) | None => self.retry(part, &mut parts),
            }
            let wait = backoff(self.failures_in_a_row, RETRY_BACKOFF, RETRY_BACKOFF_MAX);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Acknowledges the records before a position and keeps the rest for a retry.
    fn retry_from(&mut self, mut part: Part, position: usize, parts: &mut VecDeque<Part>) {
        let rest = part.records.split_off(position);
        if part.records.is_empty() {
            self.failures_in_a_row += 1;
            self.keep(Part { records: rest, retries: part.retries + 1 }, parts);
        } else {
            self.acknowledge(&part.records);
            self.failures_in_a_row = 1;
            parts.push_front(Part { records: rest, retries: 0 });
        }
    }

    /// Keeps a part that failed as a whole for a retry: in two halves, which does not count as a retry, or as it is.
    fn retry(&mut self, mut part: Part, parts: &mut VecDeque<Part>) {
        self.failures_in_a_row += 1;
        match self.declared.bisect {
            Bisect::OnFunctionError if part.records.len() > 1 => {
                let second = part.records.split_off(part.records.len() / 2);
                parts.push_front(Part { records: second, retries: part.retries });
                parts.push_front(part);
            }
            Bisect::OnFunctionError | Bisect::Never => {
                part.retries += 1;
                self.keep(part, parts);
            }
        }
    }

    /// Keeps a part for a retry, unless it had its last one.
    fn keep(&mut self, part: Part, parts: &mut VecDeque<Part>) {
        match self.declared.maximum_retry_attempts {
            Some(maximum) if part.retries > maximum => {
                let (table, records) = (&self.declared.table, part.records.len());
                tracing::warn!(table, records, maximum, "stream records were given up after their last retry");
                self.progress.discarded.fetch_add(records as u64, Ordering::SeqCst);
                self.progress.ended(records);
                self.failures_in_a_row = 0;
            }
            Some(_) | None => parts.push_front(part),
        }
    }

    fn acknowledge(&mut self, records: &[Record]) {
        self.failures_in_a_row = 0;
        let first = records.iter().filter(|record| record.delivery == Delivery::First);
        self.progress.done.fetch_add(first.count() as u64, Ordering::SeqCst);
        self.history.extend(records.iter().cloned());
        let surplus = self.history.len().saturating_sub(self.declared.batch_size);
        self.history.drain(..surplus);
        self.progress.ended(records.len());
    }

    /// Returns what the function said, or nothing if it said nothing.
    async fn invoke(&self, records: &[Record]) -> Option<Verdict> {
        let outcome = self.function.invoke(event(records)).await;
        self.progress.batches.fetch_add(1, Ordering::SeqCst);
        let function = &self.declared.function;
        let verdict = match outcome {
            Ok(response) => {
                let is_in_batch = |id: &str| records.iter().any(|record| &*record.sequence_number == id);
                Some(response::read(&response, self.declared.failures, is_in_batch))
            }
            Err(error) => {
                tracing::debug!(function, %error, "a stream batch failed");
                None
            }
        };
        if let Some(Verdict::WholeBatch(reason)) = &verdict {
            tracing::warn!(function, %reason, "a stream batch failed");
        }
        if verdict != Some(Verdict::Success) {
            self.progress.failed_batches.fetch_add(1, Ordering::SeqCst);
        }
        verdict
    }
}
