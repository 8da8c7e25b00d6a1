//! Counts the reactions to each post by kind: takes the events of reactions from its queue.

use std::process::ExitCode;

use domain::reactions::ReactionCounts;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::ReactionChanged, ReactionCounts).await
}
