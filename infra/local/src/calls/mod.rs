//! Which calls functions make of DynamoDB and SQS: a witness stands between them and notes who asks for what. It changes
//! nothing that passes, and judges nothing.

mod permission;
mod record;
mod witness;

pub use permission::{Permission, permissions};
pub use record::{Record, RecordError};
pub use witness::Witness;

/// Whether the calls of functions are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noting {
    /// Functions talk to the tables and queues directly.
    #[default]
    Off,
    /// A witness stands between.
    On,
}
