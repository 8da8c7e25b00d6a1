//! Decisions: what an event or a command makes true, one file a topic. Pure: synchronous, no clock, no randomness, no IO;
//! how a decision is committed is the business of the driver and of the request path.

mod state;
mod versions;

mod change;
mod decision;
mod errand;

pub mod activity;
pub mod fan_out;
pub mod follows;
pub mod games;
pub mod graph;
pub mod inbox;
pub mod leaderboard;
pub mod notifications;
pub mod orders;
pub mod players;
pub mod posts;
pub mod reactions;
pub mod statistics;

pub use change::Change;
pub use decision::{Check, Content, Decider, Decision, Deltas, EVENT, Guard, Spread, Write};
pub use errand::{Courier, End, Errand};
pub use state::{Attributes, Key, Need, Range, Row, RowError, State, Table};
pub use versions::{InvalidVersions, Versions};
