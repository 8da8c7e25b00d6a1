//! The command line: what can be said to the stack, and what is wrong with it. Starts nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::calls::Noting;
use crate::mapping::{Hostility, Order};

/// Name of the template that is looked for.
const TEMPLATE: &str = "template.yaml";

/// Runs the whole stack on this machine: tables, queues, functions and the HTTP API, as template.yaml declares them.
///
/// Without --empty it replays games or orders through the HTTP API, waits until every queue is empty, and compares what is
/// shown with an independent calculation. It then stays up until Ctrl-C, unless --once is given.
#[derive(Debug, Clone, Parser)]
#[command(name = "local", version)]
pub struct CommandLine {
    /// What to do instead of running the stack.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The template to run [default: template.yaml in this folder or above it]
    #[arg(long, value_name = "PATH")]
    pub template: Option<PathBuf>,

    /// A parameter of the template; can be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, String)>,

    /// Keeps the tables in this folder instead of in memory
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Folder for the functions' logs [default: local-stack-PORT, by SQS's port, in the temporary folder]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,

    /// File with the key that signs tokens; made if it is not there [default: local-issuer.pkcs8 in cargo's target folder]
    #[arg(long, value_name = "FILE")]
    pub issuer_key: Option<PathBuf>,

    /// Takes the functions' binaries from this folder instead of building them
    #[arg(long, value_name = "DIR")]
    pub binaries: Option<PathBuf>,

    /// Only starts the stack and replays nothing
    #[arg(long, conflicts_with_all = ["once", "scenario", "players", "games", "actions", "orders", "rate"])]
    pub empty: bool,

    /// Ends after the comparison: exit code 1 if anything differs
    #[arg(long)]
    pub once: bool,

    /// Where the servers listen.
    #[command(flatten)]
    pub addresses: AddressOptions,

    /// How instances come and go.
    #[command(flatten)]
    pub scaling: ScalingOptions,

    /// What is replayed.
    #[command(flatten)]
    pub replay: ReplayOptions,

    /// How deliveries are disturbed.
    #[command(flatten)]
    pub hostility: HostilityOptions,

    /// What becomes of the calls that functions make.
    #[command(flatten)]
    pub calls: CallOptions,
}

/// What to do instead of running the stack.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Shows which events go through which queues to which consumers: a table, and a graph for Mermaid
    Topology {
        /// Prints what the code says, for tools
        #[arg(long)]
        json: bool,
    },
    /// Prints a token for the HTTP API of any stack that runs on this machine
    Token(TokenOptions),
}

/// What a token is to say.
#[derive(Debug, Clone, Args)]
pub struct TokenOptions {
    /// Whom it is for: a player's id, or the name of a game server, a moderator or an operator
    #[arg(long, value_name = "ID")]
    pub player: String,

    /// What else than acting for itself it is good for: games:write, moderate, operate; can be given several times
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
    pub scopes: Vec<String>,

    /// Seconds for which it is good
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub seconds: u32,
}

/// Where the servers listen.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Addresses")]
pub struct AddressOptions {
    /// Address on which all servers listen
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,

    /// Port of the HTTP API; 0 is any free one
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub api_port: u16,

    /// Port of DynamoDB; 0 is any free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub dynamodb_port: u16,

    /// Port of SQS; 0 is any free one
    #[arg(long, value_name = "PORT", default_value_t = 9324)]
    pub sqs_port: u16,
}

/// How instances come and go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Instances")]
pub struct ScalingOptions {
    /// Seconds after which an idle instance is stopped
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub idle_seconds: Duration,

    /// Requests that are processed at once; further ones wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub api_concurrency: u16,

    /// Instances of one function, at most
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub instances_max: u16,
}

/// What is replayed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Replay")]
pub struct ReplayOptions {
    /// What is replayed: the bundled real games, generated ones, what players do among themselves, posts to many followers and a
    /// failing webhook, or orders
    #[arg(long, value_name = "NAME", default_value = "replay")]
    pub scenario: Scenario,

