//! What a FIFO queue remembers of receives that were given an id (`ReceiveRequestAttemptId`), for 5 minutes: a caller that got
//! no answer repeats the call, and gets the same messages under the same handles.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::DEDUPLICATION_INTERVAL;
use crate::state::Key;
use crate::time::Timestamp;

/// A message that an attempt took: its place, the receive, and until when it was to be in flight.
type Taken = (Key, u64, Timestamp);

/// Attempts that are not forgotten yet.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    by_id: BTreeMap<String, Attempt>,
    by_time: VecDeque<(Timestamp, String)>,
}

#[derive(Debug)]
struct Attempt {
    first_made_at: Timestamp,
    taken: Vec<Taken>,
}

impl Attempts {
    /// Returns what an attempt took, if it took anything.
    pub(crate) fn taken(&self, id: &str) -> Option<&[Taken]> {
        self.by_id.get(id).map(|attempt| attempt.taken.as_slice()).filter(|taken| !taken.is_empty())
    }

    /// Notes what an attempt took. One that is repeated counts from when it was first made.
    pub(crate) fn note(&mut self, id: &str, taken: Vec<Taken>, now: Timestamp) {
        match self.by_id.get_mut(id) {
            Some(attempt) if attempt.took_the_same(&taken) => attempt.taken = taken,
            Some(_) | None => {
                self.by_id.insert(id.to_owned(), Attempt { first_made_at: now, taken });
                self.by_time.push_back((now, id.to_owned()));
            }
        }
    }

    /// Forgets attempts that were made 5 minutes ago.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        while let Some((made_at, id)) =
            self.by_time.pop_front_if(|(made_at, _)| made_at.plus(DEDUPLICATION_INTERVAL) <= now)
        {
            // A later attempt with the same id has a time of its own.
            if self.by_id.get(&id).is_some_and(|attempt| attempt.first_made_at == made_at) {
                self.by_id.remove(&id);
            }
        }
    }
}

impl Attempt {
    fn took_the_same(&self, taken: &[Taken]) -> bool {
        let receives = |taken: &[Taken]| taken.iter().map(|(_, receive, _)| *receive).collect::<Vec<_>>();
        receives(&self.taken) == receives(taken)
    }
}
