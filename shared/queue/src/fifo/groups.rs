//! The order of a FIFO queue: messages come in the order of arrival within their group, and groups in turns.
//!
//! What can be received of a group is what is visible in front of its first hidden message. So a group whose first message is
//! in flight (or delayed) is locked, whatever stands behind it; and one whose first message is visible again gives that out,
//! even while messages behind it are still in flight. SQS does the same: it returns the messages "up to the one that is still
//! invisible". A group gets its turn at the end of the line when it becomes receivable, and again when its first message
//! leaves, so that no group keeps others waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::discipline::Sight;
use crate::message::Message;
use crate::state::Key;

/// The groups of a FIFO queue that hold messages.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_id: BTreeMap<Arc<str>, Group>,
    /// The groups that a receive can take from, by their turns.
    line: BTreeMap<u64, Arc<str>>,
    next_turn: u64,
}

/// A group of messages, none of them in two sets.
#[derive(Debug)]
struct Group {
    id: Arc<str>,
    visible: BTreeSet<Key>,
    hidden: BTreeSet<Key>,
    turn: Option<u64>,
}

impl Groups {
    pub(crate) fn enter(&mut self, key: Key, message: &Message, sight: Sight) {
        let id = group_id(message);
        let group = match self.by_id.get_mut(id) {
            Some(group) => group,
            None => {
                let id = Arc::<str>::from(id);
                self.by_id.entry(Arc::clone(&id)).or_insert_with(|| Group::new(id))
            }
        };
        match sight {
            Sight::Visible { since: _ } => group.visible.insert(key),
            Sight::Hidden => group.hidden.insert(key),
        };
        self.line_up(id);
    }

    pub(crate) fn leave(&mut self, key: Key, message: &Message) {
        let id = group_id(message);
        let Some(group) = self.by_id.get_mut(id) else {
            return;
        };
        let was_first = group.first() == Some(key);
        group.visible.remove(&key);
        group.hidden.remove(&key);
        let is_empty = group.first().is_none();
        if was_first && let Some(turn) = group.turn.take() {
            self.line.remove(&turn);
        }
        if is_empty {
            self.by_id.remove(id);
        } else {
            self.line_up(id);
        }
    }

    /// Returns what a receive can take now: group by group, each in its order, so that as many messages as possible are of
    /// the same group.
    pub(crate) fn receivable(&self) -> impl Iterator<Item = Key> {
        self.line.values().filter_map(|id| self.by_id.get(id)).flat_map(Group::receivable)
    }

    /// Gives a group a turn if it has come to need one, or takes its turn away.
    fn line_up(&mut self, id: &str) {
        let Some(group) = self.by_id.get_mut(id) else {
            return;
        };
        let is_receivable = group.receivable().next().is_some();
        match group.turn {
            None if is_receivable => {
                group.turn = Some(self.next_turn);
                self.line.insert(self.next_turn, Arc::clone(&group.id));
                self.next_turn += 1;
            }
            Some(turn) if !is_receivable => {
                group.turn = None;
                self.line.remove(&turn);
            }
            None | Some(_) => {}
        }
    }
}

impl Group {
    fn new(id: Arc<str>) -> Self {
        Self { id, visible: BTreeSet::new(), hidden: BTreeSet::new(), turn: None }
    }

    fn first(&self) -> Option<Key> {
        self.visible.first().into_iter().chain(self.hidden.first()).min().copied()
    }

    fn receivable(&self) -> impl Iterator<Item = Key> {
        let end = self.hidden.first().copied().unwrap_or(Key::MAX);
        self.visible.range(..end).copied()
    }
}

/// Returns the group of a message; every message of a FIFO queue has one.
fn group_id(message: &Message) -> &str {
    message.group_id.as_deref().unwrap_or_default()
}
