//! Takes wake-ups out of a FIFO queue and puts them back seconds later: behind those that were sent after them, and maybe
//! after everything else has come to rest. Each counts as a new message then, as one does that its sender was late with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use queue::{Message, QueueName, ReceiveRequest, SendRequest};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::sqs::Broker;

/// Wait between two messages that are taken, at most.
const EVERY_MAX: Duration = Duration::from_millis(40);
/// How long a message is kept, at most.
const KEPT_MAX: Duration = Duration::from_secs(6);

/// Takes messages until it is told to give all of them back.
pub(super) struct Thief {
    stopped: Arc<AtomicBool>,
    task: JoinHandle<u64>,
}

impl Thief {
    /// Starts taking messages out of a queue.
    pub(super) fn start(broker: Broker, queue: QueueName, seed: u64) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(steal(broker, queue, Rng::with_seed(seed), Arc::clone(&stopped)));
        Self { stopped, task }
    }

    /// Takes no more, waits until everything is back in the queue, and returns how many messages were away.
    pub(super) async fn give_back(self) -> u64 {
        self.stopped.store(true, Ordering::SeqCst);
        match self.task.await {
            Ok(taken) => taken,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

async fn steal(broker: Broker, queue: QueueName, mut rng: Rng, stopped: Arc<AtomicBool>) -> u64 {
    let mut kept: Vec<(Instant, Arc<Message>)> = Vec::new();
    let mut taken = 0;
    while !(stopped.load(Ordering::SeqCst) && kept.is_empty()) {
        sleep(EVERY_MAX.mul_f64(rng.f64())).await;
        if !stopped.load(Ordering::SeqCst) {
            // One at a time: the next of its group must be able to overtake it.
            let request = ReceiveRequest { max: 1, visibility_timeout: None };
            for delivery in broker.receive(&queue, request, Duration::ZERO).await.unwrap_or_default() {
                // Whoever cannot take a message away leaves it: it comes again after its visibility timeout.
                if broker.delete_many(&queue, &[delivery.receipt]).into_iter().all(|deleted| deleted.is_ok()) {
                    taken += 1;
                    kept.push((Instant::now() + KEPT_MAX.mul_f64(rng.f64()), delivery.message));
                }
            }
        }
        let now = Instant::now();
        kept.retain(|(until, message)| *until > now || broker.send(&queue, late(message)).is_err());
    }
    taken
}

/// The same message once more, under an id that the queue does not know.
fn late(message: &Message) -> SendRequest {
    SendRequest {
        body: message.body.clone(),
        delay: None,
        attributes: message.attributes.clone(),
        trace_header: message.trace_header.clone(),
        group_id: message.group_id.clone(),
        deduplication_id: Some(format!("late-{}", message.id)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn everything_that_was_taken_is_back_in_the_end() {
        let broker = Broker::default();
        let attributes = [("FifoQueue", "true")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let queue = broker.create_queue("orders.fifo", &attributes).unwrap();
        for number in 0..40 {
            let request = SendRequest {
                group_id: Some((number % 4).to_string()),
                deduplication_id: Some(number.to_string()),
                ..SendRequest::from_body(number.to_string())
            };
            broker.send(&queue, request).unwrap();
        }

        let thief = Thief::start(broker.clone(), queue.clone(), 1);
        sleep(Duration::from_millis(500)).await;
        assert!(broker.counts(&queue).unwrap().total() < 40);
        let taken = thief.give_back().await;

        let request = ReceiveRequest { max: 100, visibility_timeout: None };
        let left = broker.receive(&queue, request, Duration::ZERO).await.unwrap();
        let bodies: BTreeSet<_> = left.iter().map(|delivery| delivery.message.body.clone()).collect();
        assert_eq!((left.len(), bodies.len()), (40, 40));
        assert!(taken > 10, "{taken} were taken");
        let numbers = |group: &str| -> Vec<u32> {
            let of = left.iter().filter(|delivery| delivery.message.group_id.as_deref() == Some(group));
            of.map(|delivery| delivery.message.body.parse().unwrap()).collect()
        };
        assert!(["0", "1", "2", "3"].iter().any(|group| !numbers(group).is_sorted()), "nothing was overtaken");
    }
}
