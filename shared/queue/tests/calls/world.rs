//! A set of queues, a clock that the test moves, and short names for the calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use queue::{
    Configuration, Counts, Creation, Deletion, Delivery, Error, ErrorCode, Message, QueueName, Queues, ReceiptHandle,
    ReceiveRequest, SendRequest, Timestamp,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A set of queues with a clock that the test moves.
pub(crate) struct World {
    pub(crate) queues: Queues,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self { queues: Queues::new(configuration), now: Timestamp::from_millis(1_700_000_000_000) }
    }

    pub(crate) fn with_queue(attributes: &[(&str, &str)]) -> (Self, QueueName) {
        let mut world = Self::new(Configuration::default());
        let name = world.create("main", attributes);
        (world, name)
    }

    /// `main.fifo`, which deduplicates by given ids.
    pub(crate) fn with_fifo_queue(attributes: &[(&str, &str)]) -> (Self, QueueName) {
        let mut world = Self::new(Configuration::default());
        let name = world.create_fifo("main.fifo", attributes);
        (world, name)
    }

    /// `main` with `dead` as its dead letter queue.
    pub(crate) fn with_dead_letters(max_receive_count: u32) -> (Self, QueueName, QueueName) {
        let mut world = Self::new(Configuration::default());
        let dead = world.create("dead", &[]);
        let policy = redrive_policy("dead", max_receive_count);
        let main = world.create("main", &[("RedrivePolicy", &policy)]);
        (world, main, dead)
    }

    pub(crate) fn create(&mut self, name: &str, pairs: &[(&str, &str)]) -> QueueName {
        let name = QueueName::parse(name).unwrap();
        assert_eq!(self.queues.create(&name, &attributes(pairs), self.now), Ok(Creation::Created));
        name
    }

    pub(crate) fn create_fifo(&mut self, name: &str, pairs: &[(&str, &str)]) -> QueueName {
        self.create(name, &[pairs, &[("FifoQueue", "true")]].concat())
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }

    pub(crate) fn send(&mut self, queue: &QueueName, body: &str) {
        self.queues.send(queue, SendRequest::from_body(body), self.now).unwrap();
    }

    /// Sends to a FIFO queue, with the body as the deduplication id.
    pub(crate) fn send_to(&mut self, queue: &QueueName, group: &str, body: &str) -> Arc<Message> {
        self.queues.send(queue, in_group(group, body, body), self.now).unwrap()
    }

    pub(crate) fn receive(&mut self, queue: &QueueName, max: usize) -> Vec<Delivery> {
        let request = ReceiveRequest { max, visibility_timeout: None };
        self.queues.receive(queue, request, self.now).unwrap().deliveries
    }

    pub(crate) fn receive_one(&mut self, queue: &QueueName) -> Delivery {
        self.receive(queue, 1).into_iter().next().unwrap()
    }

    pub(crate) fn change(&mut self, queue: &QueueName, receipt: &ReceiptHandle, seconds: u64) -> Result<(), Error> {
        self.queues.change_visibility(queue, receipt, Duration::from_secs(seconds), self.now)
    }

    pub(crate) fn delete(&mut self, queue: &QueueName, receipt: &ReceiptHandle) -> Result<Deletion, Error> {
        self.queues.delete_message(queue, receipt, self.now)
    }

    pub(crate) fn counts(&mut self, queue: &QueueName) -> (usize, usize, usize) {
        let Counts { visible, in_flight, delayed } = self.queues.counts(queue, self.now).unwrap();
        (visible, in_flight, delayed)
    }

    pub(crate) fn wake(&mut self, queue: &QueueName) -> Option<Duration> {
        self.queues.next_wake(queue, self.now).unwrap().map(|at| at.since(self.now))
    }
}

/// A message for a FIFO queue.
pub(crate) fn in_group(group: &str, deduplication_id: &str, body: &str) -> SendRequest {
    SendRequest {
        group_id: Some(group.to_owned()),
        deduplication_id: Some(deduplication_id.to_owned()),
        ..SendRequest::from_body(body)
    }
}

pub(crate) fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn redrive_policy(queue: &str, max_receive_count: u32) -> String {
    format!(
        r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:{queue}","maxReceiveCount":{max_receive_count}}}"#
    )
}

pub(crate) fn code<T>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

pub(crate) fn bodies(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.message.body.as_str()).collect()
}
