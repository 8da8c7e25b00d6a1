//! A plan: operations that are carried out together or not at all, each item once. Plans are made by [`crate::Draft`]
//! alone, so that no ledger ever sees one that is not safe to repeat.

use std::collections::BTreeMap;

use domain::{Attributes, Content, Deltas, Key};
use events::{Consumer, EventId, Timestamp};

/// Items in a transaction, at most
/// ([Service quotas](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html)).
pub const ITEMS_MAX: usize = 100;
/// Bytes in a transaction, at most.
pub const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes in an item, at most.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;

/// A set of operations with the token that makes sending it again safe.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) token: u128,
    pub(crate) claims: BTreeMap<EventId, Claim>,
    pub(crate) operations: BTreeMap<Key, Operation>,
}

/// The marker that one consumer has applied one event. Present means applied, whatever its expiry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose claim.
    pub consumer: Consumer,
    /// On which event.
    pub event_id: EventId,
    /// From when on the ledger may forget it.
    pub expires_at: Timestamp,
}

/// What happens to one item.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// A row is written where there has never been one; its version is 1.
    Create(Attributes),
    /// A row or tombstone is written over what stands there; its version goes up by one.
    Replace {
        /// What stands there afterwards.
        content: Content,
        /// What must hold before.
        conditions: Conditions,
    },
    /// Counters go up or down; the version goes up by one.
    Add(Deltas),
    /// Nothing is written; the version must be this one, 0 for no item.
    Check(u64),
}

/// What must hold of a row that is replaced: one of them at least, both where both are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Its version is this one, 0 for no item.
    pub unchanged: Option<u64>,
    /// Its source version is lower than this one, which it gets.
    pub newer: Option<u64>,
}

impl Plan {
    /// Returns the idempotency token: sent again with the same token, a plan that was carried out is carried out no second
    /// time.
    pub fn token(&self) -> u128 {
        self.token
    }

    /// Returns the claims, ordered by event.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values()
    }

    /// Returns the operations, ordered by key.
    pub fn operations(&self) -> impl Iterator<Item = (&Key, &Operation)> {
        self.operations.iter()
    }

    /// Returns the operation on one item.
    pub fn operation(&self, key: &Key) -> Option<&Operation> {
        self.operations.get(key)
    }

    /// Returns the number of items.
    pub fn items(&self) -> usize {
        self.claims.len() + self.operations.len()
    }

    /// Returns the one guarded write that the plan consists of, if it does: it needs no transaction.
    pub fn lone_write(&self) -> Option<(&Key, &Operation)> {
        match (self.claims.len(), self.operations.first_key_value()) {
            (0, Some((key, operation))) if self.operations.len() == 1 => match operation {
                Operation::Create(_) | Operation::Replace { .. } => Some((key, operation)),
                Operation::Add(_) | Operation::Check(_) => None,
            },
            (_, _) => None,
        }
    }
}
