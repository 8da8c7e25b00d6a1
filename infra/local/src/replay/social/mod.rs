//! The scenario `social`: players publish, react and follow while moderators rename, restrict and reinstate them.

mod actions;
mod comparison;
mod fold;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::client::{Client, ClientError, Jobs, run_all};
use super::comparison::Comparison;
use super::{ReplayError, Verdict, become_quiet, told};
use crate::command_line::{HostilityOptions, ReplayOptions};
use crate::stack::Stack;
use crate::status::Screen;
use actions::{Action, Script};
use comparison::{Compared, compare};
use fold::Fold;

/// Plays the script of the options and prints the comparison.
///
/// # Errors
///
/// When the script could not be played to its end, or not compared.
pub(super) async fn play(
    options: &ReplayOptions,
    hostility: &HostilityOptions,
    (stack, views): (&Stack, &str),
    client: &Client,
    screen: &Screen,
) -> Result<Verdict, ReplayError> {
    let script = Script::generate(options.players, options.actions, hostility.seed);
    let fold = Fold::of(&script);
    register(client, &script).await?;
    screen.say(&format!("{} players registered; {} actions follow", script.players.len(), options.actions));
    let latencies = Latencies::default();
    let started = Instant::now();
    let mut sent = 0;
    for part in [script.posts, script.bustle, script.finale, script.end] {
        sent += part.len();
        act(client, Arc::new(part), options.rate, &latencies).await?;
    }
    let acting = started.elapsed();
    become_quiet(stack).await?;
    let draining = started.elapsed() - acting;
    let mut comparison = Comparison::default();
    let letters = stack.receiver().letters();
    let compared = compare(&fold, client, (stack.database(), views), &letters, &mut comparison).await?;
    comparison.differ_for_dead_letters(stack);
    screen.say(&format!(
        "{sent} commands in {:.1} s ({:.0}/s), {} requests repeated; {}; quiet {:.1} s later",
        acting.as_secs_f64(),
        sent as f64 / acting.as_secs_f64(),
        client.repeats(),
        latencies.text(),
        draining.as_secs_f64()
    ));
    screen.say(&verdict(&compared, &comparison));
    Ok(if comparison.differences == 0 { Verdict::Same } else { Verdict::Different })
}

async fn register(client: &Client, script: &Script) -> Result<(), ClientError> {
    let post = |number: usize| {
        let (client, player) = (client.clone(), script.players[number].clone());
        async move { client.post("/players", &json!({"player_id": player, "username": player})).await.map(|_| ()) }
    };
    run_all(Jobs::independent(script.players.len()), 0, post).await
}

/// Sends all actions, those on one thing one after the other.
async fn act(client: &Client, actions: Arc<Vec<Action>>, rate: u32, latencies: &Latencies) -> Result<(), ClientError> {
    let jobs = Jobs::in_order(actions.iter().map(|action| [action.subject()]));
    let send = |number: usize| {
        let (client, actions, latencies) = (client.clone(), actions.clone(), latencies.clone());
        async move {
            let (method, path, body) = actions[number].command();
            let sent = Instant::now();
            client.command(method, &path, body.as_ref()).await?;
            latencies.note(sent.elapsed());
            Ok(())
        }
    };
    run_all(jobs, rate, send).await
}

/// How long commands took, repetitions included.
#[derive(Debug, Clone, Default)]
struct Latencies(Arc<Mutex<Vec<Duration>>>);

impl Latencies {
    fn note(&self, latency: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(latency);
    }

    fn text(&self) -> String {
        let mut latencies = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latencies.sort_unstable();
        let percentile = |percent: usize| {
            let latency = latencies.get(latencies.len().saturating_sub(1) * percent / 100);
            latency.map_or(0.0, |latency| latency.as_secs_f64() * 1_000.0)
        };
        format!("a command took {:.0} ms (p50), {:.0} ms (p99)", percentile(50), percentile(99))
    }
}

fn verdict(compared: &Compared, comparison: &Comparison) -> String {
    let Compared { players, lists, posts, counters, notifications, letters } = compared;
    format!(
        "compared with an independent fold: {players} players, {lists} lists to their ends, {posts} posts, {notifications} \
         notifications, {letters} letters, {counters} counters of days: {}",
        told(comparison)
    )
}
