//! Snapshots: an order at some version, so that nobody has to fold all of its events. They save time and are never the
//! truth: one that cannot be read is as good as none.

use events::OrderId;
use serde::{Deserialize, Serialize};

use super::order::Order;
use super::store::partition;
use crate::decision::attributes;
use crate::{Content, Guard, Key, Row, RowError, Write};

/// How many events a snapshot may be behind, at most, when the consumer is up to date.
pub const SNAPSHOT_EVERY: u64 = 100;
/// The shape of what is kept. Whoever changes what an order is made of, or how it is folded, raises it.
const SCHEMA_VERSION: u32 = 1;

/// An order as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    schema_version: u32,
    order: Order,
}

impl Snapshot {
    /// Returns the key of an order's snapshot.
    pub fn key(order_id: &OrderId) -> Key {
        Key::ledger(format!("SNAPSHOT#{}", partition(order_id)), "SNAPSHOT")
    }

    /// Returns the order that a row keeps; `None` where there is none that this code can read.
    pub fn read(order_id: &OrderId, row: &Row) -> Option<Order> {
        let snapshot = row.decode::<Self>(&Self::key(order_id)).ok().flatten()?;
        let known = snapshot.schema_version == SCHEMA_VERSION && snapshot.order.order_id == *order_id;
        known.then_some(snapshot.order)
    }

    /// Returns the write that keeps an order. Only a higher version is written over a lower one.
    ///
    /// # Errors
    /// The order does not serialise.
    pub fn of(order: &Order) -> Result<Write, RowError> {
        let key = Self::key(&order.order_id);
        let snapshot = Self { schema_version: SCHEMA_VERSION, order: order.clone() };
        let content = Content::Row(attributes(&snapshot, &key)?);
        Ok(Write::Replace { key, content, guard: Guard::Newer(order.version) })
    }

    /// Returns the write that keeps an order, if the snapshot that is there has fallen too far behind.
    ///
    /// # Errors
    /// The order does not serialise.
    pub(super) fn write(order: &Order, kept: Option<&Order>) -> Result<Option<Write>, RowError> {
        let behind = order.version.saturating_sub(kept.map_or(0, |kept| kept.version));
        if behind < SNAPSHOT_EVERY {
            return Ok(None);
        }
        Self::of(order).map(Some)
    }
}
