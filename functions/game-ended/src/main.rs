//! Keeps the leaderboards: takes `game_ended` from its queue.

use std::process::ExitCode;

use domain::leaderboard::Leaderboard;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::GameEnded, Leaderboard).await
}
