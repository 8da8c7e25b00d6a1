//! The SQS state machine: what a set of standard and FIFO queues does with every call, as a pure function of the calls and
//! of the time given with them. It contains no IO, no clock, no lock and no wire format: the same calls with the same times
//! and the same seed give the same answers, message ids and receipt handles included.
//!
//! It follows the SQS API reference and developer guide, with these differences, all of which make it stricter or simpler to
//! reason about: counts are exact instead of approximate, nothing is delivered twice while it is in flight, waiting messages
//! of a standard queue are delivered in the order in which they became visible, groups of a FIFO queue take turns and are
//! looked for in the whole queue instead of its first 120,000 messages, calls are not throttled, and a name can be used again
//! right after its queue was deleted or purged.
//!
//! ```
//! use std::collections::BTreeMap;
//! use queue::{Configuration, Queues, QueueName, ReceiveRequest, SendRequest, Timestamp};
//!
//! let mut queues = Queues::new(Configuration::default());
//! let name = QueueName::parse("game-ended")?;
//! let now = Timestamp::from_millis(0);
//! queues.create(&name, &BTreeMap::new(), now)?;
//! queues.send(&name, SendRequest::from_body("hello"), now)?;
//! let received = queues.receive(&name, ReceiveRequest { max: 10, visibility_timeout: None }, now)?;
//! assert_eq!(received.deliveries[0].message.body, "hello");
//! queues.delete_message(&name, &received.deliveries[0].receipt, now)?;
//! # Ok::<(), queue::Error>(())
//! ```

mod queues;

mod state;

mod discipline;
mod fifo;
mod standard;

mod attributes;
mod content;
mod digest;
mod error;
pub mod limits;
mod message;
mod name;
mod receipt;
mod redrive;
mod settings;
mod time;

pub use digest::{attributes_md5, text_md5, trace_header_md5};
pub use error::{Error, ErrorCode};
pub use message::{
    AttributeValue, DeadLettered, Delivery, Message, MessageAttribute, MessageAttributes, MessageId, ReceiveRequest,
    Received, SendRequest, SequenceNumber,
};
pub use name::{QueueKind, QueueName, queue_arn};
pub use queues::{Configuration, Creation, Deletion, Queues, Receipts};
pub use receipt::ReceiptHandle;
pub use redrive::{RedriveAllowPolicy, RedrivePolicy};
pub use settings::{DeduplicationScope, FifoSettings, FifoThroughputLimit, Settings};
pub use state::{Counts, Totals};
pub use time::Timestamp;

pub use attributes::names as attribute_names;
