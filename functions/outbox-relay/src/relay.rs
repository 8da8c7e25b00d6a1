//! Brings one batch of the stream to the queues, and says up to which position it is done.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use aws::metrics::Metrics;
use aws::publisher::{Message, Outcome, SendBatch, publish};
use aws::system::System;
use aws::telemetry::chain;
use consumer::Clock;
use events::{Consumer, EventType, RELAY_REJECTED_QUEUE, Timestamp};
use futures::future::join_all;
use lambda_runtime::Diagnostic;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;

use crate::record::{Plan, event_field, plan, sequence_number, version};
use crate::rejected;

/// Kept of an invocation's time for the answer.
const MARGIN: Duration = Duration::from_secs(2);
/// Kept of the remaining time for the rejected queue.
const REJECTED_MARGIN: Duration = Duration::from_secs(5);

/// What the stream's mapping is told. Everything before the first failure is done, everything from it on comes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The first position that is not done, if there is one.
    pub batch_item_failures: Vec<BatchItemFailure>,
}

/// A position in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    /// The record's sequence number.
    pub item_identifier: String,
}

/// Why a batch has to come again as a whole.
#[derive(Debug, Error)]
pub enum RelayError {
    /// The event is not a batch of stream records.
    #[error(transparent)]
    Foreign(#[from] ForeignEvent),
    /// The first record that is not done has no position to come again from.
    #[error("record {index} of the batch could not be sent and has no sequence number")]
    NoPosition {
        /// Which record, from 0.
        index: usize,
    },
}

impl From<RelayError> for Diagnostic {
    fn from(error: RelayError) -> Self {
        Self { error_type: "RelayError".to_owned(), error_message: chain(&error) }
    }
}

/// An event that is not a batch of stream records: the function is wired to something else.
#[derive(Debug, Error)]
#[error("the event is not a batch of DynamoDB stream records: field Records is missing or not a list")]
pub struct ForeignEvent;

/// The relay between the stream and the queues.
#[derive(Debug)]
pub struct Relay<S> {
    sender: S,
    queue_url_prefix: String,
    metrics: Metrics,
}

/// What became of a record.
#[derive(Debug)]
enum Verdict {
    /// Its event is with all consumers, or it has none.
    Done,
    /// Its event can never go to one consumer or to any.
    Rejected(String),
    /// It has to come again.
    Held(String),
}

impl<S: SendBatch> Relay<S> {
    /// Sends through `sender`, to queues whose URLs begin with `queue_url_prefix`, and counts through `metrics`.
    pub fn new(sender: S, queue_url_prefix: impl Into<String>, metrics: Metrics) -> Self {
        Self { sender, queue_url_prefix: queue_url_prefix.into(), metrics }
    }

    /// Sends the events of a batch. What can never go out goes to the rejected queue; what cannot go out now holds the
    /// position, and so does what the rejected queue does not take.
    ///
    /// # Errors
    /// The batch is no batch of stream records, or the position to hold has no name: all of it has to come again.
    pub async fn handle(&self, batch: &Value, deadline: Instant) -> Result<Response, RelayError> {
        let records = batch.get("Records").and_then(Value::as_array).ok_or(ForeignEvent)?;
        let plans: Vec<Plan> = records.iter().map(plan).collect();
        let mut verdicts = self.send(&plans, earlier(deadline, REJECTED_MARGIN)).await;
        self.reject(records, &mut verdicts, deadline).await;
        for ((record, plan), verdict) in records.iter().zip(&plans).zip(&verdicts) {
            log(record, plan, verdict);
        }
        self.measure(&verdicts, System.now());
        let Some(index) = first_held(&verdicts) else {
            return Ok(Response { batch_item_failures: Vec::new() });
        };
        let position = sequence_number(&records[index]).ok_or(RelayError::NoPosition { index })?;
        Ok(Response { batch_item_failures: vec![BatchItemFailure { item_identifier: position.to_owned() }] })
    }

    /// Sends every event to all its consumers, queue beside queue.
    async fn send(&self, plans: &[Plan], deadline: Instant) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(plans.len());
        let mut queues: BTreeMap<Consumer, Vec<(usize, Cow<'_, Message>)>> = BTreeMap::new();
        for (index, plan) in plans.iter().enumerate() {
            verdicts.push(match plan {
                Plan::Ignore => Verdict::Done,
                Plan::Reject(unsendable) => Verdict::Rejected(chain(unsendable)),
                Plan::Send(outgoing) => {
                    for consumer in outgoing.event_type.consumers().iter() {
                        queues.entry(consumer).or_default().push((index, outgoing.message_for(consumer)));
                    }
                    Verdict::Done
                }
            });
        }
        let sends = queues.iter().map(|(consumer, entries)| async move {
            let messages: Vec<&Message> = entries.iter().map(|(_, message)| message.as_ref()).collect();
            publish(&self.sender, &self.queue_url(consumer.queue_name()), &messages, deadline).await
        });
        for ((consumer, entries), outcomes) in queues.iter().zip(join_all(sends).await) {
            self.metrics.published(*consumer, published(plans, entries, &outcomes), System.now());
            for ((index, _), outcome) in entries.iter().zip(outcomes) {
                worsen(&mut verdicts[*index], *consumer, outcome);
            }
        }
        verdicts
    }

