//! One queue of either kind: which messages are waiting, delayed or in flight, and when that changes. It knows nothing of
//! other queues, nor of names and handles: those are `queues`' affair. Which visible message comes next is not decided
//! here, but by `standard` and `fifo`.
//!
//! Every message is in `entries` and `by_sent`, in `hidden` while it is delayed or in flight until a moment, and known to
//! the queue's discipline. `advance` moves what is due, so that every operation takes O(log n) for each message that it
//! touches, however many wait. Only a change of a FIFO queue's delay looks at all that are hidden.

mod entry;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use entry::{Arrival, Key, Standing, Taken, Unchangeable};
pub use entry::{Counts, Totals};

use crate::discipline::{Discipline, Sight};
use crate::fifo::Fifo;
use crate::limits::IN_FLIGHT_TIME_MAX;
use crate::message::{Message, MessageId, ReceiveRequest, SequenceNumber};
use crate::settings::Settings;
use crate::time::Timestamp;
use entry::{Entry, Place};

/// The state of one queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created_at: Timestamp,
    pub(crate) modified_at: Timestamp,
    pub(crate) mark: u64,
    pub(crate) totals: Totals,
    settings: Settings,
    next_key: Key,
    next_receive: u64,
    entries: BTreeMap<Key, Entry>,
    hidden: BTreeSet<(Timestamp, Key)>,
    by_sent: BTreeSet<(Timestamp, Key)>,
    in_flight: usize,
    discipline: Discipline,
}

