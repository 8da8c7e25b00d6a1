//! The limits of SQS queues, as its developer guide states them ("Amazon SQS quotas"). No behaviour.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Bytes of a message, attributes included, and of all messages of a batch together.
pub const MESSAGE_BYTES_MAX: usize = 1_048_576;
/// Smallest `MaximumMessageSize` that a queue can be given, in bytes.
pub const MAXIMUM_MESSAGE_SIZE_MIN: usize = 1_024;
/// Entries of a batch request.
pub const BATCH_ENTRIES_MAX: usize = 10;
/// Characters of a batch entry's id.
pub const BATCH_ENTRY_ID_CHARACTERS_MAX: usize = 80;
/// Messages that one `ReceiveMessage` returns; the state machine itself has no such limit.
pub const RECEIVE_MESSAGES: RangeInclusive<u64> = 1..=10;
/// Messages of one queue in flight at the same time, of either type.
pub const IN_FLIGHT_MAX: usize = 120_000;
/// Attributes of a message.
pub const MESSAGE_ATTRIBUTES_MAX: usize = 10;
/// Characters of a message attribute's name, and of its type.
pub const MESSAGE_ATTRIBUTE_NAME_CHARACTERS_MAX: usize = 256;
/// Characters of a queue's name, the suffix of FIFO queues included.
pub const QUEUE_NAME_CHARACTERS_MAX: usize = 80;
/// Characters of a message group id.
pub const GROUP_ID_CHARACTERS_MAX: usize = 128;
/// Characters of a message deduplication id, and of a receive request attempt id.
pub const DEDUPLICATION_ID_CHARACTERS_MAX: usize = 128;
/// How long a FIFO queue remembers a deduplication id, from when it was first sent, and a receive request attempt id
/// ("Exactly-once processing").
pub const DEDUPLICATION_INTERVAL: Duration = Duration::from_secs(300);
/// Seconds of a visibility timeout.
pub const VISIBILITY_TIMEOUT_SECONDS: RangeInclusive<u64> = 0..=43_200;
/// How long a message can stay in flight after one receive, extensions included.
pub const IN_FLIGHT_TIME_MAX: Duration = Duration::from_secs(43_200);
/// Seconds of a delay, of a queue or a message.
pub const DELAY_SECONDS: RangeInclusive<u64> = 0..=900;
/// Seconds that a message is kept.
pub const RETENTION_SECONDS: RangeInclusive<u64> = 60..=1_209_600;
/// Seconds that a receive waits for a message.
pub const RECEIVE_WAIT_SECONDS: RangeInclusive<u64> = 0..=20;
/// Receives before a message goes to the dead letter queue.
pub const MAX_RECEIVE_COUNT: RangeInclusive<u64> = 1..=1_000;
/// Queues that a dead letter queue's `byQueue` policy can name.
pub const REDRIVE_SOURCES_MAX: usize = 10;

/// Default visibility timeout of a queue.
pub const VISIBILITY_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// Default retention of a queue: 4 days.
pub const RETENTION_DEFAULT: Duration = Duration::from_secs(345_600);