    /// Players of what is generated
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..))]
    pub players: u32,

    /// Number of generated games
    #[arg(long, value_name = "M", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub games: u32,

    /// Number of generated actions
    #[arg(long, value_name = "M", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub actions: u32,

    /// Number of generated orders, each of which gets several commands
    #[arg(long, value_name = "K", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub orders: u32,

    /// Games, actions or commands on orders a second, at most; 0 is as fast as they go
    #[arg(long, value_name = "R", default_value_t = 0)]
    pub rate: u32,
}

/// What is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// The bundled real games.
    Replay,
    /// Generated games.
    Games,
    /// Generated posts, reactions and follows.
    Social,
    /// One player with very many followers publishes, beside commands and a failing webhook.
    Audience,
    /// Generated orders.
    Orders,
}

/// How deliveries are disturbed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hostility")]
pub struct HostilityOptions {
    /// Probability with which a delivery, or a POST of the replay, is repeated
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub duplicate: f64,

    /// Reorders deliveries across a large window
    #[arg(long)]
    pub shuffle: bool,

    /// Withholds wake-ups about orders from their queue and releases them seconds later
    #[arg(long)]
    pub withhold: bool,

    /// Kills a random instance every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub kill_every: Option<Duration>,

    /// Seconds after which an unacknowledged message comes again, instead of the queue's own visibility timeout
    /// [default: 10 with --kill-every]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub visibility_seconds: Option<Duration>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// What becomes of the calls that functions make of DynamoDB and SQS.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Calls")]
pub struct CallOptions {
    /// Tries rare paths as well after the comparison, and adds all calls of the functions to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["empty", "known_calls"])]
    pub record_calls: Option<PathBuf>,

    /// Ends with exit code 1 if a function makes a call that this file does not list
    #[arg(long, value_name = "FILE", conflicts_with = "empty")]
    pub known_calls: Option<PathBuf>,
}

impl CallOptions {
    /// Returns whether calls have to be noted.
    pub fn noting(&self) -> Noting {
        if self.record_calls.is_some() || self.known_calls.is_some() { Noting::On } else { Noting::Off }
    }
}

/// Visibility timeout under `--kill-every`: with the declared one a killed batch would be away for minutes.
const VISIBILITY_UNDER_KILLS: Duration = Duration::from_secs(10);

impl AddressOptions {
    /// Returns the address of a port.
    pub fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.host, port)
    }
}

impl HostilityOptions {
    /// Returns how the mappings disturb deliveries.
    pub fn deliveries(&self) -> Hostility {
        let order = if self.shuffle { Order::Shuffled } else { Order::AsRead };
        Hostility { duplicate: self.duplicate, order, seed: self.seed }
    }

    /// Returns the visibility timeout that replaces that of the queues, if any does.
    pub fn visibility_timeout(&self) -> Option<Duration> {
        self.visibility_seconds.or(self.kill_every.map(|_| VISIBILITY_UNDER_KILLS))
    }
}

/// A template that is not there.
#[derive(Debug, thiserror::Error)]
pub enum NoTemplate {
    /// The given one is not there.
    #[error("there is no template {}", path.display())]
    Missing {
        /// The path given.
        path: PathBuf,
    },
    /// None is given and none is found.
    #[error("no {TEMPLATE} in {} or above it: name one with --template", folder.display())]
    NotFound {
        /// Folder that the stack was started in.
        folder: PathBuf,
    },
}

impl CommandLine {
    /// Returns the path of the template: the given one, or the nearest one above the current folder, or that of the
    /// sources which this program was built from.
    ///
    /// # Errors
    ///
    /// When the given template is not there, or none is given and none is found.
    pub fn template(&self) -> Result<PathBuf, NoTemplate> {
        if let Some(path) = self.template.clone() {
            return if path.is_file() { Ok(path) } else { Err(NoTemplate::Missing { path }) };
        }
        let folder = std::env::current_dir().unwrap_or_default();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = folder.ancestors().chain(sources.ancestors()).map(|above| above.join(TEMPLATE));
        found.into_iter().find(|path| path.is_file()).ok_or_else(|| NoTemplate::NotFound { folder: folder.clone() })
    }
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("it must be NAME=VALUE".to_owned()),
    }
}

