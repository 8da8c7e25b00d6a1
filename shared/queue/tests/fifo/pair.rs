//! The state machine with its model beside it, and the steps that both take.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use queue::{
    Configuration, DeduplicationScope, Deletion, Delivery, Error, MessageId, QueueName, Queues, ReceiptHandle,
    ReceiveRequest, SendRequest, Timestamp, Totals,
};

use crate::model::{Answer, Fate, Model};

const VISIBILITY_SECONDS: u64 = 20;
pub(crate) const RETENTION_SECONDS: u64 = 90;
pub(crate) const MAX_RECEIVE_COUNT: u32 = 3;
pub(crate) const IN_FLIGHT_MAX: usize = 8;
const DELAY_SECONDS: u64 = 2;

/// One step of a test; times are in seconds, `which` picks among the handles given out so far.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send { group: u8, deduplication: u8 },
    Receive { from: Place, max: usize, visibility: Option<u64> },
    Delete { which: usize },
    ChangeVisibility { which: usize, timeout: u64 },
    Pass { seconds: u64 },
    Purge { from: Place },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Main,
    Dead,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || prop_oneof![5 => Just(Place::Main), 1 => Just(Place::Dead)];
    // Mostly handles of late receives: early ones have ended.
    let which = || prop_oneof![3 => (0..6_usize).prop_map(|back| usize::MAX - back), 1 => any::<usize>()];
    let step = prop_oneof![
        8 => (0..4_u8, any::<u8>()).prop_map(|(group, deduplication)| Step::Send { group, deduplication }),
        7 => (place(), 0..6_usize, prop::option::weighted(0.3, 0..40_u64))
            .prop_map(|(from, max, visibility)| Step::Receive { from, max, visibility }),
        5 => which().prop_map(|which| Step::Delete { which }),
        4 => (which(), prop_oneof![1 => Just(0_u64), 1 => 0..40_u64])
            .prop_map(|(which, timeout)| Step::ChangeVisibility { which, timeout }),
        4 => prop_oneof![9 => 0..25_u64, 1 => Just(300_u64)].prop_map(|seconds| Step::Pass { seconds }),
        1 => prop_oneof![9 => Just(Step::Pass { seconds: 0 }), 1 => place().prop_map(|from| Step::Purge { from })],
    ];
    prop::collection::vec(step, 1..120)
}

pub(crate) fn scopes() -> impl Strategy<Value = DeduplicationScope> {
    prop_oneof![Just(DeduplicationScope::Queue), Just(DeduplicationScope::MessageGroup)]
}

pub(crate) struct Pair {
    queues: Queues,
    names: BTreeMap<Place, QueueName>,
    model: Model,
    handles: Vec<(Place, MessageId, ReceiptHandle)>,
}

