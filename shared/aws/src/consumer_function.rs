//! The frame of a consumer's function: everything between `main` and the driver.

use std::process::ExitCode;
use std::time::Duration;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse};
use consumer::{BatchReport, Clock, Driver, EffectDriver};
use domain::{Courier, Decider};
use events::{Consumer, Timestamp};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::value::RawValue;

use crate::config::{CallTimeouts, ConsumerConfig, Retries, environment, warm_up, webhook_url};
use crate::function;
use crate::ledger::DynamoLedger;
use crate::metrics::Metrics;
use crate::sqs_event::deliveries;
use crate::system::System;
use crate::visibility::SqsVisibility;
use crate::webhook::Webhook;

/// Runs a consumer until Lambda ends the process.
pub async fn run<D: Decider>(consumer: Consumer, decider: D) -> ExitCode {
    function::run(start(consumer, decider)).await
}

/// Runs a consumer with errands until Lambda ends the process. A letter may take so long.
pub async fn run_courier<D: Courier>(consumer: Consumer, decider: D, send_timeout: Duration) -> ExitCode {
    function::run(start_courier(consumer, decider, send_timeout)).await
}

async fn start<D: Decider>(consumer: Consumer, decider: D) -> Result<(), Error> {
    let (driver, metrics) = &driver(consumer, decider).await?;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let deliveries = deliveries(event.payload.get())?;
        let report = driver.handle(&deliveries, deadline(&event)).await;
        measure(metrics, consumer, &report);
        Ok::<_, Error>(response(&report))
    }))
    .await
}

async fn start_courier<D: Courier>(consumer: Consumer, decider: D, send_timeout: Duration) -> Result<(), Error> {
    let notifier = webhook_url(environment)?.map(Webhook::new);
    let (driver, metrics) = driver(consumer, decider).await?;
    let (driver, metrics) = (&EffectDriver { driver, notifier, send_timeout }, &metrics);
    // Boxed: the compiler gives up on the layout of all the futures around and within this one.
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        Box::pin(async move {
            let deliveries = deliveries(event.payload.get())?;
            let report = driver.handle(&deliveries, deadline(&event)).await;
            measure(metrics, consumer, &report);
            Ok::<_, Error>(response(&report))
        })
    }))
    .await
}

/// Makes the driver that the settings describe, and what writes its metrics.
async fn driver<D: Decider>(
    consumer: Consumer,
    decider: D,
) -> Result<(Driver<D, DynamoLedger, System, SqsVisibility>, Metrics), Error> {
    let config = ConsumerConfig::from_lookup(environment)?;
    let dynamodb = config.connection.dynamodb(Retries::Caller, CallTimeouts::BATCH);
    let sqs = config.connection.sqs(Retries::Sdk, CallTimeouts::BATCH);
    warm_up(&dynamodb, &config.tables.views).await;
    let driver = Driver {
        consumer,
        decider,
        ledger: DynamoLedger::new(dynamodb, config.tables),
        environment: System,
        visibility: SqsVisibility::new(sqs, config.queue_url),
    };
    Ok((driver, Metrics::to_stdout(config.metrics_namespace)))
}

fn deadline(event: &LambdaEvent<Box<RawValue>>) -> Timestamp {
    Timestamp::from_millis(0) + Duration::from_millis(event.context.deadline)
}

fn response(report: &BatchReport) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = report
        .failures()
        .map(|message_id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = message_id.to_string();
            failure
        })
        .collect();
    response
}

/// One line a batch: what it came to, and what it cost.
fn measure(metrics: &Metrics, consumer: Consumer, report: &BatchReport) {
    let now = System.now();
    metrics.batch(consumer, &report.tally(now), now);
}
