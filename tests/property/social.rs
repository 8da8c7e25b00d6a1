//! Posts, reactions and follows that are added, taken back and added again, delivered in any order, twice, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use consumer::Outcome;
use domain::follows::{Follow, follow, unfollow};
use domain::graph::{self, Direction, FOLLOWER_SPREAD, FOLLOWERS, FOLLOWING, FollowGraph, FollowRow};
use domain::posts::{self, POSTS, Post, PostCounts, delete, publish};
use domain::reactions::{self, REACTION_SPREAD, Reaction, ReactionCounts, react, unreact};
use domain::{Change, Decider, Decision, Key, Need, RowError, Spread, State};
use events::{Consumer, Event, Payload, PostId, ReactionKind};
use proptest::prelude::*;
use serde_json::Value;
use testkit::sample::{event, now, player_id};
use testkit::{Fault, MemoryLedger};

use crate::history::{PLAYERS, fault};
use crate::{TestDriver, driver, handle, numbers};

const POSTS_OF_A_RUN: u32 = 3;

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    React(u32, u32, usize),
    Unreact(u32, u32),
    Follow(u32, u32),
    Unfollow(u32, u32),
    Publish(u32),
    Delete(u32),
    /// A batch of events that have happened before, each by its number counted round.
    Batch(Vec<usize>),
    /// The last event is lost for good.
    Skip,
    /// Something goes wrong with one of the next calls.
    Fault(Fault),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (post, player) = (0..POSTS_OF_A_RUN, 0..PLAYERS);
    let pair = (0..PLAYERS, 1..PLAYERS).prop_map(|(one, step)| (one, (one + step) % PLAYERS));
    let step = prop_oneof![
        3 => (post.clone(), player.clone(), 0..3_usize).prop_map(|(post, player, kind)| Step::React(post, player, kind)),
        2 => (post.clone(), player).prop_map(|(post, player)| Step::Unreact(post, player)),
        3 => pair.clone().prop_map(|(one, other)| Step::Follow(one, other)),
        2 => pair.prop_map(|(one, other)| Step::Unfollow(one, other)),
        1 => post.clone().prop_map(Step::Publish),
        1 => post.prop_map(Step::Delete),
        3 => prop::collection::vec(any::<usize>(), 1..10).prop_map(Step::Batch),
        1 => Just(Step::Skip),
        1 => fault().prop_map(Step::Fault),
    ];
    prop::collection::vec(step, 1..120)
}

/// All three consumers in one: which of them is asked is a matter of the event.
struct Social;

impl Decider for Social {
    fn needs(&self, event: &Event) -> Vec<Need> {
        decider(consumer(event)).needs(event)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        decider(consumer(event)).decide(event, state)
    }
}

fn consumer(event: &Event) -> Consumer {
    event.payload.event_type().consumers().iter().next().expect("one at least")
}

fn decider(consumer: Consumer) -> &'static dyn Decider {
    if consumer == Consumer::PostChanged {
        &PostCounts
    } else if consumer == Consumer::ReactionChanged {
        &ReactionCounts
    } else {
        &FollowGraph
    }
}

/// The platform: its records with their versions, what has happened, what was ever delivered, and the views.
struct World {
    driver: TestDriver<Social>,
    reactions: BTreeMap<(u32, u32), (u64, Reaction)>,
    follows: BTreeMap<(u32, u32), (u64, Follow)>,
    posts: BTreeMap<u32, (u64, Post)>,
    happened: Vec<Event>,
    skipped: BTreeSet<usize>,
    delivered: BTreeMap<String, Event>,
}

fn post_id(number: u32) -> PostId {
    format!("post-{number}").parse().expect("an id")
}

impl World {
    /// Makes a platform on which this has happened, and nothing of it was delivered.
    fn where_happened(happened: Vec<Event>) -> Self {
        Self {
            driver: driver(Consumer::PostChanged, Social),
            reactions: BTreeMap::new(),
            follows: BTreeMap::new(),
            posts: BTreeMap::new(),
            happened,
            skipped: BTreeSet::new(),
            delivered: BTreeMap::new(),
        }
    }

