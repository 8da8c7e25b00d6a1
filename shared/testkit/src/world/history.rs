//! What happened in a world, for the checks: every event, every message with its fate, every plan that took effect.

use std::collections::{BTreeMap, BTreeSet};

use consumer::{Claim, Outcome};
use domain::Key;
use events::{Consumer, Event, EventId, Timestamp};
use queue::MessageId;

use super::deciders::Role;
use super::letters::Letters;

/// Everything that the checks ask for.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Every event that was published, in the order of the writes.
    pub(super) events: Vec<Event>,
    /// Commands that the request path refused; a client of a world has none to refuse.
    pub(super) refused: Vec<String>,
    /// Every message that was sent to a consumer's queue.
    pub(super) messages: BTreeMap<MessageId, Story>,
    /// Wake-ups that were acknowledged although the order had not come to them and nobody was told of what is missing.
    pub(super) skipped: Vec<MessageId>,
    /// Messages that were done although one before them in their group went back.
    pub(super) overtaken: Vec<MessageId>,
    /// Rows that a commit replaced by what they were.
    pub(super) idle: Vec<Key>,
    /// Claims as they were committed, with the number of their commits.
    pub(super) claims: BTreeMap<(Consumer, EventId), (Claim, u32)>,
    /// How often a row was written under a source version.
    pub(super) source_versions: BTreeMap<(Key, u64), u32>,
    /// When a row was first written.
    pub(super) created: BTreeMap<Key, Timestamp>,
    /// Claims that were swept, with the moment.
    pub(super) swept: Vec<(Claim, Timestamp)>,
    /// Letters.
    pub(super) letters: Letters,
    /// Records and ledger calls of every invocation that was reported.
    pub(super) efforts: Vec<(usize, u32)>,
}

/// What a body holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// An event.
    Event(EventId),
    /// What no consumer can read, and why.
    Poison(&'static str),
}

/// Where a message is in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// In its queue.
    Waiting,
    /// Deleted after this outcome; `None` if the driver had not reported any.
    Acknowledged(Option<Outcome>),
    /// In the dead letter queue.
    DeadLettered,
    /// Sent again as another message.
    Redriven,
}

/// What became of a message.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) role: Role,
    pub(super) body: Body,
    /// What the driver made of it, delivery by delivery, with the moment.
    pub(super) outcomes: Vec<(Timestamp, Outcome)>,
    pub(super) receives: u32,
    pub(super) fate: Fate,
}

impl History {
    /// Returns the event with an id.
    pub(super) fn event(&self, event_id: EventId) -> Option<&Event> {
        self.events.iter().find(|event| event.event_id == event_id)
    }

    /// Returns the names by which the trace knows an event.
    pub(super) fn names(&self, event_id: EventId) -> Vec<String> {
        self.event(event_id).map(|event| event.aggregate_id.clone()).into_iter().collect()
    }

    /// Returns the names by which the trace knows an item, and those of the events that say something of one of the players,
    /// posts, boards or days that the item's name holds.
    pub(super) fn concerning(&self, item: &str) -> Vec<String> {
        let is_id = |part: &&str| part.chars().any(|character| character.is_ascii_lowercase() || character == '-');
        let ids: Vec<&str> = item.split(['#', '/']).filter(is_id).collect();
        let concerned = |event: &&Event| {
            let text = event.encode();
            ids.iter().any(|id| text.contains(id))
        };
        let events = self.events.iter().filter(concerned).map(|event| event.aggregate_id.clone());
        events.chain([item.to_owned()]).collect()
    }

    /// Whether some delivery of an event has told that its aggregate's gap stays unresolved.
    pub(super) fn told_of(&self, event_id: EventId) -> bool {
        let stories = self.messages.values().filter(|story| story.body == Body::Event(event_id));
        let mut outcomes = stories.flat_map(|story| &story.outcomes);
        outcomes.any(|(_, outcome)| matches!(outcome, Outcome::Unresolved(_)))
    }

    /// Returns the events that a role refused as too old and never applied.
    pub(super) fn too_old(&self, role: Role) -> BTreeSet<EventId> {
        let stories = self.messages.values().filter(|story| story.role == role);
        stories
            .filter(|story| story.outcomes.iter().any(|(_, outcome)| is_too_old(outcome)))
            .filter_map(|story| match &story.body {
                Body::Event(event_id) => Some(*event_id),
                Body::Poison(_) => None,
            })
            .filter(|event_id| !self.claims.contains_key(&(role.consumer(), *event_id)))
            .collect()
    }
}

/// Returns whether an outcome says that an event was too old for a claim.
pub(super) fn is_too_old(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected(reason) if reason.starts_with("too old for a claim"))
}
