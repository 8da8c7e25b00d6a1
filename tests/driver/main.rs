//! What the driver promises, on the in-memory ledger: decoding, deciding on an overlay, committing, reading refusals, ending
//! each record, FIFO groups, and the wake-ups of orders.

mod boards;
mod canary;
mod commit;
mod decode;
mod fifo;
mod gaps;
mod inbox;
mod letters;
mod log;
mod outcome;
mod ranges;
mod refusal;
mod support;
mod waits;
mod webhook;
