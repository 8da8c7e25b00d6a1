//! What an order is, what it was, and which orders a player has placed.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Table;
use domain::orders::{EventRecord, Order, OrderLine, Snapshot, partition};
use domain::players::Player;
use events::{OrderEvent, OrderId, Payload, PlayerId, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::history::{History, incomplete, not_found, unreadable};
use crate::Api;
use crate::access::{Actor, Scope};
use crate::input::{self, Parameters};
use crate::players;
use crate::problem::{Problem, parameter};
use crate::store::{Direction, Range, Sort};

/// Rows of a page, unless it is asked for others.
const PAGE_ROWS: usize = 100;
/// Rows of a page, at most.
const PAGE_ROWS_MAX: usize = 500;
/// Characters of a cursor, at most; a genuine one is shorter.
const CURSOR_LENGTH_MAX: usize = 200;

/// An order, as the API shows it.
#[derive(Debug, Serialize)]
struct OrderShown {
    #[serde(flatten)]
    order: Order,
    due_cents: u64,
    /// The first version that is missing or cannot be read, where there are later ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete_from: Option<u64>,
}

/// `GET /orders/{order_id}`: the order as its events say, consistently. For the player whose order it is, and operators.
pub(crate) async fn show(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(order_id): Path<String>,
) -> Result<Response, Problem> {
    let order_id: OrderId = input::path_parameter("order_id", &order_id)?;
    let rows = api.store.fetch(&[Snapshot::key(&order_id)]).await?;
    let History { order, incomplete_from } = History::read(&api, &order_id, &rows).await?;
    match (order, incomplete_from) {
        (Some(order), _) => {
            may_read(&actor, &order.player_id)?;
            let due_cents = order.due_cents();
            Ok(Json(OrderShown { order, due_cents, incomplete_from }).into_response())
        }
        (None, Some(version)) => Err(incomplete(&order_id, version)),
        (None, None) => Err(not_found(&order_id)),
    }
}

/// A stored event, as it stands.
#[derive(Debug, Serialize)]
struct StoredEvent {
    version: u64,
    inserted_at: Option<Value>,
    command_id: Option<Value>,
    event: Option<Value>,
}

/// A page of an order's events.
#[derive(Debug, Serialize)]
struct Events {
    order_id: OrderId,
    events: Vec<StoredEvent>,
    /// What the next page is asked for with, if there is one.
    next_after: Option<u64>,
}

/// `GET /orders/{order_id}/events?after=&limit=`: the stored events as they stand, whatever their schema version. For those who
/// may read the order.
pub(crate) async fn events(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(order_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let order_id: OrderId = input::path_parameter("order_id", &order_id)?;
    let mut parameters = Parameters::of(&uri, &["after", "limit"])?;
    let after = parameters.optional("after", |text| text.parse().map_err(|_| "is not a version".to_owned()));
    let limit = parameters.optional("limit", limit).unwrap_or(PAGE_ROWS);
    parameters.finish()?;
    if !actor.has(Scope::Operate) {
        may_read(&actor, &owner(&api, &order_id).await?)?;
    }
    let behind = EventRecord::behind(&order_id, after.unwrap_or(0), limit);
    let page = Range {
        table: Table::Records,
        index: None,
        partition: partition(&order_id),
        sort: if behind.after.is_empty() { Sort::All } else { Sort::Above(behind.after) },
        direction: Direction::Ascending,
        limit: Some(limit + 1),
    };
    let mut stored = Vec::new();
    for item in api.store.query(&page).await? {
        let (key, row) = aws::items::row(Table::Records, item).map_err(|error| Problem::internal(&error))?;
        let mut attributes = row.attributes.unwrap_or_default();
        let mut take = |name| attributes.remove(name);
        let (inserted_at, command_id, event) = (take("inserted_at"), take("command_id"), take("event"));
        stored.push(StoredEvent { version: key.sort.parse().unwrap_or(0), inserted_at, command_id, event });
    }
    if stored.is_empty() && after.is_none() {
        return Err(not_found(&order_id));
    }
    let more = stored.len() > limit;
    stored.truncate(limit);
    let next_after = stored.last().filter(|_| more).map(|event| event.version);
    Ok(Json(Events { order_id, events: stored, next_after }).into_response())
}

/// Refuses whoever may not read a player's order.
fn may_read(actor: &Actor, owner_id: &PlayerId) -> Result<(), Problem> {
    if actor.has(Scope::Operate) { Ok(()) } else { actor.must_own(owner_id, parameter("order_id")) }
}

/// Returns the player whose order it is, as its first event says.
pub(super) async fn owner(api: &Api, order_id: &OrderId) -> Result<PlayerId, Problem> {
    let key = EventRecord::key(order_id, 1);
    let rows = api.store.fetch(std::slice::from_ref(&key)).await?;
    let row = rows.row(&key)?;
    if row.attributes.is_none() {
        return Err(not_found(order_id));
    }
    let record = EventRecord::read(&key, row);
    if let Err(error) = &record {
        unreadable(error)?;
    }
    match record.map(|record| record.event.payload) {
        Ok(Payload::Order(OrderEvent::Placed(placed))) => Ok(placed.player_id),
        Ok(_) | Err(_) => Err(incomplete(order_id, 1)),
    }
}

/// A page of a player's orders.
#[derive(Debug, Serialize)]
struct Orders {
    player_id: PlayerId,
    orders: Vec<OrderLine>,
    /// What the next page is asked for with, if there is one.
    next_cursor: Option<String>,
}

/// `GET /players/{player_id}/orders?limit=&cursor=`: the view, newest first. For the player, and operators.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(player_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    actor.must_be_or_have(&player_id, Scope::Operate, parameter("player_id"))?;
    let mut parameters = Parameters::of(&uri, &["limit", "cursor"])?;
    let limit = parameters.optional("limit", limit).unwrap_or(PAGE_ROWS);
    let before = parameters.optional("cursor", place);
    parameters.finish()?;
    let page = Range {
        table: Table::Views,
        index: None,
        partition: OrderLine::partition(&player_id),
        sort: before.map_or(Sort::All, Sort::Below),
        direction: Direction::Descending,
        limit: Some(limit + 1),
    };
    let player_key = Player::key(&player_id);
    let (rows, items) = tokio::try_join!(api.store.fetch(std::slice::from_ref(&player_key)), api.store.query(&page))?;
    if rows.row(&player_key)?.attributes.is_none() {
        return Err(players::not_found(&player_id));
    }
    let more = items.len() > limit;
    let mut orders = Vec::with_capacity(limit);
    let mut last = None;
    for item in items.into_iter().take(limit) {
        let (key, row) = aws::items::row(Table::Views, item).map_err(|error| Problem::internal(&error))?;
        orders.extend(row.decode::<OrderLine>(&key)?);
        last = Some(key.sort);
    }
    let next_cursor = last.filter(|_| more).map(|sort| URL_SAFE_NO_PAD.encode(sort));
    Ok(Json(Orders { player_id, orders, next_cursor }).into_response())
}

/// Reads how many rows a page is to have.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    input::limit(text, PAGE_ROWS_MAX)
}

/// Reads the place that a cursor names: the moment and the order of the last line before it.
fn place(text: &str) -> Result<String, String> {
    let genuine = || {
        let bytes = (text.len() <= CURSOR_LENGTH_MAX).then(|| URL_SAFE_NO_PAD.decode(text).ok())??;
        let sort = String::from_utf8(bytes).ok()?;
        let (placed_at, order_id) = sort.split_once('#')?;
        let known = placed_at.parse::<Timestamp>().is_ok() && order_id.parse::<OrderId>().is_ok();
        known.then_some(sort)
    };
    genuine().ok_or_else(|| "is not a cursor that a page of orders came with".to_owned())
}
