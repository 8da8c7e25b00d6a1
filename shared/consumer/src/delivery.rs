//! What comes in with a batch, and what each record comes to.

use std::fmt;

use events::Timestamp;
use thiserror::Error;

use crate::Cost;

/// The id of a queue message, by which a failure is reported. Never empty: an unknown or empty identifier in the report
/// fails the whole batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(String);

/// An empty message id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a message id is empty")]
pub struct InvalidMessageId;

impl MessageId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MessageId {
    type Error = InvalidMessageId;

    fn try_from(text: String) -> Result<Self, InvalidMessageId> {
        if text.is_empty() { Err(InvalidMessageId) } else { Ok(Self(text)) }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One message of a batch, as the queue delivered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message_id: MessageId,
    /// Handle of this receipt; without one the visibility cannot be changed.
    pub receipt_handle: Option<String>,
    /// How often the message has been received, this time included.
    pub receive_count: u32,
    /// The message's group, where the queue is a FIFO queue.
    pub group: Option<String>,
    /// The message's bytes.
    pub body: Vec<u8>,
}

/// What a record comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its decision has been committed.
    Applied,
    /// Its decision had been committed before.
    Duplicate,
    /// Newer state is known.
    Stale,
    /// There is nothing to do, for this reason.
    Ignored(String),
    /// It has waited for something for long enough, for this reason, and is on the list of what somebody has to look into.
    Unresolved(String),
    /// It waits for something that is missing, for this reason: it comes again in half a minute.
    Waiting(String),
    /// It goes back to the queue for this reason.
    Retry(String),
    /// It can never succeed, for this reason: the queue's redrive policy carries it to the dead letter queue.
    Rejected(String),
    /// It is a canary, whose arrival is all that it is for.
    Canary,
}

impl Outcome {
    /// Returns whether the message is done and may be deleted from the queue.
    pub fn acknowledges(&self) -> bool {
        match self {
            Self::Applied | Self::Duplicate | Self::Stale | Self::Ignored(_) | Self::Unresolved(_) | Self::Canary => {
                true
            }
            Self::Waiting(_) | Self::Retry(_) | Self::Rejected(_) => false,
        }
    }

    /// Returns whether the message goes back to the queue with a chance to succeed.
    pub(crate) fn may_succeed_later(&self) -> bool {
        match self {
            Self::Waiting(_) | Self::Retry(_) => true,
            Self::Applied
            | Self::Duplicate
            | Self::Stale
            | Self::Ignored(_)
            | Self::Unresolved(_)
            | Self::Rejected(_)
            | Self::Canary => false,
        }
    }

    /// Returns the outcome's name for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::Stale => "stale",
            Self::Ignored(_) => "ignored",
            Self::Unresolved(_) => "unresolved",
            Self::Waiting(_) => "waiting",
            Self::Retry(_) => "retry",
            Self::Rejected(_) => "rejected",
            Self::Canary => "canary",
        }
    }

    /// Returns why, where a reason belongs to the outcome.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Applied | Self::Duplicate | Self::Stale | Self::Canary => None,
            Self::Ignored(reason)
            | Self::Unresolved(reason)
            | Self::Waiting(reason)
            | Self::Retry(reason)
            | Self::Rejected(reason) => Some(reason),
        }
    }
}

/// What one record came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordReport {
    /// The message.
    pub message_id: MessageId,
    /// When what it tells happened, in business time; `None` where it could not be read.
    pub occurred_at: Option<Timestamp>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// What a batch came to, record by record in the order of delivery.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchReport {
    /// One entry a record.
    pub records: Vec<RecordReport>,
    /// What the ledger spent on the batch.
    pub cost: Cost,
}

impl BatchReport {
    /// Returns the messages that are not done.
    pub fn failures(&self) -> impl Iterator<Item = &MessageId> {
        self.records.iter().filter(|record| !record.outcome.acknowledges()).map(|record| &record.message_id)
    }
}
