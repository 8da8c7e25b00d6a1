//! Sends messages to SQS queues: in batches within SQS's limits, each message with an outcome of its own. Knows nothing of
//! events and positions.

use std::future::Future;
use std::ops::Range;
use std::time::Duration;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchError;
use aws_sdk_sqs::types::{BatchResultErrorEntry, MessageAttributeValue, SendMessageBatchRequestEntry};
use tokio::time::{Instant, sleep, timeout_at};

use crate::telemetry::chain;

/// Messages in a batch, at most
/// ([quotas](https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html)).
pub const BATCH_MESSAGES_MAX: usize = 10;
/// Bytes of a message and of a batch with all its messages, at most: bodies and attributes' names, types and values.
pub const BATCH_BYTES_MAX: usize = 1_048_576;

/// The type of all attributes that are sent.
const ATTRIBUTE_TYPE: &str = "String";
/// Attempts of a batch, before its messages are given back as passing failures.
const ATTEMPTS_MAX: u32 = 3;
/// Wait before the second attempt, at most. It doubles with each.
const BACKOFF_BASE: Duration = Duration::from_millis(100);

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The body. SQS refuses or replaces characters that XML does not have.
    pub body: String,
    /// Attributes by name, none of them empty.
    pub attributes: Vec<(&'static str, String)>,
    /// What a FIFO queue asks for. A standard queue refuses a message that has it.
    pub fifo: Option<FifoPlace>,
}

/// Where a message belongs in a FIFO queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FifoPlace {
    /// The message group, within which messages keep their order: 1 to 128 alphanumeric and punctuation characters.
    pub group_id: String,
    /// The id that the queue takes once in 5 minutes: 1 to 128 alphanumeric and punctuation characters.
    pub deduplication_id: String,
}

impl Message {
    /// Returns the bytes that SQS counts.
    pub fn bytes(&self) -> usize {
        let attribute = |(name, value): &(&str, String)| name.len() + ATTRIBUTE_TYPE.len() + value.len();
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }

    fn group_id(&self) -> Option<&str> {
        self.fifo.as_ref().map(|place| place.group_id.as_str())
    }
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The queue has it.
    Sent,
    /// The queue will never take it.
    Never {
        /// Why not.
        reason: String,
    },
    /// The queue may take it later; perhaps it has it already.
    Later {
        /// Why not now.
        reason: String,
    },
}

/// What a failure says about the chances of another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Something is wrong with the message.
    Message,
    /// Something is wrong with the queue: it takes no message at all until somebody repairs it.
    Queue,
    /// Throttling, transport, or a fault of the service: it may get better by itself.
    Passing,
}

/// A failure to send a message or a whole batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub fault: Fault,
    /// What the service or the transport says.
    pub reason: String,
}

/// The one call that the publisher makes.
pub trait SendBatch: Send + Sync {
    /// Sends one batch within SQS's limits, once. Returns a result for each message in order, or the failure of the call.
    fn send_batch(
        &self,
        queue_url: &str,
        messages: &[&Message],
    ) -> impl Future<Output = Result<Vec<Result<(), Failure>>, Failure>> + Send;
}

/// Sends messages to one queue until `deadline` and returns the outcome of each, in their order. Passing failures are tried
/// again here, so `sender` must not do it too. Behind a message that may be sent later, none is sent any more, but for those
/// of its batch. No batch has two messages of one message group: the first could fail and the second not, and then the group
/// would be out of order for good.
pub async fn publish(
    sender: &impl SendBatch,
    queue_url: &str,
    messages: &[&Message],
    deadline: Instant,
) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(messages.len());
    for part in batches(messages) {
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Later { .. })) {
            let behind = Outcome::Later { reason: "a message before it was not sent".to_owned() };
            outcomes.resize(messages.len(), behind);
            break;
        }
        match part {
            Part::TooBig(index) => {
                let bytes = messages[index].bytes();
                let reason = format!("the message has {bytes} bytes, more than {BATCH_BYTES_MAX}");
                outcomes.push(Outcome::Never { reason });
            }
            Part::Batch(range) => outcomes.extend(publish_batch(sender, queue_url, &messages[range], deadline).await),
        }
    }
    outcomes
}

