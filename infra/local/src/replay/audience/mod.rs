//! The scenario `audience`: one player whom all others follow publishes. Measures how fast they are told, what the request path
//! has to wait meanwhile, whether a restriction of the author gets through, and what a failing webhook holds back. Then
//! compares inboxes and letters with who was to be told.

mod cast;
mod comparison;
mod fan_out;
mod outage;

use std::sync::Arc;
use std::time::Duration;

use dynoxide::Database;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::caller::Caller;
use super::client::{Client, ClientError, Jobs, run_all};
use super::differences::Differences;
use super::lag::Percentiles;
use super::{ReplayError, Verdict, compare_dead_letters, latency_line, records_table, views_table, wait_until_quiet};
use crate::command_line::{HostilityOptions, ReplayOptions};
use crate::stack::Stack;
use crate::status::Screen;
use cast::Cast;
use comparison::{compare, letters_of};
use fan_out::Progress;

/// Letters that can be under way when a restriction is answered: a round of 16 for each of the two instances that the template
/// allows.
const UNDER_WAY_MAX: usize = 32;
/// How often the progress of a fan-out is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Plays the scenario and prints what it came to.
///
/// # Errors
///
/// When a command was not taken, or nothing could be compared.
pub(super) async fn play(
    options: &ReplayOptions,
    hostility: &HostilityOptions,
    stack: &Stack,
    screen: &Screen,
) -> Result<Verdict, ReplayError> {
    let stage = Stage {
        cast: Arc::new(Cast::of(options.players, hostility.seed)),
        hostility,
        rate: options.rate,
        stack,
        screen,
        views: views_table(stack)?,
        records: records_table(stack)?,
    };
    let mut differences = Differences::default();
    stage.gather().await?;
    stage.tell_alone().await?;
    stage.tell_beside_commands(&mut differences).await?;
    outage::play(&stage).await?;
    let compared = compare(&stage, &mut differences).await?;
    compare_dead_letters(stack, &mut differences);
    screen.say(&format!("compared with who was to be told: {compared}: {differences}"));
    Ok(Verdict::of(&differences))
}

/// What all parts of the scenario share.
struct Stage<'a> {
    cast: Arc<Cast>,
    hostility: &'a HostilityOptions,
    rate: u32,
    stack: &'a Stack,
    screen: &'a Screen,
    views: String,
    records: String,
}

impl Stage<'_> {
    /// Makes a client whose latencies are its own.
    fn client(&self) -> Result<Client, ClientError> {
        Client::new(self.stack, self.hostility.duplicate, self.hostility.seed)
    }

    fn database(&self) -> &Database {
        self.stack.database()
    }

    /// Registers everybody, and has all follow the star.
    async fn gather(&self) -> Result<(), ReplayError> {
        let client = self.client()?;
        self.send(&client, self.cast.registrations(), 0).await?;
        self.send(&client, self.cast.follows(), 0).await?;
        wait_until_quiet(self.stack).await?;
        self.screen.say(&format!("{} players follow one", self.cast.followers.len()));
        Ok(())
    }

    /// Sends commands that do not wait for one another.
    async fn send(&self, client: &Client, commands: Vec<Command>, rate: u32) -> Result<(), ClientError> {
        let commands = Arc::new(commands);
        let send = |number: usize| {
            let (client, commands) = (client.clone(), commands.clone());
            async move { commands[number].send(&client).await.map(|_| ()) }
        };
        run_all(Jobs::independent(commands.len()), rate, send).await
    }

    /// Has the star publish while nothing else happens.
    async fn tell_alone(&self) -> Result<(), ReplayError> {
        let started = Instant::now();
        self.cast.publication(Cast::ALONE).send(&self.client()?).await?;
        let progress = self.wait_for(Cast::ALONE, Progress::is_done).await;
        let paged = started.elapsed();
        wait_until_quiet(self.stack).await?;
        let told = started.elapsed();
        let rate = |elapsed: Duration| self.cast.followers.len() as f64 / elapsed.as_secs_f64();
        self.screen.say(&format!(
            "a post to {} followers, cut into ranges: {}; all pages after {:.2} s ({:.0}/s), all inboxes and letters after {:.2} s ({:.0}/s)",
            self.cast.followers.len(),
            progress.ranges,
            paged.as_secs_f64(),
            rate(paged),
            told.as_secs_f64(),
            rate(told)
        ));
        Ok(())
    }

    /// Has the star publish while everybody reacts to the first post, and restricts the star when half of the audience has been
    /// gone through and the first letter has arrived.
    async fn tell_beside_commands(&self, differences: &mut Differences) -> Result<(), ReplayError> {
        let client = self.client()?;
        self.cast.publication(Cast::BESIDE).send(&client).await?;
        let started = Instant::now();
        let (restricted, reacted) = tokio::join!(self.restrict_halfway(), async {
            self.send(&client, self.cast.reactions(Cast::ALONE, 0), self.rate).await.map(|()| started.elapsed())
        });
        let (restricted, reacted) = (restricted?, reacted?);
        wait_until_quiet(self.stack).await?;
        let after = letters_of(self.stack, &Cast::post(Cast::BESIDE)).saturating_sub(restricted.letters);
        if after > UNDER_WAY_MAX {
            differences.note(format!("{after} letters of a restricted author arrived after the restriction"));
        }
        self.cast.reinstatement().send(&client).await?;
        self.screen.say(&format!(
            "the same beside {} reactions to one post in {:.1} s ({:.0}/s)\n{}\n\
             restriction of the author answered after {:.1} ms, {} of {} followers gone through; letters of the post: {} until then, \
             {after} after it",
            self.cast.followers.len(),
            reacted.as_secs_f64(),
            self.cast.followers.len() as f64 / reacted.as_secs_f64(),
            client.latency().as_ref().map(latency_line).unwrap_or_default(),
            restricted.took.as_secs_f64() * 1_000.0,
            restricted.asked,
            self.cast.followers.len(),
            restricted.letters
        ));
        Ok(())
    }

    async fn restrict_halfway(&self) -> Result<Restricted, ClientError> {
        let half = self.cast.followers.len() as u64 / 2;
        let post = Cast::post(Cast::BESIDE);
        let is_reached = |progress: &Progress| progress.asked >= half && letters_of(self.stack, &post) > 0;
        let progress = self.wait_for(Cast::BESIDE, is_reached).await;
        let sent = Instant::now();
        self.cast.restriction().send(&self.client()?).await?;
        let letters = letters_of(self.stack, &post);
        Ok(Restricted { took: sent.elapsed(), asked: progress.asked, letters })
    }

    /// Waits until the fan-out of a post has come as far as it should.
    async fn wait_for(&self, post: usize, is_reached: impl Fn(&Progress) -> bool) -> Progress {
        loop {
            let progress = Progress::read(self.database(), &self.records, &Cast::post(post));
            if is_reached(&progress) {
                return progress;
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// What was so when the restriction of the author was answered.
struct Restricted {
    took: Duration,
    asked: u64,
    letters: usize,
}

/// A command of a player, a game server or a moderator.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Command {
    caller: Caller,
    method: &'static str,
    path: String,
    body: Option<Value>,
}

impl Command {
    fn put(caller: Caller, path: String, body: Option<Value>) -> Self {
        Self { caller, method: "PUT", path, body }
    }

    async fn send(&self, client: &Client) -> Result<Value, ClientError> {
        client.of(&self.caller)?.command(self.method, &self.path, self.body.as_ref()).await
    }
}
