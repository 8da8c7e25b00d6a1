//! What going through dead letters asks of queues: few calls, each of which may be the last one. No AWS type is in it.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::time::Duration;

use events::Timestamp;
use thiserror::Error;

/// The value of a message attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// Of type `String` or `Number`.
    Text(String),
    /// Of type `Binary`.
    Binary(Vec<u8>),
}

/// A message attribute of the sender's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// `String`, `Number` or `Binary`, with an optional label behind a dot.
    pub data_type: String,
    /// The value.
    pub value: AttributeValue,
}

/// What a message carries, whichever queue it lies in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The body.
    pub body: String,
    /// The sender's own attributes, by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// Its group, in a FIFO queue.
    pub group_id: Option<String>,
}

impl Message {
    /// Returns the text of an attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.attributes.get(name)?.value {
            AttributeValue::Text(text) => Some(text),
            AttributeValue::Binary(_) => None,
        }
    }

    /// Returns the bytes that SQS counts.
    pub fn bytes(&self) -> usize {
        let value = |value: &AttributeValue| match value {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Binary(bytes) => bytes.len(),
        };
        let attribute = |(name, it): (&String, &Attribute)| name.len() + it.data_type.len() + value(&it.value);
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }
}

/// A message that was received. Nobody else receives it for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The message's id, which it had in the queue that it came from, too.
    pub message_id: String,
    /// Handle of this receipt.
    pub receipt: String,
    /// How often it has been received, this time included.
    pub receives: u32,
    /// When it was sent: of a standard queue to the first queue, of a FIFO queue when it became a dead letter.
    pub sent_at: Timestamp,
    /// The message itself.
    pub message: Message,
}

/// Where a message belongs in a FIFO queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FifoPlace {
    /// Its group.
    pub group_id: String,
    /// The id that the queue takes once in five minutes.
    pub deduplication_id: String,
}

/// A call to a queue that failed.
#[derive(Debug, Error)]
#[error("queue {queue}: {call} failed")]
pub struct QueueError {
    /// The queue, without the stack's prefix.
    pub queue: String,
    /// The call.
    pub call: &'static str,
    /// What went wrong.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Queues by their names, without the stack's prefix.
pub trait Queues: Send + Sync {
    /// Returns about how many messages a queue has, those included that are in flight.
    fn count(&self, queue: &str) -> impl Future<Output = Result<u64, QueueError>> + Send;

    /// Receives up to ten messages, which nobody else receives for so long. None is an answer only if the queue has none that
    /// can be received.
    fn receive(&self, queue: &str, hidden: Duration) -> impl Future<Output = Result<Vec<Received>, QueueError>> + Send;

    /// Sends messages that fit into one batch. Returns for each in order whether the queue has it, or why not.
    fn send(
        &self,
        queue: &str,
        messages: &[(&Message, Option<FifoPlace>)],
    ) -> impl Future<Output = Result<Vec<Result<(), String>>, QueueError>> + Send;

    /// Deletes up to ten messages by their receipts. Returns for each in order whether it is gone, or why not.
    fn delete(
        &self,
        queue: &str,
        receipts: &[String],
    ) -> impl Future<Output = Result<Vec<Result<(), String>>, QueueError>> + Send;

    /// Lets others receive up to ten messages at once. What fails becomes visible by itself later.
    fn release(&self, queue: &str, receipts: &[String]) -> impl Future<Output = Result<(), QueueError>> + Send;
}