/// A part of a list of messages.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// These go into one batch.
    Batch(Range<usize>),
    /// This one goes into none.
    TooBig(usize),
}

/// Cuts a list of messages into batches. Order stays.
fn batches(messages: &[&Message]) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    let close = |parts: &mut Vec<Part>, range: Range<usize>| {
        if !range.is_empty() {
            parts.push(Part::Batch(range));
        }
    };
    for (index, message) in messages.iter().enumerate() {
        let size = message.bytes();
        if size > BATCH_BYTES_MAX {
            close(&mut parts, start..index);
            parts.push(Part::TooBig(index));
            (start, bytes) = (index + 1, 0);
        } else if has_no_room(&messages[start..index], bytes, message) {
            close(&mut parts, start..index);
            (start, bytes) = (index, size);
        } else {
            bytes += size;
        }
    }
    close(&mut parts, start..messages.len());
    parts
}

fn has_no_room(batch: &[&Message], bytes: usize, message: &Message) -> bool {
    let group_is_there = message.group_id().is_some_and(|id| batch.iter().any(|other| other.group_id() == Some(id)));
    batch.len() == BATCH_MESSAGES_MAX || bytes + message.bytes() > BATCH_BYTES_MAX || group_is_there
}

/// Sends one batch, what fails for a passing reason up to three times.
async fn publish_batch(
    sender: &impl SendBatch,
    queue_url: &str,
    messages: &[&Message],
    deadline: Instant,
) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Later { reason: "the time is up".to_owned() }; messages.len()];
    let mut left: Vec<usize> = (0..messages.len()).collect();
    let mut alone = false;
    for attempt in 0..ATTEMPTS_MAX {
        let pause = if attempt == 0 { Duration::ZERO } else { full_jitter(attempt) };
        if Instant::now() + pause >= deadline {
            break;
        }
        sleep(pause).await;
        let mut again = Vec::new();
        let groups: Vec<Vec<usize>> = if alone { left.iter().map(|index| vec![*index]).collect() } else { vec![left] };
        for group in groups {
            let chosen: Vec<&Message> = group.iter().map(|index| messages[*index]).collect();
            let results = match call(sender, queue_url, &chosen, deadline).await {
                Ok(results) => results,
                // The call as a whole was refused for what it carries: which message it is shows when each goes alone.
                Err(failure) if failure.fault == Fault::Message && group.len() > 1 => {
                    alone = true;
                    vec![Err(Failure { fault: Fault::Passing, ..failure }); group.len()]
                }
                Err(failure) => vec![Err(failure); group.len()],
            };
            for (index, result) in group.into_iter().zip(results) {
                outcomes[index] = outcome(result);
                if matches!(outcomes[index], Outcome::Later { .. }) {
                    again.push(index);
                }
            }
        }
        left = again;
        if left.is_empty() {
            break;
        }
    }
    outcomes
}

async fn call(
    sender: &impl SendBatch,
    queue_url: &str,
    messages: &[&Message],
    deadline: Instant,
) -> Result<Vec<Result<(), Failure>>, Failure> {
    let passing = |reason: &str| Failure { fault: Fault::Passing, reason: reason.to_owned() };
    let Ok(answer) = timeout_at(deadline, sender.send_batch(queue_url, messages)).await else {
        return Err(passing("the time is up"));
    };
    let mut results = answer?;
    // zip would drop what the answer leaves out, and a message that is dropped is lost.
    results.resize(messages.len(), Err(passing("the answer does not say what became of the message")));
    Ok(results)
}

fn outcome(result: Result<(), Failure>) -> Outcome {
    match result {
        Ok(()) => Outcome::Sent,
        Err(Failure { fault: Fault::Message | Fault::Queue, reason }) => Outcome::Never { reason },
        Err(Failure { fault: Fault::Passing, reason }) => Outcome::Later { reason },
    }
}

fn full_jitter(attempt: u32) -> Duration {
    let limit = BACKOFF_BASE * 2_u32.saturating_pow(attempt.saturating_sub(1));
    limit.mul_f64(fastrand::f64())
}

