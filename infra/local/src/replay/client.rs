//! The game server's side: sends commands to the HTTP API as a careful client does. A player's games are posted one at a time
//! in order; a command is repeated after a lost connection or a server error, since the same one again changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use reqwest::StatusCode;
use serde_json::Value;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::caller::Caller;
use super::game::Game;
use super::lag::Percentiles;
use crate::issuer::{Grant, Issuer, KeyError};
use crate::stack::Stack;

/// Requests under way at the same time, at most.
const REQUESTS_AT_ONCE: usize = 16;
/// How often a request is sent, at most.
const SENDS_MAX: u32 = 40;
/// Longest wait before a request is repeated.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// How long a token is good for: longer than any replay.
const TOKEN_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Why posting ended.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The HTTP client cannot be made.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// A caller has no token.
    #[error("cannot make a token")]
    Token(#[from] KeyError),
    /// The API does not take the request.
    #[error("{method} {path} was answered {status}: {body}")]
    Refused {
        /// Of the request.
        method: &'static str,
        /// Of the request.
        path: String,
        /// Of the answer.
        status: StatusCode,
        /// Of the answer.
        body: String,
    },
    /// Nobody answers, or only with server errors.
    #[error("{method} {path} was sent {SENDS_MAX} times; at last: {reason}")]
    GivenUp {
        /// Of the request.
        method: &'static str,
        /// Of the request.
        path: String,
        /// Last failure.
        reason: String,
    },
    /// The same command got two different answers.
    #[error("{method} {path} of the same command was answered {first} and then {second}")]
    DifferentAnswer {
        /// Of the request.
        method: &'static str,
        /// Of the request.
        path: String,
        /// Body of the first answer.
        first: String,
        /// Body of the second answer.
        second: String,
    },
}

/// A client of the HTTP API. Without a caller it has no token.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    base_url: String,
    issuer: Option<Issuer>,
    /// Those that were signed so far.
    tokens: Arc<Mutex<BTreeMap<Caller, String>>>,
    token: Option<String>,
    /// Probability with which a command is repeated for no reason.
    duplicate: f64,
    rng: Arc<Mutex<Rng>>,
    repeats: Arc<AtomicU64>,
    latencies: Arc<Mutex<Vec<Duration>>>,
}

/// An answer of the API that is not a server error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Success, or a refusal.
    pub(super) status: StatusCode,
    /// What it says.
    pub(super) body: Value,
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.status, self.body)
    }
}

