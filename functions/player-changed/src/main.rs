//! Keeps names and visibility on the leaderboards: takes the events of players from its queue.

use std::process::ExitCode;

use domain::leaderboard::PlayerOnBoards;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::PlayerChanged, PlayerOnBoards).await
}
