//! Sending messages to their queues, each with a result of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::{Outbound, batches};
use super::queues::{FifoPlace, Message, QueueError, Queues};

/// Sends messages, queue by queue, and returns why not for the positions of which one was not taken. Several messages may have
/// the same position.
///
/// # Errors
/// A queue did not answer. What it has of the messages is not known.
pub(crate) async fn send(
    queues: &impl Queues,
    outbound: &[(usize, &Outbound)],
) -> Result<BTreeMap<usize, String>, QueueError> {
    let mut by_queue: BTreeMap<&str, Vec<(usize, &Outbound)>> = BTreeMap::new();
    for (position, outbound) in outbound {
        by_queue.entry(&outbound.queue).or_default().push((*position, outbound));
    }
    let mut reasons = BTreeMap::new();
    for (queue, entries) in by_queue {
        send_to_one(queues, queue, &entries, &mut reasons).await?;
    }
    Ok(reasons)
}

/// Sends messages to one queue. Behind one that is not taken, none of its group is sent.
async fn send_to_one(
    queues: &impl Queues,
    queue: &str,
    entries: &[(usize, &Outbound)],
    reasons: &mut BTreeMap<usize, String>,
) -> Result<(), QueueError> {
    let messages: Vec<&Message> = entries.iter().map(|(_, outbound)| &outbound.message).collect();
    let mut stuck: BTreeSet<&str> = BTreeSet::new();
    for batch in batches(&messages) {
        let mut calls: Vec<(usize, &Message, Option<FifoPlace>)> = Vec::new();
        for (position, outbound) in batch.into_iter().map(|index| entries[index]) {
            let group = outbound.message.group_id.as_deref();
            let place = match group.filter(|group| stuck.contains(group)) {
                Some(_) => Err("a message of its group before it was not sent".to_owned()),
                None => outbound.place(fastrand::u128(..)),
            };
            match place {
                Ok(place) => calls.push((position, &outbound.message, place)),
                Err(reason) => drop(reasons.insert(position, reason)),
            }
        }
        if calls.is_empty() {
            continue;
        }
        let messages: Vec<_> = calls.iter().map(|(_, message, place)| (*message, place.clone())).collect();
        let mut results = queues.send(queue, &messages).await?;
        results.resize(calls.len(), Err("the answer does not say what became of it".to_owned()));
        for ((position, message, _), result) in calls.iter().zip(results) {
            if let Err(reason) = result {
                reasons.insert(*position, format!("queue {queue}: {reason}"));
                stuck.extend(message.group_id.as_deref());
            }
        }
    }
    Ok(())
}
