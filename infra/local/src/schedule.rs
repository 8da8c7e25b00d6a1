//! Invokes functions again and again, as declared schedules ask for. Decides nothing about what comes of it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::lambda::{ACCOUNT_ID, Invoke, REGION};

/// Invokes a function whenever so much time has passed, for the first time after that much, until it is dropped. A failure is
/// noted; the next time comes anyway.
pub async fn run(name: String, function: Arc<dyn Invoke>, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    // A machine that slept owes nobody the calls of the night.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if let Err(error) = function.invoke(event(OffsetDateTime::now_utc())).await {
            tracing::warn!(function = name, %error, "a scheduled invocation failed");
        }
    }
}

/// The event that EventBridge sends on a schedule
/// ([scheduled events](https://docs.aws.amazon.com/lambda/latest/dg/with-eventbridge-scheduler.html)).
fn event(now: OffsetDateTime) -> Bytes {
    let event = json!({
        "version": "0",
        "id": uuid::Uuid::now_v7(),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT_ID,
        "time": now.replace_nanosecond(0).ok().and_then(|now| now.format(&Rfc3339).ok()),
        "region": REGION,
        "resources": [],
        "detail": {},
    });
    event.to_string().into()
}