/// SQS. The client must be one that leaves retries to its caller.
#[derive(Debug, Clone)]
pub struct Sqs {
    client: aws_sdk_sqs::Client,
}

impl Sqs {
    /// Sends through this client.
    pub fn new(client: aws_sdk_sqs::Client) -> Self {
        Self { client }
    }
}

impl SendBatch for Sqs {
    async fn send_batch(&self, queue_url: &str, messages: &[&Message]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let entries = messages.iter().enumerate().map(|(index, message)| entry(index, message)).collect();
        let entries = entries_or_failure(entries)?;
        let call = self.client.send_message_batch().queue_url(queue_url).set_entries(Some(entries));
        let answer = call.send().await.map_err(|error| call_failure(&error))?;
        let unnamed =
            Failure { fault: Fault::Passing, reason: "the answer does not say what became of the message".to_owned() };
        let mut results = vec![Err(unnamed); messages.len()];
        for sent in answer.successful() {
            if let Some(result) = slot(&mut results, sent.id()) {
                *result = Ok(());
            }
        }
        for failed in answer.failed() {
            if let Some(result) = slot(&mut results, failed.id()) {
                *result = Err(entry_failure(failed));
            }
        }
        Ok(results)
    }
}

fn slot<'a, T>(results: &'a mut [T], id: &str) -> Option<&'a mut T> {
    results.get_mut(id.parse::<usize>().ok()?)
}

type BuildError = aws_sdk_sqs::error::BuildError;

fn entry(index: usize, message: &Message) -> Result<SendMessageBatchRequestEntry, BuildError> {
    let mut entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(&message.body);
    for (name, value) in &message.attributes {
        let value = MessageAttributeValue::builder().data_type(ATTRIBUTE_TYPE).string_value(value).build()?;
        entry = entry.message_attributes(*name, value);
    }
    if let Some(place) = &message.fifo {
        entry = entry.message_group_id(&place.group_id).message_deduplication_id(&place.deduplication_id);
    }
    entry.build()
}

fn entries_or_failure(
    entries: Result<Vec<SendMessageBatchRequestEntry>, BuildError>,
) -> Result<Vec<SendMessageBatchRequestEntry>, Failure> {
    entries.map_err(|error| Failure { fault: Fault::Message, reason: chain(&error) })
}

fn call_failure(error: &SdkError<SendMessageBatchError>) -> Failure {
    let mut fault = Fault::Passing;
    // No answer, half an answer, no credentials, or the service's own fault: nothing that a message is to blame for.
    if let SdkError::ServiceError(service) = error
        && service.raw().status().is_client_error()
    {
        fault = fault_of_code(service.err().code().unwrap_or_default()).unwrap_or(Fault::Message);
    }
    Failure { fault, reason: chain(error) }
}

fn entry_failure(entry: &BatchResultErrorEntry) -> Failure {
    let blamed = if entry.sender_fault() { Fault::Message } else { Fault::Passing };
    let fault = fault_of_code(entry.code()).unwrap_or(blamed);
    Failure { fault, reason: format!("{}: {}", entry.code(), entry.message().unwrap_or("no message")) }
}

/// Returns the kind of an error that SQS names by a code; `None` for a code that says nothing about it. Codes come with and
/// without the prefix of the old protocol, `AWS.SimpleQueueService.`.
fn fault_of_code(code: &str) -> Option<Fault> {
    /// Credentials and clocks are the same for every message and every queue, and they are renewed.
    const CREDENTIALS: [&str; 9] = [
        "ExpiredToken",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignature",
        "MissingAuthenticationToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClient",
    ];
    const BUSY: [&str; 5] = ["Throttl", "LimitExceeded", "TooManyRequests", "OverLimit", "Unavailable"];
    const QUEUE: [&str; 6] =
        ["NonExistentQueue", "QueueDoesNotExist", "AccessDenied", "InvalidAddress", "Kms", "UnsupportedOperation"];

    let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    if has(&BUSY) || has(&CREDENTIALS) {
        Some(Fault::Passing)
    } else if has(&QUEUE) || code.starts_with("KMS.") {
        Some(Fault::Queue)
    } else {
        None
    }
}

#[cfg(test)]
#[path = "publisher_tests.rs"]
mod tests;
