//! Stream mappings: order, retries, bisection, partial responses and hostile deliveries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::dynamodb::Event;
use dynoxide::Database;
use dynoxide::actions::put_item::PutItemRequest;
use local::mapping::stream::{Mapping, Stream};
use local::mapping::{Hostility, Order, Progress};
use local::model::{Bisect, Failures, StreamMapping, Table};
use local::tables;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::runtime::{Answer, Closure, eventually};

/// A table whose stream a mapping reads.
struct World {
    database: Database,
    stream: Stream,
    progress: Arc<Progress>,
    mapping: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.mapping.abort();
    }
}

pub(crate) fn table() -> Table {
    let create_request = json!({
        "TableName": "records",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" },
            { "AttributeName": "sk", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
    });
    Table {
        name: "records".to_owned(),
        create_request: create_request.to_string(),
        time_to_live_attribute: Some("expires_at".to_owned()),
    }
}

fn declared() -> StreamMapping {
    StreamMapping {
        table: "records".to_owned(),
        function: "function".to_owned(),
        batch_size: 10,
        batching_window: Duration::ZERO,
        bisect: Bisect::OnFunctionError,
        maximum_retry_attempts: None,
        parallelization_factor: 1,
        failures: Failures::ReportBatchItemFailures,
    }
}

impl World {
    /// A table with items `(pk, version)`, written in this order.
    fn start(declared: StreamMapping, function: Arc<Closure>, items: &[(&str, u32)]) -> Self {
        Self::start_hostile(declared, function, items, Hostility::default())
    }

    fn start_hostile(
        declared: StreamMapping,
        function: Arc<Closure>,
        items: &[(&str, u32)],
        hostility: Hostility,
    ) -> Self {
        let database = tables::open(None, &[table()]).unwrap();
        for (pk, version) in items {
            write(&database, pk, *version);
        }
        let stream = Stream::open(database.clone(), "records").unwrap();
        let progress = Arc::new(Progress::default());
        let mapping = Mapping {
            declared,
            stream: stream.clone(),
            partition_key: tables::partition_key(&table()).unwrap(),
            function,
            hostility,
            progress: Arc::clone(&progress),
        };
        Self { database, stream, progress, mapping: tokio::spawn(mapping.run()) }
    }

    async fn done(&self, records: u64) {
        eventually("the records' end", || self.progress.done() >= records && self.progress.pending() == 0).await;
        assert_eq!(self.progress.done(), records);
        assert!(self.stream.is_read().await.unwrap());
    }
}

fn write(database: &Database, pk: &str, version: u32) {
    let request = json!({
        "TableName": "records",
        "Item": { "pk": { "S": pk }, "sk": { "S": "item" }, "version": { "N": version.to_string() } },
    });
    let request: PutItemRequest = serde_json::from_value(request).unwrap();
    database.put_item(request).unwrap();
}

/// `pk` and version of a record, as `a1`.
fn item(record: &Value) -> String {
    let image = &record["dynamodb"]["NewImage"];
    format!("{}{}", image["pk"]["S"].as_str().unwrap(), image["version"]["N"].as_str().unwrap())
}

fn items(event: &Value) -> Vec<String> {
    event["Records"].as_array().unwrap().iter().map(item).collect()
}

fn success() -> Answer {
    Answer::json(&json!({ "batchItemFailures": [] }))
}

fn error() -> Answer {
    Answer::Error { error_type: "Any", message: "error" }
}

/// Names the records of some items as failed.
fn failed(event: &Value, of: &[&str]) -> Answer {
    let records = event["Records"].as_array().unwrap().iter();
    let failures: Vec<_> = records
        .filter(|record| of.contains(&item(record).as_str()))
        .map(|record| json!({ "itemIdentifier": record["dynamodb"]["SequenceNumber"] }))
        .collect();
    Answer::json(&json!({ "batchItemFailures": failures }))
}

const ITEMS: [(&str, u32); 6] = [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 2), ("a", 3)];

