//! Sending the events of records to their consumers once more, for those that an outage kept from the queues. Whoever has an event
//! already takes it for a duplicate.
//!
//! A record carries its last event alone: of a record that changed twice the first event is gone from the table. Events of orders
//! and games are records of their own, and all there.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;

use aws::outgoing::Outgoing;
use aws::publisher::BATCH_MESSAGES_MAX;
use aws::telemetry::chain;
use events::{Consumer, EventType, Timestamp};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;

use crate::dead_letters::{Mode, Outbound, QueueError, Queues, messages, send};
use crate::pace::Pace;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::tables::{EventPage, Tables};

/// Records that are looked at in one read.
const PAGE_RECORDS: i32 = 1_000;
/// Failures that are told one by one.
const FAILURES_MAX: usize = 20;

/// Which events are sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Minted at this moment or later. An event that a consumer wrote has the moment of the one that it comes from.
    pub since: Timestamp,
    /// Minted before this moment.
    pub until: Timestamp,
    /// Of these types; none are all.
    pub event_types: BTreeSet<EventType>,
    /// To these consumers, as far as the type is for them; none are all.
    pub consumers: BTreeSet<Consumer>,
}

/// What sends events again.
#[derive(Debug)]
pub struct Republish<'a, Q> {
    /// The queues.
    pub queues: &'a Q,
    /// Which events.
    pub published: &'a Published,
    /// Whether anything is sent.
    pub mode: Mode,
    /// Messages that are sent in a second, at most.
    pub rate: Option<NonZeroU32>,
    /// Whether to stop.
    pub stop: &'a Stop,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepublishReport {
    /// Whether nothing was sent.
    pub dry_run: bool,
    /// The first moment.
    pub since: Timestamp,
    /// The moment behind the last one.
    pub until: Timestamp,
    /// Records that were looked at.
    pub records: u64,
    /// Events of that time and of the types that were meant.
    pub events: u64,
    /// Messages that were sent, or would be, by queue.
    pub messages: BTreeMap<String, u64>,
    /// Events that could not be sent to all their queues.
    pub failed: u64,
    /// Why, of some of them, by event id.
    pub failures: BTreeMap<String, String>,
    /// Whether somebody wanted to stop before the end.
    pub interrupted: bool,
}

