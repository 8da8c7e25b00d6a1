//! What a webhook that fails, refuses or hangs holds back: games and reactions at a fixed rate while the star's followers are told,
//! once for each thing that a receiver can do. The pace of commands, boards and counts is what it is with one that takes letters.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::caller::Caller;
use super::super::client::{ClientError, Jobs, run_all};
use super::super::game::Game;
use super::super::lag::LagProbe;
use super::super::{ReplayError, wait_until_quiet};
use super::{Cast, Command, Percentiles, Stage};
use crate::receiver::Mode;

/// What the receiver does, one part each.
pub(super) const MODES: [(Mode, &str); 4] =
    [(Mode::Take, "takes"), (Mode::Fail, "fails"), (Mode::Refuse, "refuses"), (Mode::Hang, "hangs")];
/// How long commands come in for each part.
const PART: Duration = Duration::from_secs(20);
/// Commands a second, where the options say nothing.
const RATE: u32 = 60;
/// One in so many commands is watched until its effect shows.
const WATCHED_ONE_IN: usize = 4;

/// Plays one part after the other.
///
/// # Errors
///
/// When a command is not taken, or the stack does not become quiet once letters are taken again.
pub(super) async fn play(stage: &Stage<'_>) -> Result<(), ReplayError> {
    let rate = if stage.rate == 0 { RATE } else { stage.rate };
    let games_of_part = (rate / 2).saturating_mul(u32::try_from(PART.as_secs()).unwrap_or(0)).max(1);
    let games = stage.cast.games(games_of_part * MODES.len() as u32);
    stage.screen.say(&format!(
        "for {} s each, {rate} games and reactions a second beside a post to all followers:\n{:<10}{:>28}{:>28}{:>28}{:>10}",
        PART.as_secs(),
        "receiver",
        "request p50 / p99",
        "to board p50 / p95",
        "to count p50 / p95",
        "quiet"
    ));
    for (part, (games, (mode, name))) in games.chunks(games_of_part as usize).zip(MODES).enumerate() {
        let measured = Part { stage, part, games: Arc::new(games.to_vec()), rate }.play(mode).await?;
        stage.screen.say(&format!("{name:<10}{measured}"));
    }
    Ok(())
}

struct Part<'a> {
    stage: &'a Stage<'a>,
    part: usize,
    games: Arc<Vec<Game>>,
    rate: u32,
}

/// What is sent in turn.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Game(usize),
    Reaction(usize),
}

impl Turn {
    fn of(number: usize) -> Self {
        if number.is_multiple_of(2) { Self::Game(number / 2) } else { Self::Reaction(number / 2) }
    }
}

impl Part<'_> {
    /// Sends the commands, lets the receiver recover, and waits for the letters.
    async fn play(&self, mode: Mode) -> Result<Measured, ReplayError> {
        let stage = self.stage;
        stage.stack.receiver().set_mode(mode);
        let client = stage.client()?;
        let server = client.of(&Caller::GameServer)?;
        stage.cast.publication(Cast::OUTAGES + self.part).send(&client).await?;
        let probe = || LagProbe::new(stage.database().clone(), stage.views.clone(), WATCHED_ONE_IN);
        let (boards, counts) = (probe(), probe());
        // Everybody has reacted before, and does so in another way in each part.
        let version = self.part as u64 + 2;
        let reactions: Arc<Vec<Command>> = Arc::new(stage.cast.reactions(Cast::ALONE, self.part + 1));
        let send = |number: usize| {
            let (client, server) = (client.clone(), server.clone());
            let (games, reactions) = (self.games.clone(), reactions.clone());
            let (boards, counts, cast) = (boards.clone(), counts.clone(), stage.cast.clone());
            async move {
                let sent = Instant::now();
                match Turn::of(number) {
                    Turn::Game(game) => {
                        let answer = server.post("/games", &games[game].command()).await?;
                        boards.watch_game(game, sent, &answer);
                    }
                    Turn::Reaction(reaction) => {
                        let follower = reaction % reactions.len();
                        reactions[follower].send(&client).await?;
                        let row = format!("REACTION#{}#{}", Cast::post(Cast::ALONE), cast.followers[follower]);
                        counts.watch(reaction, sent, (row, "record_version"), version);
                    }
                }
                Ok::<(), ClientError>(())
            }
        };
        run_all(self.jobs(reactions.len()), self.rate, send).await?;
        let recovered = Instant::now();
        stage.stack.receiver().set_mode(Mode::Take);
        wait_until_quiet(stage.stack).await?;
        Ok(Measured { request: client.latency(), board: boards.lag(), count: counts.lag(), quiet: recovered.elapsed() })
    }

    /// Games wait for those before them of the same player, reactions for those of the same follower.
    fn jobs(&self, followers: usize) -> Jobs {
        Jobs::in_order((0..2 * self.games.len()).map(|number| match Turn::of(number) {
            Turn::Game(game) => {
                let game = &self.games[game];
                game.sides().map(|(player, _)| format!("{player} {}", game.time_control)).to_vec()
            }
            Turn::Reaction(reaction) => vec![format!("reaction {}", reaction % followers)],
        }))
    }
}

/// What a part came to.
struct Measured {
    request: Option<Percentiles>,
    board: Option<Percentiles>,
    count: Option<Percentiles>,
    quiet: Duration,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pair = |percentiles: &Option<Percentiles>, far: fn(&Percentiles) -> Duration| match percentiles {
            Some(found) => format!("{:.0} ms / {:.0} ms", millis(found.p50), millis(far(found))),
            None => "none".to_owned(),
        };
        write!(
            formatter,
            "{:>28}{:>28}{:>28}{:>9.1}s",
            pair(&self.request, |found| found.p99),
            pair(&self.board, |found| found.p95),
            pair(&self.count, |found| found.p95),
            self.quiet.as_secs_f64()
        )
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
