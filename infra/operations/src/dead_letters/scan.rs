//! Going through a queue once. A queue cannot be browsed: whoever looks at a message takes it from everybody else for a while, and
//! what is not deleted is given back at the end.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use aws::publisher::BATCH_MESSAGES_MAX;
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream;
use serde::Serialize;

use super::queues::{QueueError, Queues, Received};
use crate::moment::at_most_hidden;

/// Receives at the same time while there are many messages.
const RECEIVES_AT_ONCE: usize = 8;
/// Messages that are kept from others at the same time, at most: a queue lets 120,000 be in flight.
const HELD_MAX: usize = 100_000;
/// How long a message is kept from others at least. After a crash it is visible again so soon.
const HIDDEN_MIN: Duration = Duration::from_secs(30);
/// Messages that are certainly gone through in a second.
const MESSAGES_PER_SECOND: u64 = 200;

/// How going through a queue ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Every message that can be received was seen.
    Complete,
    /// So many messages were left that the queue lends no more.
    TooMany,
    /// Messages came back before the end.
    TooSlow,
    /// Somebody wanted to stop, or had seen enough.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => formatter.write_str("gone through"),
            Self::TooMany => write!(formatter, "not gone through: {HELD_MAX} others were in the way"),
            Self::TooSlow => formatter.write_str("not gone through: messages came back before the end"),
            Self::Stopped => formatter.write_str("not gone through: stopped"),
        }
    }
}

/// One way through a queue.
pub(crate) struct Scan<'a, Q> {
    queues: &'a Q,
    queue: String,
    hidden: Duration,
    receives: usize,
    /// Receipts of what is given back at the end.
    held: Vec<String>,
    /// Hashes of the ids of those messages: one that comes again was not hidden for long enough.
    held_ids: HashSet<u64>,
    hasher: RandomState,
    /// Messages that were seen.
    pub(crate) seen: u64,
    /// How it ended, once it has.
    pub(crate) ending: Ending,
}

impl<'a, Q: Queues> Scan<'a, Q> {
    /// Begins with a queue of about so many messages, each of which takes at least so long.
    pub(crate) fn new(queues: &'a Q, queue: String, count: u64, each: Duration) -> Self {
        let looking = Duration::from_secs(count / MESSAGES_PER_SECOND);
        let working = each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        Self {
            queues,
            queue,
            hidden: at_most_hidden(HIDDEN_MIN + looking + working),
            receives: 1,
            held: Vec::new(),
            held_ids: HashSet::new(),
            hasher: RandomState::new(),
            seen: 0,
            ending: Ending::Stopped,
        }
    }

    /// Returns the next messages. Each of them is to be deleted or held.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Received>>, QueueError> {
        if self.held.len() >= HELD_MAX {
            self.ending = Ending::TooMany;
            return Ok(None);
        }
        let receives = (0..self.receives).map(|_| self.queues.receive(&self.queue, self.hidden));
        let messages: Vec<Received> = try_join_all(receives).await?.into_iter().flatten().collect();
        if messages.is_empty() {
            self.ending = Ending::Complete;
            return Ok(None);
        }
        let is_full = messages.len() == self.receives * BATCH_MESSAGES_MAX;
        self.receives = if is_full { RECEIVES_AT_ONCE } else { 1 };
        if messages.iter().any(|message| self.held_ids.contains(&self.hasher.hash_one(&message.message_id))) {
            self.ending = Ending::TooSlow;
            messages.iter().for_each(|message| self.hold(message));
            return Ok(None);
        }
        self.seen += messages.len() as u64;
        Ok(Some(messages))
    }

    /// Keeps a message until the end, and gives it back then.
    pub(crate) fn hold(&mut self, message: &Received) {
        self.held.push(message.receipt.clone());
        self.held_ids.insert(self.hasher.hash_one(&message.message_id));
    }

    /// Gives everything back that was held. What cannot be given back comes back by itself.
    pub(crate) async fn give_back(&mut self) {
        let held = std::mem::take(&mut self.held);
        let releases = held.chunks(BATCH_MESSAGES_MAX).map(|receipts| self.queues.release(&self.queue, receipts));
        let releases: Vec<_> = releases.collect();
        stream::iter(releases).buffer_unordered(RECEIVES_AT_ONCE).for_each(|_| std::future::ready(())).await;
    }
}