    /// Sends the rejected records before the first held one to their queue. Those behind it come again anyway.
    async fn reject(&self, records: &[Value], verdicts: &mut [Verdict], deadline: Instant) {
        let end = first_held(verdicts).unwrap_or(verdicts.len());
        let rejected: Vec<(usize, Message)> = verdicts[..end]
            .iter()
            .enumerate()
            .filter_map(|(index, verdict)| match verdict {
                Verdict::Rejected(reason) => Some((index, rejected::message(&records[index], reason))),
                Verdict::Done | Verdict::Held(_) => None,
            })
            .collect();
        let messages: Vec<&Message> = rejected.iter().map(|(_, message)| message).collect();
        let outcomes = publish(&self.sender, &self.queue_url(RELAY_REJECTED_QUEUE), &messages, deadline).await;
        for ((index, _), outcome) in rejected.iter().zip(outcomes) {
            match outcome {
                Outcome::Sent => {}
                Outcome::Never { reason } | Outcome::Later { reason } => {
                    verdicts[*index] = Verdict::Held(format!("queue {RELAY_REJECTED_QUEUE}: {reason}"));
                }
            }
        }
    }

    fn measure(&self, verdicts: &[Verdict], now: Timestamp) {
        let count = |counted: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| counted(verdict)).count() as u64;
        let rejected = count(|verdict| matches!(verdict, Verdict::Rejected(_)));
        let held = count(|verdict| matches!(verdict, Verdict::Held(_)));
        self.metrics.relayed(rejected, held, now);
    }

    fn queue_url(&self, name: &str) -> String {
        format!("{}{name}", self.queue_url_prefix)
    }
}

/// Returns how many of a queue's messages were sent. Canaries are not counted, here and at the queue's other end: that work
/// is sent and not done shows even while they arrive.
fn published(plans: &[Plan], entries: &[(usize, Cow<'_, Message>)], outcomes: &[Outcome]) -> u64 {
    let is_work = |index: usize| match &plans[index] {
        Plan::Send(outgoing) => outgoing.event_type != EventType::CanarySent,
        Plan::Ignore | Plan::Reject(_) => false,
    };
    let sent = entries.iter().zip(outcomes).filter(|(_, outcome)| matches!(outcome, Outcome::Sent));
    sent.filter(|((index, _), _)| is_work(*index)).count() as u64
}

/// Returns the moment until which an invocation may work, given the one at which it is killed.
pub fn deadline(killed_at: SystemTime) -> Instant {
    let remaining = killed_at.duration_since(SystemTime::now()).unwrap_or_default();
    Instant::now() + remaining.saturating_sub(MARGIN)
}

fn earlier(deadline: Instant, margin: Duration) -> Instant {
    deadline.checked_sub(margin).unwrap_or(deadline)
}

fn first_held(verdicts: &[Verdict]) -> Option<usize> {
    verdicts.iter().position(|verdict| matches!(verdict, Verdict::Held(_)))
}

/// Adds what one consumer's queue did with a record's event: waiting outweighs rejection, which comes again with it.
fn worsen(verdict: &mut Verdict, consumer: Consumer, outcome: Outcome) {
    match (outcome, &mut *verdict) {
        (Outcome::Sent, _) | (Outcome::Never { .. }, Verdict::Held(_)) => {}
        (Outcome::Later { reason }, _) => *verdict = Verdict::Held(format!("queue {consumer}: {reason}")),
        (Outcome::Never { reason }, Verdict::Rejected(before)) => {
            before.push_str(&format!("; queue {consumer}: {reason}"));
        }
        (Outcome::Never { reason }, Verdict::Done) => {
            *verdict = Verdict::Rejected(format!("queue {consumer}: {reason}"));
        }
    }
}

/// Writes the line that a search for an event finds.
fn log(record: &Value, plan: &Plan, verdict: &Verdict) {
    if matches!(plan, Plan::Ignore) {
        return;
    }
    let span = tracing::info_span!(
        "record",
        event_id = event_field(record, "event_id"),
        event_type = event_field(record, "event_type"),
        aggregate_id = event_field(record, "aggregate_id"),
        version = version(record),
        trace_id = event_field(record, "trace_id"),
        sequence_number = sequence_number(record),
        queues = queues(plan),
    );
    let _entered = span.entered();
    match verdict {
        Verdict::Done => tracing::info!(outcome = "sent", "event sent"),
        Verdict::Rejected(reason) => tracing::error!(outcome = "rejected", reason, "event rejected"),
        Verdict::Held(reason) => tracing::warn!(outcome = "held", reason, "event held"),
    }
}

/// Returns the names of the queues that an event goes to, between spaces.
fn queues(plan: &Plan) -> Option<String> {
    match plan {
        Plan::Ignore | Plan::Reject(_) => None,
        Plan::Send(outgoing) => {
            let names: Vec<&str> = outgoing.event_type.consumers().iter().map(Consumer::queue_name).collect();
            Some(names.join(" "))
        }
    }
}
