//! The parts of the local stack at work together: instances, mappings and the HTTP API, with functions that are tasks of
//! the test and speak the real Runtime API.

#![cfg(test)]

mod access;
mod fifo_mapping;
mod gateway;
mod lambda;
mod processes;
mod program;
mod queue_mapping;
mod receiver;
mod runtime;
mod stream_mapping;
mod whole;
mod witness;
