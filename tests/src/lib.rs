//! What the test binaries share: a DynamoDB in this process that fails on demand. No tests.

mod dynamodb;

pub use dynamodb::DynamoDb;
