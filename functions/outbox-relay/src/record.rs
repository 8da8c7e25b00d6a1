//! What a stream record says, and what is to be done with it. Every record is read on its own: one that makes no sense says
//! nothing about the others.

use aws::items::EVENT;
use aws::outgoing::{self, Outgoing};
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

/// Why an event can never go out.
#[derive(Debug, Error)]
pub(crate) enum Unsendable {
    #[error("the stream record has no {0}")]
    Missing(&'static str),
    #[error(transparent)]
    Event(#[from] outgoing::Unsendable),
}

/// Returns the record's position in its shard.
pub(crate) fn sequence_number(record: &Value) -> Option<&str> {
    record.pointer("/dynamodb/SequenceNumber")?.as_str()
}

/// Returns a text field of the new image's event as the stream has it, whether or not the event makes sense.
pub(crate) fn event_field<'a>(record: &'a Value, field: &str) -> Option<&'a str> {
    record.pointer("/dynamodb/NewImage")?.get(EVENT)?.get("M")?.get(field)?.get("S")?.as_str()
}

/// Returns the version of the new image's event.
pub(crate) fn version(record: &Value) -> Option<u64> {
    record.pointer("/dynamodb/NewImage")?.get(EVENT)?.pointer("/M/version/N")?.as_str()?.parse().ok()
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
    Ok(Some(Outgoing::from_stream(event.clone())?))
}

/// Returns the id of an event as the stream has it.
fn id(event: &Value) -> Option<&Value> {
    event.pointer("/M/event_id/S")
}