/// Reads a scope token ([RFC 6749](https://www.rfc-editor.org/rfc/rfc6749#section-3.3)).
fn scope(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if !text.is_empty() && text.bytes().all(is_allowed) {
        return Ok(text.to_owned());
    }
    Err("it must be one scope, without blanks, quotation marks and backslashes".to_owned())
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(probability),
        Ok(_) | Err(_) => Err("it must be a number from 0 to 1".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse().map(Duration::try_from_secs_f64) {
        Ok(Ok(seconds)) if !seconds.is_zero() => Ok(seconds),
        Ok(_) | Err(_) => Err("it must be a number of seconds above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &str) -> Result<CommandLine, String> {
        let arguments = std::iter::once("local").chain(arguments.split_whitespace());
        CommandLine::try_parse_from(arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn without_options_the_real_games_are_replayed_on_the_usual_ports() {
        let line = parse("").unwrap();

        assert_eq!((line.empty, line.once, line.replay.scenario), (false, false, Scenario::Replay));
        let addresses = &line.addresses;
        assert_eq!((addresses.api_port, addresses.dynamodb_port, addresses.sqs_port), (3000, 8000, 9324));
        assert_eq!(addresses.address(3000).to_string(), "127.0.0.1:3000");
        assert_eq!(line.scaling.idle_seconds, Duration::from_secs(30));
        assert_eq!(line.hostility.deliveries(), Hostility::default());
        assert_eq!(line.hostility.visibility_timeout(), None);
    }

    #[test]
    fn hostility_is_read() {
        let line = parse("--duplicate 0.3 --shuffle --kill-every 1 --seed 7").unwrap();

        let expected = Hostility { duplicate: 0.3, order: Order::Shuffled, seed: 7 };
        assert_eq!(line.hostility.deliveries(), expected);
        assert_eq!(line.hostility.kill_every, Some(Duration::from_secs(1)));
        assert_eq!(line.hostility.visibility_timeout(), Some(Duration::from_secs(10)));
    }

    #[test]
    fn what_a_token_is_to_say_is_read() {
        let line = parse("--issuer-key key token --player ann --scope moderate --scope games:write").unwrap();

        let Some(Command::Token(token)) = line.command else { panic!("{line:?}") };
        assert_eq!((token.player.as_str(), token.seconds), ("ann", 3_600));
        assert_eq!(token.scopes, ["moderate", "games:write"]);
        assert_eq!(line.issuer_key, Some(PathBuf::from("key")));
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_options_name() {
        let refused = [
            ("--duplicate 1.1", "--duplicate"),
            ("--duplicate -0.1", "-0"),
            ("--duplicate NaN", "--duplicate"),
            ("--kill-every 0", "--kill-every"),
            ("--kill-every inf", "--kill-every"),
            ("--idle-seconds x", "--idle-seconds"),
            ("--players 1", "--players"),
            ("--games 0", "--games"),
            ("--orders 0", "--orders"),
            ("--api-port 65536", "--api-port"),
            ("--api-concurrency 0", "--api-concurrency"),
            ("--scenario chess", "--scenario"),
            ("--parameter Prefix", "--parameter"),
            ("--empty --once", "--once"),
            ("token", "--player"),
            ("token --player ann --scope \"", "--scope"),
            ("token --player ann --seconds -1", "-1"),
        ];
        for (arguments, named) in refused {
            let error = parse(arguments).unwrap_err();
            assert!(error.contains(named), "{arguments}: {error}");
        }
    }

    #[test]
    fn the_template_of_the_sources_is_found_from_anywhere() {
        let template = parse("").unwrap().template().unwrap();

        assert_eq!(template.file_name().unwrap(), TEMPLATE);
    }
}
