//! What decisions are made on: keys, rows, ranges of rows, and the state that is made of them. Reading them is the business
//! of a ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use events::Timestamp;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A row's own data by attribute name, without keys and version.
pub type Attributes = serde_json::Map<String, serde_json::Value>;

/// The tables that decisions read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The source of truth.
    Records,
    /// What is derived from it.
    Views,
    /// What a consumer remembers of its own work: waits, snapshots. Claims are there too, but only drafts make them.
    Ledger,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 3] = [Self::Records, Self::Views, Self::Ledger];
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

    /// Makes the key of a row of the ledger.
    pub fn ledger(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { table: Table::Ledger, partition: partition.into(), sort: sort.into() }
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

/// The first rows of a partition behind a sort key, removed ones included, in the order of their sort keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The table.
    pub table: Table,
    /// The partition key that all its rows have.
    pub partition: String,
    /// The sort key behind which it begins; empty for the partition's first row.
    pub after: String,
    /// How many rows, at most. Each is read, decided on and paid for.
    pub limit: usize,
}

impl Range {
    /// Returns whether a row with this key, if it is one of the first, is part of the range.
    pub fn covers(&self, key: &Key) -> bool {
        key.table == self.table && key.partition == self.partition && key.sort > self.after
    }

    /// Returns the place behind which the range's rows stand.
    pub fn start(&self) -> Key {
        Key { table: self.table, partition: self.partition.clone(), sort: self.after.clone() }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} rows behind {}/{}", self.limit, self.partition, self.after)
    }
}

/// What a decision depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// One row.
    Key(Key),
    /// The rows of a range.
    Range(Range),
}

impl Need {
    /// Returns whether the row with this key is, or may be, part of what is needed.
    pub fn covers(&self, key: &Key) -> bool {
        match self {
            Self::Key(needed) => needed == key,
            Self::Range(range) => range.covers(key),
        }
    }
}

impl From<Key> for Need {
    fn from(key: Key) -> Self {
        Self::Key(key)
    }
}

impl From<Range> for Need {
    fn from(range: Range) -> Self {
        Self::Range(range)
    }
}

/// A row as it was read: absent (version 0), present, or removed (a tombstone, which is a version like any other).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// `version` of a record, `revision` of another row; 0 where there has never been a row.
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
    /// The decider reads a range that it did not name in `needs`.
    #[error("{range} were not fetched: the decider's needs leave them out")]
    UndeclaredRange {
        /// Which range.
        range: Range,
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

/// What a decision is made on: rows by key, ranges of rows, and the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    rows: BTreeMap<Key, Row>,
    ranges: BTreeSet<Range>,
    now: Timestamp,
}

impl State {
    /// Returns the row at `key`.
    ///
    /// # Errors
    /// The key is not among the decider's needs.
    pub fn row(&self, key: &Key) -> Result<&Row, RowError> {
        self.rows.get(key).ok_or_else(|| RowError::Undeclared { key: key.clone() })
    }

    /// Returns the rows of a range in their order, removed ones included.
    ///
    /// # Errors
    /// The range is not among the decider's needs.
    pub fn range(&self, range: &Range) -> Result<Vec<(&Key, &Row)>, RowError> {
        if self.ranges.contains(range) {
            Ok(self.first_rows(range))
        } else {
            Err(RowError::UndeclaredRange { range: range.clone() })
        }
    }

    /// Returns the moment of the decision.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets the moment of the decision.
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// Puts a row in the place of the one before.
    pub fn insert(&mut self, key: Key, row: Row) {
        self.rows.insert(key, row);
    }

    /// Adds a range with its rows, which must be its first ones up to its limit.
    pub fn insert_range(&mut self, range: Range, rows: impl IntoIterator<Item = (Key, Row)>) {
        self.ranges.insert(range);
        self.rows.extend(rows);
    }

