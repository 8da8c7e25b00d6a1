//! The model: a list of messages, of which everything is computed anew by looking at all of them.

use std::collections::{BTreeMap, BTreeSet};

use queue::{DeduplicationScope, MessageId};

use crate::pair::{IN_FLIGHT_MAX, MAX_RECEIVE_COUNT, Place, RETENTION_SECONDS};

const INTERVAL_SECONDS: u64 = 300;

/// A message in the model; the list has them in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: MessageId,
    pub(crate) group: u8,
    pub(crate) place: Place,
    pub(crate) sent_at: u64,
    pub(crate) visible_at: u64,
    /// The number of the last handle that was given out for it in this place.
    pub(crate) handle: Option<usize>,
    pub(crate) received_here: u32,
}

/// What became of a handle's delete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deleted,
    Gone,
    Expired,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: u64,
    pub(crate) items: Vec<Item>,
    scope: DeduplicationScope,
    sends: Vec<(u64, u8, u8, MessageId)>,
}

impl Item {
    fn in_flight(&self, now: u64) -> bool {
        self.handle.is_some() && self.visible_at > now
    }

    fn expires_at(&self) -> u64 {
        self.sent_at + RETENTION_SECONDS
    }

    fn exhausted(&self) -> bool {
        self.place == Place::Main && self.received_here >= MAX_RECEIVE_COUNT
    }
}

impl Model {
    pub(crate) fn new(scope: DeduplicationScope) -> Self {
        Self { now: 0, items: Vec::new(), scope, sends: Vec::new() }
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        let now = self.now;
        self.items.retain(|item| item.expires_at() > now);
    }

    /// Returns the message that a send must be answered with instead of a new one.
    pub(crate) fn original_of(&self, group: u8, deduplication: u8) -> Option<MessageId> {
        let known = |(at, of, id, _): &&(u64, u8, u8, MessageId)| {
            let in_scope = self.scope == DeduplicationScope::Queue || *of == group;
            in_scope && *id == deduplication && *at + INTERVAL_SECONDS > self.now
        };
        self.sends.iter().find(known).map(|(_, _, _, id)| *id)
    }

    pub(crate) fn send(&mut self, id: MessageId, group: u8, deduplication: u8, delay: u64) {
        self.sends.push((self.now, group, deduplication, id));
        let (sent_at, visible_at) = (self.now, self.now + delay);
        let place = Place::Main;
        self.items.push(Item { id, group, place, sent_at, visible_at, handle: None, received_here: 0 });
    }

    pub(crate) fn in_flight(&self, place: Place) -> usize {
        self.here(place).filter(|item| item.in_flight(self.now)).count()
    }

    pub(crate) fn counts(&self, place: Place) -> (usize, usize, usize) {
        let visible = self.here(place).filter(|item| item.visible_at <= self.now).count();
        let in_flight = self.in_flight(place);
        (visible, in_flight, self.here(place).count() - visible - in_flight)
    }

