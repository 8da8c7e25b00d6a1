//! How rows stand in DynamoDB: attribute names, keys and versions, and the conversion both ways. The one place that knows
//! them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{Attributes, Key, Row, Table};
use thiserror::Error;

pub use domain::EVENT;

/// An item as the SDK has it.
pub type Item = HashMap<String, AttributeValue>;

/// Partition key of every table.
pub const PARTITION_KEY: &str = "pk";
/// Sort key of every table.
pub const SORT_KEY: &str = "sk";
/// Version of a source record.
pub const VERSION: &str = "version";
/// Revision of a derived row, or of one of the ledger.
pub const REVISION: &str = "revision";
/// Present on a tombstone.
pub const REMOVED: &str = "removed";
/// Version of the source that a row guarded by `Newer` was last written from.
pub const SOURCE_VERSION: &str = "source_version";
/// When an item of the ledger may be forgotten, in seconds since the epoch.
pub const EXPIRES_AT: &str = "expires_at";

/// The physical names of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    /// The source of truth.
    pub records: String,
    /// Derived rows.
    pub views: String,
    /// What consumers remember of their own work.
    pub ledger: String,
}

impl TableNames {
    /// Returns the physical name of a table.
    pub fn name(&self, table: Table) -> &str {
        match table {
            Table::Records => &self.records,
            Table::Views => &self.views,
            Table::Ledger => &self.ledger,
        }
    }
}

/// A stored item that is not a row.
#[derive(Debug, Error)]
pub enum ItemError {
    /// A key, version or marker is missing or of the wrong type.
    #[error("attribute {attribute} of item {item} is missing or of the wrong type")]
    Attribute {
        /// Which attribute.
        attribute: &'static str,
        /// The item's keys, as far as they are there.
        item: String,
    },
    /// An attribute is of a type that JSON does not have.
    #[error("item {item} does not convert")]
    Conversion {
        /// The item's keys, as far as they are there.
        item: String,
        /// What does not convert.
        #[source]
        source: serde_dynamo::Error,
    },
}

/// Returns the attribute that holds a row's version.
pub fn version_attribute(table: Table) -> &'static str {
    match table {
        Table::Records => VERSION,
        Table::Views | Table::Ledger => REVISION,
    }
}

/// Returns the key attributes of an item.
pub fn key_item(key: &Key) -> Item {
    HashMap::from([
        (PARTITION_KEY.to_owned(), AttributeValue::S(key.partition.clone())),
        (SORT_KEY.to_owned(), AttributeValue::S(key.sort.clone())),
    ])
}

/// Returns a number attribute.
pub fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Makes the item of a row with this version.
///
/// # Errors
/// The attributes do not convert.
pub fn item(key: &Key, version: u64, attributes: Attributes) -> Result<Item, ItemError> {
    let mut item: Item =
        serde_dynamo::to_item(attributes).map_err(|source| ItemError::Conversion { item: key.to_string(), source })?;
    item.extend(key_item(key));
    item.insert(version_attribute(key.table).to_owned(), number(version));
    Ok(item)
}

/// Reads an item as a row.
///
/// # Errors
/// A key or the version is missing, or an attribute does not convert.
pub fn row(table: Table, mut item: Item) -> Result<(Key, Row), ItemError> {
    let name = item_name(&item);
    let missing = |attribute| ItemError::Attribute { attribute, item: name.clone() };
    let partition = take_string(&mut item, PARTITION_KEY).ok_or_else(|| missing(PARTITION_KEY))?;
    let sort = take_string(&mut item, SORT_KEY).ok_or_else(|| missing(SORT_KEY))?;
    let key = Key { table, partition, sort };
    let version_name = version_attribute(table);
    let version = match item.remove(version_name) {
        Some(AttributeValue::N(digits)) => digits.parse().ok(),
        Some(_) | None => None,
    };
    let version = version.ok_or_else(|| missing(version_name))?;
    let removed = item.remove(REMOVED) == Some(AttributeValue::Bool(true));
    item.remove(SOURCE_VERSION);
    if removed {
        return Ok((key, Row { version, attributes: None }));
    }
    let attributes = serde_dynamo::from_item(item).map_err(|source| ItemError::Conversion { item: name, source })?;
    Ok((key, Row { version, attributes: Some(attributes) }))
}

fn take_string(item: &mut Item, name: &str) -> Option<String> {
    match item.remove(name) {
        Some(AttributeValue::S(text)) => Some(text),
        Some(_) | None => None,
    }
}

fn item_name(item: &Item) -> String {
    let part = |name| item.get(name).and_then(|value| value.as_s().ok()).map_or("?", String::as_str);
    format!("{}/{}", part(PARTITION_KEY), part(SORT_KEY))
}
