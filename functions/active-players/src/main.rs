//! Counts the active players of each day: takes what players do from its queue.

use std::process::ExitCode;

use domain::activity::ActivePlayers;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::ActivePlayers, ActivePlayers).await
}
