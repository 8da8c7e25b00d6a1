//! The HTTP server: one endpoint that tells operations apart by `X-Amz-Target`, as the AWS JSON protocol 1.0 does, and
//! writes their answers and errors. Signatures are not looked at.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::serve::ListenerExt;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use queue::QueueName;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::fault::Fault;
use super::wire::Answer;
use super::{Broker, message_calls, queue_calls, receive_call};

/// The account in queue URLs; requests may name any other.
const ACCOUNT_ID: &str = "000000000000";
const TARGET: &str = "x-amz-target";
const TARGET_PREFIX: &str = "AmazonSQS.";
const QUERY_ERROR: HeaderName = HeaderName::from_static("x-amzn-query-error");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
/// A batch of 1 MiB of which every character is escaped in JSON, and its names.
const BODY_BYTES_MAX: usize = 8 * queue::limits::MESSAGE_BYTES_MAX;

#[derive(Debug)]
struct Server {
    broker: Broker,
    base_url: String,
    closing: watch::Receiver<bool>,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "__type")]
    shape: String,
    message: &'a str,
}

/// Serves a broker's queues on a listener until `shutdown` completes; receives that wait end with nothing then.
///
/// # Errors
/// The listener's address cannot be read, or the server fails.
pub async fn serve(
    listener: TcpListener,
    broker: Broker,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let base_url = format!("http://{}", listener.local_addr()?);
    let (close, closing) = watch::channel(false);
    let server = Arc::new(Server { broker, base_url, closing });
    let router = Router::new().fallback(handle).with_state(server);
    let closed = async move {
        shutdown.await;
        // Without a receiver there is no request left that could wait.
        close.send_replace(true);
    };
    // Without it an answer waits for the client's next acknowledgement; a connection that refuses it is only slower.
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
    axum::serve(listener, router).with_graceful_shutdown(closed).await
}

/// Returns a queue's URL on a server, whose own URL has no slash at the end.
pub fn queue_url(base_url: &str, queue: &QueueName) -> String {
    format!("{base_url}/{ACCOUNT_ID}/{queue}")
}

async fn handle(State(server): State<Arc<Server>>, request: Request) -> Response {
    let answer = answer(&server, request).await;
    let (status, query_error, body) = match answer {
        Ok(body) => (StatusCode::OK, None, body),
        Err(fault) => (StatusCode::BAD_REQUEST, query_error(&fault), error_body(&fault)),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.extend(request_id().map(|id| (REQUEST_ID, id)));
    headers.extend(query_error.map(|code| (QUERY_ERROR, code)));
    response
}

async fn answer(server: &Server, request: Request) -> Answer {
    let target = request.headers().get(TARGET).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Some(target) = target.filter(|_| request.method() == Method::POST) else {
        let message = "This endpoint takes POST requests of the AWS JSON protocol, with a header X-Amz-Target: AmazonSQS.\
                       <operation>. SDKs and command lines older than 2024 speak the query protocol, which it does not.";
        return Err(Fault::unknown_operation(message.to_owned()));
    };
    let body =
        to_bytes(request.into_body(), BODY_BYTES_MAX).await.map_err(|error| Fault::not_json("the body", &error))?;
    let operation = target.strip_prefix(TARGET_PREFIX).unwrap_or(&target);
    dispatch(server, operation, &body).await
}

async fn dispatch(server: &Server, operation: &str, body: &[u8]) -> Answer {
    let Server { broker, base_url, closing } = server;
    match operation {
        "SendMessage" => message_calls::send_message(broker, body),
        "SendMessageBatch" => message_calls::send_message_batch(broker, body),
        "ReceiveMessage" => {
            let mut closing = closing.clone();
            tokio::select! {
                answer = receive_call::receive_message(broker, body) => answer,
                _ = closing.wait_for(|closing| *closing) => Ok(b"{}".to_vec()),
            }
        }
        "DeleteMessage" => message_calls::delete_message(broker, body),
        "DeleteMessageBatch" => message_calls::delete_message_batch(broker, body),
        "ChangeMessageVisibility" => message_calls::change_message_visibility(broker, body),
        "ChangeMessageVisibilityBatch" => message_calls::change_message_visibility_batch(broker, body),
        "CreateQueue" => queue_calls::create_queue(broker, base_url, body),
        "GetQueueUrl" => queue_calls::get_queue_url(broker, base_url, body),
        "ListQueues" => queue_calls::list_queues(broker, base_url, body),
        "ListDeadLetterSourceQueues" => queue_calls::list_dead_letter_source_queues(broker, base_url, body),
        "GetQueueAttributes" => queue_calls::get_queue_attributes(broker, body),
        "SetQueueAttributes" => queue_calls::set_queue_attributes(broker, body),
        "DeleteQueue" => queue_calls::delete_queue(broker, body),
        "PurgeQueue" => queue_calls::purge_queue(broker, body),
        "TagQueue" => queue_calls::tag_queue(broker, body),
        "UntagQueue" => queue_calls::untag_queue(broker, body),
        "ListQueueTags" => queue_calls::list_queue_tags(broker, body),
        "StartMessageMoveTask"
        | "CancelMessageMoveTask"
        | "ListMessageMoveTasks"
        | "AddPermission"
        | "RemovePermission" => Err(Fault::unsupported(operation)),
        _ => Err(Fault::unknown_operation(format!("The operation {operation} does not exist."))),
    }
}

fn error_body(fault: &Fault) -> Vec<u8> {
    let body = ErrorBody { shape: format!("com.amazonaws.sqs#{}", fault.shape), message: &fault.message };
    // Two strings can always be written.
    serde_json::to_vec(&body).unwrap_or_default()
}

fn query_error(fault: &Fault) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{};Sender", fault.query)).ok()
}

fn request_id() -> Option<HeaderValue> {
    let id = uuid::Builder::from_random_bytes(fastrand::u128(..).to_be_bytes()).into_uuid();
    HeaderValue::from_str(&id.to_string()).ok()
}
