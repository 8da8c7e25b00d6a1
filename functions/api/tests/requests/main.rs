//! Requests to the API on tables of a DynamoDB that runs in this process.

// The lint's exception for tests does not reach what tests share.
#![allow(clippy::unwrap_used)]

mod stage;
mod tokens;

mod access;
mod days;
mod follows;
mod games;
mod lambda;
mod leaderboards;
mod moderation;
mod notifications;
mod orders;
mod players;
mod posts;
mod routes;
mod stats;
mod trouble;
