//! The operator's command line: what is done by hand to a stack that runs. It uses the consumers' own decisions and ledger, and
//! holds no business logic of its own.

pub mod command_line;
mod connect;
pub mod run;

pub mod dead_letters;
pub mod gaps;
pub mod republish;
pub mod show;
pub mod trace;

mod checkpoint;
pub mod rebuild;
pub mod tables;

pub mod moment;
pub mod output;
pub mod pace;
pub mod progress;
pub mod stop;