impl Client {
    /// Makes a client of a stack that repeats a command with probability `duplicate`.
    ///
    /// # Errors
    ///
    /// When there is no HTTP client to be had.
    pub(super) fn new(stack: &Stack, duplicate: f64, seed: u64) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder().timeout(ANSWER_WITHIN).no_proxy().build().map_err(ClientError::Client)?;
        Ok(Self {
            http,
            base_url: stack.addresses().api_url(),
            issuer: stack.issuer().cloned(),
            tokens: Arc::default(),
            token: None,
            duplicate,
            rng: Arc::new(Mutex::new(Rng::with_seed(seed))),
            repeats: Arc::default(),
            latencies: Arc::default(),
        })
    }

    /// Returns the same client with the token of a caller.
    ///
    /// # Errors
    ///
    /// When no token can be signed.
    pub(super) fn of(&self, caller: &Caller) -> Result<Self, ClientError> {
        let Some(issuer) = &self.issuer else { return Ok(self.clone()) };
        let known = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(caller).cloned();
        let token = match known {
            Some(token) => token,
            None => {
                let scopes: Vec<String> = caller.scope().map(str::to_owned).into_iter().collect();
                let token = issuer.token(&Grant { subject: caller.subject(), scopes: &scopes, lifetime: TOKEN_FOR })?;
                self.tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(caller.clone(), token.clone());
                token
            }
        };
        Ok(self.with_token(token))
    }

    /// Returns the same client with a token, good or bad.
    pub(super) fn with_token(&self, token: String) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    /// Returns the same client with the token of a player.
    ///
    /// # Errors
    ///
    /// When no token can be signed.
    pub(super) fn of_player(&self, player_id: &impl ToString) -> Result<Self, ClientError> {
        self.of(&Caller::Player(player_id.to_string()))
    }

    /// Returns how many requests were sent again, for whatever reason.
    pub(super) fn repeats(&self) -> u64 {
        self.repeats.load(Ordering::Relaxed)
    }

    /// Gets a resource.
    ///
    /// # Errors
    ///
    /// When the API refuses, or does not answer.
    pub(super) async fn get(&self, path: &str) -> Result<Value, ClientError> {
        accepted("GET", path, self.exchange("GET", path, None).await?)
    }

    /// Returns whether the API says that there is no such resource.
    ///
    /// # Errors
    ///
    /// When the API refuses for another reason, or does not answer.
    pub(super) async fn is_missing(&self, path: &str) -> Result<bool, ClientError> {
        match self.get(path).await {
            Ok(_) => Ok(false),
            Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Posts a command and returns the answer's body.
    ///
    /// # Errors
    ///
    /// When the API refuses, does not answer, or answers the same command differently.
    pub(super) async fn post(&self, path: &str, command: &Value) -> Result<Value, ClientError> {
        self.command("POST", path, Some(command)).await
    }

    /// Sends a command, more often than once if chance says so, and returns the answer's body.
    ///
    /// # Errors
    ///
    /// When the API refuses, does not answer, or answers the same command differently.
    pub(super) async fn command(
        &self,
        method: &'static str,
        path: &str,
        command: Option<&Value>,
    ) -> Result<Value, ClientError> {
        accepted(method, path, self.answer(method, path, command).await?)
    }

    /// Sends a command, more often than once if chance says so, and returns the answer, which may be a refusal.
    ///
    /// # Errors
    ///
    /// When the API does not answer, or answers the same command differently.
    pub(super) async fn answer(
        &self,
        method: &'static str,
        path: &str,
        command: Option<&Value>,
    ) -> Result<Answer, ClientError> {
        let sent = Instant::now();
        let first = self.exchange(method, path, command).await?;
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(sent.elapsed());
        if self.chance() < self.duplicate {
            self.repeats.fetch_add(1, Ordering::Relaxed);
            let second = self.exchange(method, path, command).await?;
            // The first may be a creation, which the second is not.
            if (first.status.is_success(), &first.body) != (second.status.is_success(), &second.body) {
                let (first, second) = (first.to_string(), second.to_string());
                return Err(ClientError::DifferentAnswer { method, path: path.to_owned(), first, second });
            }
        }
        Ok(first)
    }

    /// Returns the percentiles of the time from a command's first sending to its answer, if any was answered.
    pub(super) fn latency(&self) -> Option<Percentiles> {
        Percentiles::of(self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn exchange(&self, method: &'static str, path: &str, command: Option<&Value>) -> Result<Answer, ClientError> {
        let url = format!("{}{path}", self.base_url);
        let mut reason = String::new();
        for sends in 0..SENDS_MAX {
            if sends > 0 {
                self.repeats.fetch_add(1, Ordering::Relaxed);
                sleep(WAIT_MAX.min(Duration::from_millis(10 << sends.min(8))).mul_f64(self.chance())).await;
            }
            let request = match method {
                "POST" => self.http.post(&url),
                "PUT" => self.http.put(&url),
                "DELETE" => self.http.delete(&url),
                _ => self.http.get(&url),
            };
            let request = match command {
                Some(command) => request.json(command),
                None => request,
            };
            let request = match &self.token {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            let answer = match request.send().await {
                Ok(response) => (response.status(), response.text().await),
                Err(error) => {
                    reason = crate::run::chain(&error);
                    continue;
                }
            };
            match answer {
                (status, body) if status.is_server_error() => {
                    reason = format!("{status}: {}", body.unwrap_or_default());
                }
                (status, Ok(body)) => match serde_json::from_str(&body) {
                    Ok(body) => return Ok(Answer { status, body }),
                    Err(error) => reason = format!("{status} with a body that is not JSON: {error}"),
                },
                (status, Err(error)) => reason = format!("{status} without its body: {error}"),
            }
        }
        Err(ClientError::GivenUp { method, path: path.to_owned(), reason })
    }

    fn chance(&self) -> f64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }
}

fn accepted(method: &'static str, path: &str, answer: Answer) -> Result<Value, ClientError> {
    let Answer { status, body } = answer;
    if status.is_success() {
        return Ok(body);
    }
    Err(ClientError::Refused { method, path: path.to_owned(), status, body: body.to_string() })
}

/// Runs one task a job, several at once, until all are done or one has failed.
///
/// # Errors
///
/// The first failure; the others' tasks are ended.
pub(super) async fn run_all<F, Fut>(mut jobs: Jobs, rate: u32, task: F) -> Result<(), ClientError>
where
    F: Fn(usize) -> Fut,
    Fut: Future<Output = Result<(), ClientError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let start = Instant::now();
    let mut started = 0_u32;
    loop {
        while let Some(job) = jobs.ready.pop().filter(|_| running.len() < REQUESTS_AT_ONCE) {
            if rate > 0 {
                sleep_until(start + Duration::from_secs(1) * started / rate).await;
            }
            started += 1;
            let done = task(job.0);
            running.spawn(async move { done.await.map(|()| job.0) });
            if running.len() == REQUESTS_AT_ONCE {
                break;
            }
        }
        match running.join_next().await {
            None => return Ok(()),
            Some(Ok(done)) => jobs.done(done?),
            Some(Err(panicked)) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

/// Jobs by number, some of which wait for others.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    ready: BinaryHeap<Reverse<usize>>,
    waits_for: Vec<usize>,
    followers: Vec<Vec<usize>>,
}

impl Jobs {
    /// Returns jobs that do not wait for one another.
    pub(super) fn independent(count: usize) -> Self {
        let ready = (0..count).map(Reverse).collect();
        Self { ready, waits_for: vec![0; count], followers: vec![Vec::new(); count] }
    }

    /// Returns a job a game, each of which waits for the games before it of both its players on its board.
    pub(super) fn in_order_of_players(games: &[Game]) -> Self {
        Self::in_order(games.iter().map(|game| game.sides().map(|(player, _)| (player, game.time_control))))
    }

    /// Returns a job for each item, which waits for the items before it that share something with it.
    pub(super) fn in_order<K: Ord>(items: impl Iterator<Item = impl IntoIterator<Item = K>>) -> Self {
        let mut jobs = Self::default();
        let mut last: BTreeMap<K, usize> = BTreeMap::new();
        for (number, shared) in items.enumerate() {
            jobs.followers.push(Vec::new());
            let before: Vec<usize> = shared.into_iter().filter_map(|key| last.insert(key, number)).collect();
            jobs.waits_for.push(before.len());
            for before in before {
                jobs.followers[before].push(number);
            }
            if jobs.waits_for[number] == 0 {
                jobs.ready.push(Reverse(number));
            }
        }
        jobs
    }

    fn done(&mut self, job: usize) {
        for follower in std::mem::take(&mut self.followers[job]) {
            self.waits_for[follower] -= 1;
            if self.waits_for[follower] == 0 {
                self.ready.push(Reverse(follower));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use events::{PlayerId, TimeControl};

    use super::super::generated::generated_games;
    use super::*;

    #[tokio::test]
    async fn a_players_games_are_posted_one_at_a_time_in_order() {
        let games = Arc::new(generated_games(20, 300, events::Timestamp::from_millis(1_796_000_000_000), 3));
        let open: Arc<Mutex<BTreeMap<(PlayerId, TimeControl), usize>>> = Arc::default();
        let posted: Arc<Mutex<Vec<usize>>> = Arc::default();
        let task = |number: usize| {
            let (games, open, posted) = (games.clone(), open.clone(), posted.clone());
            async move {
                let game = &games[number];
                for (player, _) in game.sides() {
                    let other = open.lock().unwrap().insert((player.clone(), game.time_control), number);
                    assert_eq!(other, None, "game {number} is posted beside another one");
                }
                tokio::task::yield_now().await;
                for (player, _) in game.sides() {
                    open.lock().unwrap().remove(&(player.clone(), game.time_control));
                }
                posted.lock().unwrap().push(number);
                Ok(())
            }
        };
        run_all(Jobs::in_order_of_players(&games), 0, task).await.unwrap();
        let posted = posted.lock().unwrap();
        assert_eq!(posted.len(), 300);
        let position: BTreeMap<usize, usize> = posted.iter().enumerate().map(|(at, number)| (*number, at)).collect();
        let mut last: BTreeMap<(&PlayerId, TimeControl), usize> = BTreeMap::new();
        for (number, game) in games.iter().enumerate() {
            for (player, _) in game.sides() {
                if let Some(before) = last.insert((player, game.time_control), number) {
                    assert!(position[&before] < position[&number]);
                }
            }
        }
    }

    #[tokio::test]
    async fn the_first_failure_ends_the_run() {
        let refused = |number| async move {
            let path = format!("/{number}");
            Err(ClientError::GivenUp { method: "GET", path, reason: "no".to_owned() })
        };
        assert!(run_all(Jobs::independent(5), 0, refused).await.is_err());
    }
}