    /// Checks an answer to a receive, by its messages and those that it moved, and does what it says.
    pub(crate) fn receive(&mut self, from: Place, max: usize, visibility: u64, answer: &Answer) {
        let limit = max.min(IN_FLIGHT_MAX - self.in_flight(from));
        let Answer { taken, moved, first_handle } = answer;
        assert!(taken.len() <= limit, "{} messages were taken, of {limit} at most", taken.len());
        let groups = self.receivable(from);
        let group_of = |id: &MessageId| self.items.iter().find(|item| item.id == *id).map(|item| item.group);
        let blocks: Vec<&[MessageId]> = taken.chunk_by(|one, next| group_of(one) == group_of(next)).collect();
        let mut seen = BTreeSet::new();
        let mut must_move = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            let group = group_of(&block[0]).expect("a message of the queue");
            assert!(seen.insert(group), "group {group} came twice in one answer");
            let (live, dead) = groups.get(&group).expect("a group that can be received");
            assert!(live.starts_with(block), "group {group} has {live:?}, and {block:?} came");
            if number + 1 < blocks.len() {
                assert_eq!(live.len(), block.len(), "group {group} was left for another one");
                must_move.extend(dead);
            }
        }
        if taken.len() < limit {
            assert_eq!(taken.len(), groups.values().map(|(live, _)| live.len()).sum::<usize>());
            must_move = groups.values().flat_map(|(_, dead)| dead).collect();
        }
        assert!(must_move.into_iter().all(|id| moved.contains(id)), "a dead letter was left");
        assert!(moved.iter().all(|id| groups.values().any(|(_, dead)| dead.contains(id))), "not a dead letter");
        self.bury(moved);
        for (number, id) in taken.iter().enumerate() {
            let now = self.now;
            let item = self.items.iter_mut().find(|item| item.id == *id).expect("a message of the queue");
            (item.visible_at, item.handle) = (now + visibility, Some(first_handle + number));
            item.received_here += 1;
        }
    }

    /// Whether a change of visibility through a handle succeeds, and does it.
    pub(crate) fn change_visibility(&mut self, id: MessageId, place: Place, handle: usize, timeout: u64) -> bool {
        let now = self.now;
        let is_it = |item: &&mut Item| {
            item.id == id && item.place == place && item.handle == Some(handle) && item.in_flight(now)
        };
        let Some(item) = self.items.iter_mut().find(is_it) else {
            return false;
        };
        item.visible_at = now + timeout;
        true
    }

    pub(crate) fn delete(&mut self, id: MessageId, place: Place, handle: usize) -> Fate {
        let Some(at) = self.items.iter().position(|item| item.id == id && item.place == place) else {
            return Fate::Gone;
        };
        let item = &self.items[at];
        if item.handle != Some(handle) || !item.in_flight(self.now) {
            return Fate::Expired;
        }
        self.items.remove(at);
        Fate::Deleted
    }

    /// The first moment from now on at which a receive takes or moves something, if nothing else happens.
    pub(crate) fn next_receivable(&self, place: Place) -> Option<u64> {
        let changes = self.here(place).flat_map(|item| [item.visible_at, item.expires_at()]);
        let moments: BTreeSet<u64> = changes.filter(|at| *at > self.now).chain([self.now]).collect();
        moments.into_iter().find(|at| {
            let mut then = Self { items: self.items.clone(), sends: Vec::new(), ..*self };
            then.pass(at - self.now);
            then.in_flight(place) < IN_FLIGHT_MAX && !then.receivable(place).is_empty()
        })
    }

    /// What can be received by group: the messages before its first hidden one, those apart that are received too often.
    fn receivable(&self, place: Place) -> BTreeMap<u8, (Vec<MessageId>, Vec<MessageId>)> {
        let groups: BTreeSet<u8> = self.here(place).map(|item| item.group).collect();
        let prefix = |group: u8| {
            let (mut live, mut dead) = (Vec::new(), Vec::new());
            for item in self.here(place).filter(|item| item.group == group) {
                if item.visible_at > self.now {
                    break;
                }
                if item.exhausted() { dead.push(item.id) } else { live.push(item.id) }
            }
            (live, dead)
        };
        let prefixes = groups.into_iter().map(|group| (group, prefix(group)));
        prefixes.filter(|(_, (live, dead))| !live.is_empty() || !dead.is_empty()).collect()
    }

    fn bury(&mut self, moved: &[MessageId]) {
        for id in moved {
            let at = self.items.iter().position(|item| item.id == *id).expect("a message of the queue");
            let mut item = self.items.remove(at);
            (item.place, item.sent_at, item.visible_at) = (Place::Dead, self.now, self.now);
            (item.handle, item.received_here) = (None, 0);
            self.items.push(item);
        }
    }

    fn here(&self, place: Place) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.place == place)
    }
}

/// An answer to a receive.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) taken: Vec<MessageId>,
    pub(crate) moved: Vec<MessageId>,
    /// The number of the first message's handle.
    pub(crate) first_handle: usize,
}
