//! The vocabulary of decisions: keys and rows to read, writes and checks to commit. A decider cannot write; it returns
//! what should be true.

use std::collections::BTreeMap;
use std::fmt;

use events::Event;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A row's own data by attribute name, without keys and version.
pub type Attributes = serde_json::Map<String, serde_json::Value>;

/// What to add to which counters of one item.
pub type Deltas = BTreeMap<String, i64>;

/// The tables that decisions read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The source of truth.
    Records,
    /// What is derived from it.
    Views,
}

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table.
    pub table: Table,
    /// The partition key, attribute `pk`.
    pub partition: String,
    /// The sort key, attribute `sk`.
    pub sort: String,
}

impl Key {
    /// Makes the key of a source record.
    pub fn record(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { table: Table::Records, partition: partition.into(), sort: sort.into() }
    }

    /// Makes the key of a derived row.
    pub fn view(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { table: Table::Views, partition: partition.into(), sort: sort.into() }
    }

    /// Returns the key of one shard of a target that is spread over several items.
    pub fn shard(&self, shard: u8) -> Self {
        Self { partition: format!("{}#{shard}", self.partition), ..self.clone() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.partition, self.sort)
    }
}

/// A row as it was read: absent (version 0), present, or removed (a tombstone, which is a version like any other).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// `version` of a record, `revision` of a view; 0 where there has never been a row.
    pub version: u64,
    /// The row's data; `None` where the row is absent or removed.
    pub attributes: Option<Attributes>,
}

impl Row {
    /// Decodes the row's data; `None` where the row is absent or removed.
    ///
    /// # Errors
    /// The stored attributes are not a `T`.
    pub fn decode<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, RowError> {
        let Some(attributes) = &self.attributes else {
            return Ok(None);
        };
        serde_json::from_value(serde_json::Value::Object(attributes.clone()))
            .map(Some)
            .map_err(|source| RowError::Undecodable { key: key.clone(), source })
    }
}

/// Why a decision cannot be made on the rows that were read.
#[derive(Debug, Error)]
pub enum RowError {
    /// The decider reads a key that it did not name in `needs`.
    #[error("row {key} was not fetched: the decider's needs leave it out")]
    Undeclared {
        /// Which key.
        key: Key,
    },
    /// The stored attributes are not what this code writes there.
    #[error("row {key} cannot be decoded")]
    Undecodable {
        /// Which key.
        key: Key,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

/// The rows that a decision is made on, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    rows: BTreeMap<Key, Row>,
}

impl State {
    /// Returns the row at `key`.
    ///
    /// # Errors
    /// The key is not among the decider's needs.
    pub fn row(&self, key: &Key) -> Result<&Row, RowError> {
        self.rows.get(key).ok_or_else(|| RowError::Undeclared { key: key.clone() })
    }

    /// Puts a row in the place of the one before.
    pub fn insert(&mut self, key: Key, row: Row) {
        self.rows.insert(key, row);
    }
}

impl FromIterator<(Key, Row)> for State {
    fn from_iter<I: IntoIterator<Item = (Key, Row)>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

/// What one event makes true.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// These writes, all or none, provided that these checks hold.
    Apply {
        /// What to write.
        writes: Vec<Write>,
        /// What must still hold of rows that are not written.
        checks: Vec<Check>,
    },
    /// Nothing: what the event says is older than what is known.
    Stale,
    /// Nothing: it is already so, or irreversible. Never for what can come back.
    Ignore(String),
    /// It can never succeed.
    Reject(String),
}

/// One item to write.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// A row under a key that never comes back. Where one exists already, the decision has been carried out before.
    Create {
        /// Where.
        key: Key,
        /// The row's data.
        attributes: Attributes,
    },
    /// A row in the place of whatever stands there.
    Replace {
        /// Where.
        key: Key,
        /// What stands there afterwards.
        content: Content,
        /// What must hold of the row that is replaced.
        guard: Guard,
    },
    /// Numbers to add to counters. Counters never share an item with a row.
    Add {
        /// Where; the target's name without its shard.
        key: Key,
        /// Attribute by attribute.
        deltas: Deltas,
        /// Over how many items the target is spread.
        spread: Spread,
    },
}

/// What a replaced row becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A row. A null is no attribute. Under [`Guard::Newer`] it must name every attribute of its kind: it is laid over the
    /// old row, which nobody has read.
    Row(Attributes),
    /// A tombstone.
    Tombstone,
}

/// What must hold of a row for it to be replaced. All writers of a row use the same kind of guard: a row that carries a
/// source version refuses to be replaced without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Its source version is lower than this one. For state only, never for what was computed from the row.
    Newer(u64),
    /// Its version is the one that was read; 0 is absent.
    Unchanged(u64),
}

/// What must still hold of a row that a decision relies on and does not write: its version is the one that was read.
/// Version 0 means that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Which row.
    pub key: Key,
    /// The version that was read.
    pub version: u64,
}

/// Over how many items a counter is spread, so that no single item is hot. Readers sum the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread(u8);

impl Spread {
    /// One item.
    pub const NONE: Self = Self(1);

    /// Spreads a target over `shards` items, one at least.
    pub const fn over(shards: u8) -> Self {
        Self(if shards == 0 { 1 } else { shards })
    }

    /// Returns the number of items.
    pub const fn shards(self) -> u8 {
        self.0
    }

    /// Returns the keys of all items of a target.
    pub fn keys(self, target: &Key) -> Vec<Key> {
        match self.0 {
            1 => vec![target.clone()],
            shards => (0..shards).map(|shard| target.shard(shard)).collect(),
        }
    }
}

/// Decides what an event makes true. Deciding twice changes nothing: decided again on what the first decision left, the
/// same event is stale, ignored or caught by its claim.
pub trait Decider: Send + Sync {
    /// Names the rows that the decision depends on. They are read consistently.
    fn needs(&self, event: &Event) -> Vec<Key>;

    /// Decides on those rows.
    ///
    /// # Errors
    /// A row cannot be read; the event is tried again.
    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError>;
}

/// Decides on an event of a type that the decider is not for: the topology and the decider differ, which no retry mends.
pub(crate) fn foreign(event: &Event) -> Result<Decision, RowError> {
    Ok(Decision::Reject(format!("no decision is made on {}", event.payload.event_type())))
}

/// Turns a row type into attributes.
///
/// # Errors
/// The type does not serialise to a JSON object; a mistake in the type.
pub(crate) fn attributes<T: Serialize>(row: &T, key: &Key) -> Result<Attributes, RowError> {
    serde_json::to_value(row)
        .and_then(serde_json::from_value)
        .map_err(|source| RowError::Undecodable { key: key.clone(), source })
}
