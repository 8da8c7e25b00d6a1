//! Effects outside the tables: what is to be sent once a decision is committed, and how its end is noted.

use events::Event;
use serde::Serialize;

use crate::{Decider, Decision, RowError, State};

/// A decider whose decisions have an effect outside the tables. Its first decision commits a row that says that the effect is due;
/// the last one, that it is done or dropped. In between the truth is read once more.
pub trait Courier: Decider {
    /// What is sent.
    type Letter: Serialize + Send + Sync;

    /// Says what is to be done for an event whose first decision is committed, on what is true now.
    ///
    /// # Errors
    /// A row cannot be read; the event is tried again.
    fn errand(&self, event: &Event, state: &State) -> Result<Errand<Self::Letter>, RowError>;

    /// Decides how the end of an errand is noted.
    ///
    /// # Errors
    /// A row cannot be read; the event is tried again.
    fn settle(&self, event: &Event, state: &State, end: End) -> Result<Decision, RowError>;
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand<L> {
    /// This is to be sent, under a key that is the same whenever it is sent again.
    Send {
        /// By which a receiver knows a repetition.
        key: String,
        /// What is sent.
        letter: L,
    },
    /// Nothing is to be sent any more, and that is to be noted.
    Drop,
    /// Nothing: it has come to its end before, or never was due.
    Nothing,
}

/// How an errand ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was sent, and taken.
    Delivered,
    /// It was not sent, and will not be.
    Suppressed,
}
