//! What the operator says, and what is shown while it is done.

use std::error::Error;

use aws::config::{AWS_ENDPOINT_URL_DYNAMODB, AWS_REGION, CallTimeouts, Connection, Retries, environment};
use aws::items::TableNames;
use clap::{Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::rebuild::{Begin, OrderRebuild, Progress, Report};

/// Looks after a stack that runs. Credentials come from AWS_ACCESS_KEY_ID and its companions.
#[derive(Debug, Parser)]
#[command(name = "operations", version)]
pub struct Arguments {
    /// First part of every physical name.
    #[arg(long, global = true, default_value = "players-engine")]
    pub prefix: String,
    /// Region of the stack; otherwise AWS_REGION says it.
    #[arg(long, global = true)]
    pub region: Option<String>,
    /// Where DynamoDB answers, such as http://127.0.0.1:8000 for the local stack.
    #[arg(long, global = true)]
    pub endpoint: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes derived rows anew from the source records, while the stack goes on. An interrupted run is taken up where it ended.
    Rebuild {
        /// Which rows.
        what: Rebuildable,
        /// Begins with the first record, whatever an interrupted run has done.
        #[arg(long)]
        restart: bool,
    },
}

/// What can be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rebuildable {
    /// Views, lists and snapshots of orders, from their events.
    Orders,
}

/// Carries out a command and returns what came of it.
///
/// # Errors
/// The stack cannot be reached, or a row cannot be brought to what it should be.
pub async fn run(arguments: Arguments) -> Result<String, Box<dyn Error + Send + Sync>> {
    let Arguments { prefix, region, endpoint, command } = arguments;
    let lookup = |name: &str| match name {
        AWS_REGION => region.clone().or_else(|| environment(AWS_REGION)),
        AWS_ENDPOINT_URL_DYNAMODB => endpoint.clone().or_else(|| environment(AWS_ENDPOINT_URL_DYNAMODB)),
        _ => environment(name),
    };
    let connection = Connection::from_lookup(lookup)?;
    let tables = TableNames {
        records: format!("{prefix}-records"),
        views: format!("{prefix}-views"),
        ledger: format!("{prefix}-ledger"),
    };
    match command {
        Command::Rebuild { what: Rebuildable::Orders, restart } => {
            let scans = connection.dynamodb(Retries::Sdk, CallTimeouts::BATCH);
            let writes = connection.dynamodb(Retries::Caller, CallTimeouts::BATCH);
            let begin = if restart { Begin::Anew } else { Begin::WhereItEnded };
            let report = OrderRebuild::new(scans, writes, tables).run(begin, &Bar::new()).await?;
            Ok(summary(&report))
        }
    }
}

fn summary(report: &Report) -> String {
    let mut text = format!("{} orders looked at, {} of them rewritten", report.orders, report.rewritten);
    for (order_id, version) in &report.incomplete {
        text.push_str(&format!("\norder {order_id}: event {version} is missing or cannot be read"));
    }
    text
}

/// A bar over the records that have been looked at. It shows itself on terminals alone.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} records, {eta} left; {msg}");
        Self(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }
}

impl Progress for Bar {
    fn begin(&self, records: u64) {
        self.0.set_length(records);
    }

    fn page(&self, records: u64, report: &Report) {
        self.0.set_position(records);
        self.0.set_message(format!("{} orders, {} rewritten", report.orders, report.rewritten));
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_reads_what_the_documents_say() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
        let arguments = Arguments::try_parse_from(["operations", "rebuild", "orders"]).unwrap();
        assert_eq!(arguments.prefix, "players-engine");
        let Command::Rebuild { what, restart } = arguments.command;
        assert_eq!((what, restart), (Rebuildable::Orders, false));
        assert!(Arguments::try_parse_from(["operations", "rebuild", "games"]).is_err());
    }

    #[test]
    fn the_summary_names_the_orders_with_gaps() {
        let incomplete = vec![("o-1".parse().unwrap(), 3)];
        let report = Report { orders: 12, rewritten: 2, incomplete };
        let expected = "12 orders looked at, 2 of them rewritten\norder o-1: event 3 is missing or cannot be read";
        assert_eq!(summary(&report), expected);
    }
}
