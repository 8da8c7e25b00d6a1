//! What the operator says. Does nothing yet.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use events::{Consumer, EventId, EventType, Timestamp};

use crate::dead_letters::{Selection, Source};
use crate::moment;

/// Looks after a stack that runs, on AWS or on this machine.
///
/// Exit codes: 0 done, 1 failed, 2 wrong command line, 3 done but something is left over or was not found, 130 interrupted.
/// A TIME is a moment such as 2026-11-30T18:00:00Z, or how long ago it was, such as 30m, 2h or 3d.
#[derive(Debug, Parser)]
#[command(name = "operations", version)]
pub struct Arguments {
    /// Where the stack is.
    #[command(flatten)]
    pub place: Place,
    /// Says everything as JSON, one object a line
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Where the stack is.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Stack")]
pub struct Place {
    /// First part of every physical name
    #[arg(long, global = true, default_value = "players-engine")]
    pub prefix: String,
    /// The stack that `cargo run` has started on this machine, at its usual ports and with its logs
    #[arg(long, global = true)]
    pub local: bool,
    /// Profile of AWS's configuration files [default: AWS_PROFILE, or what the environment says]
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Region of the stack [default: AWS_REGION, or the profile's]
    #[arg(long, global = true)]
    pub region: Option<String>,
    /// Where DynamoDB answers, such as http://127.0.0.1:8000
    #[arg(long, global = true, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Where SQS answers, such as http://127.0.0.1:9324
    #[arg(long, global = true, value_name = "URL")]
    pub sqs_endpoint: Option<String>,
    /// Folder that a local stack logs in, instead of CloudWatch
    #[arg(long, global = true, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Looks at messages that could not be handled, or sends them back to where they belong.
    DeadLetters {
        /// What to do with them.
        #[command(subcommand)]
        command: DeadLettersCommand,
    },
    /// Sends the events of records to their consumers once more, for those that an outage kept from the queues.
    Republish(RepublishArguments),
    /// Lists the orders that miss events.
    Gaps,
    /// Shows the life of an event, from the functions' logs.
    Trace {
        /// Which event.
        event_id: EventId,
    },
    /// Makes derived rows anew from the source records, while the stack goes on. An interrupted run is taken up where it ended.
    Rebuild {
        /// Which rows.
        what: Rebuildable,
        /// Begins with the first record, whatever an interrupted run has done.
        #[arg(long)]
        restart: bool,
    },
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// Lists them, and counts them by consumer, type and reason.
    List {
        /// Which.
        #[command(flatten)]
        chosen: Chosen,
        /// Letters that are listed, at most; all are counted
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Shows one with its body.
    Show {
        /// The event's id, or the message's.
        id: String,
        /// Whose: a consumer such as game-ended, or relay-rejected; can be given several times
        #[arg(long = "consumer", value_name = "NAME")]
        consumers: Vec<Source>,
    },
    /// Sends them back to the queues that they come from, and deletes those that are there.
    Redrive {
        /// Which.
        #[command(flatten)]
        chosen: Chosen,
        /// All of them
        #[arg(long, required_unless_present_any = ["consumers", "event_ids", "event_types", "reason", "since", "until"])]
        all: bool,
        /// How.
        #[command(flatten)]
        how: How,
    },
}

/// Which dead letters.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Letters")]
pub struct Chosen {
    /// Whose: a consumer such as game-ended, or relay-rejected; can be given several times [default: all]
    #[arg(long = "consumer", value_name = "NAME")]
    pub consumers: Vec<Source>,
    /// Of this event; can be given several times
    #[arg(long = "event-id", value_name = "ID")]
    pub event_ids: Vec<EventId>,
    /// Of this type, such as game_ended; can be given several times
    #[arg(long = "type", value_name = "TYPE")]
    pub event_types: Vec<String>,
    /// With this text in the reason, as it is listed
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Sent at this moment or later
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Sent before this moment
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// Asks the logs for the reasons that the messages do not say
    #[arg(long)]
    pub with_logs: bool,
}

/// How messages are sent.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Sending")]
pub struct How {
    /// Sends nothing, and says what would be sent
    #[arg(long)]
    pub dry_run: bool,
    /// Messages a second, at most [default: as fast as they go]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
}

/// Which events are sent again.
#[derive(Debug, Clone, Args)]
pub struct RepublishArguments {
    /// Minted at this moment or later
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Timestamp,
    /// Minted before this moment [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// Of this type, such as game_ended; can be given several times [default: all]
    #[arg(long = "type", value_name = "TYPE")]
    pub event_types: Vec<EventType>,
    /// To this consumer, such as game-ended; can be given several times [default: all of the type]
    #[arg(long = "consumer", value_name = "NAME", value_parser = consumer)]
    pub consumers: Vec<Consumer>,
    /// How.
    #[command(flatten)]
    pub how: How,
}

/// What can be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rebuildable {
    /// Views, lists and snapshots of orders, from their events.
    Orders,
}

impl Chosen {
    /// Returns what a letter has to be like.
    pub fn selection(&self) -> Selection {
        Selection {
            event_ids: self.event_ids.iter().copied().collect(),
            event_types: self.event_types.iter().cloned().collect(),
            reason: self.reason.clone(),
            since: self.since,
            until: self.until,
        }
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    moment::parse(text, moment::now())
}

fn consumer(text: &str) -> Result<Consumer, String> {
    let named = Consumer::ALL.into_iter().find(|consumer| consumer.as_str() == text);
    named.ok_or_else(|| "it is no consumer, such as game-ended".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["operations"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn what_the_documents_say_is_understood() {
        let arguments = parse("rebuild orders").unwrap();
        assert_eq!((arguments.place.prefix.as_str(), arguments.place.local), ("players-engine", false));
        assert!(matches!(arguments.command, Command::Rebuild { what: Rebuildable::Orders, restart: false }));
        for line in [
            "--local dead-letters list",
            "dead-letters list --local --json --limit 0 --with-logs",
            "dead-letters show 0192f0c1-8e7a-7cc3-98c4-dc0c0c07398f --consumer game-ended",
            "dead-letters redrive --all --dry-run",
            "dead-letters redrive --consumer order-changed --consumer relay-rejected --rate 50",
            "dead-letters redrive --type game_ended --reason too_old --since 2h --until 2026-11-30T18:00:00Z",
            "republish --since 3h --type order_placed --consumer order-changed --rate 100 --dry-run",
            "gaps --json",
            "trace 0192f0c1-8e7a-7cc3-98c4-dc0c0c07398f --logs /tmp/logs",
            "rebuild orders --restart --endpoint http://127.0.0.1:8000 --region us-east-1",
        ] {
            assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
        }
    }

    #[test]
    fn who_redrives_says_which_letters_or_that_it_is_all() {
        let error = parse("dead-letters redrive --rate 5").unwrap_err().to_string();
        assert!(error.contains("--all"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (line, named) in [
            ("rebuild games", "games"),
            ("trace 7", "7"),
            ("republish", "--since"),
            ("republish --since yesterday", "yesterday"),
            ("republish --since 1h --type game_over", "game_over"),
            ("republish --since 1h --consumer relay-rejected", "relay-rejected"),
            ("dead-letters list --consumer nobody", "nobody"),
            ("dead-letters redrive --all --rate 0", "--rate"),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(named), "{line}: {error}");
        }
    }
}
