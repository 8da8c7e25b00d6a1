//! An event of a record on its way to the queues of its consumers: the message that is sent, whoever sends it. Sends nothing.

use std::borrow::Cow;

use events::{Consumer, EventId, EventType, InvalidId, QueueOrder, TraceId, UnknownEventType, encode_ascii};
use serde_json::Value;
use thiserror::Error;

use crate::publisher::{BATCH_BYTES_MAX, FifoPlace, Message};

/// Why an event can never go out.
#[derive(Debug, Error)]
pub enum Unsendable {
    /// It has attributes of a type that JSON does not have.
    #[error("the event does not convert to JSON")]
    NotJson(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A field that the message is made with is not there.
    #[error("field {0} of the event is missing or not text")]
    Field(&'static str),
    /// Its id is none.
    #[error("field event_id of the event is not an id")]
    EventId(#[source] InvalidId),
    /// No consumer is known for its type.
    #[error("field event_type of the event is not known")]
    EventType(#[source] UnknownEventType),
    /// No queue takes so much.
    #[error("the event has {bytes} bytes with its attributes, more than {BATCH_BYTES_MAX}")]
    TooBig {
        /// What SQS would count.
        bytes: usize,
    },
}

/// An event on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Which event.
    pub event_id: EventId,
    /// Its type, which says who its consumers are.
    pub event_type: EventType,
    message: Message,
    /// Where the message belongs in a FIFO queue, if a consumer of its type has one.
    place: Option<FifoPlace>,
}

impl Outgoing {
    /// Makes the message of an event as a table's stream has it.
    ///
    /// # Errors
    /// It can never go out.
    pub fn from_stream(event: Value) -> Result<Self, Unsendable> {
        let attribute: serde_dynamo::AttributeValue =
            serde_json::from_value(event).map_err(|error| Unsendable::NotJson(Box::new(error)))?;
        let event = serde_dynamo::from_attribute_value(attribute);
        Self::from_json(&event.map_err(|error| Unsendable::NotJson(Box::new(error)))?)
    }

    /// Makes the message of an event as its record has it, whatever its schema version.
    ///
    /// # Errors
    /// It can never go out.
    pub fn from_json(event: &Value) -> Result<Self, Unsendable> {
        let text = |field| event.get(field).and_then(Value::as_str).ok_or(Unsendable::Field(field));
        let event_id: EventId = text("event_id")?.parse().map_err(Unsendable::EventId)?;
        let event_type: EventType = text("event_type")?.parse().map_err(Unsendable::EventType)?;
        // Consumers insist on a trace id; who sends could do without one.
        let trace_id: Option<TraceId> = text("trace_id").ok().and_then(|trace_id| trace_id.parse().ok());
        let mut attributes = vec![("event_id", event_id.to_string()), ("event_type", event_type.to_string())];
        attributes.extend(trace_id.map(|trace_id| ("trace_id", trace_id.to_string())));
        // Who needs no order can do without an aggregate.
        let is_ordered =
            event_type.consumers().iter().any(|consumer| consumer.queue_order() == QueueOrder::FifoByAggregate);
        let group_id = is_ordered.then(|| text("aggregate_id")).transpose()?;
        let place = group_id
            .map(|group_id| FifoPlace { group_id: group_id.to_owned(), deduplication_id: event_id.to_string() });
        let message = Message { body: encode_ascii(event), attributes, fifo: None };
        match message.bytes() {
            bytes if bytes > BATCH_BYTES_MAX => Err(Unsendable::TooBig { bytes }),
            _ => Ok(Self { event_id, event_type, message, place }),
        }
    }

    /// Returns the message for a consumer's queue.
    pub fn message_for(&self, consumer: Consumer) -> Cow<'_, Message> {
        match consumer.queue_order() {
            QueueOrder::Standard => Cow::Borrowed(&self.message),
            QueueOrder::FifoByAggregate => Cow::Owned(Message { fifo: self.place.clone(), ..self.message.clone() }),
        }
    }
}
