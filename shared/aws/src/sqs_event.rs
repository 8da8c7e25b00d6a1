//! The batch that Lambda hands to a consumer, record by record: one that cannot be read never takes the others with it.

use std::collections::HashMap;

use consumer::{Delivery, InvalidMessageId, MessageId};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

/// Why an invocation's payload is no batch of queue messages. The invocation fails, and nothing is acknowledged: an empty
/// list of failures would delete what was not understood.
#[derive(Debug, Error)]
pub enum BatchError {
    /// There is no list of records.
    #[error("the payload is no SQS event: field Records")]
    NoRecords(#[source] serde_json::Error),
    /// A record is not from SQS.
    #[error("record {index} is no SQS message: field eventSource is {source_name:?}")]
    ForeignSource {
        /// Position in the batch.
        index: usize,
        /// What the record says.
        source_name: String,
    },
    /// A record has no id by which its failure could be reported.
    #[error("record {index} is no SQS message: field messageId")]
    NoMessageId {
        /// Position in the batch.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(rename = "Records", borrow)]
    records: Vec<&'a RawValue>,
}

/// What a failure's report needs. Values that are not asked for are skipped, whatever they hold.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    message_id: String,
    #[serde(default)]
    event_source: String,
    #[serde(default)]
    receipt_handle: Option<String>,
    #[serde(default)]
    attributes: Option<HashMap<String, Option<String>>>,
    #[serde(default, borrow)]
    body: Option<&'a RawValue>,
}

/// Reads an invocation's payload.
///
/// # Errors
/// The payload as a whole, or the identity of one of its records, is not what SQS sends.
pub fn deliveries(payload: &str) -> Result<Vec<Delivery>, BatchError> {
    let batch: Batch<'_> = serde_json::from_str(payload).map_err(BatchError::NoRecords)?;
    batch.records.iter().enumerate().map(|(index, record)| delivery(index, record)).collect()
}

fn delivery(index: usize, record: &RawValue) -> Result<Delivery, BatchError> {
    let identity: Identity<'_> = serde_json::from_str(record.get())
        .map_err(|error| BatchError::NoMessageId { index, source: Box::new(error) })?;
    if identity.event_source != "aws:sqs" {
        return Err(BatchError::ForeignSource { index, source_name: identity.event_source });
    }
    let message_id = MessageId::try_from(identity.message_id)
        .map_err(|error: InvalidMessageId| BatchError::NoMessageId { index, source: Box::new(error) })?;
    let attributes = identity.attributes.unwrap_or_default();
    let attribute = |name| attributes.get(name).and_then(Option::as_ref);
    let receive_count = attribute("ApproximateReceiveCount");
    Ok(Delivery {
        message_id,
        receipt_handle: identity.receipt_handle.filter(|handle| !handle.is_empty()),
        receive_count: receive_count.and_then(|count| count.parse().ok()).unwrap_or(1),
        group: attribute("MessageGroupId").filter(|group| !group.is_empty()).cloned(),
        body: identity.body.map(body).unwrap_or_default(),
    })
}

/// The bytes of a body. One that is no string, or no valid one (SQS takes lone surrogates for characters), is handed on as
/// it stands, and will be rejected as what it is.
fn body(raw: &RawValue) -> Vec<u8> {
    serde_json::from_str::<Option<String>>(raw.get())
        .map(|text| text.unwrap_or_default().into_bytes())
        .unwrap_or_else(|_| raw.get().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fields: &str) -> String {
        format!(r#"{{"Records": [{{"eventSource": "aws:sqs", {fields}}}]}}"#)
    }

    fn check(fields: &str) -> Delivery {
        deliveries(&record(fields)).unwrap().remove(0)
    }

    #[test]
    fn a_whole_record_is_read() {
        let delivery = check(
            r#""messageId": "m", "receiptHandle": "h", "body": "{\"a\": \"ä\"}",
               "attributes": {"ApproximateReceiveCount": "7", "MessageGroupId": "order-1"}"#,
        );
        assert_eq!(delivery.message_id.as_str(), "m");
        assert_eq!(delivery.receipt_handle.as_deref(), Some("h"));
        assert_eq!(delivery.receive_count, 7);
        assert_eq!(delivery.group.as_deref(), Some("order-1"));
        assert_eq!(delivery.body, "{\"a\": \"ä\"}".as_bytes());
    }

    #[test]
    fn absent_attributes_are_a_first_receipt_without_a_handle() {
        for fields in [
            r#""messageId": "m", "body": "b""#,
            r#""messageId": "m", "body": "b", "attributes": null, "receiptHandle": null"#,
            r#""messageId": "m", "body": "b", "attributes": {}, "receiptHandle": """#,
            r#""messageId": "m", "body": "b", "attributes": {"ApproximateReceiveCount": "many", "MessageGroupId": ""}"#,
        ] {
            let delivery = check(fields);
            let read = (delivery.receipt_handle, delivery.receive_count, delivery.group);
            assert_eq!(read, (None, 1, None), "{fields}");
        }
    }

    #[test]
    fn a_body_that_cannot_be_read_leaves_the_others_alone() {
        let payload = r#"{"Records": [
            {"eventSource": "aws:sqs", "messageId": "1", "body": "\ud800"},
            {"eventSource": "aws:sqs", "messageId": "2", "body": {"not": "text"}},
            {"eventSource": "aws:sqs", "messageId": "3"},
            {"eventSource": "aws:sqs", "messageId": "4", "body": "good"}]}"#;
        let bodies: Vec<Vec<u8>> = deliveries(payload).unwrap().into_iter().map(|delivery| delivery.body).collect();
        assert_eq!(bodies, [&br#""\ud800""#[..], br#"{"not": "text"}"#, b"", b"good"]);
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation() {
        for fields in [r#""body": "b""#, r#""messageId": null"#, r#""messageId": "", "body": "b""#, r#""messageId": 1"#]
        {
            let error = deliveries(&record(fields)).unwrap_err();
            assert!(matches!(error, BatchError::NoMessageId { index: 0, .. }), "{fields}: {error}");
        }
    }

    #[test]
    fn a_payload_of_a_foreign_shape_fails_the_invocation() {
        for payload in ["{}", "[]", "null", r#"{"records": []}"#, r#"{"Records": null}"#, r#"{"Records": {}}"#, "1"] {
            assert!(matches!(deliveries(payload), Err(BatchError::NoRecords(_))), "{payload}");
        }
        let stream = r#"{"Records": [{"eventSource": "aws:dynamodb", "messageId": "m"}]}"#;
        assert!(matches!(deliveries(stream), Err(BatchError::ForeignSource { .. })));
    }
}