    fn after(steps: &[Step]) -> Self {
        let mut world = Self::where_happened(Vec::new());
        for step in steps {
            world.step(step);
        }
        // Whatever has not been delivered and is not lost comes now, the newest first.
        let rest = (0..world.happened.len()).rev().collect();
        world.deliver(rest);
        world
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::React(post, player, kind) => {
                let before = self.reactions.get(&(*post, *player)).cloned();
                let change = |it| react(it, post_id(*post), player_id(*player), ReactionKind::ALL[*kind]);
                let aggregate = format!("reaction/{post}/{player}");
                if let Some(after) = self.change(before, &aggregate, change) {
                    self.reactions.insert((*post, *player), after);
                }
            }
            Step::Unreact(post, player) => {
                let before = self.reactions.get(&(*post, *player)).cloned();
                let change = |it| unreact(it, post_id(*post), player_id(*player));
                if let Some(after) = self.change(before, &format!("reaction/{post}/{player}"), change) {
                    self.reactions.insert((*post, *player), after);
                }
            }
            Step::Follow(one, other) => {
                let before = self.follows.get(&(*one, *other)).cloned();
                let change = |it| follow(it, player_id(*other), player_id(*one), now());
                if let Some(after) = self.change(before, &format!("follow/{one}/{other}"), change) {
                    self.follows.insert((*one, *other), after);
                }
            }
            Step::Unfollow(one, other) => {
                let before = self.follows.get(&(*one, *other)).cloned();
                let change = |it| unfollow(it, player_id(*other), player_id(*one));
                if let Some(after) = self.change(before, &format!("follow/{one}/{other}"), change) {
                    self.follows.insert((*one, *other), after);
                }
            }
            Step::Publish(post) => {
                let text = "text".parse().expect("a text");
                let before = self.posts.get(post).cloned();
                let existing = before.as_ref().map(|(_, post)| post.clone());
                let Ok(change) = publish(existing, post_id(*post), player_id(*post % 2), text, now()) else { return };
                if let Some(after) = self.change(before, &format!("post/{post}"), |_| change) {
                    self.posts.insert(*post, after);
                }
            }
            Step::Delete(post) => {
                let Some(before) = self.posts.get(post).cloned() else { return };
                let change = |it: Option<Post>| delete(it.expect("a post"));
                if let Some(after) = self.change(Some(before), &format!("post/{post}"), change) {
                    self.posts.insert(*post, after);
                }
            }
            Step::Batch(numbers) if !self.happened.is_empty() => {
                let count = self.happened.len();
                self.deliver(numbers.iter().map(|number| number % count).collect());
            }
            Step::Batch(_) => {}
            Step::Skip => {
                let last = self.happened.len().checked_sub(1);
                self.skipped.extend(last.filter(|last| !self.was_delivered(*last)));
            }
            Step::Fault(fault) => self.driver.ledger.inject(fault.clone()),
        }
    }

    fn was_delivered(&self, number: usize) -> bool {
        let event = &self.happened[number];
        self.delivered.get(&event.aggregate_id).is_some_and(|newest| newest.version >= event.version)
    }

    /// Carries out a command as the request path does; returns the record if it has changed.
    fn change<R>(
        &mut self,
        before: Option<(u64, R)>,
        aggregate: &str,
        command: impl FnOnce(Option<R>) -> Change<R>,
    ) -> Option<(u64, R)> {
        let (version, record) = before.map_or((0, None), |(version, record)| (version, Some(record)));
        let Change::Write { record, payload } = command(record) else { return None };
        self.happened.push(event(self.happened.len() as u32, aggregate, version + 1, payload));
        Some((version + 1, record))
    }

    fn deliver(&mut self, numbers: Vec<usize>) {
        let mut batches: BTreeMap<Consumer, Vec<Event>> = BTreeMap::new();
        for number in numbers.into_iter().filter(|number| !self.skipped.contains(number)) {
            let event = self.happened[number].clone();
            let newest = self.delivered.entry(event.aggregate_id.clone()).or_insert_with(|| event.clone());
            if newest.version < event.version {
                *newest = event.clone();
            }
            batches.entry(consumer(&event)).or_default().push(event);
        }
        for (consumer, mut pending) in batches {
            self.driver.consumer = consumer;
            while !pending.is_empty() {
                let outcomes = handle(&self.driver, &pending);
                let mut outcomes = outcomes.iter().map(Outcome::acknowledges);
                pending.retain(|_| !outcomes.next().expect("an outcome each"));
            }
        }
    }

    /// The counts that the newest delivered event of each aggregate makes.
    fn expected(&self) -> BTreeMap<(Key, String), i64> {
        let mut counts = BTreeMap::new();
        let mut count = |key: Key, name: &str| *counts.entry((key, name.to_owned())).or_default() += 1;
        for event in self.delivered.values() {
            if let Payload::PostPublished(post) = &event.payload {
                count(posts::count_key(&post.author_id), POSTS);
            } else if let Payload::ReactionAdded(reaction) = &event.payload {
                count(reactions::count_key(&reaction.post_id), reaction.kind.as_str());
            } else if let Payload::FollowStarted(follow) = &event.payload {
                count(graph::followers_key(&follow.followed_id), FOLLOWERS);
                count(graph::following_key(&follow.follower_id), FOLLOWING);
            }
        }
        counts
    }

    /// Who follows whom by the newest delivered events.
    fn expected_edges(&self) -> BTreeSet<(String, String)> {
        let edges = self.delivered.values().filter_map(|event| match &event.payload {
            Payload::FollowStarted(follow) => Some((follow.follower_id.to_string(), follow.followed_id.to_string())),
            _ => None,
        });
        edges.collect()
    }
}

