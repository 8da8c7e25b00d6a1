//! The scenario `social`: players publish, react, follow and rename themselves while moderators restrict and reinstate them.

mod actions;
mod comparison;
mod fold;

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;

use super::client::{Client, ClientError, Jobs, run_all};
use super::comparison::Comparison;
use super::{ReplayError, Verdict, compare_dead_letters, latency_line, views_table, wait_until_quiet};
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
    stack: &Stack,
    screen: &Screen,
) -> Result<Verdict, ReplayError> {
    let script = Script::generate(options.players, options.actions, hostility.seed);
    let fold = Fold::of(&script);
    let views = views_table(stack)?;
    let client = Client::new(stack, hostility.duplicate, hostility.seed)?;
    register(&client, &script).await?;
    screen.say(&format!("{} players registered; {} actions follow", script.players.len(), options.actions));
    let started = Instant::now();
    let mut sent = 0;
    for part in [script.posts, script.bustle, script.finale, script.end] {
        sent += part.len();
        act(&client, Arc::new(part), options.rate).await?;
    }
    let acting = started.elapsed();
    let latency = client.latency();
    wait_until_quiet(stack).await?;
    let draining = started.elapsed() - acting;
    let mut comparison = Comparison::default();
    let letters = stack.receiver().letters();
    let compared = compare(&fold, &client, (stack.database(), &views), &letters, &mut comparison).await?;
    compare_dead_letters(stack, &mut comparison.differences);
    screen.say(&format!(
        "{sent} commands in {:.1} s ({:.0}/s), {} requests repeated; quiet {:.1} s later",
        acting.as_secs_f64(),
        sent as f64 / acting.as_secs_f64(),
        client.repeats(),
        draining.as_secs_f64()
    ));
    screen.say(&latency.map(|latency| latency_line(&latency)).unwrap_or_default());
    screen.say(&verdict(&compared, &comparison));
    Ok(Verdict::of(&comparison.differences))
}

async fn register(client: &Client, script: &Script) -> Result<(), ClientError> {
    let post = |number: usize| {
        let (client, player) = (client.clone(), script.players[number].clone());
        async move {
            let command = json!({"player_id": player, "username": player});
            client.of_player(&player)?.post("/players", &command).await.map(|_| ())
        }
    };
    run_all(Jobs::independent(script.players.len()), 0, post).await
}

/// Sends all actions, those on one thing one after the other.
async fn act(client: &Client, actions: Arc<Vec<Action>>, rate: u32) -> Result<(), ClientError> {
    let jobs = Jobs::in_order(actions.iter().map(|action| [action.subject()]));
    let send = |number: usize| {
        let (client, actions) = (client.clone(), actions.clone());
        async move {
            let (method, path, body) = actions[number].command();
            client.of(&actions[number].caller())?.command(method, &path, body.as_ref()).await.map(|_| ())
        }
    };
    run_all(jobs, rate, send).await
}

fn verdict(compared: &Compared, comparison: &Comparison) -> String {
    let Compared { players, lists, posts, counters, notifications, letters } = compared;
    format!(
        "compared with an independent fold: {players} players, {lists} lists to their ends, {posts} posts, {notifications} \
         notifications, {letters} letters, {counters} counters of days: {}",
        comparison.differences
    )
}
