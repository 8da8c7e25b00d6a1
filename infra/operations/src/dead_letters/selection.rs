//! Which dead letters are meant.

use std::collections::BTreeSet;

use events::{EventId, Timestamp};

use super::letter::DeadLetter;

/// What a letter has to be like to be meant. Nothing said is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// One of these events.
    pub event_ids: BTreeSet<EventId>,
    /// One of these types, as the message says it: it may be one that this code does not know.
    pub event_types: BTreeSet<String>,
    /// A reason that has this in its text.
    pub reason: Option<String>,
    /// Sent at this moment or later.
    pub since: Option<Timestamp>,
    /// Sent before this moment.
    pub until: Option<Timestamp>,
}

impl Selection {
    /// Returns whether a letter is meant.
    pub fn takes(&self, letter: &DeadLetter) -> bool {
        let has_id = || letter.event_id.is_some_and(|event_id| self.event_ids.contains(&event_id));
        let has_type = || letter.event_type.as_ref().is_some_and(|event_type| self.event_types.contains(event_type));
        (self.event_ids.is_empty() || has_id())
            && (self.event_types.is_empty() || has_type())
            && self.reason.as_ref().is_none_or(|reason| letter.reasons().any(|text| text.contains(reason)))
            && self.since.is_none_or(|since| letter.sent_at >= since)
            && self.until.is_none_or(|until| letter.sent_at < until)
    }
}
