//! Errors on the wire: the exception's shape, the code of the older query protocol, which SDKs prefer, and the message.

use queue::ErrorCode;

/// An error as it is answered, always with status 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The exception's name in the JSON protocol.
    pub(super) shape: &'static str,
    /// The error code of the query protocol: `x-amzn-query-error` and the `Code` of a batch entry.
    pub(super) query: &'static str,
    /// What is wrong, for a person.
    pub(super) message: String,
}

impl Fault {
    pub(super) fn missing(parameter: &str) -> Self {
        let message = format!("The request must contain the parameter {parameter}.");
        Self { shape: "MissingRequiredParameterException", query: "MissingParameter", message }
    }

    pub(super) fn invalid(parameter: &str, value: impl std::fmt::Display, reason: &str) -> Self {
        let message = format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}.");
        Self { shape: "InvalidParameterValueException", query: "InvalidParameterValue", message }
    }

    pub(super) fn invalid_attribute_name(attribute: &str) -> Self {
        let message = format!("Unknown Attribute {attribute}.");
        Self { shape: "InvalidAttributeName", query: "InvalidAttributeName", message }
    }

    pub(super) fn not_json(path: &str, error: &dyn std::fmt::Display) -> Self {
        let message = format!("The request is not what the operation expects at {path}: {error}");
        Self { shape: "SerializationException", query: "MalformedInput", message }
    }

    pub(super) fn unknown_operation(message: String) -> Self {
        Self { shape: "UnknownOperationException", query: "InvalidAction", message }
    }

    pub(super) fn unsupported(operation: &str) -> Self {
        let message = format!("{operation} is not supported by the local stack.");
        Self { shape: "UnsupportedOperation", query: "AWS.SimpleQueueService.UnsupportedOperation", message }
    }

    pub(super) fn empty_batch() -> Self {
        let message = "There should be at least one entry in the request.".to_owned();
        Self { shape: "EmptyBatchRequest", query: "AWS.SimpleQueueService.EmptyBatchRequest", message }
    }

    pub(super) fn too_many_entries(entries: usize) -> Self {
        let limit = queue::limits::BATCH_ENTRIES_MAX;
        let message = format!("Maximum number of entries per request are {limit}. You have sent {entries}.");
        Self {
            shape: "TooManyEntriesInBatchRequest",
            query: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
            message,
        }
    }

    pub(super) fn invalid_entry_id(id: &str) -> Self {
        let limit = queue::limits::BATCH_ENTRY_ID_CHARACTERS_MAX;
        let message = format!(
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most {limit} \
             letters long. You have sent {id:?}."
        );
        Self { shape: "InvalidBatchEntryId", query: "AWS.SimpleQueueService.InvalidBatchEntryId", message }
    }

    pub(super) fn repeated_entry_id(id: &str) -> Self {
        let message = format!("Id {id} repeated.");
        Self { shape: "BatchEntryIdsNotDistinct", query: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", message }
    }

    pub(super) fn batch_too_long(bytes: usize) -> Self {
        let limit = queue::limits::MESSAGE_BYTES_MAX;
        let message = format!("Batch requests cannot be longer than {limit} bytes. You have sent {bytes} bytes.");
        Self { shape: "BatchRequestTooLong", query: "AWS.SimpleQueueService.BatchRequestTooLong", message }
    }
}

impl From<queue::Error> for Fault {
    fn from(error: queue::Error) -> Self {
        let (shape, query) = names(error.code());
        Self { shape, query, message: error.to_string() }
    }
}

fn names(code: ErrorCode) -> (&'static str, &'static str) {
    match code {
        ErrorCode::QueueDoesNotExist => ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"),
        ErrorCode::QueueNameExists => ("QueueNameExists", "QueueAlreadyExists"),
        ErrorCode::InvalidAttributeName => ("InvalidAttributeName", "InvalidAttributeName"),
        ErrorCode::InvalidAttributeValue => ("InvalidAttributeValue", "InvalidAttributeValue"),
        ErrorCode::InvalidMessageContents => ("InvalidMessageContents", "InvalidMessageContents"),
        ErrorCode::InvalidParameterValue => ("InvalidParameterValueException", "InvalidParameterValue"),
        ErrorCode::MissingParameter => ("MissingRequiredParameterException", "MissingParameter"),
        ErrorCode::OverLimit => ("OverLimit", "OverLimit"),
        ErrorCode::ReceiptHandleIsInvalid => ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
        ErrorCode::MessageNotInflight => ("MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight"),
    }
}
