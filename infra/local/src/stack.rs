//! The stack: tables, queues, functions, mappings and the HTTP API of a model, put together and watched. What each of
//! them does is in its own module.

mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dynoxide::Database;
use queue::Counts;
use tokio::task::JoinSet;

use crate::calls::{Noting, Record, Witness};
use crate::gateway::Gateway;
use crate::issuer::Issuer;
use crate::lambda::Functions;
use crate::mapping::stream::{Stream, StreamError};
use crate::mapping::{Hostility, Progress};
use crate::model::{Model, QueueMapping, StreamMapping};
use crate::receiver::Receiver;
use crate::sqs::Broker;
use crate::status::{Row, Snapshot};
use crate::tables;

pub use start::{Listeners, StartError};

/// How often it is looked whether everything is quiet.
const QUIET_POLL: Duration = Duration::from_millis(25);

/// How a stack is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder that keeps the tables; without one they are in memory.
    pub data: Option<PathBuf>,
    /// Folder of the functions' binaries.
    pub binaries: PathBuf,
    /// Folder of the functions' logs; it must exist.
    pub logs: PathBuf,
    /// Whose tokens the HTTP API takes; without one it takes none.
    pub issuer: Option<Issuer>,
    /// How long an instance may be idle until it is stopped.
    pub idle: Duration,
    /// Instances of one function, at most.
    pub instances_max: usize,
    /// Requests that the HTTP API processes at once.
    pub api_concurrency: usize,
    /// How deliveries are disturbed.
    pub hostility: Hostility,
    /// How often a random instance is killed.
    pub kill_every: Option<Duration>,
    /// Visibility timeout of deliveries to functions instead of the queues' own.
    pub visibility_timeout: Option<Duration>,
    /// Whether the calls of functions are noted.
    pub calls: Noting,
}

/// Where a stack answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The HTTP API.
    pub api: SocketAddr,
    /// DynamoDB.
    pub dynamodb: SocketAddr,
    /// SQS.
    pub sqs: SocketAddr,
}

impl Addresses {
    /// Returns the HTTP API's URL, without a slash at its end.
    pub fn api_url(&self) -> String {
        format!("http://{}", self.api)
    }

    /// Returns the URL that AWS clients are given for DynamoDB.
    pub fn dynamodb_url(&self) -> String {
        format!("http://{}", self.dynamodb)
    }

    /// Returns the URL that AWS clients are given for SQS.
    pub fn sqs_url(&self) -> String {
        format!("http://{}", self.sqs)
    }
}

/// A running stack. It ends, with all its processes, when it is dropped.
pub struct Stack {
    model: Model,
    addresses: Addresses,
    database: Database,
    broker: Broker,
    functions: Arc<Functions>,
    gateway: Arc<Gateway>,
    queue_mappings: Vec<RunningQueueMapping>,
    stream_mappings: Vec<RunningStreamMapping>,
    tasks: JoinSet<()>,
    receiver: Receiver,
    issuer: Option<Issuer>,
    witness: Option<Witness>,
    _tables: tables::Server,
}

struct RunningQueueMapping {
    declared: QueueMapping,
    progress: Arc<Progress>,
}

struct RunningStreamMapping {
    declared: StreamMapping,
    stream: Stream,
    progress: Arc<Progress>,
}

/// What has been done so far; it stands still in a quiet stack.
#[derive(Debug, PartialEq, Eq)]
struct Activity {
    invocations: u64,
    batches: u64,
    requests: u64,
}

impl Stack {
    /// Returns where the stack answers.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns what the stack was built from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the tables.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the queues.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Returns who takes notifications.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Returns whose tokens the HTTP API takes, if it takes any.
    pub fn issuer(&self) -> Option<&Issuer> {
        self.issuer.as_ref()
    }

    /// Returns the calls that functions have made, if they are noted.
    pub fn calls(&self) -> Option<Record> {
        self.witness.as_ref().map(Witness::record)
    }

    /// Returns the functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Waits until nothing is left to do: every stream read to its end and acknowledged, every queue that has a consumer
    /// empty, no invocation running. Dead letter queues, and queues that nobody reads, may hold messages.
    ///
    /// # Errors
    ///
    /// When a stream cannot be read.
    pub async fn wait_until_quiet(&self) -> Result<(), StreamError> {
        loop {
            // Seen twice without anything done in between: nothing moved from where it was looked for last to where it
            // was looked for first.
            let first = self.activity_if_idle().await?;
            if first.is_some() && first == self.activity_if_idle().await? {
                return Ok(());
            }
            tokio::time::sleep(QUIET_POLL).await;
        }
    }

