//! The SQS state machine: what a set of standard queues does with every call, as a pure function of the calls and of
//! the time given with them. It contains no IO, no clock, no lock and no wire format: the same calls with the same
//! times and the same seed give the same answers, message ids and receipt handles included.
//!
//! It follows the SQS API reference, with these differences, all of which make it stricter or simpler to reason about:
//! counts are exact instead of approximate, nothing is delivered twice while it is in flight, waiting messages are
//! delivered in the order in which they became visible, and a name can be used again right after its queue was deleted
//! or purged. FIFO queues are refused.
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
mod standard;
mod time;

pub use digest::{attributes_md5, text_md5, trace_header_md5};
pub use error::{Error, ErrorCode};
pub use message::{
    AttributeValue, DeadLettered, Delivery, Message, MessageAttribute, MessageAttributes, MessageId, ReceiveRequest,
    Received, SendRequest,
};
pub use name::{QueueName, queue_arn};
pub use queues::{Configuration, Creation, Deletion, Queues, Receipts};
pub use receipt::ReceiptHandle;
pub use redrive::{RedriveAllowPolicy, RedrivePolicy};
pub use settings::Settings;
pub use standard::{Counts, Totals};
pub use time::Timestamp;

pub use attributes::names as attribute_names;
