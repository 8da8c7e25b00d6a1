//! The project's own template gives exactly the stack that the documents describe.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use events::{Consumer, EventType, QueueOrder, RELAY_REJECTED_QUEUE};
use local::model::{
    Access, Bisect, Failures, Function, JwtAuthorizer, Model, Queue, QueueMapping, Route, Schedule, StreamMapping,
    Table, Unsupported,
};
use local::template::{ignored, read};
use serde_json::{Value, json};

const HOUR: u64 = 3_600;
/// What everybody who counts is told.
const METRICS: (&str, &str) = ("METRICS_NAMESPACE", "players-engine");

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap().to_owned()
}

pub(crate) fn project(parameters: &[(&str, &str)]) -> Model {
    let parameters: BTreeMap<String, String> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&root().join("template.yaml"), &parameters).unwrap()
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn function(name: &str, timeout: u64, memory_mib: u32, environment: &[(&str, &str)]) -> Function {
    Function {
        name: format!("players-engine-{name}"),
        binary: name.to_owned(),
        code: root(),
        environment: texts(environment),
        timeout: Duration::from_secs(timeout),
        memory_mib,
    }
}

fn consumer(name: &str, memory_mib: u32, tables: &[(&str, &str)]) -> Function {
    consumer_of(name, name, memory_mib, tables)
}

fn consumer_of(queue: &str, name: &str, memory_mib: u32, tables: &[(&str, &str)]) -> Function {
    let queue_url = format!("https://sqs.us-east-1.amazonaws.com/000000000000/players-engine-{queue}");
    function(name, 30, memory_mib, &[tables, &[("QUEUE_URL", &queue_url), METRICS]].concat())
}

fn queue(name: &str, attributes: &[(&str, &str)]) -> Queue {
    Queue { name: format!("players-engine-{name}"), attributes: texts(attributes) }
}

fn consumer_queues(name: &str) -> [Queue; 2] {
    // Whoever takes notifications may be away for hours.
    let receives_max = if name == "notification-requested" { 100 } else { 20 };
    let arn = format!("arn:aws:sqs:us-east-1:000000000000:players-engine-{name}");
    let redrive =
        json!({ "deadLetterTargetArn": format!("{arn}-dead-letters"), "maxReceiveCount": receives_max }).to_string();
    let allow = json!({ "redrivePermission": "byQueue", "sourceQueueArns": [arn] }).to_string();
    let (four_days, two_weeks) = ((4 * 24 * HOUR).to_string(), (14 * 24 * HOUR).to_string());
    [
        queue(
            name,
            &[("VisibilityTimeout", "190"), ("MessageRetentionPeriod", &four_days), ("RedrivePolicy", &redrive)],
        ),
        queue(
            &format!("{name}-dead-letters"),
            &[("MessageRetentionPeriod", &two_weeks), ("RedriveAllowPolicy", &allow)],
        ),
    ]
}

/// The same as FIFO queues of high throughput.
fn fifo_consumer_queues(name: &str) -> [Queue; 2] {
    const FIFO: [(&str, &str); 3] =
        [("FifoQueue", "true"), ("DeduplicationScope", "messageGroup"), ("FifoThroughputLimit", "perMessageGroupId")];
    consumer_queues(name).map(|queue| {
        let references = queue.attributes.into_iter().map(|(attribute, value)| {
            let value = value.replace("-dead-letters", "-dead-letters.fifo");
            (attribute, value.replace(&format!("players-engine-{name}\""), &format!("players-engine-{name}.fifo\"")))
        });
        Queue { name: format!("{}.fifo", queue.name), attributes: references.chain(texts(&FIFO)).collect() }
    })
}

fn queue_mapping(name: &str, batch_size: usize, maximum_concurrency: usize) -> QueueMapping {
    QueueMapping {
        queue: format!("players-engine-{name}"),
        function: format!("players-engine-{name}"),
        batch_size,
        batching_window: Duration::from_secs(1),
        maximum_concurrency: Some(maximum_concurrency),
        failures: Failures::ReportBatchItemFailures,
    }
}

/// Method and path of every route, and who may call it: `anyone`, whoever has a `token`, or whoever has one with a scope. What SAM
/// makes of the template is compared with the same lines (`tests/sam/access.py`).
const ROUTES: &str = include_str!("../../../../tests/sam/access.txt");

