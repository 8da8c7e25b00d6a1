//! The operations that send, delete and change the visibility of messages, one by one and in batches.

use std::time::Duration;

use queue::limits::{DELAY_SECONDS, MESSAGE_BYTES_MAX, VISIBILITY_TIMEOUT_SECONDS};
use queue::{AttributeValue, Message, ReceiptHandle, SendRequest, trace_header_md5};
use serde::{Deserialize, Serialize};

use super::Broker;
use super::batch::{Done, Entry, Outcome, entries};
use super::fault::Fault;
use super::wire::{Answer, Empty, WireAttributes, attributes, queue_of, read, required, seconds, write};

const TRACE_HEADER: &str = "AWSTraceHeader";

/// What `SendMessage` and an entry of `SendMessageBatch` have in common.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Send {
    id: Option<String>,
    queue_url: Option<String>,
    message_body: Option<String>,
    delay_seconds: Option<i64>,
    message_attributes: Option<WireAttributes>,
    message_system_attributes: Option<WireAttributes>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

/// What the other calls about a message, and the entries of their batches, have in common.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Handle {
    id: Option<String>,
    queue_url: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", bound = "E: serde::de::DeserializeOwned")]
struct Batch<E> {
    queue_url: Option<String>,
    entries: Option<Vec<E>>,
}

#[derive(Debug, Serialize)]
struct Sent {
    #[serde(rename = "Id", skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "MessageId")]
    message_id: String,
    #[serde(rename = "MD5OfMessageBody")]
    body_md5: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    attributes_md5: Option<String>,
    #[serde(rename = "MD5OfMessageSystemAttributes", skip_serializing_if = "Option::is_none")]
    system_attributes_md5: Option<String>,
    #[serde(rename = "SequenceNumber", skip_serializing_if = "Option::is_none")]
    sequence_number: Option<String>,
}

impl Entry for Send {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

impl Entry for Handle {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

pub(super) fn send_message(broker: &Broker, body: &[u8]) -> Answer {
    let mut request: Send = read(body)?;
    let queue = queue_of(broker, request.queue_url.take())?;
    let message = broker.send(&queue, request.into_message()?)?;
    write(&Sent::from_message(None, &message))
}

pub(super) fn send_message_batch(broker: &Broker, body: &[u8]) -> Answer {
    let request: Batch<Send> = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let entries = entries(request.entries)?;
    let messages: Vec<_> = entries.into_iter().map(|(id, entry)| (id, entry.into_message())).collect();
    let bytes: usize = messages.iter().filter_map(|(_, message)| message.as_ref().ok()).map(SendRequest::bytes).sum();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(Fault::batch_too_long(bytes));
    }
    let (ids, sent) = answer_each(messages, |messages| broker.send_many(&queue, messages));
    let results = ids.into_iter().zip(sent).map(|(id, result)| {
        let sent = result.map(|message| Sent::from_message(Some(id.clone()), &message));
        (id, sent)
    });
    write(&Outcome::collect(results))
}

pub(super) fn delete_message(broker: &Broker, body: &[u8]) -> Answer {
    let mut request: Handle = read(body)?;
    let queue = queue_of(broker, request.queue_url.take())?;
    only(broker.delete_many(&queue, &[request.receipt()?]))?;
    write(&Empty {})
}

pub(super) fn delete_message_batch(broker: &Broker, body: &[u8]) -> Answer {
    let request: Batch<Handle> = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let receipts = entries(request.entries)?.into_iter().map(|(id, entry)| (id, entry.receipt())).collect();
    let (ids, deleted) = answer_each(receipts, |receipts| broker.delete_many(&queue, &receipts));
    write(&done(ids, deleted))
}

pub(super) fn change_message_visibility(broker: &Broker, body: &[u8]) -> Answer {
    let mut request: Handle = read(body)?;
    let queue = queue_of(broker, request.queue_url.take())?;
    let timeout = request.timeout()?;
    only(broker.change_visibility_many(&queue, &[(request.receipt()?, timeout)]))?;
    write(&Empty {})
}

pub(super) fn change_message_visibility_batch(broker: &Broker, body: &[u8]) -> Answer {
    let request: Batch<Handle> = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let change = |entry: Handle| Ok((entry.timeout()?, entry.receipt()?)).map(|(timeout, receipt)| (receipt, timeout));
    let changes = entries(request.entries)?.into_iter().map(|(id, entry)| (id, change(entry))).collect();
    let (ids, changed) = answer_each(changes, |changes| broker.change_visibility_many(&queue, &changes));
    write(&done(ids, changed))
}

impl Send {
    fn into_message(self) -> Result<SendRequest, Fault> {
        Ok(SendRequest {
            body: required(self.message_body, "MessageBody")?,
            delay: seconds(self.delay_seconds, "DelaySeconds", &DELAY_SECONDS)?,
            attributes: attributes(self.message_attributes.unwrap_or_default())?,
            trace_header: trace_header(self.message_system_attributes.unwrap_or_default())?,
            group_id: self.message_group_id,
            deduplication_id: self.message_deduplication_id,
        })
    }
}

impl Handle {
    fn receipt(self) -> Result<ReceiptHandle, Fault> {
        required(self.receipt_handle, "ReceiptHandle").map(ReceiptHandle::from)
    }

