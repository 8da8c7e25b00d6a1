//! The relay: takes changed records off the stream and sends the event of each to the queues of its consumers. It decides
//! nothing about events and needs no more of one than its id and type, so it passes on what is newer than itself.

mod record;
mod rejected;
mod relay;

pub use relay::{BatchItemFailure, ForeignEvent, Relay, RelayError, Response, deadline};