    /// Adds all that another state holds; what both hold is the other one's afterwards.
    pub fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.ranges.extend(other.ranges);
    }

    /// Returns whether a row with this key belongs here: it was read, or would be part of a range that was.
    pub fn covers(&self, key: &Key) -> bool {
        self.rows.contains_key(key) || self.ranges.iter().any(|range| range.covers(key))
    }

    /// Returns what these needs name, as far as it was read.
    pub fn restricted<'a>(&self, needs: impl IntoIterator<Item = &'a Need>) -> Self {
        let mut part = Self { now: self.now, ..Self::default() };
        for need in needs {
            match need {
                Need::Key(key) => part.rows.extend(self.rows.get(key).map(|row| (key.clone(), row.clone()))),
                Need::Range(range) if self.ranges.contains(range) => {
                    let rows = self.first_rows(range).into_iter().map(|(key, row)| (key.clone(), row.clone()));
                    part.insert_range(range.clone(), rows);
                }
                Need::Range(_) => {}
            }
        }
        part
    }

    /// The range's first rows among all that are here. Those were read which are its first in the table, and the rows that a
    /// batch adds are here too: so the first of both together are here, whatever other needs have brought.
    fn first_rows(&self, range: &Range) -> Vec<(&Key, &Row)> {
        self.rows
            .range(range.start()..)
            .take_while(|(key, _)| key.table == range.table && key.partition == range.partition)
            .filter(|(key, row)| row.version > 0 && range.covers(key))
            .take(range.limit)
            .collect()
    }
}

impl Default for State {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), ranges: BTreeSet::new(), now: Timestamp::from_millis(0) }
    }
}

impl FromIterator<(Key, Row)> for State {
    fn from_iter<I: IntoIterator<Item = (Key, Row)>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sort: &str) -> Key {
        Key::view("p", sort)
    }

    fn row(version: u64) -> Row {
        Row { version, attributes: Some(Attributes::new()) }
    }

    fn range(after: &str, limit: usize) -> Range {
        Range { table: Table::Views, partition: "p".to_owned(), after: after.to_owned(), limit }
    }

    fn sorts(state: &State, range: &Range) -> Vec<String> {
        state.range(range).unwrap().into_iter().map(|(key, _)| key.sort.clone()).collect()
    }

    #[test]
    fn a_range_holds_its_first_rows_whatever_else_is_known() {
        let first = range("a", 2);
        let mut state: State =
            [(key("e"), row(1)), (key("a"), row(1)), (key("c"), Row::default())].into_iter().collect();
        state.insert(Key::view("q", "b"), row(1));
        state.insert_range(first.clone(), [(key("b"), row(1)), (key("d"), row(1))]);
        assert_eq!(sorts(&state, &first), ["b", "d"]);
        // The batch adds a row between the two, and removes the first.
        state.insert(key("c"), row(1));
        state.insert(key("b"), Row { version: 2, attributes: None });
        assert_eq!(sorts(&state, &first), ["b", "c"]);
    }

    #[test]
    fn a_range_that_was_not_read_is_no_empty_one() {
        let mut state = State::default();
        state.insert_range(range("", 9), []);
        assert_eq!(sorts(&state, &range("", 9)), [""; 0]);
        assert!(matches!(state.range(&range("", 8)), Err(RowError::UndeclaredRange { .. })));
    }

    #[test]
    fn a_decider_sees_what_it_named_and_nothing_else() {
        let mut state: State = [(key("a"), row(1)), (key("z"), row(1))].into_iter().collect();
        state.insert_range(range("a", 9), [(key("b"), row(1))]);
        state.insert_range(range("m", 9), []);
        let now = Timestamp::from_millis(5);
        let part = state.clone().at(now).restricted(&[Need::Key(key("a")), Need::Range(range("a", 9))]);
        assert_eq!(part.now(), now);
        assert_eq!(sorts(&part, &range("a", 9)), ["b", "z"]);
        assert!(part.range(&range("m", 9)).is_err());
        assert!(part.covers(&key("c")) && !part.covers(&Key::view("q", "c")));
    }
}
