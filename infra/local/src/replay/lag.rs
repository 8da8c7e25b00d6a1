//! How long it takes from the request until its effect shows in a view, for a sample of requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dynoxide::Database;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Requests that are watched at the same time, at most.
const WATCHED_MAX: usize = 64;
/// How often the table is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a request is watched. One whose effect does not show by then counts with this lag.
const WATCHED_FOR: Duration = Duration::from_secs(300);

/// Watches a sample of requests.
#[derive(Clone)]
pub(super) struct LagProbe {
    database: Database,
    views: String,
    one_in: usize,
    watched: Arc<Semaphore>,
    lags: Arc<Mutex<Vec<Duration>>>,
}

/// Percentiles of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Percentiles {
    /// How many were measured.
    pub(super) samples: usize,
    /// Half of them are no longer than this.
    pub(super) p50: Duration,
    /// 95 of 100.
    pub(super) p95: Duration,
    /// 99 of 100.
    pub(super) p99: Duration,
}

impl Percentiles {
    /// Returns the percentiles of some durations, if there are any.
    pub(super) fn of(mut durations: Vec<Duration>) -> Option<Self> {
        durations.sort_unstable();
        let last = durations.len().checked_sub(1)?;
        let percentile = |percent: usize| durations[last * percent / 100];
        Some(Self { samples: durations.len(), p50: percentile(50), p95: percentile(95), p99: percentile(99) })
    }
}

impl LagProbe {
    /// Makes a probe of the table of views that watches one request in so many.
    pub(super) fn new(database: Database, views: String, one_in: usize) -> Self {
        Self { database, views, one_in, watched: Arc::new(Semaphore::new(WATCHED_MAX)), lags: Arc::default() }
    }

    /// Watches a game from when its request was sent until the row of its white player counts it.
    pub(super) fn watch_game(&self, number: usize, sent: Instant, answer: &Value) {
        let (Some(board), Some(player)) = (answer["time_control"].as_str(), answer["white"]["player_id"].as_str())
        else {
            return;
        };
        let games = answer["white"]["games"].as_u64().unwrap_or(0);
        self.watch(number, sent, (format!("BOARD#{board}#{player}"), "games"), games);
    }

    /// Watches a request from when it was sent until an attribute of the row of a partition is at least so much.
    pub(super) fn watch(
        &self,
        number: usize,
        sent: Instant,
        (partition, attribute): (String, &'static str),
        least: u64,
    ) {
        if !number.is_multiple_of(self.one_in) {
            return;
        }
        let Ok(permit) = self.watched.clone().try_acquire_owned() else {
            return;
        };
        let probe = self.clone();
        tokio::spawn(async move {
            while sent.elapsed() < WATCHED_FOR && probe.read(&partition, attribute) < least {
                sleep(LOOK_EVERY).await;
            }
            probe.lags.lock().unwrap_or_else(PoisonError::into_inner).push(sent.elapsed());
            drop(permit);
        });
    }

    /// Returns the percentiles so far, if any game has been watched to its end.
    pub(super) fn lag(&self) -> Option<Percentiles> {
        Percentiles::of(self.lags.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn read(&self, partition: &str, attribute: &str) -> u64 {
        let key = json!({"pk": {"S": partition}, "sk": {"S": "ROW"}});
        let request = json!({"TableName": self.views, "Key": key, "ProjectionExpression": attribute});
        let item = serde_json::from_value(request).ok().and_then(|request| self.database.get_item(request).ok());
        let item = item.and_then(|response| serde_json::to_value(response).ok()).unwrap_or_default();
        item["Item"][attribute]["N"].as_str().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}
