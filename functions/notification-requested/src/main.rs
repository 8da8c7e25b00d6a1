//! Puts notifications into inboxes: takes `notification_requested` from its queue.

use std::process::ExitCode;

use domain::inbox::Inbox;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::NotificationRequested, Inbox).await
}