/// Events that could not be sent again. What was sent stays sent; another run sends it once more.
#[derive(Debug, Error)]
pub enum RepublishError {
    /// The table of records did not answer.
    #[error("the records could not be read")]
    Records(#[source] Box<dyn Error + Send + Sync>),
    /// A queue did not answer.
    #[error("a queue could not be reached")]
    Queue(#[source] QueueError),
}

/// An event with its messages.
struct Parcel {
    event_id: String,
    outbound: Vec<Outbound>,
}

impl<Q: Queues> Republish<'_, Q> {
    /// Looks at every record of these tables once.
    ///
    /// # Errors
    /// A table or a queue did not answer.
    pub async fn run(&self, tables: &Tables, progress: &impl Progress) -> Result<RepublishReport, RepublishError> {
        let failed = |error| RepublishError::Records(Box::new(error));
        let mut report = RepublishReport::new(self.published, self.mode);
        progress.begin(tables.records().await.map_err(failed)?);
        let (started, mut pace) = (Instant::now(), Pace::new(self.rate));
        let (mut after, Published { since, until, .. }) = (None, self.published);
        while !self.stop.is_wished() {
            let page = tables.events((*since, *until), after.as_ref(), PAGE_RECORDS).await.map_err(failed)?;
            let EventPage { events, records, end } = page;
            let mut parcels = self.parcels(&events, &mut report).into_iter().peekable();
            while parcels.peek().is_some() && !self.stop.is_wished() {
                let parcels: Vec<Parcel> = parcels.by_ref().take(pace.at_once(BATCH_MESSAGES_MAX)).collect();
                self.send(parcels, (started, &mut pace), &mut report).await.map_err(RepublishError::Queue)?;
            }
            report.records += records;
            progress.at(report.records, &format!("{} events", report.events));
            after = end;
            if after.is_none() {
                progress.end();
                report.interrupted = self.stop.is_wished();
                return Ok(report);
            }
        }
        progress.end();
        report.interrupted = true;
        Ok(report)
    }

    /// Returns the messages of those events that are meant.
    fn parcels(&self, events: &[Value], report: &mut RepublishReport) -> Vec<Parcel> {
        let Published { event_types, consumers, .. } = self.published;
        let mut parcels = Vec::new();
        for event in events {
            let outgoing = match Outgoing::from_json(event) {
                Ok(outgoing) => outgoing,
                Err(error) => {
                    let event_id = event.get("event_id").and_then(Value::as_str).unwrap_or("?");
                    report.fail(event_id, chain(&error));
                    continue;
                }
            };
            if !event_types.is_empty() && !event_types.contains(&outgoing.event_type) {
                continue;
            }
            report.events += 1;
            let mut outbound = messages(&outgoing);
            outbound.retain(|one| {
                consumers.is_empty() || consumers.iter().any(|consumer| consumer.queue_name() == one.queue)
            });
            parcels.push(Parcel { event_id: outgoing.event_id.to_string(), outbound });
        }
        parcels
    }

    async fn send(
        &self,
        parcels: Vec<Parcel>,
        (started, pace): (Instant, &mut Pace),
        report: &mut RepublishReport,
    ) -> Result<(), QueueError> {
        let each = |parcel| {
            let Parcel { event_id, outbound }: &Parcel = parcel;
            outbound.iter().map(move |one| (event_id, one))
        };
        let messages: Vec<(&String, &Outbound)> = parcels.iter().flat_map(each).collect();
        let mut reasons = BTreeMap::new();
        match self.mode {
            Mode::DryRun => {}
            Mode::Send => {
                self.stop.pause(pace.wait(started.elapsed(), messages.len())).await;
                if self.stop.is_wished() {
                    return Ok(());
                }
                let positions: Vec<_> = messages.iter().enumerate().map(|(index, (_, one))| (index, *one)).collect();
                reasons = send(self.queues, &positions).await?;
            }
        }
        let mut failed: BTreeMap<&String, String> = BTreeMap::new();
        for (index, (event_id, one)) in messages.into_iter().enumerate() {
            match reasons.remove(&index) {
                Some(reason) => drop(failed.insert(event_id, reason)),
                None => *report.messages.entry(one.queue.clone()).or_default() += 1,
            }
        }
        for (event_id, reason) in failed {
            report.fail(event_id, reason);
        }
        Ok(())
    }
}

impl RepublishReport {
    fn new(published: &Published, mode: Mode) -> Self {
        Self {
            dry_run: mode == Mode::DryRun,
            since: published.since,
            until: published.until,
            records: 0,
            events: 0,
            messages: BTreeMap::new(),
            failed: 0,
            failures: BTreeMap::new(),
            interrupted: false,
        }
    }

    fn fail(&mut self, event_id: &str, reason: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.insert(event_id.to_owned(), reason);
        }
    }
}

impl fmt::Display for RepublishReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, events, since, until, .. } = self;
        let sent = if self.dry_run { "would be sent" } else { "sent" };
        let messages: u64 = self.messages.values().sum();
        write!(
            formatter,
            "{records} records looked at, {events} events from {since} to {until}, {messages} messages {sent}"
        )?;
        for (queue, count) in &self.messages {
            write!(formatter, "\n{count:>9}  {queue}")?;
        }
        if self.failed > 0 {
            write!(formatter, "\n{} events could not be sent", self.failed)?;
        }
        for (event_id, reason) in &self.failures {
            write!(formatter, "\n  {event_id}: {reason}")?;
        }
        if self.interrupted {
            formatter.write_str("\nstopped before the end; another run begins anew")?;
        }
        Ok(())
    }
}