#[tokio::test]
async fn records_come_in_the_order_of_their_writing() {
    let function = Closure::new(|_| success());
    let world = World::start(declared(), Arc::clone(&function), &ITEMS);

    world.done(6).await;
    write(&world.database, "c", 2);
    world.done(7).await;

    assert_eq!(function.records(item).concat(), ["a1", "b1", "a2", "c1", "b2", "a3", "c2"]);
}

#[tokio::test]
async fn an_event_is_what_lambda_sends() {
    let function = Closure::new(|_| success());
    let world = World::start(declared(), Arc::clone(&function), &[("a", 1), ("a", 2)]);

    world.done(2).await;

    let records: Vec<_> =
        function.events().into_iter().flat_map(|event| event["Records"].as_array().unwrap().clone()).collect();
    let event: Event = serde_json::from_value(json!({ "Records": records })).unwrap();
    let names: Vec<_> = event.records.iter().map(|record| record.event_name.as_str()).collect();
    assert_eq!(names, ["INSERT", "MODIFY"]);
    let raw = &records[1];
    assert_eq!(raw["awsRegion"], "us-east-1");
    assert_eq!(raw["eventSource"], "aws:dynamodb");
    assert_eq!(raw["eventSourceARN"], "arn:aws:dynamodb:us-east-1:000000000000:table/records/stream/local");
    assert_eq!(raw["dynamodb"]["Keys"], json!({ "pk": { "S": "a" }, "sk": { "S": "item" } }));
    assert_eq!(raw["dynamodb"]["OldImage"]["version"], json!({ "N": "1" }));
    assert_eq!(raw["dynamodb"]["NewImage"]["version"], json!({ "N": "2" }));
    assert_eq!(raw["dynamodb"]["StreamViewType"], "NEW_AND_OLD_IMAGES");
    assert!(raw["dynamodb"]["SequenceNumber"].is_string() && raw["eventID"].is_string());
}

#[tokio::test]
async fn a_failed_batch_is_halved_until_what_fails_is_alone_and_order_is_kept() {
    // `c1` fails three times, whatever stands next to it.
    let failures = AtomicUsize::new(0);
    let function = Closure::new(move |event| {
        if items(event).contains(&"c1".to_owned()) && failures.fetch_add(1, Ordering::SeqCst) < 3 {
            error()
        } else {
            success()
        }
    });
    let world = World::start(declared(), Arc::clone(&function), &ITEMS);

    world.done(6).await;

    let batches = function.records(item);
    assert_eq!(
        batches,
        [
            vec!["a1", "b1", "a2", "c1", "b2", "a3"],
            vec!["a1", "b1", "a2"],
            vec!["c1", "b2", "a3"],
            vec!["c1"],
            vec!["c1"],
            vec!["b2", "a3"],
        ]
    );
}

#[tokio::test]
async fn without_bisection_a_failed_batch_comes_again_as_it_was() {
    let calls = AtomicUsize::new(0);
    let function = Closure::new(move |_| if calls.fetch_add(1, Ordering::SeqCst) < 2 { error() } else { success() });
    let whole = StreamMapping { bisect: Bisect::Never, ..declared() };
    let world = World::start(whole, Arc::clone(&function), &ITEMS);

    world.done(6).await;

    assert_eq!(function.records(item), vec![vec!["a1", "b1", "a2", "c1", "b2", "a3"]; 3]);
}

#[tokio::test]
async fn a_partial_response_is_retried_from_its_lowest_failure() {
    let calls = AtomicUsize::new(0);
    let function = Closure::new(move |event| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => failed(event, &["b2", "a2"]),
        1 => failed(event, &["a2"]),
        _ => success(),
    });
    let world = World::start(declared(), Arc::clone(&function), &ITEMS);

    world.done(6).await;

    let rest = vec!["a2", "c1", "b2", "a3"];
    assert_eq!(function.records(item), [vec!["a1", "b1", "a2", "c1", "b2", "a3"], rest.clone(), rest]);
}

