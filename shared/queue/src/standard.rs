//! The order of a standard queue: whatever is visible can be received, and what became visible first comes first.

use std::collections::BTreeSet;

use crate::discipline::Sight;
use crate::state::Key;
use crate::time::Timestamp;

/// The visible messages of a standard queue.
#[derive(Debug, Default)]
pub(crate) struct Standard {
    ready: BTreeSet<(Timestamp, Key)>,
}

impl Standard {
    pub(crate) fn enter(&mut self, key: Key, sight: Sight) {
        match sight {
            Sight::Visible { since } => {
                self.ready.insert((since, key));
            }
            Sight::Hidden => {}
        }
    }

    pub(crate) fn leave(&mut self, key: Key, sight: Sight) {
        match sight {
            Sight::Visible { since } => {
                self.ready.remove(&(since, key));
            }
            Sight::Hidden => {}
        }
    }

    pub(crate) fn receivable(&self) -> impl Iterator<Item = Key> {
        self.ready.iter().map(|(_, key)| *key)
    }
}
