//! A queue's delivery as the record of the event that Lambda sends. Receives and deletes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use queue::{AttributeValue, Delivery, MessageAttribute, ReceiptHandle};
use serde::Serialize;

use super::batch;
use crate::lambda::{ACCOUNT_ID, REGION};
use crate::sqs::SENDER_ID;

/// A record of a queue, once received.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Id of the message.
    pub(super) message_id: String,
    /// Handle of this receive.
    pub(super) receipt: ReceiptHandle,
    /// Group of the message; a message of a FIFO queue always has one.
    pub(super) group: Option<Arc<str>>,
    /// How often the message was received, this time included.
    pub(super) receive_count: u32,
    /// Whether this is the delivery that counts.
    pub(super) copy: Copy,
    json: Arc<[u8]>,
}

/// Whether a delivery counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Copy {
    /// The one that the queue made: its outcome counts.
    Received,
    /// One that was made up: its outcome is nobody's affair.
    Repeated,
}

impl Record {
    /// Builds the record of a delivery of a queue.
    pub(super) fn new(queue: &str, delivery: &Delivery) -> Self {
        let record = EventRecord::new(queue, delivery);
        // Strings, numbers and maps of strings always have a JSON form.
        let json = serde_json::to_vec(&record).unwrap_or_default();
        Self {
            message_id: record.message_id,
            receipt: delivery.receipt.clone(),
            group: delivery.message.group_id.as_deref().map(Arc::from),
            receive_count: delivery.receive_count,
            copy: Copy::Received,
            json: json.into(),
        }
    }

    /// Returns the same record as a delivery that does not count.
    pub(super) fn repeated(&self) -> Self {
        Self { copy: Copy::Repeated, ..self.clone() }
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
    message_id: String,
    receipt_handle: &'a str,
    body: &'a str,
    attributes: BTreeMap<&'static str, String>,
    message_attributes: BTreeMap<&'a str, EventAttribute<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    md5_of_message_attributes: Option<&'a str>,
    md5_of_body: &'a str,
    event_source: &'static str,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: String,
    aws_region: &'static str,
}

/// A message attribute as Lambda's events have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventAttribute<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
    string_list_values: [(); 0],
    binary_list_values: [(); 0],
    data_type: &'a str,
}

impl<'a> EventRecord<'a> {
    fn new(queue: &str, delivery: &'a Delivery) -> Self {
        let message = &*delivery.message;
        Self {
            message_id: message.id.to_string(),
            receipt_handle: delivery.receipt.as_str(),
            body: &message.body,
            attributes: system_attributes(delivery),
            message_attributes: message.attributes.iter().map(|(name, value)| (name.as_str(), value.into())).collect(),
            md5_of_message_attributes: message.attributes_md5.as_deref(),
            md5_of_body: &message.body_md5,
            event_source: "aws:sqs",
            event_source_arn: arn(queue),
            aws_region: REGION,
        }
    }
}

impl<'a> From<&'a MessageAttribute> for EventAttribute<'a> {
    fn from(attribute: &'a MessageAttribute) -> Self {
        let (string_value, binary_value) = match &attribute.value {
            AttributeValue::Text(text) => (Some(text.as_str()), None),
            AttributeValue::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        let data_type = &attribute.data_type;
        Self { string_value, binary_value, string_list_values: [], binary_list_values: [], data_type }
    }
}

fn system_attributes(delivery: &Delivery) -> BTreeMap<&'static str, String> {
    let message = &*delivery.message;
    let always = [
        ("ApproximateFirstReceiveTimestamp", delivery.first_received_at.as_millis().to_string()),
        ("ApproximateReceiveCount", delivery.receive_count.to_string()),
        ("SenderId", SENDER_ID.to_owned()),
        ("SentTimestamp", message.sent_at.as_millis().to_string()),
    ];
    let sometimes = [
        ("AWSTraceHeader", message.trace_header.clone()),
        ("DeadLetterQueueSourceArn", delivery.dead_letter_source.as_ref().map(|source| arn(&source.to_string()))),
        ("MessageDeduplicationId", message.deduplication_id.clone()),
        ("MessageGroupId", message.group_id.clone()),
        ("SequenceNumber", message.sequence_number.map(|number| number.to_string())),
    ];
    always.into_iter().chain(sometimes.into_iter().filter_map(|(name, value)| Some((name, value?)))).collect()
}

fn arn(queue: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{queue}")
}

#[cfg(test)]
pub(super) mod testing {
    use queue::{Configuration, QueueName, Queues, ReceiveRequest, SendRequest, Timestamp};

    use super::Record;