#[tokio::test]
async fn a_malformed_response_fails_the_whole_batch() {
    let malformed: [fn() -> Answer; 4] = [
        || Answer::Response("ok".to_owned()),
        || Answer::json(&json!({ "batchItemFailures": [{ "itemIdentifier": "" }] })),
        || Answer::json(&json!({ "batchItemFailures": [{ "itemIdentifier": "1" }] })),
        || Answer::json(&json!({ "batchItemFailures": [{ "sequenceNumber": "1" }] })),
    ];
    for malformed in malformed {
        let calls = AtomicUsize::new(0);
        let function =
            Closure::new(move |_| if calls.fetch_add(1, Ordering::SeqCst) == 0 { malformed() } else { success() });
        let world = World::start(StreamMapping { bisect: Bisect::Never, ..declared() }, Arc::clone(&function), &ITEMS);

        world.done(6).await;

        assert_eq!(function.records(item), vec![vec!["a1", "b1", "a2", "c1", "b2", "a3"]; 2]);
    }
}

#[tokio::test]
async fn after_the_last_retry_a_batch_is_given_up_and_the_next_one_comes() {
    let function = Closure::new(|event| if items(event).contains(&"c1".to_owned()) { error() } else { success() });
    let limited = StreamMapping { maximum_retry_attempts: Some(2), ..declared() };
    let world = World::start(limited, Arc::clone(&function), &ITEMS);

    world.done(5).await;

    assert_eq!(world.progress.discarded(), 1);
    let alone = function.records(item).iter().filter(|batch| batch.as_slice() == ["c1"]).count();
    assert_eq!(alone, 3, "once, and two retries");
}

#[tokio::test]
async fn lanes_keep_the_order_of_each_partition_key() {
    let function = Closure::new(|_| success());
    let names: Vec<_> = (0..40).map(|number| format!("item-{number}-")).collect();
    let written: Vec<_> = (1..=10).flat_map(|version| names.iter().map(move |name| (name.as_str(), version))).collect();
    let lanes = StreamMapping { parallelization_factor: 4, ..declared() };
    let world = World::start(lanes, Arc::clone(&function), &written);

    world.done(400).await;

    assert_eq!(versions_by_item(&function), all_versions(&names, 10));
}

#[tokio::test(start_paused = true)]
async fn hostile_deliveries_go_back_and_mix_but_first_ones_keep_each_items_order() {
    let calls = AtomicUsize::new(0);
    // Now and then a batch fails, as a whole or from its middle.
    let function = Closure::new(move |event| match calls.fetch_add(1, Ordering::SeqCst) % 7 {
        3 => error(),
        5 => failed(event, &[items(event)[items(event).len() / 2].as_str()]),
        _ => success(),
    });
    let names: Vec<_> = (0..40).map(|number| format!("item-{number}-")).collect();
    let written: Vec<_> = (1..=10).flat_map(|version| names.iter().map(move |name| (name.as_str(), version))).collect();
    let lanes = StreamMapping { parallelization_factor: 4, ..declared() };
    let hostility = Hostility { duplicate: 0.3, order: Order::Shuffled, seed: 5 };
    let world = World::start_hostile(lanes, Arc::clone(&function), &written, hostility);

    world.done(400).await;

    let delivered: usize = function.events().iter().map(|event| items(event).len()).sum();
    assert!(delivered > 440, "{delivered} deliveries");
    assert_eq!(versions_by_item(&function), all_versions(&names, 10));
}

/// The versions of each item in the order of their first deliveries.
fn versions_by_item(function: &Closure) -> BTreeMap<String, Vec<u32>> {
    let mut versions: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for item in function.records(item).concat() {
        let (name, version) = item.rsplit_once('-').unwrap();
        let version = version.parse().unwrap();
        let versions = versions.entry(format!("{name}-")).or_default();
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions
}

fn all_versions(names: &[String], versions: u32) -> BTreeMap<String, Vec<u32>> {
    names.iter().map(|name| (name.clone(), (1..=versions).collect())).collect()
}
