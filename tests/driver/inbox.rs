//! Inboxes and the truth that changes between a decision's reading and its commit.

use std::sync::Arc;

use consumer::Outcome;
use domain::follows::Follow;
use domain::inbox::Inbox;
use domain::posts::Post;
use domain::{Attributes, Decider, Decision, Key, Need, RowError, State};
use events::{Consumer, Event, NotificationCause, NotificationId, NotificationRequested, Payload, PostId};
use serde_json::{Value, json};
use testkit::MemoryLedger;
use testkit::sample::{event, now, player_id, player_record};

use crate::support::{Once, deadline, deliveries, outcomes, sharing};

/// The decider, beside which a record is changed right after it was read for the first time.
struct Overtaken {
    ledger: Arc<MemoryLedger>,
    key: Key,
    record: Attributes,
    once: Once,
}

impl Decider for Overtaken {
    fn needs(&self, event: &Event) -> Vec<Need> {
        Inbox.needs(event)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if self.once.first() {
            self.ledger.put(self.key.clone(), self.record.clone());
        }
        Inbox.decide(event, state)
    }
}

fn post_id() -> PostId {
    "post-1".parse().unwrap()
}

fn attributes(value: Value) -> Attributes {
    value.as_object().cloned().unwrap()
}

fn follow_key() -> Key {
    Follow::key(&player_id(1), &player_id(2))
}

/// Player 1 has published a post, and player 2 follows.
fn ledger() -> Arc<MemoryLedger> {
    let ledger = Arc::new(MemoryLedger::default());
    for number in [1, 2] {
        let (key, record) = player_record(number);
        ledger.put(key, record);
    }
    let follow = json!({"followed_id": player_id(1), "follower_id": player_id(2), "since": now()});
    ledger.put(follow_key(), attributes(follow));
    let post = json!({"post_id": post_id(), "author_id": player_id(1), "published_at": now(), "text": "Hello"});
    ledger.put(Post::key(&post_id()), attributes(post));
    ledger
}

fn requested() -> Event {
    let cause = NotificationCause::Post { post_id: post_id(), author_id: player_id(1) };
    let payload =
        NotificationRequested { notification_id: NotificationId::derived("n"), recipient_id: player_id(2), cause };
    event(9, "n", 1, Payload::NotificationRequested(payload))
}

fn told(ledger: &MemoryLedger) -> usize {
    ledger.rows().keys().filter(|key| key.partition.starts_with("INBOX#")).count()
}

async fn handle<D: Decider>(ledger: &Arc<MemoryLedger>, decider: D) -> Outcome {
    let mut driver = sharing(ledger, decider);
    driver.consumer = Consumer::NotificationRequested;
    outcomes(&driver.handle(&deliveries(&[requested()]), deadline()).await).remove(0)
}

async fn check_overtaken(key: Key, record: Value, reason: &str) {
    let ledger = ledger();
    let overtaken = Overtaken { ledger: ledger.clone(), key, record: attributes(record), once: Once::new() };
    assert_eq!(handle(&ledger, overtaken).await, Outcome::Ignored(reason.to_owned()));
    assert_eq!(told(&ledger), 0);
}

#[tokio::test]
async fn what_is_so_is_told_once() {
    let ledger = ledger();
    assert_eq!(handle(&ledger, Inbox).await, Outcome::Applied);
    assert_eq!(handle(&ledger, Inbox).await, Outcome::Ignored("in the inbox, and still to be delivered".to_owned()));
    assert_eq!(told(&ledger), 1);
}

#[tokio::test]
async fn who_leaves_meanwhile_is_not_told() {
    let ended = json!({"followed_id": player_id(1), "follower_id": player_id(2)});
    check_overtaken(follow_key(), ended, "the follow has ended").await;
}

#[tokio::test]
async fn who_leaves_and_comes_back_meanwhile_is_not_told_of_what_was_before() {
    let later = events::Timestamp::from_millis(now().as_millis() + 1);
    let again = json!({"followed_id": player_id(1), "follower_id": player_id(2), "since": later});
    check_overtaken(follow_key(), again, "the follow has ended").await;
}

#[tokio::test]
async fn a_post_that_is_deleted_meanwhile_is_not_told() {
    let deleted = json!({"post_id": post_id(), "author_id": player_id(1), "published_at": now()});
    check_overtaken(Post::key(&post_id()), deleted, "the post was deleted").await;
}
