//! The canary's function on Lambda: `canary`, invoked by a schedule.

use std::process::ExitCode;

use aws::config::{CallTimeouts, CanaryConfig, Retries, environment};
use aws::function;
use aws::system::System;
use canary::{Sender, answer};
use consumer::{Clock, Random};
use events::{EventId, TraceId};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    function::run(start()).await
}

async fn start() -> Result<(), Error> {
    let config = CanaryConfig::from_lookup(environment)?;
    let dynamodb = config.connection.dynamodb(Retries::Sdk, CallTimeouts::BATCH);
    let sender = &Sender { dynamodb, records_table: config.records_table };
    // What the schedule says of itself is of no interest.
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| async move {
        let now = System.now();
        let mut random = [0; 10];
        getrandom::fill(&mut random)?;
        let event_id = EventId::mint(now, random);
        let trace_id = TraceId::mint(u128::from(System.bits()) << 64 | u128::from(System.bits()));
        sender.send(now, event_id, trace_id).await?;
        tracing::info!(%event_id, %trace_id, "canary sent");
        Ok::<_, Error>(answer(event_id))
    }))
    .await
}
