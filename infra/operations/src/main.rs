//! `cargo run --bin operations -- dead-letters list`. See `--help`.

use std::process::ExitCode;

use clap::Parser;
use operations::command_line::Arguments;
use operations::run::run;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(ended) => ended.into(),
        Err(error) => {
            eprintln!("error: {}", aws::telemetry::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