impl Pair {
    pub(crate) fn new(seed: u64, scope: DeduplicationScope) -> Self {
        let configuration = Configuration { seed, in_flight_max: IN_FLIGHT_MAX, ..Configuration::default() };
        let mut queues = Queues::new(configuration);
        let names = BTreeMap::from([
            (Place::Main, QueueName::parse("main.fifo").unwrap()),
            (Place::Dead, QueueName::parse("dead.fifo").unwrap()),
        ]);
        let arn = queues.arn(&names[&Place::Dead]);
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVE_COUNT}}}"#);
        let own = |pairs: &[(&str, &str)]| {
            let always = [
                ("FifoQueue", "true".to_owned()),
                ("VisibilityTimeout", VISIBILITY_SECONDS.to_string()),
                ("MessageRetentionPeriod", RETENTION_SECONDS.to_string()),
            ];
            let given = pairs.iter().map(|(name, value)| (*name, (*value).to_owned()));
            always.into_iter().chain(given).map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let start = Timestamp::from_millis(0);
        queues.create(&names[&Place::Dead], &own(&[]), start).unwrap();
        let main = own(&[
            ("RedrivePolicy", &policy),
            ("DelaySeconds", &DELAY_SECONDS.to_string()),
            ("DeduplicationScope", scope.as_str()),
        ]);
        queues.create(&names[&Place::Main], &main, start).unwrap();
        Self { queues, names, model: Model::new(scope), handles: Vec::new() }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.model.now * 1000)
    }

    /// Takes one step in both, and returns what the state machine said, in a form that two runs can be compared by.
    pub(crate) fn step(&mut self, step: &Step) -> String {
        let now = self.now();
        match step {
            Step::Send { group, deduplication } => self.send(*group, *deduplication),
            Step::Receive { from, max, visibility } => format!("{:?}", self.receive(*from, *max, *visibility)),
            Step::Delete { which } => self.with_handle(*which, |pair, number| {
                let (place, id, receipt) = pair.handles[number].clone();
                let deleted = pair.queues.delete_message(&pair.names[&place], &receipt, now);
                let said = match &deleted {
                    Ok(Deletion::Deleted) => Fate::Deleted,
                    Ok(Deletion::NothingToDelete) => Fate::Gone,
                    Err(Error::ReceiptHandleExpired { .. }) => Fate::Expired,
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(said, pair.model.delete(id, place, number));
                format!("{deleted:?}")
            }),
            Step::ChangeVisibility { which, timeout } => self.with_handle(*which, |pair, number| {
                let (place, id, receipt) = pair.handles[number].clone();
                let seconds = Duration::from_secs(*timeout);
                let changed = pair.queues.change_visibility(&pair.names[&place], &receipt, seconds, now);
                let expected = pair.model.change_visibility(id, place, number, *timeout);
                assert_eq!(changed.is_ok(), expected, "{changed:?}");
                format!("{changed:?}")
            }),
            Step::Pass { seconds } => {
                self.model.pass(*seconds);
                String::new()
            }
            Step::Purge { from } => {
                self.queues.purge(&self.names[from], now).unwrap();
                self.model.items.retain(|item| item.place != *from);
                String::new()
            }
        }
    }

    fn send(&mut self, group: u8, deduplication: u8) -> String {
        let request = SendRequest {
            group_id: Some(group.to_string()),
            deduplication_id: Some(deduplication.to_string()),
            ..SendRequest::from_body("x")
        };
        let message = self.queues.send(&self.names[&Place::Main], request, self.now()).unwrap();
        match self.model.original_of(group, deduplication) {
            Some(original) => assert_eq!(message.id, original),
            None => self.model.send(message.id, group, deduplication, DELAY_SECONDS),
        }
        format!("{message:?}")
    }

    pub(crate) fn receive(&mut self, from: Place, max: usize, visibility: Option<u64>) -> Vec<Delivery> {
        let request = ReceiveRequest { max, visibility_timeout: visibility.map(Duration::from_secs) };
        let received = self.queues.receive(&self.names[&from], request, self.now()).unwrap();
        let answer = Answer {
            taken: received.deliveries.iter().map(|delivery| delivery.message.id).collect(),
            moved: received.dead_lettered.map(|moved| moved.messages).unwrap_or_default(),
            first_handle: self.handles.len(),
        };
        self.model.receive(from, max, visibility.unwrap_or(VISIBILITY_SECONDS), &answer);
        for delivery in &received.deliveries {
            self.handles.push((from, delivery.message.id, delivery.receipt.clone()));
        }
        received.deliveries
    }

    fn with_handle(&mut self, which: usize, act: impl FnOnce(&mut Self, usize) -> String) -> String {
        if self.handles.is_empty() {
            return String::new();
        }
        let number = match usize::MAX - which {
            back if back < self.handles.len() => self.handles.len() - 1 - back,
            _ => which % self.handles.len(),
        };
        act(self, number)
    }

    /// Compares everything that can be read, and checks that what went in is what went out and what is there.
    pub(crate) fn check(&mut self) {
        let now = self.now();
        let mut there = 0;
        for (place, name) in self.names.clone() {
            let counts = self.queues.counts(&name, now).unwrap();
            assert_eq!((counts.visible, counts.in_flight, counts.delayed), self.model.counts(place), "{place:?}");
            let totals = self.queues.totals(&name, now).unwrap();
            let Totals { sent, deduplicated: _, moved_in, received: _, deleted, expired, purged, moved_out } = totals;
            let total = counts.total() as u64;
            assert_eq!(sent + moved_in, deleted + expired + purged + moved_out + total, "{place:?} {totals:?}");
            there += counts.total();
            self.check_wake(place, &name, now);
        }
        assert_eq!(there, self.model.items.len());
    }

    /// A wake-up is never too late, and one that is too early is at least later than now.
    fn check_wake(&mut self, place: Place, name: &QueueName, now: Timestamp) {
        let wake = self.queues.next_wake(name, now).unwrap().map(|at| at.as_millis() / 1000);
        let expected = self.model.next_receivable(place);
        if expected == Some(self.model.now) || wake == Some(self.model.now) {
            assert_eq!(wake, expected, "{place:?}");
        } else if let Some(expected) = expected {
            assert!(wake.is_some_and(|wake| wake <= expected), "{place:?} {wake:?} {expected}");
        }
        assert!(wake.is_none_or(|wake| wake >= self.model.now));
    }
}
