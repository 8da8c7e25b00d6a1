//! The queues on SQS.

use std::collections::HashMap;
use std::time::Duration;

use aws::telemetry::chain;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
    MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName, SendMessageBatchRequestEntry,
};
use events::Timestamp;
use tokio::sync::Mutex;

use super::queues::{Attribute, AttributeValue, FifoPlace, Message, QueueError, Queues, Received};

/// How long a receive waits for a message, in seconds: one that waits asks all of SQS's servers, and an empty answer means that
/// there is nothing.
const WAIT_SECONDS: i32 = 1;
/// Messages in a call, at most.
const MESSAGES_MAX: i32 = 10;
/// The counts that together are all messages of a queue.
const COUNTS: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
];

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Queues whose names have the same prefix.
#[derive(Debug)]
pub struct Sqs {
    client: Client,
    prefix: String,
    urls: Mutex<HashMap<String, String>>,
}

impl Sqs {
    /// Calls through this client, which has to retry by itself. Physical names begin with the prefix and a hyphen.
    pub fn new(client: Client, prefix: impl Into<String>) -> Self {
        Self { client, prefix: prefix.into(), urls: Mutex::default() }
    }

    async fn url(&self, queue: &str) -> Result<String, Source> {
        let mut urls = self.urls.lock().await;
        if let Some(url) = urls.get(queue) {
            return Ok(url.clone());
        }
        let answer = self.client.get_queue_url().queue_name(format!("{}-{queue}", self.prefix)).send().await?;
        let url = answer.queue_url().ok_or("the answer has no URL")?.to_owned();
        urls.insert(queue.to_owned(), url.clone());
        Ok(url)
    }

    async fn try_count(&self, queue: &str) -> Result<u64, Source> {
        let call = self.client.get_queue_attributes().queue_url(self.url(queue).await?);
        let answer = call.set_attribute_names(Some(COUNTS.to_vec())).send().await?;
        let attributes = answer.attributes().ok_or("the answer has no attributes")?;
        let count = |name: &QueueAttributeName| attributes.get(name).and_then(|count| count.parse::<u64>().ok());
        Ok(COUNTS.iter().filter_map(count).sum())
    }

    async fn try_receive(&self, queue: &str, hidden: Duration) -> Result<Vec<Received>, Source> {
        let call = self
            .client
            .receive_message()
            .queue_url(self.url(queue).await?)
            .max_number_of_messages(MESSAGES_MAX)
            .wait_time_seconds(WAIT_SECONDS)
            .visibility_timeout(i32::try_from(hidden.as_secs()).unwrap_or(i32::MAX))
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All");
        call.send().await?.messages.unwrap_or_default().into_iter().map(received).collect()
    }

    async fn try_send(
        &self,
        queue: &str,
        messages: &[(&Message, Option<FifoPlace>)],
    ) -> Result<Vec<Result<(), String>>, Source> {
        let entries: Result<Vec<_>, _> = messages
            .iter()
            .enumerate()
            .map(|(index, (message, place))| entry(index, message, place.as_ref()))
            .collect();
        let call = self.client.send_message_batch().queue_url(self.url(queue).await?).set_entries(Some(entries?));
        let answer = call.send().await?;
        let successes = answer.successful().iter().map(|sent| sent.id());
        Ok(results(messages.len(), successes, answer.failed()))
    }

    async fn try_delete(&self, queue: &str, receipts: &[String]) -> Result<Vec<Result<(), String>>, Source> {
        let entry = |(index, receipt): (usize, &String)| {
            DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(receipt).build()
        };
        let entries: Result<Vec<_>, _> = receipts.iter().enumerate().map(entry).collect();
        let call = self.client.delete_message_batch().queue_url(self.url(queue).await?).set_entries(Some(entries?));
        let answer = call.send().await?;
        Ok(results(receipts.len(), answer.successful().iter().map(|deleted| deleted.id()), answer.failed()))
    }

    async fn try_release(&self, queue: &str, receipts: &[String]) -> Result<(), Source> {
        let entry = |(index, receipt): (usize, &String)| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(index.to_string());
            entry.receipt_handle(receipt).visibility_timeout(0).build()
        };
        let entries: Result<Vec<_>, _> = receipts.iter().enumerate().map(entry).collect();
        let call = self.client.change_message_visibility_batch().queue_url(self.url(queue).await?);
        call.set_entries(Some(entries?)).send().await?;
        Ok(())
    }
}

