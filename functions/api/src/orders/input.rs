//! Reads commands on orders.

use std::time::Duration;

use axum::http::HeaderMap;
use domain::orders::{OrderCommand, OrderRequest};
use events::{CommandId, Currency, OrderId, OrderItem, Timestamp};
use serde_json::{Map, Value};

use crate::access::Actor;
use crate::input::{self, Object};
use crate::problem::Problem;

/// How far ahead of this clock something may have occurred: the caller's clock may be fast.
const AHEAD_MAX: Duration = Duration::from_secs(5 * 60);
/// Lines of an order, at most.
const ITEMS_MAX: usize = 50;
/// Of one article, at most.
const QUANTITY_MAX: u64 = 10_000;
/// Price of one, at most, in hundredths.
const UNIT_PRICE_CENTS_MAX: u64 = 100_000_000;
/// A payment, at most, in hundredths: what the largest order costs.
const AMOUNT_CENTS_MAX: u64 = ITEMS_MAX as u64 * QUANTITY_MAX * UNIT_PRICE_CENTS_MAX;

/// What every command has besides its own fields.
const COMMON: [&str; 2] = ["command_id", "occurred_at"];

/// Reads `POST /orders`. The order is that of the player who asks for it.
pub(super) fn placement(
    body: &Value,
    headers: &HeaderMap,
    now: Timestamp,
    actor: &Actor,
) -> Result<OrderCommand, Problem> {
    let mut fields = Object::body(body, &known(&["order_id", "player_id", "currency", "items"]));
    let order_id = fields.id("order_id", headers, OrderId::derived);
    let named = fields.optional("player_id", input::text);
    let currency = fields.optional_or("currency", Currency::Eur, input::text);
    let items = items(&mut fields);
    let common = common(&mut fields, headers, now);
    let read = || Some((order_id?, currency?, items?, common?));
    let (order_id, currency, items, (command_id, occurred_at)) = fields.finish(read())?;
    let request = OrderRequest::Place { player_id: actor.player(named, "#/player_id")?, currency, items };
    Ok(OrderCommand { order_id, command_id, occurred_at, request })
}

/// Reads a command on an order that the path names. `own` names its fields, and `read` reads them.
pub(super) fn command<'a>(
    order_id: OrderId,
    body: &'a Value,
    headers: &HeaderMap,
    now: Timestamp,
    own: &[&str],
    read: impl FnOnce(&mut Object<'a>) -> Option<OrderRequest>,
) -> Result<OrderCommand, Problem> {
    let mut fields = Object::body(body, &known(own));
    let request = read(&mut fields);
    let common = common(&mut fields, headers, now);
    let command = || {
        let (command_id, occurred_at) = common?;
        Some(OrderCommand { order_id, command_id, occurred_at, request: request? })
    };
    fields.finish(command())
}

/// Reads the amount of a payment.
pub(super) fn amount_cents(value: &Value) -> Result<u64, String> {
    whole(value, AMOUNT_CENTS_MAX)
}

fn known<'a>(own: &[&'a str]) -> Vec<&'a str> {
    own.iter().copied().chain(COMMON).collect()
}

fn common(fields: &mut Object<'_>, headers: &HeaderMap, now: Timestamp) -> Option<(CommandId, Timestamp)> {
    let command_id = fields.id("command_id", headers, CommandId::derived);
    let occurred_at = fields.optional_or("occurred_at", now, |value| {
        let occurred_at: Timestamp = input::text(value)?;
        let ahead = occurred_at > now + AHEAD_MAX;
        if ahead { Err("is more than 5 minutes ahead".to_owned()) } else { Ok(occurred_at) }
    });
    Some((command_id?, occurred_at?))
}

fn items(fields: &mut Object<'_>) -> Option<Vec<OrderItem>> {
    let lines = fields.required("items", |value| match value.as_array() {
        Some(lines) if (1..=ITEMS_MAX).contains(&lines.len()) => Ok(lines),
        Some(_) | None => Err(format!("is not a list of 1 to {ITEMS_MAX} items")),
    })?;
    let items: Vec<Option<OrderItem>> =
        lines.iter().enumerate().map(|(index, line)| item(fields, &index.to_string(), line)).collect();
    items.into_iter().collect()
}

fn item(fields: &mut Object<'_>, index: &str, line: &Value) -> Option<OrderItem> {
    const KNOWN: [&str; 3] = ["sku", "quantity", "unit_price_cents"];
    let Some(line) = line.as_object() else {
        fields.note_field(&["items", index], "is not an object");
        return None;
    };
    for name in line.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
        fields.note_field(&["items", index, name], "is not a known field");
    }
    let sku = part(fields, index, line, "sku", input::text);
    let quantity = part(fields, index, line, "quantity", |value| small(value, QUANTITY_MAX));
    let unit_price_cents = part(fields, index, line, "unit_price_cents", |value| small(value, UNIT_PRICE_CENTS_MAX));
    Some(OrderItem { sku: sku?, quantity: quantity?, unit_price_cents: unit_price_cents? })
}

fn part<T>(
    fields: &mut Object<'_>,
    index: &str,
    line: &Map<String, Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Option<T> {
    let read = line.get(name).map_or_else(|| Err("is missing".to_owned()), read);
    read.map_err(|detail| fields.note_field(&["items", index, name], detail)).ok()
}

fn small(value: &Value, limit: u64) -> Result<u32, String> {
    whole(value, limit).and_then(|number| u32::try_from(number).map_err(|error| error.to_string()))
}

fn whole(value: &Value, limit: u64) -> Result<u64, String> {
    let number = value.as_u64().filter(|number| (1..=limit).contains(number));
    number.ok_or_else(|| format!("is not a whole number from 1 to {limit}"))
}
