//! The Lambda Runtime API of one instance: hands work out and takes answers. Starts and stops nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot, watch};

use super::error::InvokeError;

/// Largest response: 6 MB and the 100 bytes that Lambda adds for its envelope.
pub const RESPONSE_BYTES_MAX: usize = 6 * 1024 * 1024 + 100;

/// Largest error report that is read.
const ERROR_BYTES_MAX: usize = 1024 * 1024;

/// An invocation on its way to an instance.
pub(super) struct Work {
    pub(super) request_id: String,
    pub(super) payload: Bytes,
    pub(super) deadline_ms: u64,
    pub(super) function_arn: String,
    pub(super) trace_id: String,
    pub(super) reply: oneshot::Sender<Result<Bytes, InvokeError>>,
}

/// How far an instance has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has not asked for work yet.
    Starting,
    /// It has asked for work.
    Ready,
    /// It reported that it cannot work.
    Failed(InvokeError),
}

/// What an instance and its Runtime API share.
pub(super) struct Exchange {
    function: String,
    work: tokio::sync::Mutex<mpsc::Receiver<Work>>,
    current: Mutex<Option<Current>>,
    phase: watch::Sender<Phase>,
}

/// The invocation that an instance is working on.
struct Current {
    request_id: String,
    reply: oneshot::Sender<Result<Bytes, InvokeError>>,
}

impl Exchange {
    /// Returns the exchange of a new instance and the way to send it work.
    pub(super) fn new(function: String) -> (Arc<Self>, mpsc::Sender<Work>, watch::Receiver<Phase>) {
        let (sender, receiver) = mpsc::channel(1);
        let (phase, phases) = watch::channel(Phase::Starting);
        let exchange = Self { function, work: tokio::sync::Mutex::new(receiver), current: Mutex::default(), phase };
        (Arc::new(exchange), sender, phases)
    }

    /// Returns whether the instance has taken this request and not answered it yet.
    pub(super) fn is_working_on(&self, request_id: &str) -> bool {
        self.current().as_ref().is_some_and(|current| current.request_id == request_id)
    }

    /// Takes the current invocation out if it is this one.
    fn finish(&self, request_id: &str) -> Option<Current> {
        let mut current = self.current();
        if current.as_ref().is_some_and(|current| current.request_id == request_id) { current.take() } else { None }
    }

    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the routes of the Runtime API for one instance.
pub(super) fn router(exchange: Arc<Exchange>) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{request_id}/response", post(response))
        .route("/2018-06-01/runtime/invocation/{request_id}/error", post(error))
        .route("/2018-06-01/runtime/init/error", post(init_error))
        .with_state(exchange)
}

/// Waits for work and hands it out.
async fn next(State(exchange): State<Arc<Exchange>>) -> Response {
    exchange.phase.send_if_modified(|phase| {
        let first = *phase == Phase::Starting;
        if first {
            *phase = Phase::Ready;
        }
        first
    });
    let Some(work) = exchange.work.lock().await.recv().await else {
        // The instance is being killed: any answer would only be its last error.
        return std::future::pending().await;
    };
    let headers = [
        ("lambda-runtime-aws-request-id", work.request_id.clone()),
        ("lambda-runtime-deadline-ms", work.deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", work.function_arn),
        ("lambda-runtime-trace-id", work.trace_id),
        ("content-type", "application/json".to_owned()),
    ];
    *exchange.current() = Some(Current { request_id: work.request_id, reply: work.reply });
    (axum::response::AppendHeaders(headers), Body::from(work.payload)).into_response()
}

/// Takes the response of an invocation.
async fn response(
    State(exchange): State<Arc<Exchange>>,
    Path(request_id): Path<String>,
    request: Request<Body>,
) -> Response {
    let Ok(body) = to_bytes(request.into_body(), RESPONSE_BYTES_MAX).await else {
        return too_large(&exchange, request_id);
    };
    let Some(current) = exchange.finish(&request_id) else {
        return refusal(StatusCode::BAD_REQUEST, "InvalidRequestID", "no invocation of this id is being processed");
    };
    // Whoever waited may have given up; the function need not know.
    let _ = current.reply.send(Ok(body));
    accepted()
}

/// Fails an invocation whose response is over the limit.
fn too_large(exchange: &Exchange, request_id: String) -> Response {
    if let Some(current) = exchange.finish(&request_id) {
        let _ = current.reply.send(Err(InvokeError::ResponseTooLarge {
            function: exchange.function.clone(),
            request_id,
            bytes_max: RESPONSE_BYTES_MAX,
        }));
    }
    let message = format!("Exceeded maximum allowed payload size ({RESPONSE_BYTES_MAX} bytes).");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message)
}

/// Takes the error of an invocation.
async fn error(
    State(exchange): State<Arc<Exchange>>,
    Path(request_id): Path<String>,
    headers: HeaderMap,
    request: Request<Body>,
) -> Response {
    let report = Report::read(&headers, request).await;
    let Some(current) = exchange.finish(&request_id) else {
        return refusal(StatusCode::BAD_REQUEST, "InvalidRequestID", "no invocation of this id is being processed");
    };
    let _ = current.reply.send(Err(InvokeError::Function {
        function: exchange.function.clone(),
        error_type: report.error_type,
        message: report.error_message,
    }));
    accepted()
}

/// Takes the error of an initialisation.
async fn init_error(State(exchange): State<Arc<Exchange>>, headers: HeaderMap, request: Request<Body>) -> Response {
    let report = Report::read(&headers, request).await;
    exchange.phase.send_replace(Phase::Failed(InvokeError::Init {
        function: exchange.function.clone(),
        error_type: report.error_type,
        message: report.error_message,
    }));
    accepted()
}

/// An error as a runtime reports it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error_message: String,
}

impl Report {
    /// Reads a report; what cannot be read becomes the message, so that nothing a function says is lost.
    async fn read(headers: &HeaderMap, request: Request<Body>) -> Self {
        let body = to_bytes(request.into_body(), ERROR_BYTES_MAX).await.unwrap_or_default();
        let mut report = serde_json::from_slice::<Self>(&body).unwrap_or_else(|_| Self {
            error_type: String::new(),
            error_message: String::from_utf8_lossy(&body).into_owned(),
        });
        if report.error_type.is_empty() {
            let named = headers.get("lambda-runtime-function-error-type").and_then(|value| value.to_str().ok());
            report.error_type = named.unwrap_or("Runtime.Unknown").to_owned();
        }
        report
    }
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], r#"{"status":"OK"}"#).into_response()
}

fn refusal(status: StatusCode, error_type: &str, message: &str) -> Response {
    let body = serde_json::json!({ "errorType": error_type, "errorMessage": message });
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
