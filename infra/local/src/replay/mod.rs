//! Plays a scenario through the HTTP API: games as a game server posts them, while players rename themselves and moderators
//! restrict and reinstate them; what players do among themselves; one whom all follow; or orders. Waits until the stack is
//! quiet, and compares what it shows with an independent fold.

mod audience;
mod caller;
mod changes;
mod client;
mod comparison;
mod differences;
mod fold;
mod game;
mod generated;
mod intruders;
mod lag;
mod orders;
mod rare;
mod social;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use events::{PlayerId, Timestamp};
use serde_json::json;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::command_line::{HostilityOptions, ReplayOptions, Scenario};
use crate::mapping::stream::StreamError;
use crate::stack::Stack;
use crate::status::Screen;
use caller::Caller;
use changes::{PlayerChange, player_changes};
pub use client::ClientError;
use client::{Client, Jobs, run_all};
pub use comparison::ComparisonError;
use comparison::{Comparison, compare};
use differences::Differences;
use fold::Fold;
use game::{Game, real_games};
use generated::generated_games;
use lag::{LagProbe, Percentiles};
pub use rare::rare_paths;

/// How long the stack may take to become quiet after the last command.
const QUIET_WITHIN: Duration = Duration::from_secs(900);
/// One game in so many is watched until it is on its board.
const WATCHED_ONE_IN: usize = 20;
/// End of the last generated game: 2026-01-01T00:00:00Z, so that the same seed gives the same games on any day.
const GENERATED_UNTIL_MS: i64 = 1_767_225_600_000;

