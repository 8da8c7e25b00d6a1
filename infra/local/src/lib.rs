//! The whole stack on one machine: reads `template.yaml` and runs what it declares, each function as its own process.
//! Contains no business logic; what a queue does is in the crate `queue`.

pub mod binaries;
pub mod calls;
pub mod command_line;
pub mod gateway;
pub mod issuer;
pub mod lambda;
pub mod logs;
pub mod mapping;
pub mod model;
pub mod receiver;
pub mod replay;
pub mod run;
pub mod schedule;
pub mod sqs;
pub mod stack;
pub mod status;
pub mod tables;
pub mod template;
pub mod topology;
