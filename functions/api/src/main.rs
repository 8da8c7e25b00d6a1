//! The request path's function on Lambda: `api`.

use std::process::ExitCode;

use api::{Api, Store, router};
use aws::config::{ApiConfig, environment};
use aws::function;
use aws::system::System;
use consumer::Clock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    function::run(start()).await
}

async fn start() -> Result<(), lambda_http::Error> {
    let store = Store::from_config(&ApiConfig::from_lookup(environment)?);
    store.warm_up().await;
    lambda_http::run(router(Api::new(store, || System.now()))).await
}
