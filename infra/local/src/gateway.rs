//! The HTTP API on one machine: routes requests to functions as API Gateway does, with its payload format 2.0, once their tokens
//! are found good. Runs no function itself.

mod authorizer;
mod event;
mod response;
mod routes;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::issuer::PublicKeys;
use crate::lambda::{Functions, Invoke, InvokeError};
use crate::model::{Access, Route};
use event::Source;
use response::message;
use routes::Routes;

/// Largest request body: 10 MB.
pub const REQUEST_BYTES_MAX: usize = 10 * 1024 * 1024;

/// How long API Gateway waits for a function.
const INTEGRATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The HTTP API.
pub struct Gateway {
    routes: Routes,
    keys: PublicKeys,
    functions: BTreeMap<String, Target>,
    places: Semaphore,
    requests: AtomicU64,
    failures: AtomicU64,
}

/// A function that requests go to.
struct Target {
    function: Arc<dyn Invoke>,
    requests: AtomicU64,
}

impl Target {
    fn new(function: Arc<dyn Invoke>) -> Self {
        Self { function, requests: AtomicU64::new(0) }
    }
}

impl Gateway {
    /// Builds the API of these routes; at most `concurrency` requests are processed at once, further ones wait. Tokens have to be
    /// signed with one of the keys.
    ///
    /// # Errors
    ///
    /// When a route names a function that does not exist.
    pub fn new(
        routes: &[Route],
        functions: &Functions,
        concurrency: usize,
        keys: PublicKeys,
    ) -> Result<Self, InvokeError> {
        let function = |route: &Route| Ok((route.function.clone(), Target::new(functions.function(&route.function)?)));
        Ok(Self {
            functions: routes.iter().map(function).collect::<Result<_, _>>()?,
            routes: Routes::new(routes),
            keys,
            places: Semaphore::new(concurrency.max(1)),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    /// Returns the requests answered so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the requests that a function answered so far.
    pub fn requests_of(&self, function: &str) -> u64 {
        self.functions.get(function).map_or(0, |target| target.requests.load(Ordering::Relaxed))
    }

    /// Returns the requests answered with a status of 500 or more so far.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Serves the API until it is dropped.
    ///
    /// # Errors
    ///
    /// When the listener fails.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        let router = Router::new().fallback(handle).with_state(self);
        // Without it an answer waits for the client's next acknowledgement; a connection that refuses it is only slower.
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
        axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
    }

    async fn answer(&self, client: SocketAddr, request: Request<Body>) -> Response {
        let (parts, body) = request.into_parts();
        let Some(matched) = self.routes.find(parts.method.as_str(), parts.uri.path()) else {
            return message(StatusCode::NOT_FOUND, "Not Found");
        };
        let authorized = match &matched.route.access {
            Access::Anyone => None,
            Access::Token { authorizer, scopes } => {
                match authorizer::check(authorizer, scopes, &self.keys, &parts.headers, SystemTime::now()) {
                    Ok(authorized) => Some(authorized),
                    Err(denied) => return denied.answer(),
                }
            }
        };
        let Ok(body) = to_bytes(body, REQUEST_BYTES_MAX).await else {
            return message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
        };
        let Some(target) = self.functions.get(&matched.route.function) else {
            return message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
        };
        let authorized = authorized.as_ref();
        let event = event::build(&Source { matched: &matched, parts: &parts, body: &body, client, authorized });
        let Ok(_place) = self.places.acquire().await else {
            return message(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable");
        };
        match tokio::time::timeout(INTEGRATION_TIMEOUT, target.function.invoke(event)).await {
            Ok(Ok(answer)) => {
                target.requests.fetch_add(1, Ordering::Relaxed);
                response::build(&answer)
            }
            Ok(Err(InvokeError::PayloadTooLarge { .. })) => {
                message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large")
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "a request failed");
                message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
            }
            Err(_) => message(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
        }
    }
}

async fn handle(
    State(gateway): State<Arc<Gateway>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    request: Request<Body>,
) -> Response {
    let response = gateway.answer(client, request).await;
    gateway.requests.fetch_add(1, Ordering::Relaxed);
    if response.status().is_server_error() {
        gateway.failures.fetch_add(1, Ordering::Relaxed);
    }
    response
}
