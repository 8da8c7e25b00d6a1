//! What consumers cost on DynamoDB, by its own account: calls and write units for each record.

use std::time::Duration;

use aws::system::System;
use consumer::{BatchReport, Clock, Cost, Delivery, Driver};
use domain::Decider;
use domain::fan_out::{FanOut, FanOutRange, PAGE};
use domain::follows::Follow;
use domain::posts::Post;
use domain::reactions::ReactionCounts;
use domain::{Attributes, Key};
use events::{Consumer, Event, Payload, PostId, PostPublished, ReactionAdded, ReactionKind};
use serde_json::{Value, json};
use testkit::RecordedVisibility;
use testkit::contract::Subject;
use testkit::sample::{event, now, player_id};
use tests::DynamoDb;

async fn handle<D: Decider>(dynamodb: &DynamoDb, consumer: Consumer, decider: D, events: &[Event]) -> BatchReport {
    let driver = Driver {
        consumer,
        decider,
        ledger: dynamodb.ledger().clone(),
        environment: System,
        visibility: RecordedVisibility::default(),
    };
    let deliveries: Vec<Delivery> = events
        .iter()
        .enumerate()
        .map(|(position, event)| Delivery {
            message_id: position.to_string().try_into().unwrap(),
            receipt_handle: None,
            receive_count: 1,
            group: None,
            body: event.encode().into_bytes(),
        })
        .collect();
    let report = driver.handle(&deliveries, System.now() + Duration::from_secs(3_600)).await;
    assert_eq!(report.failures().count(), 0, "{:?}", report.records[0]);
    report
}

fn post_id() -> PostId {
    "post-1".parse().unwrap()
}

/// So many players react to one post.
fn reactions(count: u32) -> Vec<Event> {
    let reaction = |number| {
        let payload = ReactionAdded { post_id: post_id(), player_id: player_id(number), kind: ReactionKind::Like };
        event(number, &format!("post-1/{number}"), 1, Payload::ReactionAdded(payload))
    };
    (0..count).map(reaction).collect()
}

async fn cost_of_reactions(count: u32) -> Cost {
    let dynamodb = DynamoDb::start_without_faults().await;
    handle(&dynamodb, Consumer::ReactionChanged, ReactionCounts, &reactions(count)).await.cost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_reactions_to_one_post_take_two_round_trips() {
    let cost = cost_of_reactions(10).await;
    assert_eq!(cost.calls, 2, "one read and one transaction");
    assert!(cost.write_units <= 22.0, "{cost:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_reactions_to_one_post_count_as_good_as_once() {
    let cost = cost_of_reactions(100).await;
    assert!(cost.calls <= 3, "one read and as many transactions as a hundred rows and a counter take: {cost:?}");
    assert!(cost.write_units <= 2.04 * 100.0, "{cost:?}");
}

async fn put(dynamodb: &DynamoDb, key: &Key, record: Value) {
    let attributes: Attributes = record.as_object().cloned().unwrap();
    let item = aws::items::item(key, 1, attributes).unwrap();
    dynamodb.client.put_item().table_name("records").set_item(Some(item)).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_an_audience_takes_three_calls_and_two_units_a_notification() {
    let dynamodb = DynamoDb::start_without_faults().await;
    let author_id = player_id(100_000);
    let post = json!({"post_id": post_id(), "author_id": author_id, "published_at": now(), "text": "Hello"});
    put(&dynamodb, &Post::key(&post_id()), post).await;
    for number in 0..PAGE as u32 + 1 {
        let follow = json!({"followed_id": author_id, "follower_id": player_id(number), "since": now()});
        put(&dynamodb, &Follow::key(&author_id, &player_id(number)), follow).await;
    }
    let published = PostPublished { post_id: post_id(), author_id };
    let published = event(1, "post-1", 1, Payload::PostPublished(published));
    handle(&dynamodb, Consumer::FanOut, FanOut, &[published]).await;
    let key = FanOutRange::key(&post_id(), 0);
    let item = dynamodb.client.get_item().table_name("records").set_key(Some(aws::items::key_item(&key)));
    let item = item.send().await.unwrap().item.unwrap();
    let (_, row) = aws::items::row(domain::Table::Records, item).unwrap();
    let advanced = Event::decode(row.attributes.unwrap()["event"].to_string().as_bytes()).unwrap();

    let cost = handle(&dynamodb, Consumer::FanOut, FanOut, &[advanced]).await.cost;

    assert_eq!(cost.calls, 3, "records, follow records, and one transaction: {cost:?}");
    assert!(cost.write_units <= 2.0 * (PAGE as f64 + 1.0), "{cost:?}");
}
