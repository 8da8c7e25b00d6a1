//! Queue mappings: batches, partial responses, failures, concurrency and hostile deliveries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use axum::body::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use local::lambda::{Invoke, InvokeError};
use local::mapping::queue::{BrokerQueue, Mapping};
use local::mapping::{Hostility, Order, Progress};
use local::model::{Failures, QueueMapping};
use local::sqs::Broker;
use queue::{Counts, QueueName, SendRequest};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::runtime::{Answer, Closure, eventually};

/// A queue that a mapping reads.
pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) queue: QueueName,
    pub(crate) progress: Arc<Progress>,
    mapping: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.mapping.abort();
    }
}

pub(crate) fn declared() -> QueueMapping {
    QueueMapping {
        queue: "work".to_owned(),
        function: "function".to_owned(),
        batch_size: 10,
        batching_window: Duration::ZERO,
        maximum_concurrency: Some(2),
        failures: Failures::ReportBatchItemFailures,
    }
}

impl World {
    fn start(declared: QueueMapping, function: Arc<dyn Invoke>, bodies: &[&str]) -> Self {
        Self::start_hostile(declared, function, bodies, Hostility::default())
    }

    fn start_hostile(declared: QueueMapping, function: Arc<dyn Invoke>, bodies: &[&str], hostility: Hostility) -> Self {
        let broker = Broker::default();
        let queue = broker.create_queue("work", &BTreeMap::new()).unwrap();
        for body in bodies {
            broker.send(&queue, SendRequest::from_body(*body)).unwrap();
        }
        Self::start_on(broker, queue, declared, function, hostility)
    }

    pub(crate) fn start_on(
        broker: Broker,
        queue: QueueName,
        declared: QueueMapping,
        function: Arc<dyn Invoke>,
        hostility: Hostility,
    ) -> Self {
        let progress = Arc::new(Progress::default());
        let mapping = Mapping {
            declared,
            source: Arc::new(BrokerQueue { broker: broker.clone(), queue: queue.clone() }),
            function,
            concurrency_default: 4,
            visibility_timeout: None,
            hostility,
            progress: Arc::clone(&progress),
        };
        Self { broker, queue, progress, mapping: tokio::spawn(mapping.run()) }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.broker.counts(&self.queue).unwrap()
    }

    /// Waits until all batches have ended, of which there are at least `batches`.
    pub(crate) async fn batches(&self, batches: u64) {
        eventually("the batches' end", || self.progress.batches() >= batches && self.progress.pending() == 0).await;
    }
}

pub(crate) fn body(record: &Value) -> String {
    record["body"].as_str().unwrap().to_owned()
}

/// Ids of the records with one of these bodies.
pub(crate) fn ids(event: &Value, bodies: &[&str]) -> Vec<Value> {
    let records = event["Records"].as_array().unwrap().iter();
    records.filter(|record| bodies.contains(&body(record).as_str())).map(|record| record["messageId"].clone()).collect()
}

pub(crate) fn failures(ids: impl IntoIterator<Item = Value>) -> Answer {
    let failures: Vec<_> = ids.into_iter().map(|id| json!({ "itemIdentifier": id })).collect();
    Answer::json(&json!({ "batchItemFailures": failures }))
}

/// Three messages, one batch, one answer: how many messages stay in flight.
async fn check(what: &str, declared: QueueMapping, answer: fn(&Value) -> Answer, left: usize) {
    let function = Closure::new(answer);
    let world = World::start(declared, Arc::clone(&function) as _, &["a", "b", "c"]);

    world.batches(1).await;

    assert_eq!(function.events().len(), 1, "{what}");
    assert_eq!(world.counts(), Counts { visible: 0, in_flight: left, delayed: 0 }, "{what}");
    assert_eq!(world.progress.done(), 3 - left as u64, "{what}");
}

