//! Tries what a replay meets seldom or never, so that the calls of these paths are made too: every route once, an order with so many
//! events that it gets a snapshot, an order with a gap, a message that no consumer can read, and a record that the relay can
//! never send. Compares nothing.

use std::time::SystemTime;

use axum::body::Bytes;
use dynoxide::actions::put_item::PutItemRequest;
use events::{EventId, Timestamp};
use queue::SendRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::caller::Caller;
use super::client::Client;
use super::{ReplayError, wait_until_quiet};
use crate::stack::Stack;
use crate::status::Screen;

/// Requests that meet every route: the same that SAM's own tools are tried with.
const REQUESTS: &str = include_str!("../../../../tests/sam/events/api.json");
/// What no consumer can read.
const FOREIGN: &str = "neither an event nor anything around one";

/// Payments of an order, one event each: it has a snapshot after 100.
const PAYMENTS: u64 = 100;

/// Who sends a request that names no player: orders and posts of the file are theirs.
const ANYBODY: &str = "player-00001";

/// A request of the file; what it is answered is somebody else's concern.
#[derive(Debug, Deserialize)]
struct Request {
    method: String,
    path: String,
    body: Option<Value>,
    status: u16,
}

impl Request {
    /// Whether it is sent by somebody who may not.
    fn is_forbidden(&self) -> bool {
        [401, 403].contains(&self.status)
    }

    /// Returns who may send it.
    fn caller(&self) -> Caller {
        let path = self.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let named = |name| self.body.as_ref().and_then(|body| body[name].as_str());
        match parts.as_slice() {
            ["games"] => Caller::GameServer,
            ["players", _, "restriction"] => Caller::Moderator,
            ["operations", ..] | ["orders", _, "shipment" | "delivery" | "refund"] => Caller::Operator,
            ["players", player, ..] | ["posts", _, "reactions", player] => Caller::Player((*player).to_owned()),
            _ => {
                let player = named("author_id").or_else(|| named("player_id")).unwrap_or(ANYBODY);
                Caller::Player(player.to_owned())
            }
        }
    }
}

/// Goes every rare path once and waits until the stack is quiet. What nobody can handle is then in the dead letter queues.
///
/// # Errors
///
/// When the API does not answer, or what is tried cannot be put where it belongs.
pub async fn rare_paths(stack: &Stack, screen: &Screen) -> Result<(), ReplayError> {
    screen.say("trying what happens seldom; an order with a gap is waited for");
    let client = Client::new(stack, 0.0, 0)?;
    send_requests(&client).await?;
    pay_in_parts(&client).await?;
    invoke_on_schedule(stack).await?;
    wait_until_quiet(stack).await?;
    for mapping in &stack.model().queue_mappings {
        send_foreign_message(stack, &mapping.queue)?;
    }
    for mapping in &stack.model().stream_mappings {
        write_unsendable_record(stack, &mapping.table)?;
        write_payment_of_nothing(stack, &mapping.table)?;
    }
    wait_until_quiet(stack).await
}

async fn send_requests(client: &Client) -> Result<(), ReplayError> {
    let requests: Vec<Request> = serde_json::from_str(REQUESTS).map_err(|error| wrong(&error))?;
    for request in requests.iter().filter(|request| !request.is_forbidden()) {
        let method = ["GET", "POST", "PUT", "DELETE"].into_iter().find(|method| *method == request.method);
        let method = method.ok_or_else(|| wrong(&format!("nobody sends {}", request.method)))?;
        client.of(&request.caller())?.answer(method, &request.path, request.body.as_ref()).await?;
    }
    Ok(())
}

fn send_foreign_message(stack: &Stack, queue: &str) -> Result<(), ReplayError> {
    let name = stack.broker().queue(queue).map_err(|error| wrong(&error))?;
    let is_fifo = queue.ends_with(".fifo");
    let id = || is_fifo.then(|| "foreign".to_owned());
    let message = SendRequest { group_id: id(), deduplication_id: id(), ..SendRequest::from_body(FOREIGN) };
    stack.broker().send(&name, message).map(|_| ()).map_err(|error| wrong(&error))
}

/// Invokes the functions that only the clock leads to, which may not have come to their turn.
async fn invoke_on_schedule(stack: &Stack) -> Result<(), ReplayError> {
    for schedule in &stack.model().schedules {
        let invoked = stack.functions().invoke(&schedule.function, Bytes::from_static(b"{}")).await;
        invoked.map_err(|error| wrong(&error))?;
    }
    Ok(())
}

/// Places an order and pays it in parts: its events are more than a snapshot is made for.
async fn pay_in_parts(client: &Client) -> Result<(), ReplayError> {
    let client = client.of_player(&ANYBODY)?;
    let items = json!([{ "sku": "set-of-pieces", "quantity": 1, "unit_price_cents": PAYMENTS }]);
    let order = json!({
        "order_id": "order-in-parts", "command_id": "place", "player_id": ANYBODY, "items": items,
    });
    client.answer("POST", "/orders", Some(&order)).await?;
    for number in 0..PAYMENTS {
        let payment = json!({ "command_id": format!("pay-{number}"), "amount_cents": 1 });
        client.answer("POST", "/orders/order-in-parts/payment", Some(&payment)).await?;
    }
    Ok(())
}

/// Writes the payment of an order that was never placed: its first event is missing.
fn write_payment_of_nothing(stack: &Stack, table: &str) -> Result<(), ReplayError> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_err(|error| wrong(&error))?;
    let now = Timestamp::from_millis(0) + since;
    let text = |value: &str| json!({ "S": value });
    let event = json!({ "M": {
        "event_id": text(&EventId::mint(now, [1; 10]).to_string()),
        "aggregate_type": text("order"),
        "aggregate_id": text("order-with-a-gap"),
        "version": { "N": "2" },
        "event_type": text("order_paid"),
        "schema_version": { "N": "1" },
        "occurred_at": text(&now.to_string()),
        "trace_id": text("00000000000000000000000000000001"),
        "payload": { "M": { "amount_cents": { "N": "1" } } },
    } });
    put(
        stack,
        table,
        &json!({
            "pk": text("ORDER#order-with-a-gap"),
            "sk": text("00000000000000000002"),
            "version": { "N": "1" },
            "command_id": text("pay"),
            "inserted_at": text(&now.to_string()),
            "event": event,
        }),
    )
}

fn write_unsendable_record(stack: &Stack, table: &str) -> Result<(), ReplayError> {
    let event = json!({ "M": { "event_id": { "S": "no id" } } });
    let name = json!({ "S": "UNSENDABLE" });
    put(stack, table, &json!({ "pk": name, "sk": name, "version": { "N": "1" }, "event": event }))
}

fn put(stack: &Stack, table: &str, item: &Value) -> Result<(), ReplayError> {
    let request: PutItemRequest =
        serde_json::from_value(json!({ "TableName": table, "Item": item })).map_err(|error| wrong(&error))?;
    stack.database().put_item(request).map(|_| ()).map_err(|error| wrong(&error))
}

fn wrong(reason: &dyn std::fmt::Display) -> ReplayError {
    ReplayError::RarePath { reason: reason.to_string() }
}
