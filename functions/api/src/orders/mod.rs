//! `/orders`: commands, each one append to the event store, and what an order is and was.

mod append;
mod history;
mod input;
mod read;

pub(crate) use append::{cancel, deliver, pay, place, refund, ship};
pub(crate) use read::{events, limit, list, show};
