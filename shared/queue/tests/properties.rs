//! What holds after any sequence of calls: the state machine against a model that keeps a plain list and looks at every
//! message every time, and invariants of its own.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use queue::{
    Configuration, Delivery, MessageId, QueueName, Queues, ReceiptHandle, ReceiveRequest, SendRequest, Timestamp,
    Totals,
};

const VISIBILITY_SECONDS: u64 = 20;
const RETENTION_SECONDS: u64 = 90;
const MAX_RECEIVE_COUNT: u32 = 3;
const IN_FLIGHT_MAX: usize = 6;

/// One step of a test; times are in seconds, `which` picks among the handles given out so far.
#[derive(Debug, Clone)]
enum Step {
    Send { delay: u64 },
    Receive { from: Place, max: usize, visibility: Option<u64> },
    Delete { which: usize },
    ChangeVisibility { which: usize, timeout: u64 },
    Pass { seconds: u64 },
    Purge { from: Place },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Main,
    Dead,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || prop_oneof![4 => Just(Place::Main), 1 => Just(Place::Dead)];
    let step = prop_oneof![
        6 => prop_oneof![3 => Just(0_u64), 1 => 1..30_u64].prop_map(|delay| Step::Send { delay }),
        6 => (place(), 0..5_usize, prop::option::weighted(0.3, 0..40_u64))
            .prop_map(|(from, max, visibility)| Step::Receive { from, max, visibility }),
        3 => any::<prop::sample::Index>().prop_map(|which| Step::Delete { which: which.index(usize::MAX) }),
        3 => (any::<prop::sample::Index>(), 0..40_u64)
            .prop_map(|(which, timeout)| Step::ChangeVisibility { which: which.index(usize::MAX), timeout }),
        4 => (0..25_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => prop_oneof![9 => Just(Step::Pass { seconds: 0 }), 1 => place().prop_map(|from| Step::Purge { from })],
    ];
    prop::collection::vec(step, 1..120)
}

/// A message in the model.
#[derive(Debug, Clone)]
struct Item {
    id: MessageId,
    place: Place,
    sent_at: u64,
    visible_at: u64,
    /// The order of arrival in its place, which decides between equal moments.
    arrival: u64,
    /// In flight or was, until `visible_at`; a message that is only delayed was not received.
    received: bool,
    last_received_at: u64,
    received_here: u32,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    arrivals: u64,
    items: Vec<Item>,
}

impl Model {
    fn expire(&mut self) {
        let now = self.now;
        self.items.retain(|item| item.sent_at + RETENTION_SECONDS > now);
    }

    fn in_flight(&self, place: Place) -> usize {
        self.items.iter().filter(|item| item.place == place && item.received && item.visible_at > self.now).count()
    }

    fn counts(&self, place: Place) -> (usize, usize, usize) {
        let here = || self.items.iter().filter(|item| item.place == place);
        let visible = here().filter(|item| item.visible_at <= self.now).count();
        (visible, self.in_flight(place), here().count() - visible - self.in_flight(place))
    }

    fn send(&mut self, id: MessageId, delay: u64) {
        let (now, arrival) = (self.now, self.next_arrival());
        self.items.push(Item {
            id,
            place: Place::Main,
            sent_at: now,
            visible_at: now + delay,
            arrival,
            received: false,
            last_received_at: 0,
            received_here: 0,
        });
    }

    fn receive(&mut self, place: Place, max: usize, visibility: u64) -> Option<Vec<MessageId>> {
        let room = IN_FLIGHT_MAX - self.in_flight(place);
        if room == 0 {
            return None;
        }
        let mut visible: Vec<usize> = (0..self.items.len())
            .filter(|index| self.items[*index].place == place && self.items[*index].visible_at <= self.now)
            .collect();
        visible.sort_by_key(|index| (self.items[*index].visible_at, self.items[*index].arrival));
        let mut taken = Vec::new();
        for index in visible {
            if taken.len() == max.min(room) {
                break;
            }
            if place == Place::Main && self.items[index].received_here >= MAX_RECEIVE_COUNT {
                let (now, arrival) = (self.now, self.next_arrival());
                let item = &mut self.items[index];
                (item.place, item.visible_at, item.arrival) = (Place::Dead, now, arrival);
                (item.received, item.received_here) = (false, 0);
                continue;
            }
            let now = self.now;
            let item = &mut self.items[index];
            (item.visible_at, item.received, item.last_received_at) = (now + visibility, true, now);
            item.received_here += 1;
            taken.push(item.id);
        }
        Some(taken)
    }

