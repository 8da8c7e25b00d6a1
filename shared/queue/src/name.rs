//! Names of queues and their ARNs. Not URLs: those belong to the server.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::limits::QUEUE_NAME_CHARACTERS_MAX;

const FIFO_SUFFIX: &str = ".fifo";

/// The kinds of queues, which their names tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// At least once, in any order.
    Standard,
    /// In order within a message group, each deduplication id once in 5 minutes.
    Fifo,
}

/// The name of a queue: 1 to 80 letters, digits, hyphens and underscores, of which a FIFO queue's last are `.fifo`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Parses a queue's name.
    ///
    /// # Errors
    /// [`Error::InvalidQueueName`].
    pub fn parse(name: &str) -> Result<Self, Error> {
        let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        let stem = name.strip_suffix(FIFO_SUFFIX).unwrap_or(name);
        if stem.is_empty() || name.len() > QUEUE_NAME_CHARACTERS_MAX || !stem.chars().all(allowed) {
            return Err(Error::InvalidQueueName { name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// Returns the kind of a queue of this name.
    pub fn kind(&self) -> QueueKind {
        if self.0.ends_with(FIFO_SUFFIX) { QueueKind::Fifo } else { QueueKind::Standard }
    }

    /// Returns the name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns the ARN of a queue in a region and an account.
pub fn queue_arn(region: &str, account: &str, queue: &QueueName) -> String {
    format!("arn:aws:sqs:{region}:{account}:{queue}")
}

/// Returns the queue that an ARN of any partition, region and account names; `None` if it is no queue's ARN.
pub(crate) fn queue_of_arn(arn: &str) -> Option<QueueName> {
    let parts: Vec<&str> = arn.split(':').collect();
    let ["arn", _partition, "sqs", _region, _account, name] = parts.as_slice() else {
        return None;
    };
    QueueName::parse(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_up_to_80_letters_digits_hyphens_and_underscores() {
        for name in ["a", "players-engine-game_ended", &"x".repeat(80)] {
            assert_eq!(QueueName::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "a b", "a.b", "é", ".fifo", "a.fifo.b", "a.FIFO", "a.fifo.fifo", &"x".repeat(81)] {
            assert!(matches!(QueueName::parse(name), Err(Error::InvalidQueueName { .. })), "{name:?}");
        }
    }

    #[test]
    fn the_suffix_makes_the_kind_and_counts_towards_the_length() {
        for (name, kind) in [
            ("orders", QueueKind::Standard),
            ("ordersfifo", QueueKind::Standard),
            ("orders.fifo", QueueKind::Fifo),
            (&format!("{}.fifo", "x".repeat(75)), QueueKind::Fifo),
        ] {
            assert_eq!(QueueName::parse(name).unwrap().kind(), kind, "{name}");
        }
        assert!(QueueName::parse(&format!("{}.fifo", "x".repeat(76))).is_err());
    }

    #[test]
    fn an_arn_of_any_account_names_its_queue() {
        assert_eq!(queue_of_arn("arn:aws-cn:sqs:eu-west-1:123456789012:dead").unwrap().as_str(), "dead");
        for arn in ["dead", "arn:aws:sns:us-east-1:000000000000:dead", "arn:aws:sqs:us-east-1:dead", ""] {
            assert_eq!(queue_of_arn(arn), None, "{arn:?}");
        }
    }
}
