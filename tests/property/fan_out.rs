//! A post's audience is told page by page while people come and go: whoever followed before and still does is told once, and
//! nobody who came later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use consumer::Outcome;
use domain::fan_out::{FanOut, PAGE};
use domain::follows::Follow;
use domain::graph::{FOLLOWERS, followers_key};
use domain::inbox::Inbox;
use domain::posts::Post;
use domain::{Attributes, Decider, Decision, EVENT, Key, Need, RowError, State};
use events::{Consumer, Event, EventId, Payload, PostId, PostPublished, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::Fault;
use testkit::sample::{event, now, player_id};

use crate::history::fault;
use crate::{TestDriver, driver, handle};

/// Who is followed; nobody of the others.
const AUTHOR: u32 = 100_000;

/// What happens between two deliveries.
#[derive(Debug, Clone)]
enum Step {
    /// Delivers some of the messages that are waiting, each by its number counted round.
    Deliver(Vec<usize>),
    /// Delivers one again that was delivered before.
    Again(usize),
    /// Somebody leaves.
    Leave(u32),
    /// Somebody follows, or comes back.
    Come(u32),
    /// Something goes wrong with one of the next calls.
    Fault(Fault),
}

#[derive(Debug, Clone)]
struct Run {
    followers: u32,
    /// What the counters say: it decides on the number of ranges, and need not be right.
    counted: i64,
    steps: Vec<Step>,
}

fn run() -> impl Strategy<Value = Run> {
    let followers = prop_oneof![Just(0_u32), 1..40_u32, 90..210_u32, Just(PAGE as u32), Just(2 * PAGE as u32)];
    let counted = prop_oneof![Just(0_i64), Just(2_000), Just(100_000)];
    let step = prop_oneof![
        6 => prop::collection::vec(any::<usize>(), 1..12).prop_map(Step::Deliver),
        2 => any::<usize>().prop_map(Step::Again),
        2 => (0..220_u32).prop_map(Step::Leave),
        2 => (0..220_u32).prop_map(Step::Come),
        1 => fault().prop_map(Step::Fault),
    ];
    (followers, counted, prop::collection::vec(step, 0..60)).prop_map(|(followers, counted, steps)| Run {
        followers,
        counted,
        steps,
    })
}

/// Both consumers in one: which of them is asked is a matter of the event.
struct Notifications;

impl Decider for Notifications {
    fn needs(&self, event: &Event) -> Vec<Need> {
        if is_request(event) { Inbox.needs(event) } else { FanOut.needs(event) }
    }

    fn further_needs(&self, event: &Event, state: &State) -> Result<Vec<Need>, RowError> {
        if is_request(event) { Inbox.further_needs(event, state) } else { FanOut.further_needs(event, state) }
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if is_request(event) { Inbox.decide(event, state) } else { FanOut.decide(event, state) }
    }
}

fn is_request(event: &Event) -> bool {
    matches!(event.payload, Payload::NotificationRequested(_))
}

struct World {
    driver: TestDriver<Notifications>,
    /// Events that were relayed, in their order, and those of them that wait for their first delivery.
    relayed: Vec<Event>,
    known: BTreeSet<EventId>,
    waiting: Vec<usize>,
    /// Who has left or come since the post.
    moved: BTreeSet<u32>,
}

fn post_id() -> PostId {
    "post-1".parse().expect("an id")
}

fn object(value: Value) -> Attributes {
    value.as_object().cloned().expect("an object")
}

impl World {
    fn after(run: &Run) -> Self {
        let mut world = Self::before(run);
        for step in &run.steps {
            world.step(step);
        }
        while !world.waiting.is_empty() {
            let all = std::mem::take(&mut world.waiting);
            world.deliver(all);
        }
        world
    }

    /// Makes a platform on which a post was published, and nobody was told of it yet.
    fn before(run: &Run) -> Self {
        let mut world = Self {
            driver: driver(Consumer::FanOut, Notifications),
            relayed: Vec::new(),
            known: BTreeSet::new(),
            waiting: Vec::new(),
            moved: BTreeSet::new(),
        };
        for follower in 0..run.followers {
            world.follow(follower, Some(now()));
        }
        let counters = followers_key(&player_id(AUTHOR)).shard(0);
        world.driver.ledger.put(counters, object(json!({FOLLOWERS: run.counted})));
        let author_id = player_id(AUTHOR);
        let post = json!({"post_id": post_id(), "author_id": author_id, "published_at": now(), "text": "Hello"});
        world.driver.ledger.put(Post::key(&post_id()), object(post));
        let published = PostPublished { post_id: post_id(), author_id };
        world.relay(event(1, "post-1", 1, Payload::PostPublished(published)));
        world
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Deliver(numbers) => {
                let mut chosen = BTreeSet::new();
                for number in numbers {
                    if !self.waiting.is_empty() {
                        chosen.insert(self.waiting.swap_remove(number % self.waiting.len()));
                    }
                }
                self.deliver(chosen.into_iter().collect());
            }
            Step::Again(number) => self.deliver(vec![number % self.relayed.len()]),
            Step::Leave(follower) => {
                self.follow(*follower, None);
                self.moved.insert(*follower);
            }
            Step::Come(follower) => {
                if self.is_following(*follower) {
                    return;
                }
                self.follow(*follower, Some(now() + Duration::from_millis(1)));
                self.moved.insert(*follower);
            }
            Step::Fault(fault) => self.driver.ledger.inject(fault.clone()),
        }
    }

    fn is_following(&self, follower: u32) -> bool {
        let rows = self.driver.ledger.rows();
        rows.get(&Follow::key(&player_id(AUTHOR), &player_id(follower))).is_some_and(|row| row.contains_key("since"))
    }

    fn follow(&self, follower: u32, since: Option<Timestamp>) {
        let follow = Follow { followed_id: player_id(AUTHOR), follower_id: player_id(follower), since };
        let record = serde_json::to_value(&follow).expect("a follow serialises");
        self.driver.ledger.put(Follow::key(&follow.followed_id, &follow.follower_id), object(record));
    }

    fn relay(&mut self, event: Event) {
        if self.known.insert(event.event_id) {
            self.waiting.push(self.relayed.len());
            self.relayed.push(event);
        }
    }

    fn deliver(&mut self, numbers: Vec<usize>) {
        let events = numbers.into_iter().map(|number| self.relayed[number].clone());
        let (requests, others): (Vec<Event>, Vec<Event>) = events.partition(is_request);
        for (consumer, mut pending) in [(Consumer::NotificationRequested, requests), (Consumer::FanOut, others)] {
            self.driver.consumer = consumer;
            while !pending.is_empty() {
                let outcomes = handle(&self.driver, &pending);
                let rejected = outcomes.iter().find(|outcome| matches!(outcome, Outcome::Rejected(_)));
                assert_eq!(rejected, None);
                let mut outcomes = outcomes.iter().map(Outcome::acknowledges);
                pending.retain(|_| !outcomes.next().expect("an outcome each"));
            }
        }
        // The stream: what each record's last change published.
        for (key, attributes) in self.driver.ledger.rows() {
            if key.partition.starts_with("FANOUT#") || key.partition.starts_with("NOTIFICATION#") {
                let event = attributes.get(EVENT).expect("a record carries an event").to_string();
                self.relay(Event::decode(event.as_bytes()).expect("an event"));
            }
        }
    }

    /// How often each was told.
    fn told(&self) -> BTreeMap<String, usize> {
        let mut told = BTreeMap::new();
        for key in self.driver.ledger.rows().into_keys() {
            if let Some(recipient) = key.partition.strip_prefix("INBOX#") {
                *told.entry(recipient.to_owned()).or_default() += 1;
            }
        }
        told
    }

    fn running(&self) -> Vec<Key> {
        let rows = self.driver.ledger.rows().into_iter();
        let ranges = rows.filter(|(key, _)| key.partition.starts_with("FANOUT#"));
        ranges.filter(|(_, row)| row["progress"] != "done").map(|(key, _)| key).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_followed_before_and_still_does_is_told_once(run in run()) {
        let world = World::after(&run);
        prop_assert_eq!(world.running(), Vec::<Key>::new());
        let told = world.told();
        for number in 0..220 {
            let times = told.get(player_id(number).as_str()).copied().unwrap_or(0);
            if number >= run.followers {
                prop_assert_eq!(times, 0, "{} came later", number);
            } else if world.moved.contains(&number) {
                prop_assert!(times <= 1, "{} was told {} times", number, times);
            } else {
                prop_assert_eq!(times, 1, "{} follows", number);
            }
        }
    }

    #[test]
    fn telling_it_all_once_more_changes_nothing(run in run()) {
        let mut world = World::after(&run);
        let before = (world.driver.ledger.rows(), world.driver.ledger.commits());
        world.deliver((0..world.relayed.len()).collect());
        prop_assert_eq!((world.driver.ledger.rows(), world.driver.ledger.commits()), before);
    }
}

proptest! {
    // Few: each page is delivered by itself, and an audience has many.
    #![proptest_config(ProptestConfig { cases: 15, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_decided_as_one_equals_its_records_one_by_one(run in run()) {
        let [mut whole, mut single] = [World::before(&run), World::before(&run)];
        while !whole.waiting.is_empty() {
            let all = std::mem::take(&mut whole.waiting);
            whole.deliver(all);
        }
        while let Some(first) = single.waiting.pop() {
            single.deliver(vec![first]);
        }
        prop_assert_eq!(whole.driver.ledger.rows(), single.driver.ledger.rows());
    }
}
