//! Keeps the graph of follows and its counts: takes the events of follows from its queue.

use std::process::ExitCode;

use domain::graph::FollowGraph;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::FollowChanged, FollowGraph).await
}
