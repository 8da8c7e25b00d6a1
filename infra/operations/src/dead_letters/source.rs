//! The queues that messages end in.

use std::fmt;
use std::str::FromStr;

use events::{Consumer, QueueOrder, RELAY_REJECTED_QUEUE};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// Who could do nothing with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A consumer; the message lies in its dead letter queue.
    Consumer(Consumer),
    /// The relay; the message, about a record of the stream, lies in its queue of rejected records.
    Relay,
}

/// A name that is no consumer's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is neither a consumer, such as game-ended, nor {RELAY_REJECTED_QUEUE}")]
pub struct UnknownSource {
    text: String,
}

impl Source {
    /// Returns all of them, the relay last.
    pub fn all() -> impl Iterator<Item = Self> {
        Consumer::ALL.into_iter().map(Self::Consumer).chain([Self::Relay])
    }

    /// Returns the name of the queue, without the stack's prefix.
    pub fn queue_name(self) -> String {
        match self {
            Self::Consumer(consumer) => {
                let ending = match consumer.queue_order() {
                    QueueOrder::Standard => "",
                    QueueOrder::FifoByAggregate => ".fifo",
                };
                format!("{consumer}-dead-letters{ending}")
            }
            Self::Relay => RELAY_REJECTED_QUEUE.to_owned(),
        }
    }

    /// Returns the name of the function whose log says more, without the stack's prefix.
    pub fn function_name(self) -> &'static str {
        match self {
            Self::Consumer(consumer) => consumer.as_str(),
            Self::Relay => "outbox-relay",
        }
    }
}

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        let unknown = || UnknownSource { text: text.chars().take(64).collect() };
        Self::all().find(|source| source.to_string() == text).ok_or_else(unknown)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Consumer(consumer) => consumer.as_str(),
            Self::Relay => RELAY_REJECTED_QUEUE,
        })
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
