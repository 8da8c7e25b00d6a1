//! Somebody who takes notifications, in place of whoever does so in production: shows what has arrived, and fails when told to.
//!
//! `POST /` takes a letter; `GET /letters` shows what has arrived; `PUT /mode` `{"mode": "take"}` says what to do with the next ones:
//! `take`, `fail` (500), `refuse` (403) or `hang` (60 s).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::model::Model;

/// Variable of the functions that deliver notifications.
const WEBHOOK_URL: &str = "WEBHOOK_URL";
/// Header with a letter's key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Header with the trace of the request that a letter goes back to.
const TRACEPARENT: &str = "traceparent";
/// How long a letter hangs.
const HANG: Duration = Duration::from_secs(60);

/// What is done with letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They are taken.
    #[default]
    Take,
    /// They are answered with a server error.
    Fail,
    /// They are refused.
    Refuse,
    /// They are not answered for a minute.
    Hang,
}

/// A letter that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Letter {
    /// How often it has arrived.
    pub times: u64,
    /// The trace that it belongs to, as it came last: a W3C `traceparent`.
    pub traceparent: Option<String>,
    /// What it says.
    pub content: Value,
}

/// A running receiver. It ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    desk: Arc<Desk>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Desk {
    mode: Mutex<Mode>,
    letters: Mutex<BTreeMap<String, Letter>>,
}

impl Receiver {
    /// Starts on any free port.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub async fn start(host: IpAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind((host, 0)).await?;
        let address = listener.local_addr()?;
        let desk = Arc::new(Desk::default());
        let router = Router::new()
            .route("/", post(take))
            .route("/letters", get(letters))
            .route("/mode", put(set_mode))
            .with_state(desk.clone());
        let task = tokio::spawn(async move {
            // It ends with the task; there is nobody to tell of an error.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, desk, task })
    }

    /// Returns the URL that letters are sent to.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Tells the functions of a model to send here, unless they send elsewhere.
    pub fn announce(&self, model: &mut Model) {
        for function in &mut model.functions {
            if let Some(url) = function.environment.get_mut(WEBHOOK_URL).filter(|url| url.is_empty()) {
                *url = self.url();
            }
        }
    }

    /// Says what is done with the next letters.
    pub fn set_mode(&self, mode: Mode) {
        *lock(&self.desk.mode) = mode;
    }

    /// Returns the letters that were taken, by key.
    pub fn letters(&self) -> BTreeMap<String, Letter> {
        lock(&self.desk.letters).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(desk): State<Arc<Desk>>, headers: HeaderMap, Json(content): Json<Value>) -> StatusCode {
    let mode = *lock(&desk.mode);
    match mode {
        Mode::Take => {}
        Mode::Fail => return StatusCode::INTERNAL_SERVER_ERROR,
        Mode::Refuse => return StatusCode::FORBIDDEN,
        Mode::Hang => sleep(HANG).await,
    }
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(key) = header(IDEMPOTENCY_KEY) else { return StatusCode::BAD_REQUEST };
    let mut letters = lock(&desk.letters);
    let letter = letters.entry(key.to_owned()).or_insert(Letter { times: 0, traceparent: None, content });
    letter.times += 1;
    letter.traceparent = header(TRACEPARENT).map(str::to_owned);
    StatusCode::NO_CONTENT
}

async fn letters(State(desk): State<Arc<Desk>>) -> Json<BTreeMap<String, Letter>> {
    Json(lock(&desk.letters).clone())
}

/// Body of the request that sets the mode.
#[derive(Debug, Serialize, Deserialize)]
struct SetMode {
    mode: Mode,
}

async fn set_mode(State(desk): State<Arc<Desk>>, Json(set): Json<SetMode>) -> Json<SetMode> {
    *lock(&desk.mode) = set.mode;
    Json(set)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
