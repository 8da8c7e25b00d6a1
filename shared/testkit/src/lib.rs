//! What tests need and production does not: an in-memory ledger with faults, a manual environment, the contract that every
//! ledger keeps, and a simulated world. No production crate depends on it.

pub mod contract;
mod environment;
mod memory_ledger;
pub mod sample;
pub mod world;

pub use environment::{ManualEnvironment, RecordedVisibility};
pub use memory_ledger::{Fault, Flaw, MemoryLedger, MemoryRequest};
