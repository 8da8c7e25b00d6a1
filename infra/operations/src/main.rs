//! `cargo run -p operations -- rebuild orders`.

use std::process::ExitCode;

use clap::Parser;
use operations::command_line::{Arguments, run};

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}", aws::telemetry::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
