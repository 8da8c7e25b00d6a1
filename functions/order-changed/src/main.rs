//! Keeps the views of orders: woken up by their events, it reads them from the store.

use std::process::ExitCode;

use domain::orders::OrderViews;
use events::Consumer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::consumer_function::run(Consumer::OrderChanged, OrderViews).await
}
