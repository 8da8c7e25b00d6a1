//! Keeps players' results by time control and day: takes `game_ended` from its queue.

use domain::statistics::Statistics;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    aws::consumer_function::run(Consumer::GameEndedStatistics, Statistics).await
}
