//! The relay's function on Lambda: `outbox-relay`.

use std::process::ExitCode;

use aws::config::{CallTimeouts, RelayConfig, Retries, environment};
use aws::function;
use aws::metrics::Metrics;
use aws::publisher::Sqs;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outbox_relay::{Relay, deadline};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    function::run(start()).await
}

async fn start() -> Result<(), Error> {
    let config = RelayConfig::from_lookup(environment)?;
    let sqs = Sqs::new(config.connection.sqs(Retries::Caller, CallTimeouts::BATCH));
    let relay = &Relay::new(sqs, config.queue_url_prefix, Metrics::to_stdout(config.metrics_namespace));
    // Boxed: the compiler gives up on the layout of all the futures around and within this one.
    let handle = |event: LambdaEvent<Value>| {
        Box::pin(async move { relay.handle(&event.payload, deadline(event.context.deadline())).await })
    };
    lambda_runtime::run(service_fn(handle)).await
}
