//! Adapters to AWS: DynamoDB ledger, SQS publisher, configuration, logs, metrics, and the frame of a consumer's function.
//! No decisions.

pub mod config;
pub mod consumer_function;
pub mod function;
pub mod items;
pub mod ledger;
pub mod metrics;
pub mod outgoing;
pub mod publisher;
pub mod sqs_event;
pub mod system;
pub mod telemetry;
pub mod visibility;
pub mod webhook;
