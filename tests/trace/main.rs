//! One trace id from the HTTP request to the webhook: the functions' own code on one database, with their logs in a folder, in which
//! the operator's command finds the whole life of the event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Api, Store, router};
use aws::items::TableNames;
use aws::metrics::Metrics;
use aws::publisher::{Failure, Message, SendBatch};
use aws::system::System;
use aws::webhook::Webhook;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::post;
use consumer::{Clock, Delivery, Driver, EffectDriver, MessageId};
use domain::fan_out::FanOut;
use domain::graph::FollowGraph;
use domain::inbox::Inbox;
use events::{Consumer, EventId, TraceId};
use lambda_http::request::RequestContext;
use operations::trace::{Folder, Life, Logs, StepKind};
use outbox_relay::Relay;
use serde_json::{Value, json};
use testkit::RecordedVisibility;
use testkit::contract::Subject;
use tests::DynamoDb;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tower::ServiceExt;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A log of the function that is running, a file each, as a local stack keeps them.
#[derive(Clone)]
struct FunctionLog {
    folder: PathBuf,
    function: Arc<Mutex<&'static str>>,
}

impl Write for FunctionLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let path = self.folder.join(format!("p-{}.log", self.function.lock().unwrap()));
        OpenOptions::new().create(true).append(true).open(path)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Queues by name, as far as the relay has sent to them.
#[derive(Clone, Default)]
struct Queues(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

impl SendBatch for Queues {
    async fn send_batch(&self, queue_url: &str, messages: &[&Message]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let mut queues = self.0.lock().unwrap();
        let queue = queues.entry(queue_url.trim_start_matches("q/").to_owned()).or_default();
        queue.extend(messages.iter().map(|message| message.body.clone()));
        Ok(vec![Ok(()); messages.len()])
    }
}

impl Queues {
    fn take(&self, consumer: Consumer) -> Vec<Delivery> {
        let bodies = self.0.lock().unwrap().remove(consumer.queue_name()).unwrap_or_default();
        let delivery = |(index, body): (usize, String)| Delivery {
            message_id: MessageId::try_from(format!("{consumer}-{index}")).unwrap(),
            receipt_handle: None,
            receive_count: 1,
            group: None,
            body: body.into_bytes(),
        };
        bodies.into_iter().enumerate().map(delivery).collect()
    }
}

/// The functions, one after the other.
struct Stack {
    dynamodb: DynamoDb,
    api: Router,
    queues: Queues,
    relayed: BTreeSet<String>,
    webhook_url: String,
    running: Arc<Mutex<&'static str>>,
}

impl Stack {
    async fn start(running: Arc<Mutex<&'static str>>, webhook_url: String) -> Self {
        let dynamodb = DynamoDb::start().await;
        let name = |name: &str| name.to_owned();
        let names = TableNames { records: name("records"), views: name("views"), ledger: name("ledger") };
        let store = Store::new(dynamodb.client.clone(), dynamodb.client.clone(), names);
        let api = router(Api::new(store, Metrics::new("test", |_| {}), || System.now()));
        Self { dynamodb, api, queues: Queues::default(), relayed: BTreeSet::new(), webhook_url, running }
    }

    fn run(&self, function: &'static str) {
        *self.running.lock().unwrap() = function;
    }

    /// Sends a request of a player whose token the gateway has accepted.
    async fn request(
        &self,
        player: &str,
        (method, path): (&str, &str),
        header: Option<(&str, &str)>,
        body: Value,
    ) -> StatusCode {
        self.run("api");
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.extension(accepted(player)).body(Body::from(body.to_string())).unwrap();
        self.api.clone().oneshot(request).await.unwrap().status()
    }

    /// Gives the relay the records whose events it has not had, as the stream would.
    async fn relay(&mut self) {
        self.run("outbox-relay");
        let items = self.dynamodb.client.scan().table_name("records").send().await.unwrap();
        let mut records = Vec::new();
        for item in items.items() {
            let (_, row) = aws::items::row(domain::Table::Records, item.clone()).unwrap();
            let Some(event) = row.attributes.as_ref().and_then(|attributes| attributes.get(domain::EVENT)) else {
                continue;
            };
            if self.relayed.insert(event["event_id"].to_string()) {
                let number = self.relayed.len().to_string();
                let image = json!({"event": as_stream(event)});
                records.push(json!({"eventName": "INSERT", "dynamodb": {"SequenceNumber": number, "NewImage": image}}));
            }
        }
        let relay = Relay::new(self.queues.clone(), "q/", Metrics::new("test", |_| {}));
        let deadline = Instant::now() + Duration::from_secs(60);
        let response = relay.handle(&json!({"Records": records}), deadline).await.unwrap();
        assert!(response.batch_item_failures.is_empty());
    }

    fn driver<D: domain::Decider>(
        &self,
        consumer: Consumer,
        decider: D,
    ) -> Driver<D, impl consumer::Ledger, System, RecordedVisibility> {
        self.run(consumer.as_str());
        let ledger = self.dynamodb.ledger().clone();
        Driver { consumer, decider, ledger, environment: System, visibility: RecordedVisibility::default() }
    }

    async fn consume(&self) {
        let deadline = || System.now() + Duration::from_secs(30);
        let follows = self.driver(Consumer::FollowChanged, FollowGraph);
        follows.handle(&self.queues.take(Consumer::FollowChanged), deadline()).await;
        let fan_out = self.driver(Consumer::FanOut, FanOut);
        fan_out.handle(&self.queues.take(Consumer::FanOut), deadline()).await;
        let notifier = Some(Webhook::new(self.webhook_url.clone()));
        let driver = self.driver(Consumer::NotificationRequested, Inbox);
        let inbox = EffectDriver { driver, notifier, send_timeout: Duration::from_secs(5) };
        let deliveries = self.queues.take(Consumer::NotificationRequested);
        inbox.handle(&deliveries, deadline()).await;
    }
}

/// Writes a value as a table's stream does.
fn as_stream(value: &Value) -> Value {
    match value {
        Value::Null => json!({"NULL": true}),
        Value::Bool(value) => json!({"BOOL": value}),
        Value::Number(number) => json!({"N": number.to_string()}),
        Value::String(text) => json!({"S": text}),
        Value::Array(values) => json!({"L": values.iter().map(as_stream).collect::<Vec<_>>()}),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), as_stream(value)));
            json!({"M": fields.collect::<serde_json::Map<_, _>>()})
        }
    }
}

