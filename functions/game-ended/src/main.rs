//! Keeps the leaderboards: takes `game_ended` from its queue.

use domain::leaderboard::Leaderboard;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    aws::consumer_function::run(Consumer::GameEnded, Leaderboard).await
}
