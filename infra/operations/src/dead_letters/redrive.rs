//! Bringing dead letters back to the queues that they came from. A letter is deleted only when its queue has it again, so that an
//! end at any point leaves it twice and never not at all.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use aws::publisher::BATCH_MESSAGES_MAX;
use events::Timestamp;
use serde::Serialize;
use thiserror::Error;
use tokio::time::Instant;

use super::batch::Outbound;
use super::queues::{QueueError, Queues, Received};
use super::rejected::{self, Records};
use super::scan::{Ending, Scan};
use super::selection::Selection;
use super::sending;
use super::source::Source;
use crate::pace::Pace;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::trace::{Logs, LogsError};

/// Failures that are told one by one.
const FAILURES_MAX: usize = 20;

/// Whether anything is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// What would be moved is counted.
    DryRun,
    /// It is moved.
    Send,
}

/// A redrive.
#[derive(Debug)]
pub struct Redrive<'a, Q, R> {
    /// The queues.
    pub queues: &'a Q,
    /// The records, for what the relay could not send.
    pub records: &'a R,
    /// The logs, if they are to say why a letter is dead.
    pub logs: Option<&'a Logs>,
    /// Which letters are meant.
    pub selection: &'a Selection,
    /// Whether anything is moved.
    pub mode: Mode,
    /// Messages that are sent in a second, at most.
    pub rate: Option<NonZeroU32>,
    /// Whether to stop.
    pub stop: &'a Stop,
    /// The moment of which it is judged how old letters are.
    pub now: Timestamp,
}

/// What a redrive of one queue came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedriveReport {
    /// Whose dead letters.
    pub consumer: Source,
    /// Whether nothing was moved.
    pub dry_run: bool,
    /// Messages that the queue had before, about.
    pub before: u64,
    /// Messages that the queue has now, about.
    pub after: u64,
    /// Messages that were looked at.
    pub seen: u64,
    /// Those of them that were meant.
    pub selected: u64,
    /// Those of them that are back where they belong.
    pub sent: u64,
    /// Those that are there and here: they could not be deleted.
    pub left_twice: u64,
    /// Those that stay here.
    pub failed: u64,
    /// Why, of some of them, by message id.
    pub failures: BTreeMap<String, String>,
    /// How going through the queue ended.
    pub ending: Ending,
}

/// A redrive that could not go on. What is not back where it belongs is still a dead letter.
#[derive(Debug, Error)]
pub enum RedriveError {
    /// A queue did not answer.
    #[error("the redrive stopped after {sent} messages")]
    Queue {
        /// Messages that are back where they belong.
        sent: u64,
        /// What went wrong.
        #[source]
        source: QueueError,
    },
    /// The logs did not answer.
    #[error("the redrive stopped after {sent} messages")]
    Logs {
        /// Messages that are back where they belong.
        sent: u64,
        /// What went wrong.
        #[source]
        source: LogsError,
    },
}

/// A letter with what is to be sent for it.
struct Parcel {
    received: Received,
    outbound: Vec<Outbound>,
}

