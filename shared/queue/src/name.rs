//! Names of queues and their ARNs. Not URLs: those belong to the server.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::limits::QUEUE_NAME_CHARACTERS_MAX;

const FIFO_SUFFIX: &str = ".fifo";

/// The name of a standard queue: 1 to 80 letters, digits, hyphens and underscores.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Parses a queue's name.
    ///
    /// # Errors
    /// [`Error::FifoNotSupported`] for a name that ends in `.fifo`, [`Error::InvalidQueueName`] for anything else that
    /// SQS does not accept.
    pub fn parse(name: &str) -> Result<Self, Error> {
        if name.ends_with(FIFO_SUFFIX) {
            return Err(Error::FifoNotSupported { queue: name.to_owned() });
        }
        let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if name.is_empty() || name.len() > QUEUE_NAME_CHARACTERS_MAX || !name.chars().all(allowed) {
            return Err(Error::InvalidQueueName { name: name.to_owned() });
        }
        Ok(Self(name.into()))
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
        for name in ["", "a b", "a.b", "é", &"x".repeat(81)] {
            assert!(matches!(QueueName::parse(name), Err(Error::InvalidQueueName { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_fifo_name_is_refused_by_its_own_error() {
        assert!(matches!(QueueName::parse("orders.fifo"), Err(Error::FifoNotSupported { .. })));
    }

    #[test]
    fn an_arn_of_any_account_names_its_queue() {
        assert_eq!(queue_of_arn("arn:aws-cn:sqs:eu-west-1:123456789012:dead").unwrap().as_str(), "dead");
        for arn in ["dead", "arn:aws:sns:us-east-1:000000000000:dead", "arn:aws:sqs:us-east-1:dead", ""] {
            assert_eq!(queue_of_arn(arn), None, "{arn:?}");
        }
    }
}
