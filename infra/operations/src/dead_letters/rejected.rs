//! What the relay says of a record that it could not send, and the messages that its event can be sent as now.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;

use aws::outgoing::{Outgoing, Unsendable};
use aws::publisher;
use aws::telemetry::chain;
use domain::{EVENT, Key};
use events::QueueOrder;
use serde_json::Value;
use thiserror::Error;

use super::batch::Outbound;
use super::queues::{Attribute, AttributeValue, Message, Received};

/// Where records are read whose event does not stand in the message.
pub trait Records: Sync {
    /// Returns the event that a record carries now.
    fn event(&self, key: &Key) -> impl Future<Output = Result<Option<Value>, Box<dyn Error + Send + Sync>>> + Send;
}

/// Why a rejected record's event cannot be sent now either.
#[derive(Debug, Error)]
pub enum NotSendable {
    /// The body is not what the relay writes.
    #[error("the body is not what the relay says of a record")]
    Foreign,
    /// The event itself is wrong.
    #[error("the event can still not be sent")]
    Event(#[source] Unsendable),
    /// The message has no event, and the record has another one by now, which went its own way.
    #[error("record {key} carries another event by now")]
    Superseded {
        /// Which record.
        key: Key,
    },
    /// The record could not be read.
    #[error("record {key} could not be read")]
    Unread {
        /// Which record.
        key: Key,
        /// Why not.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Returns the messages for the queues of all consumers of the event: which of them have it already is not known, and those take
/// it for a duplicate.
pub(crate) async fn outbound(received: &Received, records: &impl Records) -> Result<Vec<Outbound>, NotSendable> {
    let body: Value = serde_json::from_str(&received.message.body).map_err(|_| NotSendable::Foreign)?;
    let event = body.pointer("/record/dynamodb/NewImage").and_then(|image| image.get(EVENT));
    let outgoing = match event {
        Some(event) => Outgoing::from_stream(event.clone()),
        None => Outgoing::from_json(&event_of_record(&body, records).await?),
    };
    Ok(messages(&outgoing.map_err(NotSendable::Event)?))
}

/// Returns the messages of an event for the queues of all its consumers.
pub(crate) fn messages(outgoing: &Outgoing) -> Vec<Outbound> {
    let consumers = outgoing.event_type.consumers();
    let message = |consumer| {
        let message: &publisher::Message = &outgoing.message_for(consumer);
        let attribute = |(name, value): &(&str, String)| {
            let value = AttributeValue::Text(value.clone());
            ((*name).to_owned(), Attribute { data_type: "String".to_owned(), value })
        };
        let attributes: BTreeMap<String, Attribute> = message.attributes.iter().map(attribute).collect();
        let place = message.fifo.as_ref().filter(|_| consumer.queue_order() == QueueOrder::FifoByAggregate);
        let group_id = place.map(|place| place.group_id.clone());
        let message = Message { body: message.body.clone(), attributes, group_id };
        Outbound { queue: consumer.queue_name().to_owned(), message }
    };
    consumers.iter().map(message).collect()
}

/// Reads the event of a record that was too big for a message.
async fn event_of_record(body: &Value, records: &impl Records) -> Result<Value, NotSendable> {
    let text = |pointer| body.pointer(pointer).and_then(Value::as_str);
    let keys = text("/keys/pk/S").zip(text("/keys/sk/S")).zip(text("/event_id"));
    let ((partition, sort), event_id) = keys.ok_or(NotSendable::Foreign)?;
    let key = Key::record(partition, sort);
    let event = records.event(&key).await.map_err(|source| NotSendable::Unread { key: key.clone(), source })?;
    let same = event.filter(|event| event.get("event_id").and_then(Value::as_str) == Some(event_id));
    same.ok_or(NotSendable::Superseded { key })
}

impl NotSendable {
    /// Returns the reason in one line.
    pub fn text(&self) -> String {
        chain(self)
    }
}
