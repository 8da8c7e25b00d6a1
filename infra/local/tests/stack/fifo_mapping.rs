//! Mappings of FIFO queues: order within a group, one batch of a group at a time, failures, and hostile deliveries that such a
//! queue allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use local::lambda::{Invoke, InvokeError};
use local::mapping::{Hostility, Order};
use local::model::QueueMapping;
use local::sqs::Broker;
use queue::{Counts, QueueName, SendRequest};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::queue_mapping::{World, body, declared, failures, ids};
use crate::runtime::{Answer, Closure, eventually};

const MAX_RECEIVE_COUNT: u32 = 5;

/// A broker with `work.fifo` and its dead letter queue.
fn broker() -> (Broker, QueueName) {
    let broker = Broker::default();
    let create = |name: &str, pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().chain(&[("FifoQueue", "true"), ("ContentBasedDeduplication", "true")]);
        let attributes: BTreeMap<_, _> = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        broker.create_queue(name, &attributes).unwrap()
    };
    create("dead.fifo", &[]);
    let arn = "arn:aws:sqs:us-east-1:000000000000:dead.fifo";
    let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVE_COUNT}}}"#);
    let queue = create("work.fifo", &[("RedrivePolicy", &policy), ("VisibilityTimeout", "3")]);
    (broker, queue)
}

/// Sends a message whose group is the first letter of its body.
fn send(broker: &Broker, queue: &QueueName, body: &str) {
    let request = SendRequest { group_id: Some(body[..1].to_owned()), ..SendRequest::from_body(body) };
    broker.send(queue, request).unwrap();
}

fn start(declared: QueueMapping, function: Arc<dyn Invoke>, bodies: &[&str], hostility: Hostility) -> World {
    let (broker, queue) = broker();
    for body in bodies {
        send(&broker, &queue, body);
    }
    let declared = QueueMapping { queue: queue.to_string(), ..declared };
    World::start_on(broker, queue, declared, function, hostility)
}

fn receive_count(record: &Value) -> u32 {
    record["attributes"]["ApproximateReceiveCount"].as_str().unwrap().parse().unwrap()
}

/// A function whose invocations end when the test says so.
struct Patient {
    bodies: Mutex<Vec<Vec<String>>>,
    done: Arc<Semaphore>,
}

impl Patient {
    fn new() -> Arc<Self> {
        Arc::new(Self { bodies: Mutex::default(), done: Arc::new(Semaphore::new(0)) })
    }

    fn invocations(&self) -> Vec<Vec<String>> {
        self.bodies.lock().unwrap().clone()
    }
}

