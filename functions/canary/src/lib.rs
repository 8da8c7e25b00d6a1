//! Sends a canary: writes one record whose event goes the way of all events, to every consumer's queue. It looks at nothing that
//! comes of it; the consumers count what arrives, and alarms notice what does not.

use std::error::Error;

use aws::items::{self, EVENT, PARTITION_KEY, VERSION};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use domain::{Attributes, Key};
use events::{CanarySent, Event, EventId, Payload, Timestamp, TraceId};
use serde_json::Value;
use thiserror::Error;

/// The one business object of all canaries. In a FIFO queue it is a message group of its own.
const AGGREGATE: &str = "canary";

/// Why no canary was sent.
#[derive(Debug, Error)]
pub enum CanaryError {
    /// The record could not be read or written.
    #[error("{operation} of the canary's record failed")]
    Store {
        /// The operation.
        operation: &'static str,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// What stands at the record's key has no version.
    #[error("the canary's record has no version")]
    NoVersion,
    /// The event does not convert.
    #[error("the canary's event does not convert")]
    Conversion(#[source] Box<dyn Error + Send + Sync>),
}

/// What a canary is sent with.
#[derive(Debug, Clone)]
pub struct Sender {
    /// A client that retries by itself.
    pub dynamodb: Client,
    /// Physical name of the table of source records.
    pub records_table: String,
}

/// Returns the key of the record that canaries are published by.
pub fn key() -> Key {
    Key::record("CANARY", "CANARY")
}

impl Sender {
    /// Sends a canary at this moment: replaces the record, unchanged since it was read, by its next version with a new event.
    /// When somebody else was faster, or the own write had arrived before its answer was lost, a canary is under way all the
    /// same.
    ///
    /// # Errors
    /// The record cannot be read or written. It may succeed later.
    pub async fn send(&self, now: Timestamp, event_id: EventId, trace_id: TraceId) -> Result<(), CanaryError> {
        let before = self.version().await?;
        let aggregate_id = AGGREGATE.to_owned();
        let payload = Payload::CanarySent(CanarySent {});
        let event = Event { event_id, aggregate_id, version: before + 1, occurred_at: now, trace_id, payload };
        let conversion = |error: serde_json::Error| CanaryError::Conversion(Box::new(error));
        let attributes = Attributes::from_iter([(EVENT.to_owned(), serde_json::to_value(&event).map_err(conversion)?)]);
        self.put(before, attributes).await
    }

    /// Returns the record's version; 0 is none.
    async fn version(&self) -> Result<u64, CanaryError> {
        let call = self
            .dynamodb
            .get_item()
            .table_name(&self.records_table)
            .set_key(Some(items::key_item(&key())))
            .consistent_read(true)
            .projection_expression("#v")
            .expression_attribute_names("#v", VERSION);
        let found = call.send().await.map_err(|error| store("GetItem", error))?;
        let Some(item) = found.item else { return Ok(0) };
        let digits = item.get(VERSION).and_then(|version| version.as_n().ok());
        digits.and_then(|digits| digits.parse().ok()).ok_or(CanaryError::NoVersion)
    }

    async fn put(&self, before: u64, attributes: Attributes) -> Result<(), CanaryError> {
        let item = items::item(&key(), before + 1, attributes);
        let item = item.map_err(|error| CanaryError::Conversion(Box::new(error)))?;
        let call = self.dynamodb.put_item().table_name(&self.records_table).set_item(Some(item));
        let call = match before {
            0 => call.condition_expression("attribute_not_exists(#p)").expression_attribute_names("#p", PARTITION_KEY),
            before => call
                .condition_expression("#v = :v")
                .expression_attribute_names("#v", VERSION)
                .expression_attribute_values(":v", items::number(before)),
        };
        match call.send().await {
            Err(error) if is_refusal(&error) => {
                tracing::info!(version = before + 1, "a canary of this version is under way");
                Ok(())
            }
            sent => sent.map(drop).map_err(|error| store("PutItem", error)),
        }
    }
}

/// Returns the answer to an invocation: which canary was sent.
pub fn answer(event_id: EventId) -> Value {
    serde_json::json!({ "event_id": event_id.to_string() })
}

fn is_refusal(error: &SdkError<PutItemError>) -> bool {
    error.as_service_error().is_some_and(PutItemError::is_conditional_check_failed_exception)
}

fn store<E: Error + Send + Sync + 'static>(operation: &'static str, error: SdkError<E>) -> CanaryError {
    CanaryError::Store { operation, source: Box::new(error) }
}
