//! What the operator does to a stack, on queues, logs and tables that are not AWS's.

#![cfg(test)]

mod insights;
mod redrive;
mod rejected;
mod selection;
mod sqs;
mod trace;
mod world;
