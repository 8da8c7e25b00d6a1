//! Counts the posts of each player: takes the events of posts from its queue.

use std::process::ExitCode;

use domain::posts::PostCounts;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::PostChanged, PostCounts).await
}
