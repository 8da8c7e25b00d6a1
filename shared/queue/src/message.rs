//! Messages as they are sent, kept and delivered. Their rules are in `content`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::name::QueueName;
use crate::receipt::ReceiptHandle;
use crate::time::Timestamp;

/// The id of a message, which stays the same when the message moves to a dead letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Uuid);

impl MessageId {
    pub(crate) fn from_random(bits: u128) -> Self {
        Self(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of a message in its FIFO queue: one that was sent later has a higher one. Its text always has 20 digits, so
/// that numbers and their texts are in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(u128);

impl SequenceNumber {
    /// The first number has the 20 digits that SQS gives.
    const FIRST: u128 = 18_850_000_000_000_000_000;
    /// The distance between two numbers: they are not consecutive.
    const STEP: u128 = 256;

    /// Returns the number of the message that came to its queue after `earlier` others.
    pub(crate) fn after(earlier: u64) -> Self {
        Self(Self::FIRST + Self::STEP * u128::from(earlier))
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:020}", self.0)
    }
}

/// The value of a message attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A value of type `String` or `Number`.
    Text(String),
    /// A value of type `Binary`.
    Binary(Vec<u8>),
}

/// A message attribute of the sender's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageAttribute {
    /// `String`, `Number` or `Binary`, with an optional label after a dot.
    pub data_type: String,
    /// The value.
    pub value: AttributeValue,
}

/// Message attributes by name.
pub type MessageAttributes = BTreeMap<String, MessageAttribute>;

/// A message to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendRequest {
    /// The body.
    pub body: String,
    /// Time until the message becomes visible, 0 to 15 minutes; the queue's own delay if absent. On a FIFO queue there is
    /// only the queue's own.
    pub delay: Option<Duration>,
    /// The sender's own attributes.
    pub attributes: MessageAttributes,
    /// `AWSTraceHeader`, which does not count towards the message's size.
    pub trace_header: Option<String>,
    /// `MessageGroupId`: the messages of a FIFO queue are in order within their group. A standard queue keeps and delivers
    /// it, without effect on the order.
    pub group_id: Option<String>,
    /// `MessageDeduplicationId`: for FIFO queues only, which take it once in 5 minutes.
    pub deduplication_id: Option<String>,
}

impl SendRequest {
    /// Builds a message that is a body alone.
    pub fn from_body(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }
}

/// A message as its queue keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The id that the queue gave it.
    pub id: MessageId,
    /// The body.
    pub body: String,
    /// MD5 of the body, in hexadecimal digits.
    pub body_md5: String,
    /// The sender's own attributes.
    pub attributes: MessageAttributes,
    /// MD5 of the attributes, in hexadecimal digits, if there are any.
    pub attributes_md5: Option<String>,
    /// `AWSTraceHeader`.
    pub trace_header: Option<String>,
    /// `MessageGroupId`.
    pub group_id: Option<String>,
    /// `MessageDeduplicationId`, given or computed; in a FIFO dead letter queue it is the message's id.
    pub deduplication_id: Option<String>,
    /// `SequenceNumber`, of a FIFO queue.
    pub sequence_number: Option<SequenceNumber>,
    /// When it was sent: on standard queues to the first queue, on FIFO queues to this one.
    pub sent_at: Timestamp,
}

/// What to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveRequest {
    /// Messages at most. The API's limit of 10 is the server's affair: an event source mapping takes more.
    pub max: usize,
    /// Time in flight, 0 to 12 hours; the queue's own visibility timeout if absent.
    pub visibility_timeout: Option<Duration>,
}

/// One receive of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Arc<Message>,
    /// The handle of this receive.
    pub receipt: ReceiptHandle,
    /// How often it was received, this time included. A move to a dead letter queue does not reset it.
    pub receive_count: u32,
    /// When it was first received, from whichever queue.
    pub first_received_at: Timestamp,
    /// The queue that it was moved from, if this one is its dead letter queue.
    pub dead_letter_source: Option<QueueName>,
}

/// What a receive returned and moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// The messages: of a standard queue in the order in which they became visible, of a FIFO queue group by group, each
    /// group in the order in which it was sent.
    pub deliveries: Vec<Delivery>,
    /// What went to the dead letter queue instead of being delivered once too often.
    pub dead_lettered: Option<DeadLettered>,
}

/// Messages that a receive moved to a dead letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLettered {
    /// The dead letter queue.
    pub queue: QueueName,
    /// The messages' ids.
    pub messages: Vec<MessageId>,
}
