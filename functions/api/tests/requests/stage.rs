//! The API on fresh tables, a transport between them that fails when told to, and the consumers' work done at once.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use api::{Api, Store, router};
use aws::items::{self, TableNames};
use aws::metrics::Metrics;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use domain::activity::{ActivePlayers, EventCounts};
use domain::fan_out::FanOut;
use domain::games::Game;
use domain::graph::FollowGraph;
use domain::inbox::Inbox;
use domain::leaderboard::{Leaderboard, PlayerOnBoards};
use domain::orders::OrderViews;
use domain::posts::PostCounts;
use domain::reactions::ReactionCounts;
use domain::statistics::Statistics;
use domain::{Content, Decider, Decision, Key, Need, Row, State, Table, Write};
use events::{Consumer, Event, Timestamp};
use serde_json::{Value, json};
use tower::ServiceExt;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::tokens;

/// The time that the API's clock shows.
pub(crate) const NOW: &str = "2026-11-30T18:00:00.000Z";

/// What happens to a request on its way.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It is carried out, but the answer does not come back.
    LostAnswer,
    /// It is not carried out; this is the answer.
    Answer(u16, Value),
    /// It is not carried out; a batch read is answered with all its keys left out.
    LeftOut,
    /// Another command is faster and appends the same event; then it is carried out, and refused.
    Overtaken,
    /// It is carried out, but a query's page ends after one row.
    SmallPage,
}

#[derive(Debug, Default)]
struct Wire {
    faults: Mutex<Vec<(&'static str, Fault)>>,
    calls: Mutex<BTreeMap<String, usize>>,
}

#[derive(Debug)]
struct Faulty {
    inner: SharedHttpConnector,
    wire: Arc<Wire>,
}

impl HttpConnector for Faulty {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap().to_owned();
        *self.wire.calls.lock().unwrap().entry(operation.clone()).or_default() += 1;
        let fault = {
            let mut faults = self.wire.faults.lock().unwrap();
            let position = faults.iter().position(|(name, _)| *name == operation);
            position.map(|position| faults.remove(position).1)
        };
        let canned = |status: u16, body: String| {
            HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(body))))
        };
        match fault {
            None => self.inner.call(request),
            Some(Fault::LostAnswer) => {
                let inner = self.inner.call(request);
                HttpConnectorFuture::new(async move {
                    inner.await?;
                    Err(ConnectorError::io("the connection was reset".into()))
                })
            }
            Some(Fault::Answer(status, body)) => canned(status, body.to_string()),
            Some(Fault::SmallPage) => {
                let mut query = asked(&request);
                query["Limit"] = json!(1);
                self.inner.call(replaced(request, &query))
            }
            Some(Fault::Overtaken) => {
                let mut other = asked(&request);
                let token = other["ClientRequestToken"].as_str().unwrap().to_owned();
                // The event comes first, then the record of its command.
                other["TransactItems"][1]["Put"]["Item"]["sk"]["S"] = json!(token);
                other["ClientRequestToken"] = json!(token.replace('-', "_"));
                let inner = self.inner.clone();
                let faster = inner.call(replaced(request.try_clone().unwrap(), &other));
                HttpConnectorFuture::new(async move {
                    faster.await?;
                    inner.call(request).await
                })
            }
            Some(Fault::LeftOut) => {
                let asked = asked(&request);
                canned(200, json!({"Responses": {}, "UnprocessedKeys": asked["RequestItems"]}).to_string())
            }
        }
    }
}

fn replaced(mut request: HttpRequest, body: &Value) -> HttpRequest {
    let body = body.to_string();
    request.headers_mut().insert("content-length", body.len().to_string());
    *request.body_mut() = SdkBody::from(body);
    request
}

fn asked(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body().bytes().unwrap()).unwrap()
}

/// What all tests' requests have logged. The log is the whole process's: a subscriber of one thread would race with threads
/// that have none for the memory of what is enabled.
static LOG: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();

struct LogWriter(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log() -> &'static Arc<Mutex<Vec<u8>>> {
    LOG.get_or_init(|| {
        let memory = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&memory);
        let levels = Targets::new().with_target("api", LevelFilter::INFO);
        let subscriber = aws::telemetry::subscriber(levels, move || LogWriter(Arc::clone(&writer)));
        tracing::subscriber::set_global_default(subscriber).unwrap();
        memory
    })
}

