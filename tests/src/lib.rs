//! What the test binaries and benchmarks share: a DynamoDB in this process that fails on demand, and real time. No tests.

pub mod bench;
mod dynamodb;

pub use dynamodb::DynamoDb;
