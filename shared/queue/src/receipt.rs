//! Receipt handles: one for each receive of each message, opaque to everyone but the queue that gave it out.

use std::fmt;

const PART_DIGITS: usize = 16;

/// The text that names one receive of one message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiptHandle(String);

impl ReceiptHandle {
    /// Returns the handle's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ReceiptHandle {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for ReceiptHandle {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for ReceiptHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a handle says, once it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The random mark of the queue, which no other queue has, nor a later one of the same name.
    pub(crate) queue_mark: u64,
    /// The message's place in its queue.
    pub(crate) key: u64,
    /// Which receive of the queue this was, from 0.
    pub(crate) receive: u64,
}

impl Receipt {
    pub(crate) fn handle(self) -> ReceiptHandle {
        ReceiptHandle(format!("{:016x}{:016x}{:016x}", self.queue_mark, self.key, self.receive))
    }

    /// Reads a handle; `None` if no queue can have given it out.
    pub(crate) fn read(handle: &ReceiptHandle) -> Option<Self> {
        let text = handle.as_str();
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 3 * PART_DIGITS || !text.bytes().all(digit) {
            return None;
        }
        let part = |index: usize| u64::from_str_radix(&text[index * PART_DIGITS..(index + 1) * PART_DIGITS], 16).ok();
        Some(Self { queue_mark: part(0)?, key: part(1)?, receive: part(2)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_back() {
        let receipt = Receipt { queue_mark: u64::MAX, key: 0, receive: 0xabc };
        assert_eq!(Receipt::read(&receipt.handle()), Some(receipt));
    }

    #[test]
    fn anything_else_is_not_a_handle() {
        let good = Receipt { queue_mark: 1, key: 2, receive: 3 }.handle();
        for text in ["", "x", &good.as_str()[1..], &format!("{good}0"), &"G".repeat(48), &"+1".repeat(24)] {
            assert_eq!(Receipt::read(&ReceiptHandle::from(text)), None, "{text:?}");
        }
        assert_eq!(Receipt::read(&ReceiptHandle::from("é".repeat(24))), None);
    }
}
