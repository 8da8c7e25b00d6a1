//! The whole stack on one machine: `cargo run`. See `--help`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use local::command_line::CommandLine;
use tokio::runtime::Builder;

/// Threads for queues, mappings and functions; the tables have their own.
const THREADS: usize = 4;

/// How long the end of the program waits for work that cannot be cancelled.
const END_WITHIN: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let runtime = match Builder::new_multi_thread().worker_threads(THREADS).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start threads: {error}");
            return ExitCode::from(2);
        }
    };
    let exit = runtime.block_on(local::run::run(line));
    runtime.shutdown_timeout(END_WITHIN);
    exit
}
