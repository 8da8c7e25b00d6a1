//! SQS on one machine: the broker, which the event source mappings use in process, and a server that speaks the AWS JSON
//! protocol for everyone else. What a queue does is in the crate `queue`; here are only the clock, the waiting and the
//! wire.

mod broker;
mod server;

mod batch;
mod clock;
mod fault;
mod message_calls;
mod queue_calls;
mod receive_call;
mod wire;

pub use broker::Broker;
pub use server::{queue_url, serve};

/// `SenderId` of every message: on one machine all senders are one.
pub const SENDER_ID: &str = "AIDALOCAL000000000000";
