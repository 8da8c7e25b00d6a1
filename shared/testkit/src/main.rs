//! Runs many simulated worlds, or one of them with its trace.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use testkit::world::{self, Campaign};

/// Runs simulated worlds, each from its seed, and checks how they end.
#[derive(Debug, Parser)]
#[command(name = "testkit")]
struct Arguments {
    /// Run this world alone and print its whole trace
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from", "minutes"])]
    seed: Option<u64>,

    /// How many worlds to run at most
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    seeds: u64,

    /// Seed of the first world; the others follow
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,

    /// Start no more worlds after so many minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    minutes: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => one(seed),
        None => many(&arguments),
    }
}

fn one(seed: u64) -> ExitCode {
    let (result, trace) = world::traced(seed, &[]);
    for line in trace.lines() {
        println!("{line}");
    }
    match result {
        Ok(summary) => {
            println!("seed {seed} ends right: {summary}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn many(arguments: &Arguments) -> ExitCode {
    let campaign = Campaign {
        seeds: arguments.from..arguments.from.saturating_add(arguments.seeds),
        time_max: Duration::from_secs(arguments.minutes.saturating_mul(60)),
    };
    let results = campaign.run(&[]);
    println!("{results}");
    match results.failures.first() {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            eprintln!("{}", world::explained(failure, &[]));
            ExitCode::FAILURE
        }
    }
}