impl Queues for Sqs {
    async fn count(&self, queue: &str) -> Result<u64, QueueError> {
        self.try_count(queue).await.map_err(failed(queue, "counting"))
    }

    async fn receive(&self, queue: &str, hidden: Duration) -> Result<Vec<Received>, QueueError> {
        self.try_receive(queue, hidden).await.map_err(failed(queue, "receiving"))
    }

    async fn send(
        &self,
        queue: &str,
        messages: &[(&Message, Option<FifoPlace>)],
    ) -> Result<Vec<Result<(), String>>, QueueError> {
        self.try_send(queue, messages).await.map_err(failed(queue, "sending"))
    }

    async fn delete(&self, queue: &str, receipts: &[String]) -> Result<Vec<Result<(), String>>, QueueError> {
        self.try_delete(queue, receipts).await.map_err(failed(queue, "deleting"))
    }

    async fn release(&self, queue: &str, receipts: &[String]) -> Result<(), QueueError> {
        self.try_release(queue, receipts).await.map_err(failed(queue, "giving back"))
    }
}

fn failed(queue: &str, call: &'static str) -> impl FnOnce(Source) -> QueueError {
    let queue = queue.to_owned();
    // The text of the SDK's errors is in their sources.
    move |source| QueueError { queue, call, source: chain(source.as_ref()).into() }
}

fn received(message: aws_sdk_sqs::types::Message) -> Result<Received, Source> {
    let system = message.attributes.unwrap_or_default();
    let number = |name: &MessageSystemAttributeName| system.get(name).and_then(|text| text.parse::<i64>().ok());
    let sent_at = number(&MessageSystemAttributeName::SentTimestamp).ok_or("a message has no SentTimestamp")?;
    let receives = number(&MessageSystemAttributeName::ApproximateReceiveCount).unwrap_or(1);
    let attributes = message.message_attributes.unwrap_or_default();
    let attributes = attributes.into_iter().map(|(name, value)| (name, attribute(value))).collect();
    let group_id = system.get(&MessageSystemAttributeName::MessageGroupId).cloned();
    Ok(Received {
        message_id: message.message_id.ok_or("a message has no id")?,
        receipt: message.receipt_handle.ok_or("a message has no receipt")?,
        receives: u32::try_from(receives).unwrap_or(u32::MAX),
        sent_at: Timestamp::from_millis(sent_at),
        message: Message { body: message.body.unwrap_or_default(), attributes, group_id },
    })
}

fn attribute(value: MessageAttributeValue) -> Attribute {
    let content = match value.binary_value {
        Some(bytes) => AttributeValue::Binary(bytes.into_inner()),
        None => AttributeValue::Text(value.string_value.unwrap_or_default()),
    };
    Attribute { data_type: value.data_type, value: content }
}

fn entry(
    index: usize,
    message: &Message,
    place: Option<&FifoPlace>,
) -> Result<SendMessageBatchRequestEntry, aws_sdk_sqs::error::BuildError> {
    let mut entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(&message.body);
    for (name, attribute) in &message.attributes {
        let value = MessageAttributeValue::builder().data_type(&attribute.data_type);
        let value = match &attribute.value {
            AttributeValue::Text(text) => value.string_value(text),
            AttributeValue::Binary(bytes) => value.binary_value(Blob::new(bytes.clone())),
        };
        entry = entry.message_attributes(name, value.build()?);
    }
    if let Some(place) = place {
        entry = entry.message_group_id(&place.group_id).message_deduplication_id(&place.deduplication_id);
    }
    entry.build()
}

/// Returns the results in the order of the entries. What the answer does not name has not happened.
fn results<'a>(
    count: usize,
    successes: impl Iterator<Item = &'a str>,
    failures: &[BatchResultErrorEntry],
) -> Vec<Result<(), String>> {
    let mut results = vec![Err("the answer does not say what became of it".to_owned()); count];
    let mut put = |id: &str, result| {
        if let Some(slot) = id.parse::<usize>().ok().and_then(|index| results.get_mut(index)) {
            *slot = result;
        }
    };
    successes.for_each(|id| put(id, Ok(())));
    for failure in failures {
        put(failure.id(), Err(format!("{}: {}", failure.code(), failure.message().unwrap_or("no message"))));
    }
    results
}