/// Returns the lines that were logged.
pub(crate) fn log_lines() -> Vec<Value> {
    let text = String::from_utf8(log().lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An answer of the API.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// Takes the answer for a problem and returns where in the input it sees errors.
    pub(crate) fn places(&self) -> Vec<String> {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status.as_u16(), "{self:?}");
        for member in ["type", "title", "detail"] {
            assert!(self.body[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {self:?}");
        }
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        let place = |error: &Value| {
            assert!(error["detail"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
            ["pointer", "parameter", "header"].iter().find_map(|kind| error[kind].as_str()).unwrap().to_owned()
        };
        errors.iter().map(place).collect()
    }
}

/// The API with everything around it.
pub(crate) struct Stage {
    pub(crate) router: Router,
    pub(crate) client: Client,
    pub(crate) tables: TableNames,
    wire: Arc<Wire>,
    measured: Arc<Mutex<Vec<Value>>>,
    shard: AtomicUsize,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        log();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let database = dynoxide::Database::memory().unwrap();
        // The task ends with the test's runtime.
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()));

        let wire = Arc::new(Wire::default());
        let plain = client(&endpoint, RetryConfig::standard(), None);
        let tables = TableNames {
            records: "test-records".to_owned(),
            views: "test-views".to_owned(),
            ledger: "test-ledger".to_owned(),
        };
        create_table(&plain, &tables.records, None).await;
        create_table(&plain, &tables.views, Some(order_index())).await;
        create_table(&plain, &tables.ledger, None).await;
        let fast = RetryConfig::standard().with_initial_backoff(std::time::Duration::from_millis(1));
        let reads = client(&endpoint, fast, Some(&wire));
        let transactions = client(&endpoint, RetryConfig::disabled(), Some(&wire));
        let store = Store::new(reads, transactions, tables.clone());
        let measured = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&measured);
        let metrics = Metrics::new("test", move |line| lines.lock().unwrap().push(serde_json::from_str(line).unwrap()));
        let api = Api::new(store, metrics, || NOW.parse().unwrap());
        Self { router: router(api), client: plain, tables, wire, measured, shard: AtomicUsize::new(0) }
    }

    /// Lets the next calls of an operation fail, one each.
    pub(crate) fn fail(&self, operation: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.wire.faults.lock().unwrap().extend(faults.into_iter().map(|fault| (operation, fault)));
    }

    /// Returns the lines in which requests were counted since the last time that this was asked.
    pub(crate) fn measured(&self) -> Vec<Value> {
        std::mem::take(&mut self.measured.lock().unwrap())
    }

    /// Returns how often an operation was called since the last time that this was asked.
    pub(crate) fn calls(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.wire.calls.lock().unwrap())
    }

    /// Sends a request with the token of whom it names.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        self.exchange(tokens::sent_by_whom_it_names(request).await).await
    }

    /// Sends a request as it is.
    pub(crate) async fn exchange(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl ToString) -> Answer {
        self.send(post(path, body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl ToString) -> Answer {
        let request = Request::put(path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Request::delete(path).body(Body::empty()).unwrap()).await
    }

    /// Registers a player, whose name is the id.
    pub(crate) async fn register(&self, player_id: &str) {
        let answer = self.post("/players", json!({"player_id": player_id, "username": player_id})).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }

    /// Returns all rows of a table.
    pub(crate) async fn all(&self, table: Table) -> BTreeMap<Key, Row> {
        let scan = self.client.scan().table_name(self.tables.name(table)).consistent_read(true).send().await.unwrap();
        assert!(scan.last_evaluated_key.is_none());
        scan.items.unwrap_or_default().into_iter().map(|item| items::row(table, item).unwrap()).collect()
    }

    pub(crate) async fn row(&self, key: &Key) -> Row {
        let call = self.client.get_item().table_name(self.tables.name(key.table)).consistent_read(true);
        let answer = call.set_key(Some(items::key_item(key))).send().await.unwrap();
        answer.item.map_or_else(Row::default, |item| items::row(key.table, item).unwrap().1)
    }

    /// Returns the event that a game's record carries.
    pub(crate) async fn event(&self, game_id: &str) -> Event {
        self.event_of(&Game::key(&game_id.parse().unwrap())).await
    }

    /// Returns the event that a record carries.
    pub(crate) async fn event_of(&self, key: &Key) -> Event {
        let row = self.row(key).await;
        Event::decode(row.attributes.unwrap()["event"].to_string().as_bytes()).unwrap()
    }

    /// Posts a game that white won, and lets all consumers have its event.
    pub(crate) async fn play(&self, game_id: &str, white: (&str, u16), black: (&str, u16)) {
        let answer = self.post("/games", game(game_id, white, black)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        self.consume(&self.event(game_id).await).await;
    }

    /// Does what the consumers do with an event.
    pub(crate) async fn consume(&self, event: &Event) {
        for consumer in event.payload.event_type().consumers().iter() {
            let decider = decider(consumer);
            let mut state = State::default();
            for need in decider.needs(event) {
                let Need::Key(key) = need else { panic!("{need:?}") };
                let row = self.row(&key).await;
                state.insert(key, row);
            }
            match decider.decide(event, &state).unwrap() {
                Decision::Apply { writes, .. } => {
                    for write in writes {
                        self.write(write).await;
                    }
                }
                Decision::Stale | Decision::Ignore(_) => {}
                other @ (Decision::Continue { .. }
                | Decision::Wait { .. }
                | Decision::Unresolved { .. }
                | Decision::Reject(_)) => panic!("{other:?}"),
            }
        }
    }

    async fn write(&self, write: Write) {
        match write {
            Write::Create { key, attributes } | Write::Replace { key, content: Content::Row(attributes), .. } => {
                let version = self.row(&key).await.version + 1;
                let item = items::item(&key, version, attributes).unwrap();
                let put = self.client.put_item().table_name(self.tables.name(key.table));
                put.set_item(Some(item)).send().await.unwrap();
            }
            Write::Add { key, deltas, spread } => {
                let keys = spread.keys(&key);
                let key = &keys[self.shard.fetch_add(1, Ordering::Relaxed) % keys.len()];
                let mut update = self.client.update_item().table_name(self.tables.name(key.table));
                let mut terms = vec!["revision :one".to_owned()];
                for (index, (name, delta)) in deltas.iter().enumerate() {
                    terms.push(format!("#n{index} :d{index}"));
                    update = update
                        .expression_attribute_names(format!("#n{index}"), name)
                        .expression_attribute_values(format!(":d{index}"), items::number(delta));
                }
                update
                    .set_key(Some(items::key_item(key)))
                    .update_expression(format!("ADD {}", terms.join(", ")))
                    .expression_attribute_values(":one", items::number(1))
                    .send()
                    .await
                    .unwrap();
            }
            other @ Write::Replace { .. } => panic!("{other:?}"),
        }
    }
}

fn decider(consumer: Consumer) -> &'static dyn Decider {
    match consumer {
        Consumer::GameEnded => &Leaderboard,
        Consumer::GameEndedStatistics => &Statistics,
        Consumer::PlayerChanged => &PlayerOnBoards,
        Consumer::PostChanged => &PostCounts,
        Consumer::ReactionChanged => &ReactionCounts,
        Consumer::FollowChanged => &FollowGraph,
        Consumer::Activity => &EventCounts,
        Consumer::ActivePlayers => &ActivePlayers,
        Consumer::FanOut => &FanOut,
        Consumer::NotificationRequested => &Inbox,
        Consumer::OrderChanged => &OrderViews,
    }
}

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(crate) fn post(path: &str, body: impl ToString) -> Request<Body> {
    Request::post(path).header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
}

/// A game that white won.
pub(crate) fn game(game_id: &str, white: (&str, u16), black: (&str, u16)) -> Value {
    json!({
        "game_id": game_id, "time_control": "blitz", "ended_at": NOW, "result": "1-0",
        "white": {"player_id": white.0, "rating": white.1},
        "black": {"player_id": black.0, "rating": black.1},
    })
}

fn client(endpoint: &str, retries: RetryConfig, wire: Option<&Arc<Wire>>) -> Client {
    let plain = aws_smithy_http_client::Builder::new().build_http();
    let wire = wire.cloned().unwrap_or_default();
    let transport = http_client_fn(move |settings, components| {
        let inner = plain.http_connector(settings, components);
        SharedHttpConnector::new(Faulty { inner, wire: Arc::clone(&wire) })
    });
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(endpoint)
        .retry_config(retries)
        .http_client(transport);
    Client::from_conf(config.build())
}

fn key_schema(names: [&str; 2]) -> Vec<KeySchemaElement> {
    let kinds = [KeyType::Hash, KeyType::Range];
    let element = |(name, kind): (&str, KeyType)| {
        KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
    };
    names.into_iter().zip(kinds).map(element).collect()
}

fn order_index() -> GlobalSecondaryIndex {
    GlobalSecondaryIndex::builder()
        .index_name("order")
        .set_key_schema(Some(key_schema(["order_block", "order_rank"])))
        .projection(Projection::builder().projection_type(ProjectionType::All).build())
        .build()
        .unwrap()
}

async fn create_table(client: &Client, name: &str, index: Option<GlobalSecondaryIndex>) {
    let mut attributes = vec!["pk", "sk"];
    if index.is_some() {
        attributes.extend(["order_block", "order_rank"]);
    }
    let attribute = |name: &str| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_attribute_definitions(Some(attributes.into_iter().map(attribute).collect()))
        .set_key_schema(Some(key_schema(["pk", "sk"])))
        .set_global_secondary_indexes(index.map(|index| vec![index]))
        .send()
        .await
        .unwrap();
}

/// A canceled transaction, as DynamoDB answers it.
pub(crate) fn canceled<const N: usize>(codes: [&str; N]) -> Fault {
    let reasons: Vec<Value> = codes.iter().map(|code| json!({"Code": code})).collect();
    Fault::Answer(
        400,
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled", "CancellationReasons": reasons,
        }),
    )
}

pub(crate) fn error(status: u16, code: &str) -> Fault {
    Fault::Answer(status, json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "told so"}))
}