    fn timeout(&self) -> Result<Duration, Fault> {
        let timeout = seconds(self.visibility_timeout, "VisibilityTimeout", &VISIBILITY_TIMEOUT_SECONDS)?;
        required(timeout, "VisibilityTimeout")
    }
}

impl Sent {
    fn from_message(id: Option<String>, message: &Message) -> Self {
        Self {
            id,
            message_id: message.id.to_string(),
            body_md5: message.body_md5.clone(),
            attributes_md5: message.attributes_md5.clone(),
            system_attributes_md5: message.trace_header.as_deref().map(trace_header_md5),
            sequence_number: message.sequence_number.map(|number| number.to_string()),
        }
    }
}

/// Makes one call for the entries that can be read, and returns the results of all of them in their order.
fn answer_each<I, O>(
    entries: Vec<(String, Result<I, Fault>)>,
    call: impl FnOnce(Vec<I>) -> Vec<Result<O, queue::Error>>,
) -> (Vec<String>, Vec<Result<O, Fault>>) {
    let (mut ids, mut faults, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
    for (id, entry) in entries {
        ids.push(id);
        match entry {
            Ok(input) => {
                inputs.push(input);
                faults.push(None);
            }
            Err(fault) => faults.push(Some(fault)),
        }
    }
    let mut outputs = call(inputs).into_iter();
    let results = faults.into_iter().filter_map(|fault| match fault {
        Some(fault) => Some(Err(fault)),
        None => outputs.next().map(|output| output.map_err(Fault::from)),
    });
    (ids, results.collect())
}

fn done(ids: Vec<String>, results: Vec<Result<(), Fault>>) -> Outcome<Done> {
    Outcome::collect(ids.into_iter().zip(results).map(|(id, result)| (id.clone(), result.map(|()| Done { id }))))
}

fn only(results: Vec<Result<(), queue::Error>>) -> Result<(), Fault> {
    results.into_iter().collect::<Result<(), queue::Error>>().map_err(Fault::from)
}

fn trace_header(system_attributes: WireAttributes) -> Result<Option<String>, Fault> {
    let mut trace_header = None;
    for (name, attribute) in system_attributes {
        let attribute = attribute.read(&name)?;
        match (name.as_str(), attribute.data_type.as_str(), attribute.value) {
            (TRACE_HEADER, "String", AttributeValue::Text(text)) => trace_header = Some(text),
            (_, data_type, AttributeValue::Text(_) | AttributeValue::Binary(_)) => {
                let reason = "The only system attribute is AWSTraceHeader, of type String";
                return Err(Fault::invalid("MessageSystemAttributes", format!("{name} ({data_type})"), reason));
            }
        }
    }
    Ok(trace_header)
}
