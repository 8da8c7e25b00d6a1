//! The frame of every function's `main`: telemetry first, and an error that ends the start is a log line like any other.

use std::process::ExitCode;

use lambda_runtime::Error;

use crate::config::environment;
use crate::telemetry;

/// Starts telemetry, then the function, which runs until Lambda ends the process or it cannot go on.
pub async fn run(start: impl Future<Output = Result<(), Error>>) -> ExitCode {
    telemetry::init(environment);
    match start.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = telemetry::chain(error.as_ref()), "the function cannot run");
            ExitCode::FAILURE
        }
    }
}