/// All counters that are not zero, shards added up.
fn counts(ledger: &MemoryLedger) -> BTreeMap<(Key, String), i64> {
    let rows = ledger.rows();
    let players = (0..PLAYERS).map(player_id);
    let of_players = players.flat_map(|player| {
        [
            (posts::count_key(&player), Spread::NONE),
            (graph::followers_key(&player), FOLLOWER_SPREAD),
            (graph::following_key(&player), Spread::NONE),
        ]
    });
    let of_posts = (0..POSTS_OF_A_RUN).map(|post| (reactions::count_key(&post_id(post)), REACTION_SPREAD));
    let mut sums = BTreeMap::new();
    for (target, spread) in of_players.chain(of_posts) {
        for counters in spread.keys(&target).iter().filter_map(|key| rows.get(key)) {
            for (name, number) in numbers(counters) {
                *sums.entry((target.clone(), name.to_owned())).or_default() += number;
            }
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// Who follows whom, as the rows of one direction say.
fn edges(ledger: &MemoryLedger, direction: Direction) -> BTreeSet<(String, String)> {
    let prefix = match direction {
        Direction::Followers => "FOLLOWERS#",
        Direction::Following => "FOLLOWING#",
    };
    let rows = ledger.rows();
    let edges = rows.iter().filter_map(|(key, row)| {
        let player = key.partition.strip_prefix(prefix)?.to_owned();
        let row: FollowRow = serde_json::from_value(Value::Object(row.clone())).expect("a row");
        row.since?;
        Some(match direction {
            Direction::Followers => (key.sort.clone(), player),
            Direction::Following => (player, key.sort.clone()),
        })
    });
    edges.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_and_graph_are_what_the_newest_delivered_events_make(steps in steps()) {
        let world = World::after(&steps);
        prop_assert_eq!(counts(&world.driver.ledger), world.expected());
        for direction in [Direction::Followers, Direction::Following] {
            prop_assert_eq!(edges(&world.driver.ledger, direction), world.expected_edges());
        }
    }

    #[test]
    fn a_batch_decided_as_one_equals_its_records_one_by_one(steps in steps()) {
        let happened = World::after(&steps).happened;
        let [mut whole, mut single] = [(); 2].map(|()| World::where_happened(happened.clone()));
        whole.deliver((0..happened.len()).collect());
        (0..happened.len()).for_each(|number| single.deliver(vec![number]));
        prop_assert_eq!(counts(&whole.driver.ledger), counts(&single.driver.ledger));
        for direction in [Direction::Followers, Direction::Following] {
            prop_assert_eq!(edges(&whole.driver.ledger, direction), edges(&single.driver.ledger, direction));
        }
    }

    #[test]
    fn deciding_on_it_all_once_more_changes_nothing(steps in steps()) {
        let mut world = World::after(&steps);
        let before = (world.driver.ledger.rows(), world.driver.ledger.commits());
        world.deliver((0..world.happened.len()).collect());
        prop_assert_eq!((world.driver.ledger.rows(), world.driver.ledger.commits()), before);
    }
}