type Letters = Arc<Mutex<Vec<HeaderMap>>>;

async fn webhook(letters: &Letters) -> String {
    let take = |State(letters): State<Letters>, headers: HeaderMap| async move {
        letters.lock().unwrap().push(headers);
        StatusCode::NO_CONTENT
    };
    let router = Router::new().route("/", post(take)).with_state(letters.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Returns what the gateway hands over with a request of a player.
fn accepted(player: &str) -> RequestContext {
    let http = json!({"method": "POST", "path": "/", "protocol": "", "sourceIp": "", "userAgent": ""});
    let authorizer = json!({"jwt": {"claims": {"sub": player}, "scopes": null}});
    let context = json!({"stage": "$default", "timeEpoch": 0, "http": http, "authorizer": authorizer});
    RequestContext::ApiGatewayV2(serde_json::from_value(context).unwrap())
}

/// Lets one player follow another under a header, until the other is told, and returns the life of the event and the letters.
async fn follow(header: Option<(&str, &str)>) -> (Life, Vec<HeaderMap>) {
    let folder = tempfile::tempdir().unwrap();
    let log = FunctionLog { folder: folder.path().to_owned(), function: Arc::new(Mutex::new("api")) };
    let (running, levels) = (log.function.clone(), aws::telemetry::levels(|_| None).unwrap());
    let _guard = tracing::subscriber::set_default(aws::telemetry::subscriber(levels, move || log.clone()));
    let letters = Letters::default();
    let mut stack = Stack::start(running, webhook(&letters).await).await;
    for player in ["ann", "bob"] {
        let body = json!({"player_id": player, "username": player});
        assert_eq!(stack.request(player, ("POST", "/players"), None, body).await, StatusCode::CREATED);
    }
    let follow = ("PUT", "/players/ann/follows/bob");
    assert_eq!(stack.request("ann", follow, header, json!({})).await, StatusCode::CREATED);
    for _ in 0..2 {
        stack.relay().await;
        stack.consume().await;
    }
    let followed = event_id(&folder.path().join("p-api.log"));
    let life = Logs::Folder(Folder::new(folder.path(), "p")).life(followed).await.unwrap().unwrap();
    let letters = letters.lock().unwrap().clone();
    (life, letters)
}

/// Returns the event of the last request.
fn event_id(log: &std::path::Path) -> EventId {
    let text = std::fs::read_to_string(log).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    line["event_id"].as_str().unwrap().parse().unwrap()
}

fn check(life: &Life, letters: &[HeaderMap]) {
    use StepKind::{Delivery, Letter, Record, Relay, Request};
    let kinds =
        |timeline: &operations::trace::Timeline| timeline.steps.iter().map(|step| step.kind).collect::<Vec<_>>();
    let mut own = kinds(&life.event);
    own.sort();
    assert_eq!(own, [Record, Request, Relay, Delivery, Delivery], "{life}");
    assert!(life.to_string().contains("sent to follow-changed fan-out activity active-players"), "{life}");
    assert_eq!(life.event.not_delivered_to, ["activity", "active-players"]);
    assert_eq!(life.derived.len(), 1, "{life}");
    assert_eq!(life.derived[0].event_type.as_deref(), Some("notification_requested"));
    let mut derived = kinds(&life.derived[0]);
    derived.sort();
    assert_eq!(
        derived,
        [Relay, Delivery, Delivery, Letter],
        "the letter's end is noted by a delivery of its own: {life}"
    );
    assert_eq!(letters.len(), 1);
    let sent = TraceId::from_traceparent(letters[0]["traceparent"].to_str().unwrap());
    assert_eq!((sent, life.trace_id.is_some()), (life.trace_id, true));
}

#[tokio::test]
async fn the_trace_of_the_caller_arrives_at_the_webhook() {
    let header = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let (life, letters) = follow(Some(("traceparent", &header))).await;
    check(&life, &letters);
    assert_eq!(life.trace_id.map(|id| id.to_string()).as_deref(), Some(TRACE));
}

#[tokio::test]
async fn so_does_the_gateways_and_one_that_is_minted() {
    let x_ray = format!("Root=1-{}-{};Parent=463ac35c9f6413ad;Sampled=1", &TRACE[..8], &TRACE[8..]);
    let (life, letters) = follow(Some(("x-amzn-trace-id", &x_ray))).await;
    check(&life, &letters);
    assert_eq!(life.trace_id.map(|id| id.to_string()).as_deref(), Some(TRACE));
    let (life, letters) = follow(None).await;
    check(&life, &letters);
}