#[tokio::test]
async fn what_succeeded_is_deleted_and_nothing_else() {
    check("no failure", declared(), |_| failures([]), 0).await;
    check("null", declared(), |_| Answer::json(&json!({ "batchItemFailures": null })), 0).await;
    check("no list", declared(), |_| Answer::json(&json!({})), 0).await;
    check("no response", declared(), |_| Answer::json(&Value::Null), 0).await;
    check("one failure", declared(), |event| failures(ids(event, &["b"])), 1).await;
    check("two failures", declared(), |event| failures(ids(event, &["a", "c"])), 2).await;
    check("all failures", declared(), |event| failures(ids(event, &["a", "b", "c"])), 3).await;
}

#[tokio::test]
async fn a_malformed_response_fails_the_whole_batch() {
    check("not JSON", declared(), |_| Answer::Response("ok".to_owned()), 3).await;
    check("unknown", declared(), |event| failures([ids(event, &["b"])[0].clone(), json!("unknown")]), 3).await;
    check("empty", declared(), |_| failures([json!("")]), 3).await;
    check("null", declared(), |_| failures([Value::Null]), 3).await;
    let wrong_key =
        |event: &Value| Answer::json(&json!({ "batchItemFailures": [{ "itemId": ids(event, &["b"])[0] }] }));
    check("wrong key", declared(), wrong_key, 3).await;
}

#[tokio::test]
async fn an_error_of_the_function_fails_the_whole_batch() {
    let error = |_: &Value| Answer::Error { error_type: "Any", message: "error" };
    check("error", declared(), error, 3).await;
    check("crash", declared(), |_| Answer::Exit("signal: 9"), 3).await;
    let whole = QueueMapping { failures: Failures::WholeBatch, ..declared() };
    check("error", whole.clone(), error, 3).await;
    check("the response is not read", whole, |_| failures([json!("unknown")]), 0).await;
}

#[tokio::test]
async fn an_event_is_what_lambda_sends() {
    let function = Closure::new(|_| failures([]));
    let world = World::start(declared(), Arc::clone(&function) as _, &["hello"]);

    world.batches(1).await;

    let event: SqsEvent = serde_json::from_value(function.events()[0].clone()).unwrap();
    let record = &event.records[0];
    assert_eq!(record.body.as_deref(), Some("hello"));
    assert_eq!(record.event_source_arn.as_deref(), Some("arn:aws:sqs:us-east-1:000000000000:work"));
    assert_eq!(record.attributes["ApproximateReceiveCount"], "1");
    assert!(record.message_id.is_some() && record.receipt_handle.is_some() && record.md5_of_body.is_some());
}

#[tokio::test]
async fn a_batch_holds_as_many_records_as_declared() {
    let function = Closure::new(|_| failures([]));
    let bodies: Vec<_> = (0..25).map(|number| number.to_string()).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    let world = World::start(declared(), Arc::clone(&function) as _, &bodies);

    world.batches(3).await;

    let sizes: Vec<_> = function.records(body).iter().map(Vec::len).collect();
    assert_eq!(sizes, [10, 10, 5]);
}

#[tokio::test]
async fn a_window_gathers_what_comes_in_its_time() {
    let function = Closure::new(|_| failures([]));
    let window = QueueMapping { batching_window: Duration::from_millis(500), ..declared() };
    let world = World::start(window, Arc::clone(&function) as _, &["first"]);
    eventually("the first message in flight", || world.counts().in_flight == 1).await;

    world.broker.send(&world.queue, SendRequest::from_body("second")).unwrap();
    world.batches(1).await;

    assert_eq!(function.records(body), [["first", "second"]]);
}

#[tokio::test]
async fn a_full_batch_does_not_wait_for_its_window() {
    let function = Closure::new(|_| failures([]));
    let window = QueueMapping { batch_size: 2, batching_window: Duration::from_secs(300), ..declared() };
    let world = World::start(window, Arc::clone(&function) as _, &["a", "b"]);

    world.batches(1).await;

    assert_eq!(function.records(body), [["a", "b"]]);
}

/// A function that never ends and counts its invocations.
struct Stuck(AtomicUsize);

