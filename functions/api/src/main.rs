//! The request path's function on Lambda: `api`.

use std::process::ExitCode;

use api::{Api, Store, router};
use aws::config::{ApiConfig, environment};
use aws::function;
use aws::metrics::Metrics;
use aws::system::System;
use consumer::Clock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    function::run(start()).await
}

async fn start() -> Result<(), lambda_http::Error> {
    let config = ApiConfig::from_lookup(environment)?;
    let store = Store::from_config(&config);
    store.warm_up().await;
    lambda_http::run(router(Api::new(store, Metrics::to_stdout(config.metrics_namespace), || System.now()))).await
}
