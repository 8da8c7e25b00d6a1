//! What readers see of orders: a row an order, and a line in the list of the player who placed it.

use events::{Currency, OrderId, PlayerId, Timestamp};
use serde::{Deserialize, Serialize};

use super::lifecycle::OrderStatus;
use super::order::Order;
use super::store::partition;
use crate::decision::attributes;
use crate::{Content, Guard, Key, RowError, Write};

impl Order {
    /// Returns the key of an order's view, which is the order itself.
    pub fn view_key(order_id: &OrderId) -> Key {
        Key::view(partition(order_id), "ORDER")
    }
}

/// A line of a player's list of orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLine {
    /// Which order.
    pub order_id: OrderId,
    /// Where it is in its life.
    pub status: OrderStatus,
    /// Version of the last event that the line knows of.
    pub version: u64,
    /// What it costs, in hundredths of the currency.
    pub total_cents: u64,
    /// What the amount is in.
    pub currency: Currency,
    /// When it was placed. The list is ordered by it.
    pub placed_at: Timestamp,
    /// When its last event occurred.
    pub changed_at: Timestamp,
}

impl OrderLine {
    /// Returns the partition of a player's list.
    pub fn partition(player_id: &PlayerId) -> String {
        format!("ORDERS#{player_id}")
    }

    /// Returns the key of an order's line: player, moment and order never change.
    pub fn key(order: &Order) -> Key {
        Key::view(Self::partition(&order.player_id), format!("{}#{}", order.placed_at, order.order_id))
    }

    /// Makes the line of an order.
    pub fn of(order: &Order) -> Self {
        Self {
            order_id: order.order_id.clone(),
            status: order.status,
            version: order.version,
            total_cents: order.total_cents,
            currency: order.currency,
            placed_at: order.placed_at,
            changed_at: order.changed_at,
        }
    }
}

/// Returns the writes of an order's view over the one with this revision, and of its line.
///
/// # Errors
/// A row does not serialise.
pub fn view_writes(order: &Order, revision: u64) -> Result<[Write; 2], RowError> {
    let key = Order::view_key(&order.order_id);
    let content = Content::Row(attributes(order, &key)?);
    let view = Write::Replace { key, content, guard: Guard::Unchanged(revision) };
    let key = OrderLine::key(order);
    let content = Content::Row(attributes(&OrderLine::of(order), &key)?);
    // The line always goes with the view, whose guard holds for both; read it would cost one more row.
    let line = Write::Replace { key, content, guard: Guard::Newer(order.version) };
    Ok([view, line])
}
