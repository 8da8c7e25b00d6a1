//! Messages on their way to a queue, cut into batches that SQS takes.

use aws::publisher::{BATCH_BYTES_MAX, BATCH_MESSAGES_MAX};

use super::queues::{FifoPlace, Message};

/// A message for a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    /// The queue, without the stack's prefix.
    pub queue: String,
    /// The message.
    pub message: Message,
}

impl Outbound {
    /// Returns where it belongs, if its queue is a FIFO queue. The deduplication id is a new one: the queue may know the old one
    /// still, and would then take the message and throw it away.
    ///
    /// # Errors
    /// Its queue is a FIFO queue, and it has no group.
    pub fn place(&self, random: u128) -> Result<Option<FifoPlace>, String> {
        if !self.queue.ends_with(".fifo") {
            return Ok(None);
        }
        let group_id = self.message.group_id.clone().ok_or("the message has no group, which its queue asks for")?;
        Ok(Some(FifoPlace { group_id, deduplication_id: format!("redrive-{random:032x}") }))
    }
}

/// Cuts messages into batches, as positions; order stays. No batch has two messages of one group: the second could be sent without
/// the first.
pub fn batches(messages: &[&Message]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut bytes = 0;
    for (position, message) in messages.iter().enumerate() {
        let fits = batches.last().is_some_and(|batch: &Vec<usize>| {
            let grouped = |other: &usize| message.group_id.is_some() && messages[*other].group_id == message.group_id;
            batch.len() < BATCH_MESSAGES_MAX && bytes + message.bytes() <= BATCH_BYTES_MAX && !batch.iter().any(grouped)
        });
        match batches.last_mut().filter(|_| fits) {
            Some(batch) => {
                batch.push(position);
                bytes += message.bytes();
            }
            None => {
                batches.push(vec![position]);
                bytes = message.bytes();
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize, group: Option<&str>) -> Message {
        Message { body: "x".repeat(bytes), group_id: group.map(str::to_owned), ..Message::default() }
    }

    fn check(messages: &[Message], expected: &[&[usize]]) {
        assert_eq!(batches(&messages.iter().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn a_batch_holds_ten_messages_a_mebibyte_and_one_message_of_a_group() {
        check(&[], &[]);
        let many: Vec<Message> = (0..12).map(|_| message(1, None)).collect();
        check(&many, &[&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[10, 11]]);
        let big = [message(BATCH_BYTES_MAX - 1, None), message(1, None), message(1, None)];
        check(&big, &[&[0, 1], &[2]]);
        let grouped = [Some("a"), Some("b"), Some("a"), Some("c"), Some("a")].map(|group| message(1, group));
        check(&grouped, &[&[0, 1], &[2, 3], &[4]]);
    }
}