impl Invoke for Stuck {
    fn invoke(&self, _payload: Bytes) -> BoxFuture<'static, Result<Bytes, InvokeError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn concurrency_grows_with_the_backlog_up_to_its_maximum() {
    let function = Arc::new(Stuck(AtomicUsize::new(0)));
    let few = QueueMapping { batch_size: 1, maximum_concurrency: Some(3), ..declared() };
    let world = World::start(few, Arc::clone(&function) as _, &["a", "b", "c", "d", "e"]);

    eventually("three invocations", || function.0.load(Ordering::SeqCst) == 3).await;

    // What cannot be processed is not received either.
    assert_eq!(world.counts(), Counts { visible: 2, in_flight: 3, delayed: 0 });
}

#[tokio::test(start_paused = true)]
async fn what_failed_comes_again_after_its_visibility_timeout() {
    let function = Closure::new(|event| match event["Records"][0]["attributes"]["ApproximateReceiveCount"].as_str() {
        Some("1") => failures(ids(event, &["b"])),
        _ => failures([]),
    });
    let world = World::start(declared(), Arc::clone(&function) as _, &["a", "b"]);

    world.batches(1).await;
    assert_eq!(function.events().len(), 1);
    tokio::time::sleep(Duration::from_secs(31)).await;
    world.batches(2).await;

    assert_eq!(function.records(body), [vec!["a", "b"], vec!["b"]]);
    assert_eq!(world.counts().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_keeps_failing_is_asked_less_and_less() {
    let function = Closure::new(|_| Answer::Error { error_type: "Any", message: "error" });
    let one = QueueMapping { batch_size: 1, maximum_concurrency: Some(1), ..declared() };
    let bodies = vec!["x"; 100];
    let _world = World::start(one, Arc::clone(&function) as _, &bodies);

    tokio::time::sleep(Duration::from_secs(20)).await;

    let invocations = function.events().len();
    assert!((4..8).contains(&invocations), "{invocations} invocations");
}

#[tokio::test(start_paused = true)]
async fn hostile_deliveries_repeat_and_reorder_but_lose_nothing() {
    let bodies: Vec<_> = (0..500).map(|number| format!("{number:03}")).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    let function = Closure::new(|_| failures([]));
    let hostility = Hostility { duplicate: 0.3, order: Order::Shuffled, seed: 11 };
    let world = World::start_hostile(declared(), Arc::clone(&function) as _, &bodies, hostility);

    world.batches(50).await;

    let delivered: Vec<_> = function.records(body).concat();
    let distinct: BTreeSet<_> = delivered.iter().map(String::as_str).collect();
    assert_eq!(distinct, bodies.iter().copied().collect());
    assert!((600..700).contains(&delivered.len()), "{} deliveries", delivered.len());
    assert!(!delivered.is_sorted());
    assert_eq!(world.counts().total(), 0);
    assert_eq!(world.progress.done(), 500);
    let is_twice_in_one_batch = |batch: &Vec<String>| batch.iter().collect::<BTreeSet<_>>().len() < batch.len();
    assert!(function.records(body).iter().any(is_twice_in_one_batch));
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_repetition_changes_nothing() {
    // The first delivery of each body fails and so stays in the queue, every later one succeeds.
    let seen = std::sync::Mutex::new(BTreeSet::new());
    let function = Closure::new(move |event| {
        let mut seen = seen.lock().unwrap();
        let records = event["Records"].as_array().unwrap();
        let fresh: Vec<_> = records.iter().filter(|record| seen.insert(body(record))).collect();
        failures(fresh.iter().map(|record| record["messageId"].clone()))
    });
    let hostility = Hostility { duplicate: 1.0, order: Order::Shuffled, seed: 12 };
    let world = World::start_hostile(declared(), Arc::clone(&function) as _, &["a", "b", "c"], hostility);

    world.batches(1).await;
    // The queue's visibility timeout.
    tokio::time::sleep(Duration::from_secs(30)).await;
    eventually("an empty queue", || world.counts().total() == 0 && world.progress.pending() == 0).await;

    // Only what the queue itself delivered was deleted, each message once.
    assert_eq!(world.progress.done(), 3);
    assert_eq!(world.broker.totals(&world.queue).unwrap().deleted, 3);
}
