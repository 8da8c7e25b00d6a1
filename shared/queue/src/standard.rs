//! One standard queue: which messages are waiting, delayed or in flight, and when that changes. It knows nothing of
//! other queues, nor of names and handles: those are `queues`' affair.
//!
//! Every message is in `entries` and `by_sent`, and in exactly one of `ready` (visible now) and `hidden` (delayed or in
//! flight until a moment). `advance` moves what is due, so that every operation takes O(log n) for each message that it
//! touches, however many wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::limits::IN_FLIGHT_TIME_MAX;
use crate::message::{Message, ReceiveRequest};
use crate::name::QueueName;
use crate::settings::Settings;
use crate::time::Timestamp;

/// A message's place in its queue, in the order of arrival.
pub(crate) type Key = u64;

/// How many messages a queue holds, by what they are waiting for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that a receive can take.
    pub visible: usize,
    /// Messages that were received, and neither deleted nor visible again.
    pub in_flight: usize,
    /// Messages whose delay has not passed.
    pub delayed: usize,
}

impl Counts {
    /// Returns how many messages the queue holds in all.
    pub const fn total(&self) -> usize {
        self.visible + self.in_flight + self.delayed
    }
}

/// What happened in a queue since it was created. What went in (`sent`, `moved_in`) is always what went out (`deleted`,
/// `expired`, `purged`, `moved_out`) and what is still there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages sent to it.
    pub sent: u64,
    /// Messages that arrived as another queue's dead letters.
    pub moved_in: u64,
    /// Receives, of the same message again included.
    pub received: u64,
    /// Messages deleted with a receipt handle.
    pub deleted: u64,
    /// Messages whose retention had passed.
    pub expired: u64,
    /// Messages removed by a purge.
    pub purged: u64,
    /// Messages moved to the dead letter queue.
    pub moved_out: u64,
}

/// A message on its way into a queue.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) message: Arc<Message>,
    pub(crate) receive_count: u32,
    pub(crate) first_received_at: Option<Timestamp>,
    pub(crate) dead_letter_source: Option<QueueName>,
}

/// A message that a receive took.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) key: Key,
    pub(crate) receive: u64,
    pub(crate) message: Arc<Message>,
    pub(crate) receive_count: u32,
    pub(crate) first_received_at: Timestamp,
    pub(crate) dead_letter_source: Option<QueueName>,
}

/// Why a visibility cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unchangeable {
    Missing,
    NotInFlight,
    BeyondLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Delayed,
    InFlight,
}

#[derive(Debug)]
struct Entry {
    message: Arc<Message>,
    arrived_at: Timestamp,
    place: Place,
    visible_at: Timestamp,
    /// Receives from every queue that the message was in.
    receive_count: u32,
    /// Receives from this queue: what its redrive policy counts.
    received_here: u32,
    first_received_at: Option<Timestamp>,
    last_received_at: Timestamp,
    last_receive: Option<u64>,
    dead_letter_source: Option<QueueName>,
}

/// The state of one standard queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) settings: Settings,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created_at: Timestamp,
    pub(crate) modified_at: Timestamp,
    pub(crate) mark: u64,
    pub(crate) totals: Totals,
    next_key: Key,
    next_receive: u64,
    entries: BTreeMap<Key, Entry>,
    ready: BTreeSet<(Timestamp, Key)>,
    hidden: BTreeSet<(Timestamp, Key)>,
    by_sent: BTreeSet<(Timestamp, Key)>,
    in_flight: usize,
}

impl Queue {
    pub(crate) fn new(settings: Settings, mark: u64, now: Timestamp) -> Self {
        Self {
            settings,
            tags: BTreeMap::new(),
            created_at: now,
            modified_at: now,
            mark,
            totals: Totals::default(),
            next_key: 0,
            next_receive: 0,
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            hidden: BTreeSet::new(),
            by_sent: BTreeSet::new(),
            in_flight: 0,
        }
    }

