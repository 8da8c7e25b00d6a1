//! Changing when messages of a queue become visible again.

use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry;
use consumer::{Visibility, VisibilityChange, VisibilityError};
use futures::stream::{self, StreamExt};
use thiserror::Error;

/// Entries in a batch, at most.
const BATCH_MAX: usize = 10;
/// Batches under way at the same time, at most.
const BATCHES_AT_ONCE: usize = 8;

/// The queue that a consumer's batches come from.
#[derive(Debug, Clone)]
pub struct SqsVisibility {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

#[derive(Debug, Error)]
#[error("{code}: {message}")]
struct EntryError {
    code: String,
    message: String,
}

impl SqsVisibility {
    /// Makes the port of a client and a queue.
    pub fn new(client: aws_sdk_sqs::Client, queue_url: String) -> Self {
        Self { client, queue_url }
    }

    async fn change_batch(&self, changes: Vec<VisibilityChange>) -> Result<(), VisibilityError> {
        let count = changes.len();
        let failed = |failed, source| VisibilityError { failed, source };
        let entries = changes
            .into_iter()
            .enumerate()
            .map(|(index, change)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(index.to_string())
                    .receipt_handle(change.receipt_handle)
                    .visibility_timeout(i32::try_from(change.timeout.as_secs()).unwrap_or(i32::MAX))
                    .build()
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failed(count, Box::new(error)))?;
        let output = self
            .client
            .change_message_visibility_batch()
            .queue_url(&self.queue_url)
            .set_entries(Some(entries))
            .send()
            .await
            .map_err(|error| failed(count, Box::new(error)))?;
        match output.failed() {
            [] => Ok(()),
            [first, others @ ..] => {
                let message = first.message().unwrap_or_default().to_owned();
                Err(failed(others.len() + 1, Box::new(EntryError { code: first.code().to_owned(), message })))
            }
        }
    }
}

impl Visibility for SqsVisibility {
    async fn change(&self, changes: Vec<VisibilityChange>) -> Result<(), VisibilityError> {
        let mut batches = Vec::new();
        for batch in changes.chunks(BATCH_MAX) {
            batches.push(self.change_batch(batch.to_vec()));
        }
        let results: Vec<_> = stream::iter(batches).buffer_unordered(BATCHES_AT_ONCE).collect().await;
        let mut errors = results.into_iter().filter_map(Result::err);
        let Some(mut first) = errors.next() else { return Ok(()) };
        first.failed += errors.map(|error| error.failed).sum::<usize>();
        Err(first)
    }
}
