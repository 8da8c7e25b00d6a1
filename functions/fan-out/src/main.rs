//! Finds out who is to be told of what: takes what others are told of, and its own progress, from its queue.

use std::process::ExitCode;

use domain::fan_out::FanOut;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::FanOut, FanOut).await
}
