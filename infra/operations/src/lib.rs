//! The operator's command line: what is done by hand to a stack that runs. It uses the consumers' own decisions and ledger, and
//! holds no business logic of its own.

mod checkpoint;
pub mod command_line;
pub mod rebuild;
mod tables;
