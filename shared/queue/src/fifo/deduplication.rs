//! What a FIFO queue remembers of the messages that were sent to it: their deduplication ids, for 5 minutes from when each was
//! first sent, whether or not the message is still there.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::DEDUPLICATION_INTERVAL;
use crate::message::{Message, MessageId, SequenceNumber};
use crate::settings::DeduplicationScope;
use crate::time::Timestamp;

/// Deduplication ids that are not forgotten yet.
#[derive(Debug, Default)]
pub(crate) struct Deduplication {
    /// The first messages by deduplication id and group, so that the scope can be changed at any time.
    first: BTreeMap<String, BTreeMap<String, First>>,
    by_time: VecDeque<(Timestamp, String, String)>,
}

#[derive(Debug, Clone, Copy)]
struct First {
    id: MessageId,
    sequence_number: SequenceNumber,
}

impl Deduplication {
    /// Returns the message that was sent first with this one's deduplication id.
    pub(crate) fn original_of(
        &self,
        message: &Message,
        scope: DeduplicationScope,
    ) -> Option<(MessageId, SequenceNumber)> {
        let groups = self.first.get(message.deduplication_id.as_deref()?)?;
        let first = match scope {
            DeduplicationScope::Queue => groups.values().next(),
            DeduplicationScope::MessageGroup => groups.get(message.group_id.as_deref()?),
        };
        first.map(|first| (first.id, first.sequence_number))
    }

    /// Notes a message that was sent now, if it has what is to be noted.
    pub(crate) fn remember(&mut self, message: &Message, now: Timestamp) {
        let (Some(deduplication_id), Some(group_id), Some(sequence_number)) =
            (&message.deduplication_id, &message.group_id, message.sequence_number)
        else {
            return;
        };
        let groups = self.first.entry(deduplication_id.clone()).or_default();
        if !groups.contains_key(group_id) {
            groups.insert(group_id.clone(), First { id: message.id, sequence_number });
            self.by_time.push_back((now, deduplication_id.clone(), group_id.clone()));
        }
    }

    /// Forgets what was sent 5 minutes ago.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        while let Some((_, deduplication_id, group_id)) =
            self.by_time.pop_front_if(|(sent_at, _, _)| sent_at.plus(DEDUPLICATION_INTERVAL) <= now)
        {
            if let Some(groups) = self.first.get_mut(&deduplication_id) {
                groups.remove(&group_id);
                if groups.is_empty() {
                    self.first.remove(&deduplication_id);
                }
            }
        }
    }
}
