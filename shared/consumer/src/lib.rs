//! The driver of every consumer: bytes of a batch -> events -> state -> decisions -> commits -> an outcome for each record.
//! Its ports stand next to it. No AWS crate, no clock and no randomness of its own.

mod delivery;
mod ports;

mod draft;
mod plan;
mod size;

mod commit;
mod driver;
mod effects;
mod fifo;
mod group;
mod reading;
mod report;
mod tally;
mod wave;

mod weakness;

pub use delivery::{BatchReport, Delivery, InvalidMessageId, MessageId, Outcome, RecordReport};
pub use draft::{CLAIM_AGE_MAX, CLAIM_TTL, Draft, PlanError, Scope};
pub use driver::Driver;
pub use effects::EffectDriver;
pub use fifo::HOLDS_MAX;
pub use plan::{BYTES_MAX, Claim, Conditions, ITEM_BYTES_MAX, ITEMS_MAX, Operation, Plan};
pub use ports::{
    Attempt, Busy, Clock, CommitError, Cost, FetchError, Ledger, Notifier, NotifyError, Random, Refusal, Visibility,
    VisibilityChange, VisibilityError,
};
pub use report::WAIT;
pub use size::item_bytes;
pub use tally::Tally;
pub use weakness::Weakness;
#[cfg(feature = "weakness")]
pub use weakness::with_weakness;