    /// Returns the messages in every dead letter queue, and in every other queue that nobody reads, by queue.
    pub fn dead_letters(&self) -> BTreeMap<String, usize> {
        let read: BTreeSet<_> = self.queue_mappings.iter().map(|mapping| mapping.declared.queue.as_str()).collect();
        let unread = self.model.queues.iter().filter(|queue| !read.contains(queue.name.as_str()));
        unread.map(|queue| (queue.name.clone(), self.counts(&queue.name).total())).collect()
    }

    /// Returns what the stack is doing.
    pub fn snapshot(&self) -> Snapshot {
        let counters = self.functions.counters();
        let mut shown = BTreeSet::new();
        let mut row = |function: &str| {
            let counters = counters.get(function).copied().unwrap_or_default();
            let mut row = Row {
                function: function.to_owned(),
                instances: counters.instances,
                backlog: counters.waiting,
                in_flight: counters.in_flight,
                done: 0,
                errors: counters.errors,
                dead_letters: None,
            };
            self.add_sources(&mut row, &mut shown);
            row
        };
        let rows = self.model.functions.iter().map(|function| row(&function.name)).collect();
        let unread = self.dead_letters().into_iter();
        Snapshot { rows, unread: unread.filter(|(queue, count)| *count > 0 && !shown.contains(queue)).collect() }
    }

    /// Ends the stack and all its processes.
    pub async fn stop(mut self) {
        self.functions.stop();
        self.tasks.shutdown().await;
    }

    /// Adds what a function's sources tell to its row, and to `shown` the dead letter queues that the row covers.
    fn add_sources(&self, row: &mut Row, shown: &mut BTreeSet<String>) {
        for mapping in self.queue_mappings.iter().filter(|mapping| mapping.declared.function == row.function) {
            let counts = self.counts(&mapping.declared.queue);
            row.backlog += counts.visible + counts.delayed;
            row.done += mapping.progress.done();
            if let Some(dead_letters) = self.dead_letter_queue(&mapping.declared.queue) {
                *row.dead_letters.get_or_insert(0) += self.counts(&dead_letters).total();
                shown.insert(dead_letters);
            }
        }
        for mapping in self.stream_mappings.iter().filter(|mapping| mapping.declared.function == row.function) {
            row.backlog += mapping.progress.pending();
            row.done += mapping.progress.done();
        }
        row.done += self.gateway.requests_of(&row.function);
    }

    /// Returns what has been done so far, if nothing is being done. Looks in the direction in which work flows.
    async fn activity_if_idle(&self) -> Result<Option<Activity>, StreamError> {
        let counters = self.functions.counters();
        if counters.values().any(|counters| counters.waiting + counters.in_flight > 0) {
            return Ok(None);
        }
        for mapping in &self.stream_mappings {
            if !mapping.stream.is_read().await? || mapping.progress.pending() > 0 {
                return Ok(None);
            }
        }
        let is_idle = |mapping: &RunningQueueMapping| {
            mapping.progress.pending() == 0 && self.counts(&mapping.declared.queue).total() == 0
        };
        if !self.queue_mappings.iter().all(is_idle) {
            return Ok(None);
        }
        let streams = self.stream_mappings.iter().map(|mapping| &mapping.progress);
        let queues = self.queue_mappings.iter().map(|mapping| &mapping.progress);
        Ok(Some(Activity {
            invocations: counters.values().map(|counters| counters.invocations).sum(),
            batches: streams.chain(queues).map(|progress| progress.batches()).sum(),
            requests: self.gateway.requests(),
        }))
    }

    fn counts(&self, queue: &str) -> Counts {
        let counts = self.broker.queue(queue).and_then(|queue| self.broker.counts(&queue));
        // A queue that was deleted by hand holds nothing.
        counts.unwrap_or_default()
    }

    fn dead_letter_queue(&self, queue: &str) -> Option<String> {
        let settings = self.broker.queue(queue).and_then(|queue| self.broker.settings(&queue)).ok()?;
        Some(settings.redrive?.dead_letter_queue.to_string())
    }
}
