//! A whole stack of a model: where it answers, when it is quiet, and what stops it from starting.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use local::calls::Noting;
use local::mapping::Hostility;
use local::model::{Access, Failures, Model, Queue, QueueMapping, Route, Schedule, Table};
use local::stack::{Addresses, Listeners, Settings, Stack, StartError};
use local::tables::{self, TablesError};
use queue::SendRequest;
use reqwest::Client;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::runtime::{PATIENCE, eventually, function};
use crate::stream_mapping::table;

const ANY: Addresses = {
    let address = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    Addresses { api: address, dynamodb: address, sqs: address }
};

fn settings(folder: &Path) -> Settings {
    Settings {
        data: None,
        binaries: folder.to_owned(),
        logs: folder.to_owned(),
        issuer: None,
        idle: Duration::from_secs(30),
        instances_max: 4,
        api_concurrency: 4,
        hostility: Hostility::default(),
        kill_every: None,
        visibility_timeout: None,
        calls: Noting::Off,
    }
}

fn queue(name: &str, attributes: &[(&str, &str)]) -> Queue {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Queue { name: name.to_owned(), attributes }
}

/// A table, a queue with a mapping, its dead letter queue, a queue nobody reads, and a function whose binary is missing.
fn model() -> Model {
    let redrive = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}"#;
    Model {
        tables: vec![table()],
        queues: vec![
            queue("work", &[("VisibilityTimeout", "0"), ("RedrivePolicy", redrive)]),
            queue("dead", &[]),
            queue("unread", &[]),
        ],
        functions: vec![function(Duration::from_secs(5))],
        queue_mappings: vec![QueueMapping {
            queue: "work".to_owned(),
            function: "function".to_owned(),
            batch_size: 10,
            batching_window: Duration::ZERO,
            maximum_concurrency: Some(2),
            failures: Failures::ReportBatchItemFailures,
        }],
        routes: vec![Route {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            function: "function".to_owned(),
            access: Access::Anyone,
        }],
        ..Model::default()
    }
}

async fn start(model: Model, folder: &Path) -> Result<Stack, StartError> {
    Stack::start(model, Listeners::bind(ANY).await?, &settings(folder)).await
}

#[tokio::test]
async fn every_server_answers_at_its_address() {
    let folder = TempDir::new().unwrap();
    let stack = start(model(), folder.path()).await.unwrap();
    let client = Client::builder().no_proxy().build().unwrap();
    let addresses = stack.addresses();

    let api = client.get(addresses.api_url() + "/").send().await.unwrap();
    assert_eq!(api.status(), 500, "the function's binary is missing");
    let dynamodb = client.get(addresses.dynamodb_url() + "/").send().await.unwrap();
    assert_eq!(dynamodb.status(), 200);
    let sqs = client
        .post(addresses.sqs_url() + "/")
        .header("x-amz-target", "AmazonSQS.GetQueueUrl")
        .header("content-type", "application/x-amz-json-1.0")
        .body(json!({ "QueueName": "work" }).to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(sqs.status(), 200);

    stack.stop().await;
    assert!(client.get(addresses.api_url() + "/").send().await.is_err());
}

#[tokio::test]
async fn a_stack_is_quiet_when_nothing_is_left_but_dead_letters() {
    let folder = TempDir::new().unwrap();
    let stack = start(model(), folder.path()).await.unwrap();
    let send = |name: &str| {
        let queue = stack.broker().queue(name).unwrap();
        stack.broker().send(&queue, SendRequest::from_body("hello")).unwrap();
    };
    send("unread");
    tokio::time::timeout(PATIENCE, stack.wait_until_quiet()).await.unwrap().unwrap();

    send("work");
    tokio::time::timeout(PATIENCE, stack.wait_until_quiet()).await.unwrap().unwrap();

    assert_eq!(stack.dead_letters(), BTreeMap::from([("dead".to_owned(), 1), ("unread".to_owned(), 1)]));
    let snapshot = stack.snapshot();
    assert_eq!((snapshot.rows[0].backlog, snapshot.rows[0].dead_letters), (0, Some(1)));
    assert_eq!(snapshot.unread, [("unread".to_owned(), 1)]);
}

#[tokio::test]
async fn a_schedule_invokes_its_function_again_and_again_and_the_stack_can_still_be_quiet() {
    let folder = TempDir::new().unwrap();
    let every = Duration::from_millis(200);
    let schedules = vec![Schedule { function: "function".to_owned(), every }];
    let stack = start(Model { schedules, ..model() }, folder.path()).await.unwrap();
    let invocations = || stack.functions().counters()["function"].invocations;

    // Each of them fails, for the function's binary is missing: the next one comes anyway.
    eventually("two invocations", || invocations() >= 2).await;
    tokio::time::timeout(PATIENCE, stack.wait_until_quiet()).await.unwrap().unwrap();

    let before = invocations();
    eventually("one more invocation", || invocations() > before).await;
}

#[tokio::test]
async fn a_stack_with_a_message_in_flight_is_not_quiet() {
    let folder = TempDir::new().unwrap();
    let mut slow = model();
    slow.queues[0] = queue("work", &[("VisibilityTimeout", "600")]);
    let stack = start(slow, folder.path()).await.unwrap();
    let work = stack.broker().queue("work").unwrap();
    stack.broker().send(&work, SendRequest::from_body("hello")).unwrap();
    eventually("a failed batch", || stack.snapshot().rows[0].errors == 1).await;

    let quiet = tokio::time::timeout(Duration::from_millis(200), stack.wait_until_quiet()).await;

    assert!(quiet.is_err());
}

#[tokio::test]
async fn a_port_in_use_is_named_with_its_option() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let sqs = taken.local_addr().unwrap();

    let error = Listeners::bind(Addresses { sqs, ..ANY }).await.unwrap_err();

    assert_eq!(error.to_string(), format!("SQS cannot listen on {sqs}: choose another port with --sqs-port"));
}

#[tokio::test]
async fn what_is_not_declared_stops_the_start() {
    let folder = TempDir::new().unwrap();
    let mut no_function = model();
    no_function.functions.clear();
    let mut no_queue = model();
    no_queue.queues.remove(0);
    let wrong_table = Table { create_request: "{}".to_owned(), ..table() };

    for (model, named) in [
        (no_function, "no function is called function"),
        (no_queue, "queue work"),
        (Model { tables: vec![wrong_table], ..Model::default() }, "table records: "),
    ] {
        let error = start(model, folder.path()).await.err().unwrap();
        assert!(error.to_string().starts_with(named), "{error}");
    }
}

#[tokio::test]
async fn a_data_folder_keeps_its_tables_and_refuses_others() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let count = |database: &dynoxide::Database| database.table_count().unwrap();
    assert_eq!(count(&tables::open(Some(&data), &[table()]).unwrap()), 1);

    assert_eq!(count(&tables::open(Some(&data), &[table()]).unwrap()), 1);

    let changed = Table { create_request: table().create_request.replace("\"sk\"", "\"sort\""), ..table() };
    let error = tables::open(Some(&data), &[changed]).err().unwrap();
    assert!(matches!(error, TablesError::Changed { what: "keys", .. }), "{error}");
    let no_folder = tables::open(Some(Path::new("/dev/null/data")), &[table()]).err().unwrap();
    assert!(no_folder.to_string().contains("/dev/null/data"), "{no_folder}");
}