/// Why a replay came to no comparison.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The bundled games cannot be read.
    #[error("tests/data/rated-games.csv cannot be read")]
    Games(#[from] csv::Error),
    /// The API did not take a command.
    #[error("the replay stopped")]
    Client(#[from] ClientError),
    /// A stream cannot be read.
    #[error("it cannot be told whether the stack is quiet")]
    Stream(#[from] StreamError),
    /// Something still goes round.
    #[error("the stack is not quiet {} s after the last command", QUIET_WITHIN.as_secs())]
    NotQuiet,
    /// Nothing could be compared.
    #[error("the comparison stopped")]
    Comparison(#[from] ComparisonError),
    /// The template has no queue to withhold messages of.
    #[error("the template declares no queue whose name ends in {name}")]
    NoQueue {
        /// What the name should end in.
        name: &'static str,
    },
    /// The template has no table to look into.
    #[error("the template declares no table whose name ends in {name}")]
    NoTable {
        /// What the name should end in.
        name: &'static str,
    },
    /// What rare paths are tried with is wrong.
    #[error("a rare path cannot be tried: {reason}")]
    RarePath {
        /// What is wrong.
        reason: String,
    },
}

/// What a replay came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is as the fold says.
    Same,
    /// Something is not, or messages were given up.
    Different,
}

impl Verdict {
    fn of(differences: &Differences) -> Self {
        if differences.is_empty() { Self::Same } else { Self::Different }
    }
}

/// Replays what the options say and prints what it came to and the comparison.
///
/// # Errors
///
/// When the commands could not be replayed to their end, or not compared.
pub async fn replay(
    options: &ReplayOptions,
    hostility: &HostilityOptions,
    stack: &Stack,
    screen: &Screen,
) -> Result<Verdict, ReplayError> {
    match options.scenario {
        Scenario::Replay => replay_games(real_games()?, options, hostility, stack, screen).await,
        Scenario::Games => {
            let until = Timestamp::from_millis(GENERATED_UNTIL_MS);
            let games = generated_games(options.players, options.games, until, hostility.seed);
            replay_games(games, options, hostility, stack, screen).await
        }
        Scenario::Social => social::play(options, hostility, stack, screen).await,
        Scenario::Audience => audience::play(options, hostility, stack, screen).await,
        Scenario::Orders => orders::replay(options, hostility, stack, screen).await,
    }
}

async fn replay_games(
    games: Vec<Game>,
    options: &ReplayOptions,
    hostility: &HostilityOptions,
    stack: &Stack,
    screen: &Screen,
) -> Result<Verdict, ReplayError> {
    let games = Arc::new(games);
    let views = views_table(stack)?;
    let client = Client::new(stack, hostility.duplicate, hostility.seed)?;
    let fold = Fold::of(&games);
    let players: Vec<PlayerId> = fold.players().into_iter().cloned().collect();
    let changes = Arc::new(player_changes(&players, games.len(), hostility.seed));
    let fold = fold.with_changes(&changes);
    post_players(&client, &players).await?;
    screen.say(&format!(
        "{} players registered; posting {} games and {} changes of players",
        players.len(),
        games.len(),
        changes.len()
    ));

    let probe = LagProbe::new(stack.database().clone(), views.clone(), WATCHED_ONE_IN);
    let started = Instant::now();
    let (posted, progress) = watch::channel(0);
    tokio::try_join!(
        post_games(&client, &games, options.rate, &probe, &posted),
        send_changes(&client, &changes, &progress)
    )?;
    let posting = started.elapsed();
    wait_until_quiet(stack).await?;
    let draining = started.elapsed() - posting;

    let mut comparison = compare(&fold, &client, stack.database(), &views).await?;
    compare_dead_letters(stack, &mut comparison.differences);
    let intruders = intruders::intrude(stack, &client, &players, &mut comparison.differences).await?;
    screen.say(&boards(&comparison));
    let rate = games.len() as f64 / posting.as_secs_f64();
    screen.say(&format!(
        "{} games posted in {:.1} s ({rate:.0}/s), {} requests repeated; quiet {:.1} s later{}",
        games.len(),
        posting.as_secs_f64(),
        client.repeats(),
        draining.as_secs_f64(),
        probe.lag().map(|lag| lag_line(&lag)).unwrap_or_default()
    ));
    screen.say(&format!(
        "{intruders} requests of those who may not were refused, and no table has changed, unless told below"
    ));
    screen.say(&verdict_text(&comparison));
    Ok(Verdict::of(&comparison.differences))
}

async fn wait_until_quiet(stack: &Stack) -> Result<(), ReplayError> {
    let quiet = timeout(QUIET_WITHIN, stack.wait_until_quiet()).await;
    Ok(quiet.map_err(|_| ReplayError::NotQuiet)??)
}

fn views_table(stack: &Stack) -> Result<String, ReplayError> {
    table(stack, "-views")
}

fn records_table(stack: &Stack) -> Result<String, ReplayError> {
    table(stack, "-records")
}

fn table(stack: &Stack, name: &'static str) -> Result<String, ReplayError> {
    let mut tables = stack.model().tables.iter();
    let found = tables.find(|table| table.name.ends_with(name));
    found.map(|table| table.name.clone()).ok_or(ReplayError::NoTable { name })
}

/// Notes every dead letter queue that is not empty.
fn compare_dead_letters(stack: &Stack, differences: &mut Differences) {
    for (queue, messages) in stack.dead_letters() {
        if messages > 0 {
            differences.note(format!("{queue} holds {messages} messages"));
        }
    }
}

async fn post_players(client: &Client, players: &[PlayerId]) -> Result<(), ClientError> {
    let post = |number: usize| {
        let (client, player) = (client.clone(), players[number].clone());
        async move {
            let command = json!({"player_id": player, "username": player});
            client.of_player(&player)?.post("/players", &command).await.map(|_| ())
        }
    };
    run_all(Jobs::independent(players.len()), 0, post).await
}

/// Posts all games and counts those that are.
async fn post_games(
    client: &Client,
    games: &Arc<Vec<Game>>,
    rate: u32,
    probe: &LagProbe,
    posted: &watch::Sender<usize>,
) -> Result<(), ClientError> {
    let server = client.of(&Caller::GameServer)?;
    let post = |number: usize| {
        let (client, games, probe, posted) = (server.clone(), games.clone(), probe.clone(), posted.clone());
        async move {
            let sent = Instant::now();
            let answer = client.post("/games", &games[number].command()).await?;
            probe.watch_game(number, sent, &answer);
            posted.send_modify(|posted| *posted += 1);
            Ok(())
        }
    };
    run_all(Jobs::in_order_of_players(games), rate, post).await
}

/// Sends all changes, a player's one after the other, each when as many games are posted as it waits for.
async fn send_changes(
    client: &Client,
    changes: &Arc<Vec<PlayerChange>>,
    progress: &watch::Receiver<usize>,
) -> Result<(), ClientError> {
    let send = |number: usize| {
        let (client, changes, mut progress) = (client.clone(), changes.clone(), progress.clone());
        async move {
            let change = &changes[number];
            // The sender outlives the posting, which is waited for beside this.
            let _ = progress.wait_for(|posted| *posted >= change.after_games).await;
            let (method, path, body) = change.command();
            client.of(&change.caller())?.command(method, &path, body.as_ref()).await.map(|_| ())
        }
    };
    run_all(Jobs::in_order(changes.iter().map(|change| [&change.player_id])), 0, send).await
}

fn boards(comparison: &Comparison) -> String {
    let mut text = String::from("leaderboards, top rows:");
    for (time_control, rows) in &comparison.tops {
        let _ = write!(text, "\n  {time_control}");
        if rows.is_empty() {
            text.push_str(": no players");
        }
        for row in rows {
            let games = if row.games == 1 { "game" } else { "games" };
            let _ =
                write!(text, "\n  {:>4}. {:<38} {:>4}  {:>4} {games}", row.rank, row.player_id, row.rating, row.games);
        }
    }
    text
}

fn latency_line(latency: &Percentiles) -> String {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    format!(
        "from request to answer: p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms ({} commands)",
        milliseconds(latency.p50),
        milliseconds(latency.p95),
        milliseconds(latency.p99),
        latency.samples
    )
}

fn lag_line(lag: &Percentiles) -> String {
    let seconds = |duration: Duration| duration.as_secs_f64();
    format!(
        "\nfrom request to board: p50 {:.2} s, p95 {:.2} s, p99 {:.2} s ({} games watched)",
        seconds(lag.p50),
        seconds(lag.p95),
        seconds(lag.p99),
        lag.samples
    )
}

fn verdict_text(comparison: &Comparison) -> String {
    let Comparison { rows, cells, counters, places, differences, .. } = comparison;
    format!(
        "compared with an independent fold: {rows} rows and ranks, {places} places with neighbours, {cells} histogram cells, \
         {counters} counters of results: {differences}"
    )
}
