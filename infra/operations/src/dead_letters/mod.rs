//! What consumers could not handle, and what the relay could not send: looked at, and brought back to where it belongs.

mod batch;
mod letter;
mod list;
mod queues;
mod redrive;
mod rejected;
mod scan;
mod selection;
mod sending;
mod source;
mod sqs;

pub use batch::{Outbound, batches};
pub use letter::{DeadLetter, Reason};
pub use list::{Counted, Group, List, Summary};
pub use queues::{Attribute, AttributeValue, FifoPlace, Message, QueueError, Queues, Received};
pub use redrive::{Mode, Redrive, RedriveError, RedriveReport};
pub(crate) use rejected::messages;
pub use rejected::{NotSendable, Records};
pub use scan::Ending;
pub use selection::Selection;
pub(crate) use sending::send;
pub use source::{Source, UnknownSource};
pub use sqs::Sqs;