    /// Returns the records of messages, each a group and a body, in this order.
    pub(in super::super) fn records(messages: &[(&str, &str)]) -> Vec<Record> {
        let mut queues = Queues::new(Configuration::default());
        let name = QueueName::parse("standard").unwrap();
        let now = Timestamp::from_millis(0);
        queues.create(&name, &Default::default(), now).unwrap();
        for (group, body) in messages {
            let request = SendRequest { group_id: Some((*group).to_owned()), ..SendRequest::from_body(*body) };
            queues.send(&name, request, now).unwrap();
        }
        let request = ReceiveRequest { max: messages.len(), visibility_timeout: None };
        let received = queues.receive(&name, request, now).unwrap();
        received.deliveries.iter().map(|delivery| Record::new("standard", delivery)).collect()
    }
}

#[cfg(test)]
mod tests {
    use queue::{Configuration, MessageAttributes, QueueName, Queues, ReceiveRequest, SendRequest, Timestamp};
    use serde_json::{Value, json};

    use super::*;

    fn record_of(request: SendRequest) -> Value {
        record_of_queue("game-ended", BTreeMap::new(), request)
    }

    fn record_of_queue(name: &str, attributes: BTreeMap<String, String>, request: SendRequest) -> Value {
        let mut queues = Queues::new(Configuration::default());
        let name = QueueName::parse(name).unwrap();
        queues.create(&name, &attributes, Timestamp::from_millis(0)).unwrap();
        queues.send(&name, request, Timestamp::from_millis(1_000)).unwrap();
        let receive = ReceiveRequest { max: 10, visibility_timeout: None };
        let received = queues.receive(&name, receive, Timestamp::from_millis(2_000)).unwrap();
        let record = Record::new(name.as_str(), &received.deliveries[0]);
        serde_json::from_slice(batch::Record::json(&record)).unwrap()
    }

    #[test]
    fn a_record_has_the_fields_of_lambdas_events() {
        let record = record_of(SendRequest::from_body("hello"));

        let is_text = |field: &str| record[field].as_str().is_some_and(|text| !text.is_empty());
        assert!(is_text("messageId") && is_text("receiptHandle"));
        assert_eq!(record["body"], "hello");
        assert_eq!(record["md5OfBody"], "5d41402abc4b2a76b9719d911017c592");
        assert_eq!(record["eventSource"], "aws:sqs");
        assert_eq!(record["eventSourceARN"], "arn:aws:sqs:us-east-1:000000000000:game-ended");
        assert_eq!(record["awsRegion"], "us-east-1");
        assert_eq!(record["messageAttributes"], json!({}));
        assert_eq!(
            record["attributes"],
            json!({
                "ApproximateReceiveCount": "1",
                "ApproximateFirstReceiveTimestamp": "2000",
                "SenderId": SENDER_ID,
                "SentTimestamp": "1000",
            })
        );
    }

    #[test]
    fn a_record_of_a_fifo_queue_has_its_place_in_its_group() {
        let attributes = BTreeMap::from([("FifoQueue".to_owned(), "true".to_owned())]);
        let request = SendRequest {
            group_id: Some("order-1".to_owned()),
            deduplication_id: Some("event-1".to_owned()),
            ..SendRequest::from_body("hello")
        };

        let record = record_of_queue("order-changed.fifo", attributes, request);

        assert_eq!(record["eventSourceARN"], "arn:aws:sqs:us-east-1:000000000000:order-changed.fifo");
        let attributes = &record["attributes"];
        assert_eq!(attributes["MessageGroupId"], "order-1");
        assert_eq!(attributes["MessageDeduplicationId"], "event-1");
        assert!(attributes["SequenceNumber"].as_str().is_some_and(|number| number.len() == 20), "{attributes}");
    }

    #[test]
    fn message_attributes_have_text_or_base64() {
        let attribute = |data_type: &str, value| MessageAttribute { data_type: data_type.to_owned(), value };
        let attributes = MessageAttributes::from([
            ("kind".to_owned(), attribute("String", AttributeValue::Text("a".to_owned()))),
            ("raw".to_owned(), attribute("Binary", AttributeValue::Binary(vec![1, 2, 3]))),
        ]);

        let record = record_of(SendRequest { attributes, ..SendRequest::from_body("hello") });

        let lists = |mut value: Value| {
            value["stringListValues"] = json!([]);
            value["binaryListValues"] = json!([]);
            value
        };
        assert_eq!(
            record["messageAttributes"],
            json!({
                "kind": lists(json!({ "stringValue": "a", "dataType": "String" })),
                "raw": lists(json!({ "binaryValue": "AQID", "dataType": "Binary" })),
            })
        );
        assert!(record["md5OfMessageAttributes"].is_string());
    }
}
