//! DynamoDB in this process, behind a proxy that lets calls go wrong in the ways in which AWS does and an emulator does not:
//! lost answers, throttling, conflicts, unprocessed keys.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aws::items::TableNames;
use aws::ledger::DynamoLedger;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use dynoxide::Database;
use serde_json::{Value, json};
use testkit::Fault;
use testkit::contract::Subject;
use tokio::net::TcpListener;

/// A DynamoDB with the three tables, and a ledger on it.
pub struct DynamoDb {
    /// The database itself, without faults.
    pub database: Database,
    /// A client that meets the faults.
    pub client: Client,
    ledger: DynamoLedger,
    faults: Faults,
    backend_url: String,
}

type Faults = Arc<Mutex<VecDeque<Fault>>>;

impl DynamoDb {
    /// Starts a database with empty tables that is reached without the proxy, for measuring.
    pub async fn start_without_faults() -> Self {
        let mut dynamodb = Self::start().await;
        let backend = dynamodb.backend_url.clone();
        dynamodb.connect(&backend);
        dynamodb
    }

    /// Starts a database with empty tables.
    pub async fn start() -> Self {
        let database = Database::memory().expect("an in-memory database opens");
        for table in ["records", "views", "ledger"] {
            let request = serde_json::from_value(create_table(table)).expect("a request");
            database.create_table(request).expect("the table is created");
        }
        let backend = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let backend_url = format!("http://{}", backend.local_addr().expect("an address"));
        tokio::spawn(dynoxide::server::serve_on(backend, database.clone()));
        let faults = Faults::default();
        let proxy = Proxy { backend_url: backend_url.clone(), http: reqwest::Client::new(), faults: faults.clone() };
        let front = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("http://{}", front.local_addr().expect("an address"));
        let router = Router::new().fallback(handle).layer(DefaultBodyLimit::disable()).with_state(Arc::new(proxy));
        tokio::spawn(async move { axum::serve(front, router).await });
        let (client, ledger) = connection(&endpoint);
        Self { database, client, ledger, faults, backend_url }
    }

    /// Takes back the faults that have not come about.
    pub fn heal(&self) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn connect(&mut self, endpoint: &str) {
        (self.client, self.ledger) = connection(endpoint);
    }
}

fn connection(endpoint: &str) -> (Client, DynamoLedger) {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
        .build();
    let client = Client::from_conf(config);
    let tables = TableNames { records: "records".to_owned(), views: "views".to_owned(), ledger: "ledger".to_owned() };
    let ledger = DynamoLedger::new(client.clone(), tables);
    (client, ledger)
}

impl Subject for DynamoDb {
    type Ledger = DynamoLedger;

    fn ledger(&self) -> &DynamoLedger {
        &self.ledger
    }

    fn inject(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }
}

fn create_table(name: &str) -> Value {
    let mut request = json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    });
    if name == "views" {
        for attribute in ["order_block", "order_rank"] {
            let definitions = request["AttributeDefinitions"].as_array_mut().expect("a list");
            definitions.push(json!({"AttributeName": attribute, "AttributeType": "S"}));
        }
        request["GlobalSecondaryIndexes"] = json!([{
            "IndexName": "order",
            "KeySchema": [
                {"AttributeName": "order_block", "KeyType": "HASH"},
                {"AttributeName": "order_rank", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }]);
    }
    request
}

struct Proxy {
    backend_url: String,
    http: reqwest::Client,
    faults: Faults,
}

async fn handle(State(proxy): State<Arc<Proxy>>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = target.rsplit('.').next().unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).expect("SDKs send JSON");
    match proxy.fault(operation) {
        None => proxy.forward(&headers, &body).await,
        Some(Fault::Throttled) => refusal("ThrottlingException"),
        Some(Fault::Unreadable) => server_error(),
        Some(Fault::Conflict) if operation == "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().map_or(1, Vec::len);
            let mut codes = vec!["None"; items];
            codes[items - 1] = "TransactionConflict";
            cancelled(&codes)
        }
        Some(Fault::Conflict) => refusal("TransactionConflictException"),
        Some(Fault::AnswerLost) => {
            let (status, answer) = proxy.forward(&headers, &body).await;
            assert!(status.is_success(), "a lost answer is that of a success: {answer}");
            server_error()
        }
        Some(Fault::ConflictBesideConditions) => {
            let (_, answer) = proxy.forward(&headers, &body).await;
            let mut answer: Value = serde_json::from_str(&answer).expect("an error is JSON");
            let reasons = answer["CancellationReasons"].as_array_mut().expect("a condition was refused");
            let free = reasons.iter_mut().find(|reason| reason["Code"] == "None").expect("an item was not refused");
            free["Code"] = json!("TransactionConflict");
            (StatusCode::BAD_REQUEST, answer.to_string())
        }
        Some(Fault::Unprocessed) => proxy.forward_first_key(&headers, body).await,
        Some(Fault::SmallPage) => {
            let mut query = body;
            query["Limit"] = json!(1);
            proxy.forward(&headers, &query).await
        }
    }
}

impl Proxy {
    /// Takes the next fault if it fits the operation.
    fn fault(&self, operation: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let is_range = operation == "Query";
        let is_read = is_range || operation == "BatchGetItem";
        let fits = faults.front().is_some_and(|fault| match fault {
            Fault::SmallPage => is_range,
            Fault::Unprocessed => is_read && !is_range,
            Fault::Unreadable => is_read,
            Fault::AnswerLost | Fault::Throttled | Fault::Conflict | Fault::ConflictBesideConditions => !is_read,
        });
        if fits { faults.pop_front() } else { None }
    }

    async fn forward(&self, headers: &HeaderMap, body: &Value) -> (StatusCode, String) {
        let mut request = self.http.post(&self.backend_url).body(body.to_string());
        for name in ["x-amz-target", "content-type", "authorization", "x-amz-date"] {
            if let Some(value) = headers.get(name) {
                request = request.header(name, value);
            }
        }
        let response = request.send().await.expect("the database answers");
        let status = response.status();
        (status, response.text().await.expect("an answer is text"))
    }

    async fn forward_first_key(&self, headers: &HeaderMap, mut body: Value) -> (StatusCode, String) {
        let tables = body["RequestItems"].as_object_mut().expect("tables");
        let mut unprocessed = tables.clone();
        for (table, request) in tables.iter_mut() {
            let keys = request["Keys"].as_array_mut().expect("keys");
            let rest = keys.split_off(1);
            unprocessed[table]["Keys"] = Value::Array(rest);
        }
        unprocessed.retain(|_, request| request["Keys"].as_array().is_some_and(|keys| !keys.is_empty()));
        let (status, answer) = self.forward(headers, &body).await;
        let mut answer: Value = serde_json::from_str(&answer).expect("an answer is JSON");
        answer["UnprocessedKeys"] = Value::Object(unprocessed);
        (status, answer.to_string())
    }
}

fn refusal(code: &str) -> (StatusCode, String) {
    let body = json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "injected"});
    (StatusCode::BAD_REQUEST, body.to_string())
}

fn cancelled(codes: &[&str]) -> (StatusCode, String) {
    let reasons: Vec<Value> = codes.iter().map(|code| json!({"Code": code})).collect();
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": "injected",
        "CancellationReasons": reasons,
    });
    (StatusCode::BAD_REQUEST, body.to_string())
}

fn server_error() -> (StatusCode, String) {
    let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "injected"});
    (StatusCode::INTERNAL_SERVER_ERROR, body.to_string())
}
