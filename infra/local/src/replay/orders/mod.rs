//! Replays orders: sends commands as shops and their customers do, possible ones and others, some of them twice; withholds
//! wake-ups if it is told to; waits until the stack is quiet; and compares orders, views, lists and event streams with an account
//! of the commands.

mod account;
mod comparison;
mod story;
mod thief;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use events::Consumer;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::caller::Caller;
use super::client::{Answer, Client, ClientError, Jobs, run_all};
use super::differences::Differences;
use super::{ReplayError, Verdict, compare_dead_letters, latency_line, views_table, wait_until_quiet};
use crate::command_line::{HostilityOptions, ReplayOptions};
use crate::stack::Stack;
use crate::status::Screen;
use account::{Account, Action};
use comparison::{Compared, compare};
use story::{Expected, Step, Stories, stories};
use thief::Thief;

/// Replays orders and prints what they came to and the comparison.
///
/// # Errors
///
/// When the commands could not be sent to their end, or their outcome not compared.
pub(super) async fn replay(
    options: &ReplayOptions,
    hostility: &HostilityOptions,
    stack: &Stack,
    screen: &Screen,
) -> Result<Verdict, ReplayError> {
    let stories = Arc::new(stories(options.orders, options.players, hostility.seed));
    let views = views_table(stack)?;
    let client = Client::new(stack, hostility.duplicate, hostility.seed)?;
    register(&client, &stories).await?;
    screen.say(&format!("sending {} commands on {} orders", stories.steps.len(), stories.accounts.len()));

    let thief = hostility.withhold.then(|| start_thief(stack, hostility.seed)).transpose()?;
    let started = Instant::now();
    let mut differences = send(&client, &stories, options.rate).await?;
    let sending = started.elapsed();
    let withheld = match thief {
        Some(thief) => thief.give_back().await,
        None => 0,
    };
    wait_until_quiet(stack).await?;
    let total = started.elapsed();

    let latency = client.latency();
    let compared = compare(&stories.accounts, &client, stack.database(), &views, &mut differences).await?;
    compare_dead_letters(stack, &mut differences);
    screen.say(&summary(&stories, sending, total, withheld, client.repeats()));
    screen.say(&latency.map(|latency| latency_line(&latency)).unwrap_or_default());
    let Compared { orders, events, rows, lines } = compared;
    screen.say(&format!(
        "compared with an independent account: {orders} orders, {events} events in their streams, {rows} rows of views, {lines} \
         lines of lists, the list of gaps: {differences}"
    ));
    Ok(Verdict::of(&differences))
}

/// Starts withholding wake-ups.
fn start_thief(stack: &Stack, seed: u64) -> Result<Thief, ReplayError> {
    let name = Consumer::OrderChanged.queue_name();
    let ends = |queue: &str| queue.strip_suffix(name).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('-'));
    let queue = stack.broker().queues().into_iter().find(|queue| ends(queue.as_str()));
    let queue = queue.ok_or(ReplayError::NoQueue { name })?;
    Ok(Thief::start(stack.broker().clone(), queue, seed))
}

async fn register(client: &Client, stories: &Stories) -> Result<(), ClientError> {
    let players: BTreeSet<String> = stories.accounts.iter().map(|account| account.player_id.clone()).collect();
    let players: Vec<String> = players.into_iter().collect();
    let post = |number: usize| {
        let (client, player) = (client.clone(), players[number].clone());
        async move {
            let command = json!({"player_id": player, "username": player});
            client.of_player(&player)?.post("/players", &command).await.map(|_| ())
        }
    };
    run_all(Jobs::independent(players.len()), 0, post).await
}

/// Sends every command, those of an order one at a time, and compares each answer with what it should be.
async fn send(client: &Client, stories: &Arc<Stories>, rate: u32) -> Result<Differences, ClientError> {
    let differences: Arc<Mutex<Differences>> = Arc::default();
    let jobs = Jobs::in_order(stories.steps.iter().map(|step| [step.order]));
    let post = |number: usize| {
        let (client, stories, differences) = (client.clone(), stories.clone(), differences.clone());
        async move {
            let step = &stories.steps[number];
            let account = &stories.accounts[step.order];
            let (path, body) = request(account, step);
            let answer = client.of(&caller(account, step))?.answer("POST", &path, Some(&body)).await?;
            let mut differences = differences.lock().unwrap_or_else(PoisonError::into_inner);
            let what = || format!("{path} with command {}: {answer}", step.command_id);
            differences.check(what, &step.expected, &outcome(&answer));
            Ok(())
        }
    };
    run_all(jobs, rate, post).await?;
    let differences = differences.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(differences)
}

/// Returns who sends a command: customers and the shop do not do the same.
fn caller(account: &Account, step: &Step) -> Caller {
    match &step.action {
        Action::Place | Action::Pay { .. } | Action::Cancel => Caller::Player(account.player_id.clone()),
        Action::Ship | Action::Deliver | Action::Refund => Caller::Operator,
    }
}

/// Returns the path and the body of a command's request.
fn request(account: &Account, step: &Step) -> (String, Value) {
    let command_id = &step.command_id;
    let about = |what: &str| format!("/orders/{}/{what}", account.order_id);
    match &step.action {
        Action::Place => {
            let item = |item: &account::Item| json!({"sku": item.sku, "quantity": item.quantity, "unit_price_cents": item.unit_price_cents});
            let items: Vec<Value> = account.items.iter().map(item).collect();
            let body = json!({
                "command_id": command_id,
                "order_id": account.order_id,
                "player_id": account.player_id,
                "currency": account.currency,
                "items": items,
            });
            ("/orders".to_owned(), body)
        }
        Action::Pay { amount_cents } => {
            (about("payment"), json!({"command_id": command_id, "amount_cents": amount_cents}))
        }
        Action::Ship => {
            let tracking_code = format!("parcel-{}", account.order_id);
            (about("shipment"), json!({"command_id": command_id, "tracking_code": tracking_code}))
        }
        Action::Deliver => (about("delivery"), json!({"command_id": command_id})),
        Action::Cancel => (about("cancellation"), json!({"command_id": command_id, "reason": "customer_request"})),
        Action::Refund => (about("refund"), json!({"command_id": command_id})),
    }
}

/// Returns what an answer says, as far as it is expected at all.
fn outcome(answer: &Answer) -> Expected {
    match (answer.status, answer.body["version"].as_u64()) {
        (StatusCode::CONFLICT, _) => Expected::Refused,
        (status, Some(version)) if status.is_success() => Expected::Event(version),
        (_, _) => Expected::Nothing,
    }
}

fn summary(stories: &Stories, sending: Duration, total: Duration, withheld: u64, repeats: u64) -> String {
    let events: u64 = stories.accounts.iter().map(Account::version).sum();
    let a_second = |count: u64, time: Duration| count as f64 / time.as_secs_f64();
    let refused = stories.steps.iter().filter(|step| step.expected == Expected::Refused).count();
    format!(
        "{} commands sent in {:.1} s ({:.0}/s), {refused} of them refused as they should be, {repeats} requests repeated\n\
         {events} events appended ({:.0}/s), quiet {:.1} s later: {:.0} events/s from the first command to the last fold\
         {}",
        stories.steps.len(),
        sending.as_secs_f64(),
        a_second(stories.steps.len() as u64, sending),
        a_second(events, sending),
        (total - sending).as_secs_f64(),
        a_second(events, total),
        if withheld > 0 { format!("\n{withheld} wake-ups withheld and released late") } else { String::new() },
    )
}
