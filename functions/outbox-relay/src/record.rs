//! What a stream record says, and what is to be done with it. Every record is read on its own: one that makes no sense says
//! nothing about the others.

use std::borrow::Cow;

use aws::items::EVENT;
use aws::publisher::{BATCH_BYTES_MAX, FifoPlace, Message};
use events::{Consumer, EventId, EventType, InvalidId, QueueOrder, TraceId, UnknownEventType, encode_ascii};
use serde_json::Value;
use thiserror::Error;

/// What is to be done with a record.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Nothing: the record's last change published nothing.
    Ignore,
    /// Its event goes out.
    Send(Outgoing),
    /// Its event can never go out.
    Reject(Unsendable),
}

/// An event on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) event_type: EventType,
    message: Message,
    /// Where the message belongs in a FIFO queue, if a consumer of its type has one.
    place: Option<FifoPlace>,
}

impl Outgoing {
    /// Returns the message for a consumer's queue.
    pub(crate) fn message_for(&self, consumer: Consumer) -> Cow<'_, Message> {
        match consumer.queue_order() {
            QueueOrder::Standard => Cow::Borrowed(&self.message),
            QueueOrder::FifoByAggregate => Cow::Owned(Message { fifo: self.place.clone(), ..self.message.clone() }),
        }
    }
}

/// Why an event can never go out.
#[derive(Debug, Error)]
pub(crate) enum Unsendable {
    #[error("the stream record has no {0}")]
    Missing(&'static str),
    #[error("the event does not convert to JSON")]
    NotJson(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("field {0} of the event is missing or not text")]
    Field(&'static str),
    #[error("field event_id of the event is not an id")]
    EventId(#[source] InvalidId),
    #[error("field event_type of the event is not known")]
    EventType(#[source] UnknownEventType),
    #[error("the event has {bytes} bytes with its attributes, more than {BATCH_BYTES_MAX}")]
    TooBig { bytes: usize },
}

/// Returns the record's position in its shard.
pub(crate) fn sequence_number(record: &Value) -> Option<&str> {
    record.pointer("/dynamodb/SequenceNumber")?.as_str()
}

/// Returns a text field of the new image's event as the stream has it, whether or not the event makes sense.
pub(crate) fn event_field<'a>(record: &'a Value, field: &str) -> Option<&'a str> {
    record.pointer("/dynamodb/NewImage")?.get(EVENT)?.get("M")?.get(field)?.get("S")?.as_str()
}

/// Decides what is to be done with a record.
pub(crate) fn plan(record: &Value) -> Plan {
    match outgoing(record) {
        Ok(Some(outgoing)) => Plan::Send(outgoing),
        Ok(None) => Plan::Ignore,
        Err(unsendable) => Plan::Reject(unsendable),
    }
}

fn outgoing(record: &Value) -> Result<Option<Outgoing>, Unsendable> {
    let change = record.get("dynamodb").ok_or(Unsendable::Missing("dynamodb"))?;
    let Some(image) = change.get("NewImage") else {
        // Records are never deleted, but what somebody deletes by hand has no event either.
        let removed = record.get("eventName").and_then(Value::as_str) == Some("REMOVE");
        return if removed { Ok(None) } else { Err(Unsendable::Missing("NewImage")) };
    };
    let Some(event) = image.get(EVENT) else { return Ok(None) };
    let before = change.get("OldImage").and_then(|image| image.get(EVENT));
    let published_before = |before| before == event || id(before).is_some_and(|id_before| Some(id_before) == id(event));
    if before.is_some_and(published_before) {
        return Ok(None);
    }
    message(event.clone()).map(Some)
}

/// Returns the id of an event as the stream has it.
fn id(event: &Value) -> Option<&Value> {
    event.pointer("/M/event_id/S")
}

fn message(event: Value) -> Result<Outgoing, Unsendable> {
    let attribute: serde_dynamo::AttributeValue =
        serde_json::from_value(event).map_err(|error| Unsendable::NotJson(Box::new(error)))?;
    let event: Value =
        serde_dynamo::from_attribute_value(attribute).map_err(|error| Unsendable::NotJson(Box::new(error)))?;
    let text = |field| event.get(field).and_then(Value::as_str).ok_or(Unsendable::Field(field));
    let event_id: EventId = text("event_id")?.parse().map_err(Unsendable::EventId)?;
    let event_type: EventType = text("event_type")?.parse().map_err(Unsendable::EventType)?;
    // Consumers insist on a trace id; the relay could do without one.
    let trace_id: Option<TraceId> = text("trace_id").ok().and_then(|trace_id| trace_id.parse().ok());
    let mut attributes = vec![("event_id", event_id.to_string()), ("event_type", event_type.to_string())];
    attributes.extend(trace_id.map(|trace_id| ("trace_id", trace_id.to_string())));
    // Who needs no order can do without an aggregate.
    let is_ordered =
        event_type.consumers().iter().any(|consumer| consumer.queue_order() == QueueOrder::FifoByAggregate);
    let group_id = is_ordered.then(|| text("aggregate_id")).transpose()?;
    let place =
        group_id.map(|group_id| FifoPlace { group_id: group_id.to_owned(), deduplication_id: event_id.to_string() });
    let message = Message { body: encode_ascii(&event), attributes, fifo: None };
    match message.bytes() {
        bytes if bytes > BATCH_BYTES_MAX => Err(Unsendable::TooBig { bytes }),
        _ => Ok(Outgoing { event_type, message, place }),
    }
}
