//! `ReceiveMessage`: the wait, and which attributes of a message the caller asked for.

use std::collections::BTreeMap;

use queue::limits::{RECEIVE_MESSAGES, RECEIVE_WAIT_SECONDS, VISIBILITY_TIMEOUT_SECONDS};
use queue::{Delivery, QueueName, ReceiveRequest, attributes_md5};
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::wire::{Answer, WireAttribute, number, queue_of, read, seconds, write};
use super::{Broker, SENDER_ID};

const ALL: &str = "All";
/// What can be asked for, also of a queue that has no value for it.
const SYSTEM_ATTRIBUTES: [&str; 10] = [
    ALL,
    "ApproximateFirstReceiveTimestamp",
    "ApproximateReceiveCount",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn",
    "MessageDeduplicationId",
    "MessageGroupId",
    "SenderId",
    "SentTimestamp",
    "SequenceNumber",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveMessage {
    queue_url: Option<String>,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
    receive_request_attempt_id: Option<String>,
    attribute_names: Option<Vec<String>>,
    message_system_attribute_names: Option<Vec<String>>,
    message_attribute_names: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Received<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<ReceivedMessage<'a>>,
}

#[derive(Debug, Serialize)]
struct ReceivedMessage<'a> {
    #[serde(rename = "MessageId")]
    message_id: String,
    #[serde(rename = "ReceiptHandle")]
    receipt_handle: &'a str,
    #[serde(rename = "MD5OfBody")]
    body_md5: &'a str,
    #[serde(rename = "Body")]
    body: &'a str,
    #[serde(rename = "Attributes", skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, String>,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    message_attributes_md5: Option<String>,
    #[serde(rename = "MessageAttributes", skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: BTreeMap<&'a str, WireAttribute>,
}

pub(super) async fn receive_message(broker: &Broker, body: &[u8]) -> Answer {
    let request: ReceiveMessage = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let max = number(request.max_number_of_messages, "MaxNumberOfMessages", &RECEIVE_MESSAGES)?.unwrap_or(1);
    let receive = ReceiveRequest {
        max: usize::try_from(max).unwrap_or(1),
        visibility_timeout: seconds(request.visibility_timeout, "VisibilityTimeout", &VISIBILITY_TIMEOUT_SECONDS)?,
    };
    let wait = match seconds(request.wait_time_seconds, "WaitTimeSeconds", &RECEIVE_WAIT_SECONDS)? {
        Some(wait) => wait,
        None => broker.settings(&queue)?.receive_wait,
    };
    let mut system = request.attribute_names.unwrap_or_default();
    system.extend(request.message_system_attribute_names.unwrap_or_default());
    if let Some(unknown) = system.iter().find(|name| !SYSTEM_ATTRIBUTES.contains(&name.as_str())) {
        return Err(Fault::invalid_attribute_name(unknown));
    }
    let own = request.message_attribute_names.unwrap_or_default();
    let deliveries = match &request.receive_request_attempt_id {
        Some(attempt) => broker.receive_attempt(&queue, attempt, receive, wait).await?,
        None => broker.receive(&queue, receive, wait).await?,
    };
    let arn = |queue: &QueueName| broker.read(|queues, _| queues.arn(queue));
    let messages = deliveries.iter().map(|delivery| message(delivery, &system, &own, arn)).collect();
    write(&Received { messages })
}

fn message<'a>(
    delivery: &'a Delivery,
    system: &[String],
    own: &[String],
    arn: impl Fn(&QueueName) -> String,
) -> ReceivedMessage<'a> {
    let message = &delivery.message;
    let asked = || message.attributes.iter().filter(|(name, _)| own.iter().any(|pattern| matches(pattern, name)));
    ReceivedMessage {
        message_id: message.id.to_string(),
        receipt_handle: delivery.receipt.as_str(),
        body_md5: &message.body_md5,
        body: &message.body,
        attributes: system_attributes(delivery, system, arn),
        message_attributes_md5: attributes_md5(asked()),
        message_attributes: asked().map(|(name, attribute)| (name.as_str(), WireAttribute::write(attribute))).collect(),
    }
}

fn system_attributes(
    delivery: &Delivery,
    asked: &[String],
    arn: impl Fn(&QueueName) -> String,
) -> BTreeMap<&'static str, String> {
    if asked.is_empty() {
        return BTreeMap::new();
    }
    let message = &delivery.message;
    [
        ("ApproximateFirstReceiveTimestamp", Some(delivery.first_received_at.as_millis().to_string())),
        ("ApproximateReceiveCount", Some(delivery.receive_count.to_string())),
        ("AWSTraceHeader", message.trace_header.clone()),
        ("DeadLetterQueueSourceArn", delivery.dead_letter_source.as_ref().map(arn)),
        ("MessageDeduplicationId", message.deduplication_id.clone()),
        ("MessageGroupId", message.group_id.clone()),
        ("SenderId", Some(SENDER_ID.to_owned())),
        ("SentTimestamp", Some(message.sent_at.as_millis().to_string())),
        ("SequenceNumber", message.sequence_number.map(|number| number.to_string())),
    ]
    .into_iter()
    .filter(|(name, _)| asked.iter().any(|asked| asked == ALL || asked == name))
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// Tells whether a pattern (`All`, a name, or a prefix before `.*`) asks for an attribute.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == ALL || pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_asks_for_all_for_one_or_for_a_prefix() {
        for (pattern, name, expected) in [
            ("All", "a", true),
            (".*", "a", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("trace.*", "trace.id", true),
            ("trace.*", "tracer", true),
            ("trace.*", "span", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