    /// Whether a change of visibility through a handle from `place` succeeds, and does it.
    fn change_visibility(&mut self, id: MessageId, place: Place, timeout: u64) -> bool {
        let now = self.now;
        let in_flight =
            |item: &&mut Item| item.id == id && item.place == place && item.received && item.visible_at > now;
        let Some(item) = self.items.iter_mut().find(in_flight) else {
            return false;
        };
        item.visible_at = now + timeout;
        true
    }

    fn delete(&mut self, id: MessageId, place: Place) {
        self.items.retain(|item| item.id != id || item.place != place);
    }

    fn next_wake(&self, place: Place) -> Option<u64> {
        let here = || self.items.iter().filter(|item| item.place == place);
        let survives = |item: &&Item| item.visible_at < item.sent_at + RETENTION_SECONDS;
        if self.in_flight(place) < IN_FLIGHT_MAX && here().any(|item| item.visible_at <= self.now) {
            return Some(self.now);
        }
        here().filter(survives).map(|item| item.visible_at).filter(|at| *at > self.now).min()
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}

/// The state machine with its model beside it.
struct Pair {
    queues: Queues,
    names: BTreeMap<Place, QueueName>,
    model: Model,
    handles: Vec<(Place, MessageId, ReceiptHandle)>,
    sent: BTreeSet<MessageId>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let configuration = Configuration { seed, in_flight_max: IN_FLIGHT_MAX, ..Configuration::default() };
        let mut queues = Queues::new(configuration);
        let names = BTreeMap::from([
            (Place::Main, QueueName::parse("main").unwrap()),
            (Place::Dead, QueueName::parse("dead").unwrap()),
        ]);
        let arn = queues.arn(&names[&Place::Dead]);
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVE_COUNT}}}"#);
        let own = |pairs: &[(&str, String)]| {
            let mut attributes: BTreeMap<String, String> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            attributes.insert("VisibilityTimeout".into(), VISIBILITY_SECONDS.to_string());
            attributes.insert("MessageRetentionPeriod".into(), RETENTION_SECONDS.to_string());
            attributes
        };
        queues.create(&names[&Place::Dead], &own(&[]), Timestamp::from_millis(0)).unwrap();
        queues.create(&names[&Place::Main], &own(&[("RedrivePolicy", policy)]), Timestamp::from_millis(0)).unwrap();
        Self { queues, names, model: Model::default(), handles: Vec::new(), sent: BTreeSet::new() }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.model.now * 1000)
    }

    /// Takes one step in both; `answer` is what the state machine said, in a form that two runs can be compared by.
    fn step(&mut self, step: &Step) -> String {
        let (now, seconds) = (self.now(), Duration::from_secs);
        match step {
            Step::Send { delay } => {
                let request = SendRequest { delay: Some(seconds(*delay)), ..SendRequest::from_body("x") };
                let message = self.queues.send(&self.names[&Place::Main], request, now).unwrap();
                self.model.send(message.id, *delay);
                self.sent.insert(message.id);
                format!("{message:?}")
            }
            Step::Receive { from, max, visibility } => self.receive(*from, *max, *visibility),
            Step::Delete { which } => self.with_handle(*which, |pair, place, id, receipt| {
                let deleted = pair.queues.delete_message(&pair.names[&place], receipt, now);
                pair.model.delete(id, place);
                format!("{deleted:?}")
            }),
            Step::ChangeVisibility { which, timeout } => self.with_handle(*which, |pair, place, id, receipt| {
                let changed = pair.queues.change_visibility(&pair.names[&place], receipt, seconds(*timeout), now);
                assert_eq!(changed.is_ok(), pair.model.change_visibility(id, place, *timeout), "{changed:?}");
                format!("{changed:?}")
            }),
            Step::Pass { seconds } => {
                self.model.now += seconds;
                self.model.expire();
                String::new()
            }
            Step::Purge { from } => {
                self.queues.purge(&self.names[from], now).unwrap();
                self.model.items.retain(|item| item.place != *from);
                String::new()
            }
        }
    }

    fn receive(&mut self, from: Place, max: usize, visibility: Option<u64>) -> String {
        let request = ReceiveRequest { max, visibility_timeout: visibility.map(Duration::from_secs) };
        let received = self.queues.receive(&self.names[&from], request, self.now());
        let expected = self.model.receive(from, max, visibility.unwrap_or(VISIBILITY_SECONDS));
        let ids = |deliveries: &[Delivery]| deliveries.iter().map(|delivery| delivery.message.id).collect();
        assert_eq!(received.as_ref().ok().map(|received| ids(&received.deliveries)), expected);
        for delivery in received.iter().flat_map(|received| &received.deliveries) {
            self.handles.push((from, delivery.message.id, delivery.receipt.clone()));
        }
        format!("{received:?}")
    }

    fn with_handle(
        &mut self,
        which: usize,
        act: impl FnOnce(&mut Self, Place, MessageId, &ReceiptHandle) -> String,
    ) -> String {
        if self.handles.is_empty() {
            return String::new();
        }
        let (place, id, receipt) = self.handles[which % self.handles.len()].clone();
        act(self, place, id, &receipt)
    }

    /// Compares everything that can be read, and checks that what went in is what went out and what is there.
    fn check(&mut self) {
        let now = self.now();
        let mut there = 0;
        for (place, name) in self.names.clone() {
            let counts = self.queues.counts(&name, now).unwrap();
            assert_eq!((counts.visible, counts.in_flight, counts.delayed), self.model.counts(place), "{place:?}");
            let wake = self.queues.next_wake(&name, now).unwrap();
            assert_eq!(wake.map(|at| at.as_millis() / 1000), self.model.next_wake(place), "{place:?}");
            let totals = self.queues.totals(&name, now).unwrap();
            let Totals { sent, deduplicated: _, moved_in, received: _, deleted, expired, purged, moved_out } = totals;
            let total = counts.total() as u64;
            assert_eq!(sent + moved_in, deleted + expired + purged + moved_out + total, "{place:?} {totals:?}");
            there += counts.total();
        }
        assert_eq!(there, self.model.items.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_calls_does_what_the_model_does(steps in steps()) {
        let mut pair = Pair::new(7);
        for step in &steps {
            pair.step(step);
            pair.check();
        }
    }

    #[test]
    fn the_same_calls_with_the_same_seed_give_the_same_answers(steps in steps(), seed in any::<u64>()) {
        let answers = |seed| {
            let mut pair = Pair::new(seed);
            steps.iter().map(|step| pair.step(step)).collect::<Vec<_>>()
        };
        prop_assert_eq!(answers(seed), answers(seed));
    }

    #[test]
    fn a_message_is_never_received_again_while_it_is_in_flight(steps in steps()) {
        let mut pair = Pair::new(3);
        let mut invisible_until: BTreeMap<MessageId, u64> = BTreeMap::new();
        for step in &steps {
            let known = pair.handles.len();
            let target = |which: usize, pair: &Pair| (!pair.handles.is_empty()).then(|| pair.handles[which % pair.handles.len()].1);
            if let Step::ChangeVisibility { which, .. } = step && let Some(id) = target(*which, &pair) {
                // The handle's owner gave the promise up.
                invisible_until.remove(&id);
            }
            pair.step(step);
            let Step::Receive { visibility, .. } = step else { continue };
            for (_, id, _) in &pair.handles[known..] {
                let until = invisible_until.insert(*id, pair.model.now + visibility.unwrap_or(VISIBILITY_SECONDS));
                prop_assert!(until.is_none_or(|until| until <= pair.model.now), "{id} came again before {until:?}");
            }
        }
    }

    #[test]
    fn whoever_sleeps_until_the_next_wake_up_drains_a_queue_and_misses_nothing(
        delays in prop::collection::vec(0..60_u64, 1..40),
    ) {
        let mut queues = Queues::new(Configuration::default());
        let name = QueueName::parse("main").unwrap();
        let attributes = BTreeMap::from([
            ("VisibilityTimeout".to_owned(), "5".to_owned())]);
        let start = Timestamp::from_millis(1);
        queues.create(&name, &attributes, start).unwrap();
        for delay in &delays {
            let request = SendRequest { delay: Some(Duration::from_secs(*delay)), ..SendRequest::from_body("x") };
            queues.send(&name, request, start).unwrap();
        }
        let one = ReceiveRequest { max: 1, visibility_timeout: None };
        let mut now = start;
        while let Some(at) = queues.next_wake(&name, now).unwrap() {
            if at > now {
                let just_before = Timestamp::from_millis(at.as_millis() - 1);
                let early = queues.receive(&name, one, just_before).unwrap();
                prop_assert!(early.deliveries.is_empty(), "something came before its wake-up");
            }
            now = at;
            let received = queues.receive(&name, one, now).unwrap();
            prop_assert_eq!(received.deliveries.len(), 1, "nothing came at a wake-up");
            // Every first receive is forgotten, so that every message comes back once.
            if received.deliveries[0].receive_count == 2 {
                queues.delete_message(&name, &received.deliveries[0].receipt, now).unwrap();
            }
        }
        let totals = queues.totals(&name, now).unwrap();
        prop_assert_eq!((totals.deleted, totals.received), (delays.len() as u64, 2 * delays.len() as u64));
    }
}
