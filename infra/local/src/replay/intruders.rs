//! Requests of those who may not: without a token, with a bad one, for another player, without the scope. Each has to be refused, and
//! none may leave a trace in a table.

use std::time::Duration;

use events::PlayerId;
use serde_json::{Value, json};

use super::caller::Caller;
use super::client::{Client, ClientError};
use super::comparison::{ComparisonError, scan};
use super::differences::Differences;
use crate::issuer::{Grant, Issuer, SigningKey, authorizer};
use crate::stack::Stack;

/// Somebody who may not do what the request asks for.
struct Intruder {
    what: &'static str,
    client: Client,
    status: u16,
    method: &'static str,
    path: String,
    body: Value,
}

/// Sends all of these requests to a quiet stack, notes those that are not refused and what has changed, and returns how many there
/// are.
///
/// # Errors
///
/// When the API does not answer or a table cannot be read.
pub(super) async fn intrude(
    stack: &Stack,
    client: &Client,
    players: &[PlayerId],
    differences: &mut Differences,
) -> Result<usize, ComparisonError> {
    let before = tables(stack)?;
    let intruders = intruders(stack, client, players)?;
    for Intruder { what, client, status, method, path, body } in &intruders {
        let answer = client.answer(method, path, Some(body)).await?;
        differences.check(|| format!("{what}: {method} {path}"), status, &answer.status.as_u16());
    }
    if tables(stack)? != before {
        differences.note("requests that were refused have changed a table".to_owned());
    }
    Ok(intruders.len())
}

fn tables(stack: &Stack) -> Result<Vec<Vec<Value>>, ComparisonError> {
    stack.model().tables.iter().map(|table| scan(stack.database(), &table.name)).collect()
}

fn intruders(stack: &Stack, client: &Client, players: &[PlayerId]) -> Result<Vec<Intruder>, ClientError> {
    let ([one, other, ..], Some(authorizer)) = (players, authorizer(stack.model())) else { return Ok(Vec::new()) };
    let scopes = ["games:write", "moderate", "operate"].map(str::to_owned);
    let token = |key: Option<SigningKey>, lifetime| {
        let issuer = key.map(|key| Issuer::new(key, authorizer.clone()));
        let issuer = issuer.as_ref().or(stack.issuer());
        let grant = Grant { subject: one.as_str(), scopes: &scopes, lifetime };
        issuer.map(|issuer| issuer.token(&grant)).transpose()
    };
    let minute = Duration::from_secs(60);
    let genuine = token(None, minute)?.unwrap_or_default();
    let senders = [
        ("without a token", client.clone(), 401),
        ("with no token", client.with_token("token".to_owned()), 401),
        ("with an expired token", client.with_token(token(None, Duration::ZERO)?.unwrap_or_default()), 401),
        (
            "with a key of its own",
            client.with_token(token(Some(SigningKey::generate()?), minute)?.unwrap_or_default()),
            401,
        ),
        ("with a token cut short", client.with_token(genuine[..genuine.len() - 4].to_owned()), 401),
        ("with another player's token", client.of_player(other)?, 403),
        ("with another scope", client.of(&Caller::Operator)?, 403),
    ];
    let requests = [
        ("PUT", format!("/players/{one}/username"), json!({"username": "Intruder"})),
        ("PUT", format!("/players/{one}/restriction"), json!({"reason": "intrusion"})),
        ("PUT", "/posts/intrusion".to_owned(), json!({"author_id": one, "text": "Intruded."})),
        ("PUT", format!("/players/{one}/follows/{other}"), json!({})),
        ("POST", "/games".to_owned(), game(one, other)),
        ("POST", "/orders".to_owned(), order(one)),
    ];
    let intruders = senders.into_iter().flat_map(|(what, client, status)| {
        requests.clone().map(|(method, path, body)| Intruder {
            what,
            client: client.clone(),
            status,
            method,
            path,
            body,
        })
    });
    Ok(intruders.collect())
}

fn game(one: &PlayerId, other: &PlayerId) -> Value {
    json!({
        "game_id": "intrusion", "time_control": "blitz", "ended_at": "2026-01-01T00:00:00Z", "result": "1-0",
        "white": {"player_id": one, "rating": 3000}, "black": {"player_id": other, "rating": 100},
    })
}

fn order(player_id: &PlayerId) -> Value {
    let item = json!({"sku": "board", "quantity": 1, "unit_price_cents": 1});
    json!({"order_id": "intrusion", "command_id": "intrusion", "player_id": player_id, "items": [item]})
}
