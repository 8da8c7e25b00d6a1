//! What the driver promises, on the in-memory ledger: decoding, deciding on an overlay, committing, reading refusals, ending
//! each record.

mod boards;
mod commit;
mod decode;
mod outcome;
mod refusal;
mod support;