fn route(line: &str) -> Route {
    let (key, access) = line.split_once(": ").unwrap();
    let (method, path) = key.split_once(' ').unwrap();
    let authorizer = JwtAuthorizer {
        header: "authorization".to_owned(),
        issuer: "https://issuer.localhost".to_owned(),
        audiences: vec!["players-engine".to_owned()],
    };
    let access = match access {
        "anyone" => Access::Anyone,
        "token" => Access::Token { authorizer, scopes: Vec::new() },
        scope => Access::Token { authorizer, scopes: vec![scope.to_owned()] },
    };
    Route { method: method.to_owned(), path: path.to_owned(), function: "players-engine-api".to_owned(), access }
}

fn string_attributes(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "AttributeName": name, "AttributeType": "S" })).collect()
}

fn keys(hash: &str, range: &str) -> Value {
    json!([{ "AttributeName": hash, "KeyType": "HASH" }, { "AttributeName": range, "KeyType": "RANGE" }])
}

fn table(name: &str, attributes: &[&str], additions: &[(&str, Value)], time_to_live: Option<&str>) -> Table {
    let name = format!("players-engine-{name}");
    let mut request = json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": string_attributes(attributes),
        "KeySchema": keys("pk", "sk"),
    });
    for (property, value) in additions {
        request[*property] = value.clone();
    }
    Table { name, create_request: request.to_string(), time_to_live_attribute: time_to_live.map(str::to_owned) }
}

#[test]
fn the_tables_are_those_of_the_design() {
    let order = json!([{
        "IndexName": "order",
        "KeySchema": keys("order_block", "order_rank"),
        "Projection": { "ProjectionType": "ALL" },
    }]);
    let stream = json!({ "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" });

    let model = project(&[]);

    let expected = [
        table("records", &["pk", "sk"], &[("StreamSpecification", stream)], None),
        table("views", &["pk", "sk", "order_block", "order_rank"], &[("GlobalSecondaryIndexes", order)], None),
        table("ledger", &["pk", "sk"], &[], Some("expires_at")),
    ];
    assert_eq!(model.tables, expected);
}

#[test]
fn every_consumer_has_a_queue_a_dead_letter_queue_and_a_mapping() {
    let model = project(&[]);

    let consumers = [
        ("game-ended", 500, 2),
        ("game-ended-statistics", 100, 5),
        ("player-changed", 100, 2),
        ("post-changed", 100, 2),
        ("reaction-changed", 500, 2),
        ("follow-changed", 200, 2),
        ("activity", 100, 5),
        ("active-players", 100, 2),
        ("fan-out", 10, 10),
        ("notification-requested", 100, 2),
    ];
    let two_weeks = (14 * 24 * HOUR).to_string();
    let rejected = queue("relay-rejected", &[("MessageRetentionPeriod", &two_weeks)]);
    let queues: Vec<Queue> = consumers
        .iter()
        .flat_map(|(name, ..)| consumer_queues(name))
        .chain(fifo_consumer_queues("order-changed"))
        .chain([rejected])
        .collect();
    assert_eq!(model.queues, queues);
    let orders = QueueMapping {
        queue: "players-engine-order-changed.fifo".to_owned(),
        batching_window: Duration::ZERO,
        ..queue_mapping("order-changed", 10, 20)
    };
    let mappings = consumers.map(|(name, batch_size, concurrency)| queue_mapping(name, batch_size, concurrency));
    assert_eq!(model.queue_mappings, mappings.into_iter().chain([orders]).collect::<Vec<_>>());
}

#[test]
fn the_relay_reads_the_stream_of_records() {
    let model = project(&[]);

    let expected = StreamMapping {
        table: "players-engine-records".to_owned(),
        function: "players-engine-outbox-relay".to_owned(),
        batch_size: 100,
        batching_window: Duration::ZERO,
        bisect: Bisect::OnFunctionError,
        maximum_retry_attempts: None,
        parallelization_factor: 4,
        failures: Failures::ReportBatchItemFailures,
    };
    assert_eq!(model.stream_mappings, [expected]);
}

#[test]
fn a_canary_is_sent_every_five_minutes() {
    let canary = Schedule { function: "players-engine-canary".to_owned(), every: Duration::from_secs(300) };
    assert_eq!(project(&[]).schedules, [canary]);
}

