//! Where a rebuild has come to: a row of the ledger, so that another machine can take it up.

use domain::{Attributes, Content, Guard, Key, Row, RowError, Write};
use serde::{Deserialize, Serialize};

use crate::rebuild::Report;

/// A place in a scan, and what has been done before it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Keys of the last record that was looked at.
    pub(crate) after: Option<(String, String)>,
    /// Records that were looked at.
    pub(crate) records: u64,
    /// What came of them.
    pub(crate) report: Report,
}

impl Checkpoint {
    /// Returns the key of a rebuild's checkpoint.
    pub(crate) fn key(what: &str) -> Key {
        Key::ledger(format!("CHECKPOINT#rebuild-{what}"), "CHECKPOINT")
    }

    /// Reads where an interrupted run ended; the beginning if there was none, or none that this code can read.
    pub(crate) fn read(key: &Key, row: &Row) -> Self {
        row.decode(key).ok().flatten().unwrap_or_default()
    }

    /// Returns the write that keeps the place, over the row of this revision.
    pub(crate) fn write(&self, key: &Key, revision: u64) -> Result<Write, RowError> {
        let row = serde_json::to_value(self).and_then(serde_json::from_value::<Attributes>);
        let row = row.map_err(|source| RowError::Undecodable { key: key.clone(), source })?;
        Ok(Write::Replace { key: key.clone(), content: Content::Row(row), guard: Guard::Unchanged(revision) })
    }

    /// Returns the write that forgets the place once everything is done.
    pub(crate) fn forget(key: &Key, revision: u64) -> Write {
        Write::Replace { key: key.clone(), content: Content::Tombstone, guard: Guard::Unchanged(revision) }
    }
}
