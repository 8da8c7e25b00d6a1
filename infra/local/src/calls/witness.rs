//! Stands between functions and the tables and queues: passes requests on and answers back as they are, and notes what each
//! request needs. Who asks is told by the access key that the request is signed with.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Record, permissions};
use crate::stack::Addresses;

/// Header that names the operation.
const TARGET: &str = "x-amz-target";
/// Headers of one connection, which say nothing on the next one.
const OF_CONNECTION: [HeaderName; 4] = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING];
/// Largest request: 16 MiB, as DynamoDB takes it.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A running witness. It ends when it is dropped.
#[derive(Debug)]
pub struct Witness {
    dynamodb_url: String,
    sqs_url: String,
    record: Arc<Mutex<Record>>,
    _tasks: JoinSet<()>,
}

/// A service that stands behind.
#[derive(Debug)]
struct Service {
    http: reqwest::Client,
    url: String,
    record: Arc<Mutex<Record>>,
}

impl Witness {
    /// Starts in front of the tables and queues at these addresses, on any free ports.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub async fn start(services: &Addresses) -> std::io::Result<Self> {
        let record = Arc::new(Mutex::new(Record::default()));
        let http = reqwest::Client::builder().no_proxy().build().map_err(std::io::Error::other)?;
        let mut tasks = JoinSet::new();
        let mut urls = Vec::new();
        for (ip, url) in [(services.dynamodb.ip(), services.dynamodb_url()), (services.sqs.ip(), services.sqs_url())] {
            let service = Service { http: http.clone(), url, record: Arc::clone(&record) };
            urls.push(serve(ip, service, &mut tasks).await?);
        }
        let [dynamodb_url, sqs_url] = [urls.remove(0), urls.remove(0)];
        Ok(Self { dynamodb_url, sqs_url, record, _tasks: tasks })
    }

    /// Returns the URL to be used for DynamoDB.
    pub fn dynamodb_url(&self) -> &str {
        &self.dynamodb_url
    }

    /// Returns the URL to be used for SQS.
    pub fn sqs_url(&self) -> &str {
        &self.sqs_url
    }

    /// Returns what was asked for until now.
    pub fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(ip: IpAddr, service: Service, tasks: &mut JoinSet<()>) -> std::io::Result<String> {
    let listener = TcpListener::bind((ip, 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new().fallback(pass).with_state(Arc::new(service));
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "the witness of calls ended");
        }
    });
    Ok(url)
}

async fn pass(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    service.note(&parts.headers, &body);
    let sent =
        service.http.request(parts.method, &service.url).headers(passing(&parts.headers)).body(body).send().await;
    let Ok(answer) = sent else { return StatusCode::BAD_GATEWAY.into_response() };
    let (status, headers) = (answer.status(), passing(answer.headers()));
    match answer.bytes().await {
        Ok(body) => (status, headers, Body::from(body)).into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

impl Service {
    fn note(&self, headers: &HeaderMap, body: &Bytes) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let caller = text(AUTHORIZATION.as_str()).and_then(access_key).unwrap_or("unknown");
        let target = text(TARGET).unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        for permission in permissions(target, &body) {
            record.note(caller, &permission);
        }
    }
}

/// Returns the access key of a signature: `AWS4-HMAC-SHA256 Credential=KEY/20261130/us-east-1/sqs/aws4_request, ...`.
fn access_key(authorization: &str) -> Option<&str> {
    let (_, credential) = authorization.split_once("Credential=")?;
    Some(credential.split_once('/')?.0)
}

fn passing(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in OF_CONNECTION {
        headers.remove(name);
    }
    headers
}
