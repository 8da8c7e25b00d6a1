//! An event source mapping from a table's stream: reads it from its beginning and spreads it over lanes, so that the
//! records of one partition key stay in order. Invokes nothing itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dynoxide::Database;
use dynoxide::actions::get_records::{GetRecordsRequest, GetRecordsResponse};
use dynoxide::actions::get_shard_iterator::GetShardIteratorRequest;
use dynoxide::streams::shard_id;
use tokio::sync::mpsc;

use super::Progress;
use super::hostile::{Disturber, Hostility};
use super::stream_event::Record;
use super::stream_lane::Lane;
use crate::lambda::{ACCOUNT_ID, Invoke, REGION};
use crate::model::StreamMapping;

/// Records of one read.
const READ_MAX: usize = 1_000;

/// Records that a lane takes before the reader waits for it.
const LANE_MAX: usize = 2_000;

/// Wait after the first read that found nothing; it doubles up to the interval at which Lambda polls.
const IDLE_POLL_MIN: Duration = Duration::from_millis(20);

/// Lambda polls a shard four times a second.
const IDLE_POLL_MAX: Duration = Duration::from_millis(250);

/// Wait after a read that failed.
const FAILED_READ_WAIT: Duration = Duration::from_secs(1);

/// A stream that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The table or its stream does not exist, or the database refused.
    #[error("cannot read the stream of table {table}: {reason}")]
    Refused {
        /// Table's name.
        table: String,
        /// What the database said.
        reason: String,
    },
    /// The read was cancelled because the stack is stopping.
    #[error("reading the stream of table {table} was cancelled")]
    Cancelled {
        /// Table's name.
        table: String,
    },
}

/// The stream of a table, and how far it was read.
#[derive(Clone)]
pub struct Stream {
    database: Database,
    table: String,
    iterator: Arc<Mutex<String>>,
}

impl Stream {
    /// Opens the stream of a table at its oldest record.
    ///
    /// # Errors
    ///
    /// When the table or its stream does not exist.
    pub fn open(database: Database, table: &str) -> Result<Self, StreamError> {
        let refused = |reason: String| StreamError::Refused { table: table.to_owned(), reason };
        let request = GetShardIteratorRequest {
            stream_arn: stream_arn(table),
            shard_id: shard_id(table),
            shard_iterator_type: "TRIM_HORIZON".to_owned(),
            sequence_number: None,
        };
        let response = database.get_shard_iterator(request).map_err(|error| refused(error.to_string()))?;
        let iterator = response.shard_iterator.ok_or_else(|| refused("it has no shard".to_owned()))?;
        Ok(Self { database, table: table.to_owned(), iterator: Arc::new(Mutex::new(iterator)) })
    }

    /// Returns whether everything written to the table so far was read.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub async fn is_read(&self) -> Result<bool, StreamError> {
        Ok(self.read(1).await?.records.is_empty())
    }

    async fn read(&self, limit: usize) -> Result<GetRecordsResponse, StreamError> {
        let database = self.database.clone();
        let shard_iterator = self.iterator.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The database is in this process and answers synchronously.
        let read = move || database.get_records(GetRecordsRequest { shard_iterator, limit: Some(limit) });
        let table = || self.table.clone();
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(StreamError::Refused { table: table(), reason: error.to_string() }),
            Err(_) => Err(StreamError::Cancelled { table: table() }),
        }
    }

    fn advance(&self, iterator: String) {
        *self.iterator.lock().unwrap_or_else(PoisonError::into_inner) = iterator;
    }
}

/// An event source mapping from a table's stream.
pub struct Mapping {
    /// What the template declares.
    pub declared: StreamMapping,
    /// The stream.
    pub stream: Stream,
    /// Name of the table's hash key.
    pub partition_key: String,
    /// The function.
    pub function: Arc<dyn Invoke>,
    /// How deliveries are disturbed.
    pub hostility: Hostility,
    /// Where the mapping tells what it does.
    pub progress: Arc<Progress>,
}

impl Mapping {
    /// Carries records from the stream to the function until it is dropped.
    pub async fn run(self) {
        let (senders, lanes): (Vec<_>, Vec<_>) = (0..self.declared.parallelization_factor.max(1))
            .map(|number| {
                let (sender, inbox) = mpsc::channel(LANE_MAX);
                (sender, self.lane(number, inbox).run())
            })
            .unzip();
        futures::future::join(self.read(senders), futures::future::join_all(lanes)).await;
    }

    fn lane(&self, number: usize, inbox: mpsc::Receiver<Record>) -> Lane {
        let name = format!("{} {} {number}", self.declared.table, self.declared.function);
        let disturber = Disturber::new(self.hostility, &name);
        Lane::new(self.declared.clone(), Arc::clone(&self.function), Arc::clone(&self.progress), disturber, inbox)
    }

    async fn read(&self, lanes: Vec<mpsc::Sender<Record>>) {
        let arn = stream_arn(&self.declared.table);
        let mut wait = IDLE_POLL_MIN;
        loop {
            let response = match self.stream.read(READ_MAX).await {
                Ok(response) => response,
                Err(error) => {
                    tracing::warn!(%error, "a stream was not read");
                    tokio::time::sleep(FAILED_READ_WAIT).await;
                    continue;
                }
            };
            if response.records.is_empty() {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(IDLE_POLL_MAX);
                continue;
            }
            wait = IDLE_POLL_MIN;
            // Counted before the position moves: nobody must find the stream read and nothing pending.
            self.progress.read(response.records.len());
            if let Some(iterator) = response.next_shard_iterator {
                self.stream.advance(iterator);
            }
            for record in &response.records {
                let record = Record::new(&arn, &self.partition_key, record);
                let lane = usize::try_from(record.partition % lanes.len() as u64).unwrap_or_default();
                if lanes[lane].send(record).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn stream_arn(table: &str) -> String {
    format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{table}/stream/local")
}
