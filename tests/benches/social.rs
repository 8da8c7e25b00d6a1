//! What one post that everybody reacts to costs: two instances at once, as the template allows, on one counter.
//! `cargo bench --bench social`.

use std::time::Instant;

use consumer::{Cost, Driver};
use domain::Key;
use domain::reactions::{REACTION_SPREAD, ReactionCounts, count_key};
use events::{Consumer, Event, Payload, PostId, ReactionAdded, ReactionKind};
use testkit::RecordedVisibility;
use testkit::contract::Subject;
use testkit::sample::{event, player_id};
use tests::DynamoDb;
use tests::bench::{RealTime, deliveries, no_deadline};

/// Reactions to the post: ten seconds' worth of a thousand a second.
const REACTIONS: u32 = 10_000;
/// Messages in a batch, as declared; and what half a second gathers for each of two instances.
const BATCHES: [usize; 2] = [500, 250];
/// Instances at once, as declared.
const INSTANCES: usize = 2;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    println!("{REACTIONS} reactions to one post, {INSTANCES} instances at once, DynamoDB");
    println!("{:<24} {:>12} {:>10} {:>10} {:>24}", "", "reactions/s", "calls", "WRU", "writes of the hottest");
    println!("{:<24} {:>12} {:>10} {:>10} {:>24}", "", "", "/batch", "/reaction", "item at 1,000/s, a second");
    for size in BATCHES {
        runtime.block_on(measure(size));
    }
}

async fn measure(size: usize) {
    let dynamodb = DynamoDb::start_without_faults().await;
    let events: Vec<Event> = (0..REACTIONS).map(reaction).collect();
    let halves = events.chunks(events.len() / INSTANCES);
    let started = Instant::now();
    let instances = halves.map(|half| {
        let (ledger, half) = (dynamodb.ledger().clone(), half.to_vec());
        tokio::spawn(async move {
            let (consumer, visibility) = (Consumer::ReactionChanged, RecordedVisibility::default());
            let environment = RealTime::default();
            let driver = Driver { consumer, decider: ReactionCounts, ledger, environment, visibility };
            let mut cost = Cost::default();
            for batch in half.chunks(size) {
                let report = driver.handle(&deliveries(batch), no_deadline()).await;
                assert_eq!(report.failures().count(), 0, "a benchmark of failures is none");
                cost += report.cost;
            }
            cost
        })
    });
    let mut cost = Cost::default();
    for instance in instances.collect::<Vec<_>>() {
        cost += instance.await.expect("an instance");
    }
    let elapsed = started.elapsed();
    let (counted, hottest) = counters(&dynamodb).await;
    assert_eq!(counted, i64::from(REACTIONS), "every reaction is counted once");
    let batches = f64::from(REACTIONS) / size as f64;
    println!(
        "{:<24} {:>12.0} {:>10.1} {:>10.2} {:>24.1}",
        format!("batches of {size}"),
        f64::from(REACTIONS) / elapsed.as_secs_f64(),
        f64::from(cost.calls) / batches,
        cost.write_units / f64::from(REACTIONS),
        hottest as f64 * 1_000.0 / f64::from(REACTIONS)
    );
}

/// Player `number` likes the post.
fn reaction(number: u32) -> Event {
    let payload = ReactionAdded { post_id: post_id(), player_id: player_id(number), kind: ReactionKind::Like };
    event(number, &format!("{}/{number}", post_id()), 1, Payload::ReactionAdded(payload))
}

fn post_id() -> PostId {
    "hot".parse().expect("an id")
}

/// Returns what the post's counter comes to, and how often its hottest item was written.
async fn counters(dynamodb: &DynamoDb) -> (i64, u64) {
    let (mut counted, mut hottest) = (0, 0);
    for key in REACTION_SPREAD.keys(&count_key(&post_id())) {
        let (count, revision) = counter(dynamodb, &key).await;
        counted += count;
        hottest = hottest.max(revision);
    }
    (counted, hottest)
}

async fn counter(dynamodb: &DynamoDb, key: &Key) -> (i64, u64) {
    let get = dynamodb.client.get_item().table_name("views").set_key(Some(aws::items::key_item(key)));
    let Some(item) = get.send().await.expect("an answer").item else { return (0, 0) };
    let (_, row) = aws::items::row(key.table, item).expect("a row");
    let count = row.attributes.and_then(|attributes| attributes.get(ReactionKind::Like.as_str())?.as_i64());
    (count.unwrap_or(0), row.version)
}