    /// Removes what has expired and makes visible what is due. Everything else expects this to have been called.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some(&(sent_at, key)) = self.by_sent.first()
            && sent_at.plus(self.settings.retention) <= now
        {
            self.remove(key);
            self.totals.expired += 1;
        }
        while let Some(&(visible_at, key)) = self.hidden.first()
            && visible_at <= now
        {
            self.place(key, Place::Ready, visible_at);
        }
    }

    pub(crate) fn insert(&mut self, arrival: Arrival, delay: Duration, now: Timestamp) {
        let key = self.next_key;
        self.next_key += 1;
        let place = if delay.is_zero() { Place::Ready } else { Place::Delayed };
        let visible_at = now.plus(delay);
        self.by_sent.insert((arrival.message.sent_at, key));
        self.index(key, place, visible_at);
        let entry = Entry {
            message: arrival.message,
            arrived_at: now,
            place,
            visible_at,
            receive_count: arrival.receive_count,
            received_here: 0,
            first_received_at: arrival.first_received_at,
            last_received_at: now,
            last_receive: None,
            dead_letter_source: arrival.dead_letter_source,
        };
        self.entries.insert(key, entry);
    }

    /// Takes up to `request.max` visible messages, but for those received `max_receive_count` times already, which leave
    /// the queue and are returned apart.
    pub(crate) fn receive(
        &mut self,
        request: ReceiveRequest,
        max_receive_count: Option<u32>,
        now: Timestamp,
    ) -> (Vec<Taken>, Vec<Arrival>) {
        let (mut keys, mut dead) = (Vec::new(), Vec::new());
        // The keys are all picked before any is placed: with a timeout of 0 a message is visible again at once.
        while keys.len() < request.max
            && let Some((_, key)) = self.ready.pop_first()
        {
            let exhausted = |entry: &Entry| max_receive_count.is_some_and(|most| entry.received_here >= most);
            if self.entries.get(&key).is_some_and(exhausted) {
                dead.extend(self.remove(key).map(Entry::into_arrival));
            } else {
                keys.push(key);
            }
        }
        self.totals.moved_out += dead.len() as u64;
        let timeout = request.visibility_timeout.unwrap_or(self.settings.visibility_timeout);
        let taken = keys.into_iter().filter_map(|key| self.take(key, timeout, now)).collect();
        (taken, dead)
    }

    /// Removes a message, in whatever state it is, and tells whether it was there.
    pub(crate) fn delete(&mut self, key: Key) -> bool {
        let deleted = self.remove(key).is_some();
        self.totals.deleted += u64::from(deleted);
        deleted
    }

    pub(crate) fn change_visibility(
        &mut self,
        key: Key,
        timeout: Duration,
        now: Timestamp,
    ) -> Result<(), Unchangeable> {
        let entry = self.entries.get(&key).ok_or(Unchangeable::Missing)?;
        if entry.place != Place::InFlight {
            return Err(Unchangeable::NotInFlight);
        }
        if now.since(entry.last_received_at).saturating_add(timeout) > IN_FLIGHT_TIME_MAX {
            return Err(Unchangeable::BeyondLimit);
        }
        self.hide(key, timeout, now);
        Ok(())
    }

    /// Removes every message.
    pub(crate) fn purge(&mut self) {
        self.totals.purged += self.entries.len() as u64;
        self.entries.clear();
        self.ready.clear();
        self.hidden.clear();
        self.by_sent.clear();
        self.in_flight = 0;
    }

    pub(crate) fn counts(&self) -> Counts {
        let delayed = self.hidden.len() - self.in_flight;
        Counts { visible: self.ready.len(), in_flight: self.in_flight, delayed }
    }

    /// Returns when the message arrived that has been here longest.
    pub(crate) fn oldest_arrival(&self) -> Option<Timestamp> {
        self.entries.first_key_value().map(|(_, entry)| entry.arrived_at)
    }

    /// Returns when the next hidden message becomes visible, those left out that expire before.
    pub(crate) fn next_visible(&self) -> Option<Timestamp> {
        let survives = |at: Timestamp, key: Key| {
            self.entries.get(&key).is_some_and(|entry| entry.message.sent_at.plus(self.settings.retention) > at)
        };
        self.hidden.iter().find(|(at, key)| survives(*at, *key)).map(|(at, _)| *at)
    }

    /// Tells whether a key was ever given out.
    pub(crate) fn knows(&self, key: Key) -> bool {
        key < self.next_key
    }

    /// Returns which receive of the queue was the message's last, if it is still here.
    pub(crate) fn last_receive(&self, key: Key) -> Option<u64> {
        self.entries.get(&key).and_then(|entry| entry.last_receive)
    }

    fn take(&mut self, key: Key, timeout: Duration, now: Timestamp) -> Option<Taken> {
        let entry = self.entries.get_mut(&key)?;
        let receive = self.next_receive;
        let first_received_at = *entry.first_received_at.get_or_insert(now);
        entry.receive_count += 1;
        entry.received_here += 1;
        entry.last_received_at = now;
        entry.last_receive = Some(receive);
        let taken = Taken {
            key,
            receive,
            message: Arc::clone(&entry.message),
            receive_count: entry.receive_count,
            first_received_at,
            dead_letter_source: entry.dead_letter_source.clone(),
        };
        self.next_receive += 1;
        self.totals.received += 1;
        self.hide(key, timeout, now);
        Some(taken)
    }

    fn hide(&mut self, key: Key, timeout: Duration, now: Timestamp) {
        let place = if timeout.is_zero() { Place::Ready } else { Place::InFlight };
        self.place(key, place, now.plus(timeout));
    }

    fn place(&mut self, key: Key, place: Place, visible_at: Timestamp) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        let before = (std::mem::replace(&mut entry.place, place), std::mem::replace(&mut entry.visible_at, visible_at));
        self.unindex(key, before.0, before.1);
        self.index(key, place, visible_at);
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        self.by_sent.remove(&(entry.message.sent_at, key));
        self.unindex(key, entry.place, entry.visible_at);
        Some(entry)
    }

    fn index(&mut self, key: Key, place: Place, visible_at: Timestamp) {
        match place {
            Place::Ready => self.ready.insert((visible_at, key)),
            Place::Delayed | Place::InFlight => self.hidden.insert((visible_at, key)),
        };
        self.in_flight += usize::from(place == Place::InFlight);
    }

    fn unindex(&mut self, key: Key, place: Place, visible_at: Timestamp) {
        match place {
            Place::Ready => self.ready.remove(&(visible_at, key)),
            Place::Delayed | Place::InFlight => self.hidden.remove(&(visible_at, key)),
        };
        self.in_flight -= usize::from(place == Place::InFlight);
    }
}

impl Entry {
    fn into_arrival(self) -> Arrival {
        Arrival {
            message: self.message,
            receive_count: self.receive_count,
            first_received_at: self.first_received_at,
            dead_letter_source: self.dead_letter_source,
        }
    }
}