impl<Q: Queues, R: Records> Redrive<'_, Q, R> {
    /// Goes through one queue.
    ///
    /// # Errors
    /// A queue or the logs did not answer.
    pub async fn run(&self, source: Source, progress: &impl Progress) -> Result<RedriveReport, RedriveError> {
        let queue = source.queue_name();
        let before = self.queues.count(&queue).await.map_err(|source| RedriveError::Queue { sent: 0, source })?;
        progress.begin(before);
        let each = self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.get());
        let mut scan = Scan::new(self.queues, queue.clone(), before, each);
        let mut report = RedriveReport::new(source, self.mode, before);
        let result = self.go_through(source, &mut scan, &mut report, progress).await;
        scan.give_back().await;
        progress.end();
        result?;
        let sent = report.sent;
        report.after = self.queues.count(&queue).await.map_err(|source| RedriveError::Queue { sent, source })?;
        (report.seen, report.ending) = (scan.seen, scan.ending);
        Ok(report)
    }

    async fn go_through(
        &self,
        source: Source,
        scan: &mut Scan<'_, Q>,
        report: &mut RedriveReport,
        progress: &impl Progress,
    ) -> Result<(), RedriveError> {
        let (started, mut pace) = (Instant::now(), Pace::new(self.rate));
        while !self.stop.is_wished() {
            let next = scan.next().await.map_err(|source| RedriveError::Queue { sent: report.sent, source })?;
            let Some(messages) = next else { return Ok(()) };
            let mut parcels = self.selected(source, messages, scan, report).await?.into_iter().peekable();
            while parcels.peek().is_some() {
                let parcels: Vec<Parcel> = parcels.by_ref().take(pace.at_once(BATCH_MESSAGES_MAX)).collect();
                let wait = pace.wait(started.elapsed(), parcels.len());
                self.stop.pause(wait).await;
                if self.stop.is_wished() {
                    parcels.iter().for_each(|parcel| scan.hold(&parcel.received));
                    continue;
                }
                let sent = self.send(&source.queue_name(), parcels, scan, report).await;
                sent.map_err(|source| RedriveError::Queue { sent: report.sent, source })?;
            }
            progress.at(scan.seen, &format!("{} selected, {} sent", report.selected, report.sent));
        }
        Ok(())
    }

    /// Returns what is to be sent for the letters that are meant, and holds the others.
    async fn selected(
        &self,
        source: Source,
        messages: Vec<Received>,
        scan: &mut Scan<'_, Q>,
        report: &mut RedriveReport,
    ) -> Result<Vec<Parcel>, RedriveError> {
        let letters = super::list::letters(source, &messages, self.logs, self.now).await;
        let letters = letters.map_err(|source| RedriveError::Logs { sent: report.sent, source })?;
        let mut parcels = Vec::new();
        for (letter, received) in letters.iter().zip(messages) {
            if !self.selection.takes(letter) {
                scan.hold(&received);
                continue;
            }
            report.selected += 1;
            let outbound = match source {
                Source::Consumer(consumer) => {
                    let message = received.message.clone();
                    Ok(vec![Outbound { queue: consumer.queue_name().to_owned(), message }])
                }
                Source::Relay => rejected::outbound(&received, self.records).await.map_err(|error| error.text()),
            };
            match (outbound, self.mode) {
                (Err(reason), Mode::Send | Mode::DryRun) => {
                    report.fail(&received, reason);
                    scan.hold(&received);
                }
                (Ok(_), Mode::DryRun) => scan.hold(&received),
                (Ok(outbound), Mode::Send) => parcels.push(Parcel { received, outbound }),
            }
        }
        Ok(parcels)
    }

    /// Sends letters, and deletes those that are with all their queues.
    async fn send(
        &self,
        queue: &str,
        parcels: Vec<Parcel>,
        scan: &mut Scan<'_, Q>,
        report: &mut RedriveReport,
    ) -> Result<(), QueueError> {
        let outbound = parcels.iter().enumerate();
        let outbound = outbound.flat_map(|(position, parcel)| parcel.outbound.iter().map(move |one| (position, one)));
        let mut reasons = sending::send(self.queues, &outbound.collect::<Vec<_>>()).await?;
        let mut receipts = Vec::with_capacity(parcels.len());
        for (position, parcel) in parcels.into_iter().enumerate() {
            match reasons.remove(&position) {
                Some(reason) => {
                    report.fail(&parcel.received, reason);
                    scan.hold(&parcel.received);
                }
                None => receipts.push(parcel.received.receipt),
            }
        }
        if receipts.is_empty() {
            return Ok(());
        }
        report.sent += receipts.len() as u64;
        let deleted = self.queues.delete(queue, &receipts).await?;
        report.left_twice += deleted.iter().filter(|result| result.is_err()).count() as u64;
        Ok(())
    }
}

impl RedriveReport {
    fn new(consumer: Source, mode: Mode, before: u64) -> Self {
        Self {
            consumer,
            dry_run: mode == Mode::DryRun,
            before,
            after: before,
            seen: 0,
            selected: 0,
            sent: 0,
            left_twice: 0,
            failed: 0,
            failures: BTreeMap::new(),
            ending: Ending::Stopped,
        }
    }

    /// Returns whether nothing is left to be done for those that were meant.
    pub fn is_done(&self) -> bool {
        self.failed == 0 && self.ending == Ending::Complete
    }

    fn fail(&mut self, received: &Received, reason: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.insert(received.message_id.clone(), reason);
        }
    }
}

impl fmt::Display for RedriveReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { consumer, before, after, seen, selected, sent, failed, ending, .. } = self;
        write!(formatter, "{consumer}: {before} dead letters before, {after} after; ")?;
        write!(formatter, "{seen} seen, {selected} selected, ")?;
        if self.dry_run {
            write!(formatter, "{} would be sent", selected - failed)?;
        } else {
            write!(formatter, "{sent} sent")?;
        }
        if *failed > 0 {
            write!(formatter, ", {failed} cannot be sent")?;
        }
        if self.left_twice > 0 {
            write!(formatter, ", {} of them could not be deleted and will come again", self.left_twice)?;
        }
        if *seen < *before && *ending == Ending::Complete {
            write!(
                formatter,
                "; {} were not to be seen: others have them, or they are behind others of their group",
                before - seen
            )?;
        }
        if *ending != Ending::Complete {
            write!(formatter, "; {ending}")?;
        }
        for (message_id, reason) in &self.failures {
            write!(formatter, "\n  message {message_id}: {reason}")?;
        }
        Ok(())
    }
}
