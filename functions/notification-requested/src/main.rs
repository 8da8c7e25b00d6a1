//! Puts notifications into inboxes and delivers them: takes `notification_requested` from its queue.

use std::process::ExitCode;
use std::time::Duration;

use domain::inbox::Inbox;
use events::Consumer;

/// How long the webhook may take. The 7 rounds of a batch of 100 take 14 s at worst, which fits into the function's 30 s.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run_courier(Consumer::NotificationRequested, Inbox, SEND_TIMEOUT).await
}