impl Invoke for Patient {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'static, Result<Bytes, InvokeError>> {
        let event: Value = serde_json::from_slice(&payload).unwrap();
        self.bodies.lock().unwrap().push(event["Records"].as_array().unwrap().iter().map(body).collect());
        let done = Arc::clone(&self.done);
        async move {
            done.acquire().await.unwrap().forget();
            Ok(Bytes::from_static(b"{}"))
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_as_many_of_a_group_as_it_can_and_in_order() {
    let function = Closure::new(|_| failures([]));
    let bodies = ["a1", "b1", "a2", "b2", "a3", "c1", "a4"];
    let few = QueueMapping { batch_size: 5, maximum_concurrency: Some(1), ..declared() };
    let world = start(few, Arc::clone(&function) as _, &bodies, Hostility::default());

    world.batches(2).await;

    assert_eq!(function.records(body), [vec!["a1", "a2", "a3", "a4", "b1"], vec!["c1", "b2"]]);
    assert_eq!(world.counts().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_group_is_in_one_batch_at_a_time_and_others_go_on() {
    let function = Patient::new();
    let one = QueueMapping { batch_size: 1, maximum_concurrency: Some(10), ..declared() };
    let world = start(one, Arc::clone(&function) as _, &["a1", "a2", "b1"], Hostility::default());
    eventually("both groups under way", || function.invocations().len() == 2).await;

    send(&world.broker, &world.queue, "a3");
    send(&world.broker, &world.queue, "c1");
    eventually("a third group", || function.invocations().len() == 3).await;
    assert_eq!(function.invocations(), [["a1"], ["b1"], ["c1"]]);

    function.done.add_permits(3);
    eventually("the group's next", || function.invocations().len() == 4).await;
    assert_eq!(function.invocations()[3], ["a2"]);
    function.done.add_permits(10);
    eventually("an empty queue", || world.counts().total() == 0).await;
    assert_eq!(function.invocations()[4], ["a3"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_the_rest_of_its_group_back_and_nothing_else() {
    let function = Closure::new(|event| match receive_count(&event["Records"][0]) {
        1 => failures(ids(event, &["a2", "a3"])),
        _ => failures([]),
    });
    let world = start(declared(), Arc::clone(&function) as _, &["a1", "a2", "a3", "b1"], Hostility::default());
    world.batches(1).await;
    assert_eq!(world.counts(), Counts { visible: 0, in_flight: 2, delayed: 0 });

    // What comes later to the group waits, what comes to others does not.
    send(&world.broker, &world.queue, "a4");
    send(&world.broker, &world.queue, "b2");
    world.batches(2).await;
    eventually("the end of the group", || world.counts().total() == 0).await;

    let expected = [vec!["a1", "a2", "a3", "b1"], vec!["b2"], vec!["a2", "a3", "a4"]];
    assert_eq!(function.records(body), expected);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_failed_as_a_whole_comes_again_in_order() {
    let function = Closure::new(|event| match receive_count(&event["Records"][0]) {
        1 => Answer::Error { error_type: "Any", message: "error" },
        _ => failures([]),
    });
    let world = start(declared(), Arc::clone(&function) as _, &["a1", "a2", "b1"], Hostility::default());

    world.batches(2).await;

    assert_eq!(function.records(body), [["a1", "a2", "b1"], ["a1", "a2", "b1"]]);
    assert_eq!((world.counts().total(), world.progress.done()), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn a_poison_message_ends_as_a_dead_letter_and_its_group_goes_on() {
    // Once `a1` is gone its group succeeds.
    let function = Closure::new(|event| match ids(event, &["a1"]).is_empty() {
        true => failures([]),
        false => failures(ids(event, &["a1", "a2"])),
    });
    let world = start(declared(), Arc::clone(&function) as _, &["a1", "a2", "b1"], Hostility::default());

    eventually("an empty queue", || world.counts().total() == 0).await;

    let dead = world.broker.queue("dead.fifo").unwrap();
    // Both were received as often; the one that is not to blame had to be there for it.
    assert_eq!(world.broker.counts(&dead).unwrap().visible, 2);
    assert_eq!(world.progress.done(), 1);
}

/// Checks that each group's deliveries are what a FIFO queue can give: whatever came, comes again, or is the next.
fn check_order(deliveries: &[String]) {
    let mut next: BTreeMap<&str, usize> = BTreeMap::new();
    for delivery in deliveries {
        let (group, number) = (&delivery[..1], delivery[1..].parse::<usize>().unwrap());
        let next = next.entry(group).or_default();
        assert!(number <= *next, "{delivery} came before {group}{next}");
        *next = (*next).max(number + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_deliveries_repeat_and_mix_groups_but_never_reorder_one() {
    let bodies: Vec<String> =
        (0..40).flat_map(|number| ["a", "b", "c", "d", "e"].map(|group| format!("{group}{number}"))).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    let function = Closure::new(|_| failures([]));
    let hostility = Hostility { duplicate: 0.3, order: Order::Shuffled, seed: 11 };
    let world = start(declared(), Arc::clone(&function) as _, &bodies, hostility);

    eventually("an empty queue", || world.counts().total() == 0 && world.progress.pending() == 0).await;

    let delivered = function.records(body).concat();
    assert_eq!(delivered.iter().map(String::as_str).collect::<BTreeSet<_>>(), bodies.iter().copied().collect());
    assert!(delivered.len() > 220, "{} deliveries", delivered.len());
    assert_eq!(world.progress.done(), 200);
    check_order(&delivered);
    let batches = function.records(body);
    let mixed = |batch: &Vec<String>| {
        let runs = batch.chunk_by(|one, next| one[..1] == next[..1]).count();
        runs > batch.iter().map(|body| &body[..1]).collect::<BTreeSet<_>>().len()
    };
    assert!(batches.iter().any(mixed), "groups were never mixed");
    let sizes: BTreeSet<_> = batches.iter().map(Vec::len).collect();
    assert!(sizes.len() > 3, "{sizes:?}");
    let dead = world.broker.queue("dead.fifo").unwrap();
    assert_eq!(world.broker.counts(&dead).unwrap().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn however_hostile_it_is_a_healthy_message_is_no_dead_letter() {
    let function = Closure::new(|_| failures([]));
    let hostility = Hostility { duplicate: 1.0, order: Order::AsRead, seed: 1 };
    let world = start(declared(), Arc::clone(&function) as _, &["a0", "a1", "a2", "b0"], hostility);

    eventually("an empty queue", || world.counts().total() == 0 && world.progress.pending() == 0).await;

    assert_eq!(world.progress.done(), 4);
    check_order(&function.records(body).concat());
    let records = function.events().into_iter().flat_map(|event| event["Records"].as_array().unwrap().clone());
    assert_eq!(records.map(|record| receive_count(&record)).max(), Some(3));
}
