//! The event store: one item an event, in the order's partition under its version, written once and never again; and one
//! item a command, so that a command that comes again finds what it did.

use events::{CommandId, DecodeError, Event, OrderId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::decision::attributes;
use crate::{Attributes, Key, Range, Row, RowError, Table};

/// The attribute that a record's event stands in, by which the stream publishes it.
const EVENT: &str = "event";

/// Returns the partition of an order's events.
pub fn partition(order_id: &OrderId) -> String {
    format!("ORDER#{order_id}")
}

/// Returns a version as a sort key: text of equal length, so that its order is that of the numbers.
pub fn event_sort_key(version: u64) -> String {
    format!("{version:020}")
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// What happened, and when in business time.
    pub event: Event,
    /// When it was written.
    pub inserted_at: Timestamp,
    /// The command that it came of.
    pub command_id: CommandId,
}

/// A stored event that cannot be read.
#[derive(Debug, Error)]
pub enum StoredEventError {
    /// The item is not what this code writes.
    #[error("item {key} is no stored event")]
    NotARecord {
        /// Which item.
        key: Key,
        /// What is wrong with it.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The event in it cannot be decoded, perhaps not yet.
    #[error("the event in item {key} cannot be decoded")]
    Undecodable {
        /// Which item.
        key: Key,
        /// What is wrong with it.
        #[source]
        source: DecodeError,
    },
    /// The event says that it stands elsewhere.
    #[error("the event in item {key} has version {version}")]
    Misplaced {
        /// Which item.
        key: Key,
        /// What it says.
        version: u64,
    },
}

#[derive(Deserialize)]
struct StoredEvent {
    event: Value,
    inserted_at: Timestamp,
    command_id: CommandId,
}

impl EventRecord {
    /// Returns the key of an order's event.
    pub fn key(order_id: &OrderId, version: u64) -> Key {
        Key::record(partition(order_id), event_sort_key(version))
    }

    /// Returns the range of an order's events behind a version.
    pub fn behind(order_id: &OrderId, version: u64, limit: usize) -> Range {
        let after = if version == 0 { String::new() } else { event_sort_key(version) };
        Range { table: Table::Records, partition: partition(order_id), after, limit }
    }

    /// Returns the item's attributes. The event stands in them whole, and so goes out by the stream.
    ///
    /// # Errors
    /// The event does not serialise.
    pub fn attributes(&self, key: &Key) -> Result<Attributes, RowError> {
        #[derive(Serialize)]
        struct Item<'a> {
            event: &'a Event,
            inserted_at: Timestamp,
            command_id: &'a CommandId,
        }
        let item = Item { event: &self.event, inserted_at: self.inserted_at, command_id: &self.command_id };
        attributes(&item, key)
    }

    /// Reads a stored event, of whatever schema version.
    ///
    /// # Errors
    /// It cannot be read; [`DecodeError::disposition`] says whether newer code may be able to.
    pub fn read(key: &Key, row: &Row) -> Result<Self, StoredEventError> {
        let not_a_record = |source| StoredEventError::NotARecord { key: key.clone(), source };
        let attributes = row.attributes.clone().ok_or_else(|| not_a_record(None))?;
        let stored: StoredEvent =
            serde_json::from_value(Value::Object(attributes)).map_err(|error| not_a_record(Some(error)))?;
        let event = Event::decode(stored.event.to_string().as_bytes())
            .map_err(|source| StoredEventError::Undecodable { key: key.clone(), source })?;
        if event_sort_key(event.version) != key.sort {
            return Err(StoredEventError::Misplaced { key: key.clone(), version: event.version });
        }
        Ok(Self { event, inserted_at: stored.inserted_at, command_id: stored.command_id })
    }

    /// Returns the attributes' event as it stands, without understanding it.
    pub fn raw_event(row: &Row) -> Option<&Value> {
        row.attributes.as_ref()?.get(EVENT)
    }
}

/// What a command did: the version of the event that it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Which event. Not `version`, which every record has already.
    pub event_version: u64,
}

impl CommandRecord {
    /// Returns the key of a command's record. It stands apart from the events, which are read as a range.
    pub fn key(order_id: &OrderId, command_id: &CommandId) -> Key {
        Key::record(format!("ORDER_COMMANDS#{order_id}"), command_id.as_str())
    }

    /// Returns the item's attributes.
    ///
    /// # Errors
    /// They do not serialise.
    pub fn attributes(&self, key: &Key) -> Result<Attributes, RowError> {
        attributes(self, key)
    }
}
