//! The names of queue attributes, each written once, and how a number among them is read.

use std::ops::RangeInclusive;

use crate::error::Error;

/// Names of queue attributes in the SQS API.
pub mod names {
    /// Seconds that a received message stays invisible.
    pub const VISIBILITY_TIMEOUT: &str = "VisibilityTimeout";
    /// Seconds that a message is kept.
    pub const MESSAGE_RETENTION_PERIOD: &str = "MessageRetentionPeriod";
    /// Seconds until a sent message becomes visible.
    pub const DELAY_SECONDS: &str = "DelaySeconds";
    /// Seconds that a receive waits for a message.
    pub const RECEIVE_MESSAGE_WAIT_TIME_SECONDS: &str = "ReceiveMessageWaitTimeSeconds";
    /// Bytes of a message, at most.
    pub const MAXIMUM_MESSAGE_SIZE: &str = "MaximumMessageSize";
    /// The dead letter queue and after how many receives a message goes there, in JSON.
    pub const REDRIVE_POLICY: &str = "RedrivePolicy";
    /// Which queues can have this one as their dead letter queue, in JSON.
    pub const REDRIVE_ALLOW_POLICY: &str = "RedriveAllowPolicy";
    /// The access policy: kept and returned, without effect.
    pub const POLICY: &str = "Policy";
    /// The encryption key: kept and returned, without effect.
    pub const KMS_MASTER_KEY_ID: &str = "KmsMasterKeyId";
    /// How long a data key is reused: kept and returned, without effect.
    pub const KMS_DATA_KEY_REUSE_PERIOD_SECONDS: &str = "KmsDataKeyReusePeriodSeconds";
    /// Encryption with a key of SQS: kept and returned, without effect.
    pub const SQS_MANAGED_SSE_ENABLED: &str = "SqsManagedSseEnabled";
    /// Whether the queue is a FIFO queue: `true`, or absent.
    pub const FIFO_QUEUE: &str = "FifoQueue";
    /// Whether the SHA-256 of a body stands in for an absent deduplication id. FIFO queues only.
    pub const CONTENT_BASED_DEDUPLICATION: &str = "ContentBasedDeduplication";
    /// Whether a deduplication id is looked for in the whole queue or in its message group. FIFO queues only.
    pub const DEDUPLICATION_SCOPE: &str = "DeduplicationScope";
    /// Whether the quota of calls is the queue's or each group's: kept and returned, without effect. FIFO queues only.
    pub const FIFO_THROUGHPUT_LIMIT: &str = "FifoThroughputLimit";
    /// Visible messages.
    pub const APPROXIMATE_NUMBER_OF_MESSAGES: &str = "ApproximateNumberOfMessages";
    /// Messages in flight.
    pub const APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE: &str = "ApproximateNumberOfMessagesNotVisible";
    /// Messages whose delay has not passed.
    pub const APPROXIMATE_NUMBER_OF_MESSAGES_DELAYED: &str = "ApproximateNumberOfMessagesDelayed";
    /// When the queue was created, in seconds since the epoch.
    pub const CREATED_TIMESTAMP: &str = "CreatedTimestamp";
    /// When its attributes were last set, in seconds since the epoch.
    pub const LAST_MODIFIED_TIMESTAMP: &str = "LastModifiedTimestamp";
    /// The queue's ARN.
    pub const QUEUE_ARN: &str = "QueueArn";

    /// Every attribute that can be asked for; those of the other type of queue have no value.
    pub const READABLE: [&str; 21] = [
        APPROXIMATE_NUMBER_OF_MESSAGES,
        APPROXIMATE_NUMBER_OF_MESSAGES_DELAYED,
        APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE,
        CONTENT_BASED_DEDUPLICATION,
        CREATED_TIMESTAMP,
        DEDUPLICATION_SCOPE,
        DELAY_SECONDS,
        FIFO_QUEUE,
        FIFO_THROUGHPUT_LIMIT,
        KMS_DATA_KEY_REUSE_PERIOD_SECONDS,
        KMS_MASTER_KEY_ID,
        LAST_MODIFIED_TIMESTAMP,
        MAXIMUM_MESSAGE_SIZE,
        MESSAGE_RETENTION_PERIOD,
        POLICY,
        QUEUE_ARN,
        RECEIVE_MESSAGE_WAIT_TIME_SECONDS,
        REDRIVE_ALLOW_POLICY,
        REDRIVE_POLICY,
        SQS_MANAGED_SSE_ENABLED,
        VISIBILITY_TIMEOUT,
    ];
}

/// Reads the value of a numeric attribute.
///
/// # Errors
/// [`Error::InvalidAttributeValue`] if it is no integer of the range.
pub(crate) fn number(attribute: &str, value: &str, range: &RangeInclusive<u64>) -> Result<u64, Error> {
    value.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| Error::InvalidAttributeValue {
        attribute: attribute.to_owned(),
        value: value.to_owned(),
        reason: format!("It must be an integer from {} to {}", range.start(), range.end()),
    })
}
