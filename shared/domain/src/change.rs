//! What a command that changes one record comes to.

use events::Payload;

/// What a command comes to on the record as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<R> {
    /// The record becomes this one, with the next version, and its write publishes this.
    Write {
        /// The record afterwards.
        record: R,
        /// What has happened.
        payload: Payload,
    },
    /// It is so already: nothing is written and nothing published.
    Same(R),
}
