//! A table stream's record as the record of the event that Lambda sends. Reads no stream.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use dynoxide::actions::get_records;
use dynoxide::types::AttributeValue;
use serde::Serialize;

use super::batch;
use crate::lambda::REGION;

/// A record of a stream, once read.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The record's place in the stream.
    pub(super) sequence_number: Arc<str>,
    /// The item's key, in a canonical form.
    pub(super) item: Arc<str>,
    /// Hash of the partition key.
    pub(super) partition: u64,
    /// Whether the record was delivered before.
    pub(super) delivery: Delivery,
    json: Arc<[u8]>,
}

/// Whether a record was delivered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It was not, or not successfully.
    First,
    /// It was, and comes once more.
    Repeated,
}

impl Record {
    /// Builds the record of a table's stream; `partition_key` is the name of the table's hash key.
    pub(super) fn new(stream_arn: &str, partition_key: &str, record: &get_records::Record) -> Self {
        let keys: BTreeMap<&String, &AttributeValue> = record.dynamodb.keys.iter().collect();
        let event = EventRecord {
            event_id: &record.event_id,
            event_name: &record.event_name,
            event_version: &record.event_version,
            event_source: &record.event_source,
            aws_region: REGION,
            dynamodb: &record.dynamodb,
            event_source_arn: stream_arn,
            user_identity: record.user_identity.as_ref(),
        };
        // Attribute values come from JSON and always have a JSON form.
        Self {
            sequence_number: record.dynamodb.sequence_number.as_str().into(),
            item: serde_json::to_string(&keys).unwrap_or_default().into(),
            partition: hash(record.dynamodb.keys.get(partition_key)),
            delivery: Delivery::First,
            json: serde_json::to_vec(&event).unwrap_or_default().into(),
        }
    }

    /// Returns the same record as one that comes once more.
    pub(super) fn repeated(&self) -> Self {
        Self { delivery: Delivery::Repeated, ..self.clone() }
    }
}

impl batch::Record for Record {
    fn json(&self) -> &[u8] {
        &self.json
    }
}

/// The record as Lambda's events have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventRecord<'a> {
    #[serde(rename = "eventID")]
    event_id: &'a str,
    event_name: &'a str,
    event_version: &'a str,
    event_source: &'a str,
    aws_region: &'static str,
    dynamodb: &'a get_records::StreamRecord,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_identity: Option<&'a get_records::UserIdentity>,
}

fn hash(value: Option<&AttributeValue>) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.and_then(|value| serde_json::to_string(value).ok()).hash(&mut hasher);
    hasher.finish()
}