impl Queue {
    pub(crate) fn new(settings: Settings, mark: u64, now: Timestamp) -> Self {
        let discipline = Discipline::of_kind(settings.kind());
        Self {
            tags: BTreeMap::new(),
            created_at: now,
            modified_at: now,
            mark,
            totals: Totals::default(),
            settings,
            next_key: 0,
            next_receive: 0,
            entries: BTreeMap::new(),
            hidden: BTreeSet::new(),
            by_sent: BTreeSet::new(),
            in_flight: 0,
            discipline,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes new settings. A standard queue's new delay is for new messages, a FIFO queue's for those that still wait, too.
    pub(crate) fn configure(&mut self, settings: Settings, now: Timestamp) {
        let retroactive = settings.fifo.is_some() && settings.delay != self.settings.delay;
        self.settings = settings;
        self.modified_at = now;
        if retroactive {
            let delayed = self.entries.iter().filter(|(_, entry)| entry.place == Place::Delayed);
            let due: Vec<_> = delayed.map(|(key, entry)| (*key, entry.arrived_at.plus(self.settings.delay))).collect();
            for (key, visible_at) in due {
                self.place(key, Place::Delayed, visible_at);
            }
        }
        self.advance(now);
    }

    /// Removes what has expired, makes visible what is due and forgets what need not be remembered. Everything else expects
    /// this to have been called.
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
        if let Some(fifo) = self.fifo_mut() {
            fifo.forget(now);
        }
    }

    pub(crate) fn insert(&mut self, arrival: Arrival, delay: Duration, now: Timestamp) {
        let key = self.next_key;
        self.next_key += 1;
        let place = if delay.is_zero() { Place::Ready } else { Place::Delayed };
        let entry = Entry {
            message: arrival.message,
            arrived_at: now,
            place,
            visible_at: now.plus(delay),
            receive_count: arrival.receive_count,
            received_here: 0,
            first_received_at: arrival.first_received_at,
            last_received_at: now,
            last_receive: None,
            dead_letter_source: arrival.dead_letter_source,
        };
        self.by_sent.insert((entry.message.sent_at, key));
        self.index(key, &entry);
        self.entries.insert(key, entry);
    }

    /// Takes in another queue's dead letter. To a FIFO queue it is a new message with an old id: sent now, numbered anew, and
    /// deduplicated by its id, so that two messages with the same deduplication id both have a place here ("Learn how to
    /// configure a dead-letter queue redrive").
    pub(crate) fn move_in(&mut self, arrival: Arrival, now: Timestamp) {
        let sequence_number = self.next_sequence_number();
        let message = match self.fifo_mut() {
            None => arrival.message,
            Some(fifo) => {
                let message = Message {
                    deduplication_id: Some(arrival.message.id.to_string()),
                    sequence_number,
                    sent_at: now,
                    ..Message::clone(&arrival.message)
                };
                fifo.deduplication.remember(&message, now);
                Arc::new(message)
            }
        };
        self.insert(Arrival { message, ..arrival }, Duration::ZERO, now);
        self.totals.moved_in += 1;
    }

    /// Returns the number that a FIFO queue's next message gets.
    pub(crate) fn next_sequence_number(&self) -> Option<SequenceNumber> {
        self.settings.fifo.map(|_| SequenceNumber::after(self.next_key))
    }

    /// Returns the message that a FIFO queue would deliver in place of this one.
    pub(crate) fn original_of(&self, message: &Message) -> Option<(MessageId, SequenceNumber)> {
        let settings = self.settings.fifo?;
        self.fifo()?.deduplication.original_of(message, settings.deduplication_scope)
    }

    /// Notes a sent message's deduplication id, if the queue is a FIFO queue.
    pub(crate) fn remember_sent(&mut self, message: &Message, now: Timestamp) {
        if let Some(fifo) = self.fifo_mut() {
            fifo.deduplication.remember(message, now);
        }
    }

    /// Takes up to `request.max` messages that can be received, but for those received `max_receive_count` times already,
    /// which leave the queue and are returned apart.
    pub(crate) fn receive(
        &mut self,
        request: ReceiveRequest,
        max_receive_count: Option<u32>,
        now: Timestamp,
    ) -> (Vec<Taken>, Vec<Arrival>) {
        let (mut keys, mut exhausted) = (Vec::new(), Vec::new());
        // The keys are all picked before any is placed: with a timeout of 0 a message is visible again at once.
        for key in self.discipline.receivable() {
            if keys.len() >= request.max {
                break;
            }
            let is_exhausted = |entry: &Entry| max_receive_count.is_some_and(|most| entry.received_here >= most);
            if self.entries.get(&key).is_some_and(is_exhausted) {
                exhausted.push(key);
            } else {
                keys.push(key);
            }
        }
        let dead: Vec<_> = exhausted.into_iter().filter_map(|key| self.remove(key)).map(Entry::into_arrival).collect();
        self.totals.moved_out += dead.len() as u64;
        let timeout = self.timeout(request);
        let taken = keys.into_iter().filter_map(|key| self.take(key, timeout, now)).collect();
        (taken, dead)
    }

    /// Returns what an attempt to receive from a FIFO queue took, with the same receives, and lets its time in flight begin
    /// again. Nothing if there was no such attempt, or one of its messages has changed since.
    pub(crate) fn repeat(&mut self, attempt: &str, request: ReceiveRequest, now: Timestamp) -> Option<Vec<Taken>> {
        let taken = self.fifo()?.attempts.taken(attempt)?;
        let unchanged = |entry: &Entry, receive, until| {
            entry.place == Place::InFlight && entry.last_receive == Some(receive) && entry.visible_at == until
        };
        let again: Option<Vec<_>> = taken
            .iter()
            .map(|&(key, receive, until)| {
                let entry = self.entries.get(&key).filter(|entry| unchanged(entry, receive, until))?;
                Some(entry.taken(key, receive, entry.first_received_at?))
            })
            .collect();
        let again = again?;
        let timeout = self.timeout(request);
        for taken in &again {
            self.hide(taken.key, timeout, now);
        }
        self.note(attempt, again.iter().map(|taken| (taken.key, taken.receive)), now);
        Some(again)
    }

    /// Notes what an attempt to receive took, if the queue is a FIFO queue.
    pub(crate) fn note(&mut self, attempt: &str, taken: impl Iterator<Item = (Key, u64)>, now: Timestamp) {
        let until = |key: Key| self.entries.get(&key).map(|entry| entry.visible_at);
        let taken = taken.filter_map(|(key, receive)| Some((key, receive, until(key)?))).collect();
        if let Some(fifo) = self.fifo_mut() {
            fifo.attempts.note(attempt, taken, now);
        }
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

    /// Removes every message. Deduplication ids stay known.
    pub(crate) fn purge(&mut self) {
        self.totals.purged += self.entries.len() as u64;
        self.entries.clear();
        self.hidden.clear();
        self.by_sent.clear();
        self.in_flight = 0;
        self.discipline.clear();
    }

    pub(crate) fn counts(&self) -> Counts {
        let (hidden, in_flight) = (self.hidden.len(), self.in_flight);
        Counts { visible: self.entries.len() - hidden, in_flight, delayed: hidden - in_flight }
    }

    /// Returns when the message arrived that has been here longest.
    pub(crate) fn oldest_arrival(&self) -> Option<Timestamp> {
        self.entries.first_key_value().map(|(_, entry)| entry.arrived_at)
    }

    /// Tells whether a receive finds a message, messages in flight not counted.
    pub(crate) fn is_receivable(&self) -> bool {
        self.discipline.receivable().next().is_some()
    }

    /// Returns when a receive may find something that none finds now: when the next hidden message becomes visible. In a
    /// FIFO queue what is visible may wait behind what is hidden, and the end of the oldest message's retention can let it
    /// go, too.
    pub(crate) fn next_change(&self) -> Option<Timestamp> {
        let expires_at = |sent_at: Timestamp| sent_at.plus(self.settings.retention);
        match self.discipline {
            Discipline::Standard(_) => {
                let survives = |at: Timestamp, key: Key| {
                    self.entries.get(&key).is_some_and(|entry| expires_at(entry.message.sent_at) > at)
                };
                self.hidden.iter().find(|(at, key)| survives(*at, *key)).map(|(at, _)| *at)
            }
            Discipline::Fifo(_) => {
                let visible = self.hidden.first().map(|(at, _)| *at);
                let expired = self.by_sent.first().map(|(sent_at, _)| expires_at(*sent_at));
                visible.into_iter().chain(expired).min()
            }
        }
    }

    /// Tells whether a key was ever given out.
    pub(crate) fn knows(&self, key: Key) -> bool {
        key < self.next_key
    }

    /// Tells how a receive stands to its message's last one.
    pub(crate) fn standing(&self, key: Key, receive: u64) -> Standing {
        match self.entries.get(&key) {
            None => Standing::Gone,
            Some(entry) if entry.last_receive != Some(receive) => Standing::Overtaken,
            Some(entry) if entry.place == Place::InFlight => Standing::InFlight,
            Some(_) => Standing::Ended,
        }
    }

    fn timeout(&self, request: ReceiveRequest) -> Duration {
        request.visibility_timeout.unwrap_or(self.settings.visibility_timeout)
    }

    fn take(&mut self, key: Key, timeout: Duration, now: Timestamp) -> Option<Taken> {
        let receive = self.next_receive;
        let entry = self.entries.get_mut(&key)?;
        let first_received_at = *entry.first_received_at.get_or_insert(now);
        entry.receive_count += 1;
        entry.received_here += 1;
        entry.last_received_at = now;
        entry.last_receive = Some(receive);
        let taken = entry.taken(key, receive, first_received_at);
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
        let Some(mut entry) = self.entries.remove(&key) else {
            return;
        };
        self.unindex(key, &entry);
        (entry.place, entry.visible_at) = (place, visible_at);
        self.index(key, &entry);
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        self.by_sent.remove(&(entry.message.sent_at, key));
        self.unindex(key, &entry);
        Some(entry)
    }

    fn index(&mut self, key: Key, entry: &Entry) {
        match entry.place {
            Place::Ready => {}
            Place::Delayed | Place::InFlight => {
                self.hidden.insert((entry.visible_at, key));
            }
        }
        self.in_flight += usize::from(entry.place == Place::InFlight);
        self.discipline.enter(key, &entry.message, sight(entry));
    }

    fn unindex(&mut self, key: Key, entry: &Entry) {
        match entry.place {
            Place::Ready => {}
            Place::Delayed | Place::InFlight => {
                self.hidden.remove(&(entry.visible_at, key));
            }
        }
        self.in_flight -= usize::from(entry.place == Place::InFlight);
        self.discipline.leave(key, &entry.message, sight(entry));
    }

    fn fifo(&self) -> Option<&Fifo> {
        match &self.discipline {
            Discipline::Standard(_) => None,
            Discipline::Fifo(fifo) => Some(fifo),
        }
    }

    fn fifo_mut(&mut self) -> Option<&mut Fifo> {
        match &mut self.discipline {
            Discipline::Standard(_) => None,
            Discipline::Fifo(fifo) => Some(fifo),
        }
    }
}

fn sight(entry: &Entry) -> Sight {
    match entry.place {
        Place::Ready => Sight::Visible { since: entry.visible_at },
        Place::Delayed | Place::InFlight => Sight::Hidden,
    }
}
