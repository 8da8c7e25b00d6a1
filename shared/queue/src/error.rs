//! What a queue refuses, and the error code of SQS for it. Not the wire shape: that belongs to the server.

use std::time::Duration;

/// A refused call. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no queue of that name.
    #[error("The specified queue does not exist: {queue}.")]
    QueueDoesNotExist {
        /// The name that was asked for.
        queue: String,
    },
    /// A queue of that name exists and differs in an attribute.
    #[error("A queue {queue} already exists with a different value for attribute {attribute}.")]
    QueueNameExists {
        /// The queue's name.
        queue: String,
        /// The first attribute that differs.
        attribute: String,
    },
    /// The name is not one that SQS accepts.
    #[error(
        "Queue name {name:?} is invalid. It has 1 to 80 letters, digits, hyphens and underscores, the .fifo suffix of a FIFO \
         queue included."
    )]
    InvalidQueueName {
        /// The refused name.
        name: String,
    },
    /// `FifoQueue` and the name's suffix do not say the same.
    #[error(
        "The name {queue:?} does not fit the queue's type. The name of a FIFO queue must end with the .fifo suffix, and only \
         a queue with FifoQueue set to true can have it."
    )]
    NameOfOtherType {
        /// The queue's name.
        queue: String,
    },
    /// The attribute does not exist, or not on a queue of this type.
    #[error("Unknown Attribute {attribute}.")]
    InvalidAttributeName {
        /// The attribute's name.
        attribute: String,
    },
    /// The attribute's value is malformed or outside its limits.
    #[error("Invalid value for the parameter {attribute}: {value:?}. Reason: {reason}.")]
    InvalidAttributeValue {
        /// The attribute's name.
        attribute: String,
        /// The refused value.
        value: String,
        /// What the value has to be.
        reason: String,
    },
    /// A call's parameter is malformed or outside its limits.
    #[error("Value {value} for parameter {parameter} is invalid. Reason: {reason}.")]
    InvalidParameter {
        /// The parameter's name.
        parameter: &'static str,
        /// The refused value.
        value: String,
        /// What the value has to be.
        reason: String,
    },
    /// The parameter belongs to the other type of queue.
    #[error(
        "Value {value} for parameter {parameter} is invalid. Reason: The request include parameter that is not valid for \
         this queue type."
    )]
    NotForQueueType {
        /// The parameter's name.
        parameter: &'static str,
        /// The refused value.
        value: String,
    },
    /// The message for a FIFO queue has no group.
    #[error("The request must contain the parameter MessageGroupId.")]
    MissingGroupId,
    /// The message for a FIFO queue has no deduplication id, and the queue does not compute one.
    #[error(
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly."
    )]
    MissingDeduplicationId,
    /// The message has no body.
    #[error("The request must contain the parameter MessageBody.")]
    MissingBody,
    /// The message is larger than its queue allows.
    #[error(
        "One or more parameters are invalid. Reason: Message must be shorter than {limit_bytes} bytes, it has {bytes}."
    )]
    MessageTooLong {
        /// Size of body and attributes in bytes.
        bytes: usize,
        /// The queue's `MaximumMessageSize` in bytes.
        limit_bytes: usize,
    },
    /// The body or an attribute holds a character outside XML's set.
    #[error("Invalid character U+{character:04X} was found in {field} at byte {at}.")]
    InvalidCharacter {
        /// `the message body`, or the attribute.
        field: String,
        /// The character's code point.
        character: u32,
        /// Where it is, in bytes from the start.
        at: usize,
    },
    /// A message attribute breaks a rule.
    #[error("The message attribute {attribute:?} is invalid. Reason: {reason}.")]
    InvalidMessageAttribute {
        /// The attribute's name.
        attribute: String,
        /// The broken rule.
        reason: String,
    },
    /// As many messages are in flight as the queue allows.
    #[error("Queue {queue} has {limit} messages in flight, which is its limit.")]
    OverLimit {
        /// The queue's name.
        queue: String,
        /// Messages in flight, at most.
        limit: usize,
    },
    /// The receipt handle was not given out by this queue.
    #[error("The input receipt handle {receipt:?} is invalid for queue {queue}.")]
    ReceiptHandleIsInvalid {
        /// The queue's name.
        queue: String,
        /// The refused handle.
        receipt: String,
    },
    /// The handle is of a receive of a FIFO queue whose visibility timeout has passed.
    #[error("Value {receipt} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.")]
    ReceiptHandleExpired {
        /// The refused handle.
        receipt: String,
    },
    /// The message was deleted, moved or has expired.
    #[error(
        "Value {receipt} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for \
         visibility timeout change."
    )]
    MessageDoesNotExist {
        /// The handle of the message.
        receipt: String,
    },
    /// The message is in the queue, but not in flight under this handle.
    #[error("The message of receipt handle {receipt} isn't in flight.")]
    MessageNotInFlight {
        /// The handle of the message.
        receipt: String,
    },
    /// The message would stay in flight for longer than 12 hours after one receive.
    #[error(
        "Value {} for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond \
         the limit [{} seconds].", asked.as_secs(), limit.as_secs()
    )]
    VisibilityBeyondLimit {
        /// The timeout that was asked for.
        asked: Duration,
        /// The longest time in flight.
        limit: Duration,
    },
}

/// The error codes of the SQS API that the state machine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// `QueueDoesNotExist`
    QueueDoesNotExist,
    /// `QueueNameExists`
    QueueNameExists,
    /// `InvalidAttributeName`
    InvalidAttributeName,
    /// `InvalidAttributeValue`
    InvalidAttributeValue,
    /// `InvalidMessageContents`
    InvalidMessageContents,
    /// `InvalidParameterValue`
    InvalidParameterValue,
    /// `MissingParameter`
    MissingParameter,
    /// `OverLimit`
    OverLimit,
    /// `ReceiptHandleIsInvalid`
    ReceiptHandleIsInvalid,
    /// `MessageNotInflight`
    MessageNotInflight,
}

impl Error {
    /// Returns the error code that SQS answers with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::QueueDoesNotExist { .. } => ErrorCode::QueueDoesNotExist,
            Self::QueueNameExists { .. } => ErrorCode::QueueNameExists,
            Self::InvalidAttributeName { .. } => ErrorCode::InvalidAttributeName,
            Self::InvalidAttributeValue { .. } => ErrorCode::InvalidAttributeValue,
            Self::MissingBody | Self::MissingGroupId => ErrorCode::MissingParameter,
            Self::InvalidCharacter { .. } => ErrorCode::InvalidMessageContents,
            Self::OverLimit { .. } => ErrorCode::OverLimit,
            Self::ReceiptHandleIsInvalid { .. } => ErrorCode::ReceiptHandleIsInvalid,
            Self::MessageNotInFlight { .. } => ErrorCode::MessageNotInflight,
            Self::InvalidQueueName { .. }
            | Self::NameOfOtherType { .. }
            | Self::InvalidParameter { .. }
            | Self::NotForQueueType { .. }
            | Self::MissingDeduplicationId
            | Self::MessageTooLong { .. }
            | Self::InvalidMessageAttribute { .. }
            | Self::ReceiptHandleExpired { .. }
            | Self::MessageDoesNotExist { .. }
            | Self::VisibilityBeyondLimit { .. } => ErrorCode::InvalidParameterValue,
        }
    }
}
