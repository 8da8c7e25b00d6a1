//! The vocabulary of decisions: writes and checks to commit, and how an event ends. A decider cannot write; it returns what
//! should be true.

use std::collections::BTreeMap;

use events::Event;
use serde::Serialize;

use crate::state::{Attributes, Key, Need, RowError, State};
use crate::versions::Versions;

/// What to add to which counters of one item.
pub type Deltas = BTreeMap<String, i64>;

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
    /// These writes, and then the event is to be decided on again on what they leave: it is too much for one commit. Without
    /// writes of its own it follows on those of another record of the batch.
    Continue {
        /// What to write first.
        writes: Vec<Write>,
        /// What must still hold of rows that are not written.
        checks: Vec<Check>,
    },
    /// The event follows on something that is missing: it comes again in half a minute. These writes, such as a note of since
    /// when it has been waiting, are committed all the same.
    Wait {
        /// What is missing.
        missing: Versions,
        /// What to write meanwhile.
        writes: Vec<Write>,
        /// What must still hold of rows that are not written.
        checks: Vec<Check>,
    },
    /// The wait has been long enough: somebody has to look into it. These writes put it on the list of such cases, and the
    /// event is done. Decided again without writes, it is announced again.
    Unresolved {
        /// What is missing.
        missing: Versions,
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
    /// Names what the decision depends on. It is read consistently.
    fn needs(&self, event: &Event) -> Vec<Need>;

    /// Names what the decision depends on besides, once what [`Decider::needs`] names has been read: a range that begins
    /// where a row says, for one. It costs a second round trip.
    ///
    /// # Errors
    /// A row cannot be read; the event is tried again.
    fn further_needs(&self, _event: &Event, _state: &State) -> Result<Vec<Need>, RowError> {
        Ok(Vec::new())
    }

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

/// Attribute of a record that holds the event of its last change.
pub const EVENT: &str = "event";

/// Turns a record that a consumer writes into attributes, with the event that its write publishes.
///
/// # Errors
/// One of the two does not serialise to a JSON object; a mistake in its type.
pub(crate) fn published<T: Serialize>(record: &T, event: &Event, key: &Key) -> Result<Attributes, RowError> {
    let mut attributes = attributes(record, key)?;
    attributes.insert(EVENT.to_owned(), serde_json::Value::Object(self::attributes(event, key)?));
    Ok(attributes)
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