#[test]
fn every_function_is_told_the_names_that_it_uses() {
    let records = ("RECORDS_TABLE", "players-engine-records");
    let views = ("VIEWS_TABLE", "players-engine-views");
    let ledger = ("LEDGER_TABLE", "players-engine-ledger");
    let queues = ("QUEUE_URL_PREFIX", "https://sqs.us-east-1.amazonaws.com/000000000000/players-engine-");

    let model = project(&[]);

    let expected = [
        function("api", 10, 256, &[records, views, ledger, METRICS]),
        consumer("game-ended", 512, &[records, views, ledger]),
        consumer("game-ended-statistics", 256, &[records, views, ledger]),
        consumer("player-changed", 256, &[records, views, ledger]),
        consumer("post-changed", 256, &[records, views, ledger]),
        consumer("reaction-changed", 512, &[records, views, ledger]),
        consumer("follow-changed", 256, &[records, views, ledger]),
        consumer("activity", 256, &[records, views, ledger]),
        consumer("active-players", 256, &[records, views, ledger]),
        consumer("fan-out", 256, &[records, views, ledger]),
        consumer("notification-requested", 256, &[records, views, ledger, ("WEBHOOK_URL", "")]),
        consumer_of("order-changed.fifo", "order-changed", 256, &[records, views, ledger]),
        function("outbox-relay", 60, 256, &[queues, METRICS]),
        function("canary", 10, 256, &[records]),
    ];
    assert_eq!(model.functions, expected);
    for function in &model.functions {
        let manifest = function.code.join("functions").join(&function.binary).join("Cargo.toml");
        assert!(manifest.is_file(), "{} is missing", manifest.display());
    }
}

#[test]
fn the_routes_are_those_of_the_api() {
    let model = project(&[]);

    let expected: Vec<Route> = ROUTES.lines().map(route).collect();
    assert_eq!(model.routes, expected);
}

#[test]
fn nothing_in_the_template_is_unsupported() {
    assert_eq!(project(&[]).unsupported, Vec::<Unsupported>::new());
}

#[test]
fn the_prefix_is_part_of_every_name() {
    let model = project(&[("Prefix", "other")]);

    let tables = model.tables.iter().map(|table| &table.name);
    let queues = model.queues.iter().map(|queue| &queue.name);
    let functions = model.functions.iter().map(|function| &function.name);
    for name in tables.chain(queues).chain(functions) {
        assert!(name.starts_with("other-"), "{name}");
    }
    assert_eq!(model.stream_mappings[0].table, "other-records");
    let relay = model.functions.iter().find(|function| function.binary == "outbox-relay").unwrap();
    assert!(relay.environment["QUEUE_URL_PREFIX"].ends_with("/other-"));
}

#[test]
fn dynoxide_creates_the_tables_as_they_are_requested() {
    let database = dynoxide::Database::memory().unwrap();
    for table in project(&[]).tables {
        let request = serde_json::from_str(&table.create_request).unwrap();
        let description = database.create_table(request).unwrap().table_description;
        assert_eq!(description.table_name, table.name);
        assert_eq!(description.latest_stream_arn.is_some(), table.name.ends_with("-records"));
        let indexes = description.global_secondary_indexes.map_or(0, |indexes| indexes.len());
        assert_eq!(indexes, usize::from(table.name.ends_with("-views")));
    }
}

#[test]
fn everything_that_is_ignored_has_a_reason() {
    let lists = [
        ignored::RESOURCES,
        ignored::ATTRIBUTES,
        ignored::SECTIONS,
        ignored::PARAMETER,
        ignored::NESTED_STACK,
        ignored::TABLE,
        ignored::QUEUE,
        ignored::FUNCTION,
        ignored::MAPPING,
        ignored::SCHEDULE,
        ignored::HTTP_API,
    ];
    for (name, reason) in lists.into_iter().flatten() {
        assert!(reason.len() > 10, "{name} is ignored without a reason");
    }
}

#[test]
fn every_consumer_of_the_topology_has_its_queue_and_every_queue_its_consumer() {
    let model = project(&[]);
    let named = |name: &str| format!("players-engine-{name}");
    let consumers: BTreeSet<Consumer> =
        EventType::ALL.into_iter().flat_map(|event_type| event_type.consumers().iter().collect::<Vec<_>>()).collect();
    let mapped = model.queue_mappings.iter().map(|mapping| (mapping.queue.clone(), mapping.function.clone()));
    let expected = consumers.iter().map(|consumer| (named(consumer.queue_name()), named(consumer.as_str())));
    assert_eq!(mapped.collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>());
    let mut declared: BTreeSet<String> = model.queues.iter().map(|queue| queue.name.clone()).collect();
    for consumer in &consumers {
        let (queue, ending) = match consumer.queue_order() {
            QueueOrder::Standard => (consumer.queue_name(), ""),
            QueueOrder::FifoByAggregate => (consumer.queue_name().trim_end_matches(".fifo"), ".fifo"),
        };
        assert!(declared.remove(&named(&format!("{queue}{ending}"))), "{consumer} has no queue");
        let dead_letters = named(&format!("{queue}-dead-letters{ending}"));
        assert!(declared.remove(&dead_letters), "{consumer} has no dead letter queue");
    }
    assert_eq!(declared, BTreeSet::from([named(RELAY_REJECTED_QUEUE)]));
}
