//! The loop around a command: read, decide, write, and all of it again where another writer came in between.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::problem::Problem;
use crate::store::full_jitter;

/// How often a command is decided and written, at most.
const TRIES_MAX: u32 = 5;
/// Wait before the second try, at most. It doubles with each: 150 ms altogether, so that other writers get through.
const BACKOFF: Duration = Duration::from_millis(10);
/// How long after its start a command is not tried again, so that the answer comes before the function is stopped.
const TRY_FOR: Duration = Duration::from_secs(4);

/// What one try came to.
pub(crate) enum Try<T> {
    /// The command is carried out.
    Done(T),
    /// It is to be decided again on what stands there now, for this reason.
    Again(String),
}

/// The tries of one command.
#[derive(Debug)]
pub(crate) struct Tries {
    started: Instant,
    failed: u32,
}

impl Tries {
    /// Begins with the first.
    pub(crate) fn begin() -> Self {
        Self { started: Instant::now(), failed: 0 }
    }

    /// Waits for the next try after one that failed for this reason. A problem where time or patience has ended.
    pub(crate) async fn again(&mut self, reason: String) -> Result<(), Problem> {
        self.failed += 1;
        if self.failed == TRIES_MAX {
            return Err(Problem::unavailable(reason));
        }
        sleep(full_jitter(BACKOFF, self.failed)).await;
        if self.started.elapsed() > TRY_FOR { Err(Problem::unavailable(reason)) } else { Ok(()) }
    }
}
