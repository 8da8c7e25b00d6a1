//! Counts events by type and day: takes all events from its queue.

use std::process::ExitCode;

use domain::activity::EventCounts;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::Activity, EventCounts).await
}
