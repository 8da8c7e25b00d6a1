//! Gaps in an order's events: the note of a wait, and the entry in the list of what somebody has to look into.

use events::{EventId, OrderId, Timestamp};
use serde::{Deserialize, Serialize};

use super::store::partition;
use crate::{Key, Versions};

/// Partition of the list of gaps.
pub const GAPS: &str = "GAPS";

/// The note that an order's events are being waited for. It is there only while they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// What is missing and not on the list.
    pub missing: Versions,
    /// Since when.
    pub since: Timestamp,
}

impl Wait {
    /// Returns the key of an order's note.
    pub fn key(order_id: &OrderId) -> Key {
        Key::ledger(format!("WAIT#{}", partition(order_id)), "WAIT")
    }
}

/// An order whose events somebody has to look for. It is there until they have come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Which order.
    pub order_id: OrderId,
    /// Which versions are not in the store, or are there and cannot be read.
    pub missing: Versions,
    /// Those of them that are there and cannot be read.
    pub unreadable: Versions,
    /// Since when they have been missing.
    pub since: Timestamp,
    /// When they were listed.
    pub listed_at: Timestamp,
    /// The event whose wait came to nothing.
    pub listed_by: EventId,
}

impl Gap {
    /// Returns the key of an order's entry.
    pub fn key(order_id: &OrderId) -> Key {
        Key::view(GAPS, partition(order_id))
    }
}
