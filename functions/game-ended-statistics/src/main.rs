//! Keeps players' results by time control and day: takes `game_ended` from its queue.

use std::process::ExitCode;

use domain::statistics::Statistics;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::GameEndedStatistics, Statistics).await
}
