//! The request path's function on Lambda: `api`.

use std::process::ExitCode;

use api::{Api, Store, router};
use aws::config::{ApiConfig, environment};
use aws::system::System;
use aws::telemetry;
use consumer::Clock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    telemetry::init(environment);
    match start().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = telemetry::chain(error.as_ref()), "the function cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn start() -> Result<(), lambda_http::Error> {
    let store = Store::from_config(&ApiConfig::from_lookup(environment)?);
    store.warm_up().await;
    lambda_http::run(router(Api::new(store, || System.now()))).await
}
