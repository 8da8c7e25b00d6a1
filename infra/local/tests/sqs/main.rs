//! SQS on one machine: the broker in process, and the server through the AWS SDK and through plain HTTP.

#![cfg(test)]

mod broker;
mod errors;
mod fifo;
mod protocol;
mod server;
