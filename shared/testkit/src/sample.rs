//! Events and rows for tests, valid throughout and named by small numbers.

use std::time::Duration;

use domain::orders::EventRecord;
use domain::players::Player;
use domain::{Attributes, Key};
use events::{
    Currency, Event, EventId, GameEnded, GameId, GameResult, OrderEvent, OrderId, OrderItem, OrderPaid, OrderPlaced,
    Payload, PlayerId, PlayerResult, PostId, Rating, TimeControl, Timestamp, TraceId, TrackingCode, Username,
};
use serde_json::json;

/// 2026-11-30T18:00:00Z, the present of all tests that do not say otherwise.
pub fn now() -> Timestamp {
    Timestamp::from_millis(1_796_061_600_000)
}

/// Returns the event id with this number, minted at a moment.
pub fn event_id(number: u32, minted_at: Timestamp) -> EventId {
    let mut random = [0; 10];
    random[6..].copy_from_slice(&number.to_be_bytes());
    EventId::mint(minted_at, random)
}

/// Returns the player id with this number.
///
/// # Panics
/// Never: such ids are valid.
pub fn player_id(number: u32) -> PlayerId {
    valid(format!("player-{number:05}").parse())
}

/// Returns the game id with this number.
///
/// # Panics
/// Never: such ids are valid.
pub fn game_id(number: u32) -> GameId {
    valid(format!("game-{number:05}").parse())
}

/// Returns the post id with this number.
///
/// # Panics
/// Never: such ids are valid.
pub fn post_id(number: u32) -> PostId {
    valid(format!("post-{number:05}").parse())
}

/// Returns the name of the player with this number.
///
/// # Panics
/// Never: such names are valid.
pub fn username(number: u32) -> Username {
    valid(format!("Player {number}").parse())
}

/// Returns the key and the attributes of a player's record.
pub fn player_record(number: u32) -> (Key, Attributes) {
    let player = json!({"player_id": player_id(number), "username": username(number)});
    (Player::key(&player_id(number)), valid(serde_json::from_value(player)))
}

/// Returns an event with this number, which also numbers its trace.
pub fn event(number: u32, aggregate_id: &str, version: u64, payload: Payload) -> Event {
    Event {
        event_id: event_id(number, now()),
        aggregate_id: aggregate_id.to_owned(),
        version,
        occurred_at: now(),
        trace_id: TraceId::mint(u128::from(number) + 1),
        payload,
    }
}

/// One side of a sample game: player number, rating after the game, number among the player's games.
pub type Side = (u32, u16, u64);

/// Returns the end of a blitz game that white won.
pub fn game_ended(number: u32, white: Side, black: Side) -> Event {
    let side = |(player, rating, games): Side| PlayerResult {
        player_id: player_id(player),
        username: username(player),
        rating: valid(Rating::try_from(i64::from(rating))),
        games,
    };
    let payload = Payload::GameEnded(GameEnded {
        time_control: TimeControl::Blitz,
        result: GameResult::WhiteWins,
        white: side(white),
        black: side(black),
    });
    event(number, game_id(number).as_str(), 1, payload)
}

/// Returns the order id with this number.
///
/// # Panics
/// Never: such ids are valid.
pub fn order_id(number: u32) -> OrderId {
    valid(format!("order-{number:05}").parse())
}

/// Returns an event of the order with this number, a second after the one before it.
pub fn order_event(number: u32, version: u64, event: OrderEvent) -> Event {
    let minted_at = now() + Duration::from_secs(version);
    Event {
        event_id: event_id(number * 100_000 + version as u32, minted_at),
        aggregate_id: order_id(number).to_string(),
        version,
        occurred_at: minted_at,
        trace_id: TraceId::mint(u128::from(number) << 32 | u128::from(version)),
        payload: Payload::Order(event),
    }
}

/// Returns what is in an order of one article at this price.
///
/// # Panics
/// Never: such an article is valid.
pub fn order_items(unit_price_cents: u32) -> Vec<OrderItem> {
    vec![OrderItem { sku: valid("set-of-pieces".parse()), quantity: 1, unit_price_cents }]
}

/// Returns the code of a parcel.
///
/// # Panics
/// Never: such a code is valid.
pub fn tracking_code() -> TrackingCode {
    valid("PARCEL-1".parse())
}

/// Returns the payload of an order of player 1: one article at this price.
pub fn order_placed(total_cents: u32) -> OrderEvent {
    let items = order_items(total_cents);
    OrderEvent::Placed(OrderPlaced { player_id: player_id(1), currency: Currency::Eur, items })
}

/// Returns a history of this many events of the order with this number: placed, and paid cent by cent to the last.
pub fn order_history(number: u32, events: u32) -> Vec<Event> {
    let paid = (1..events).map(|_| OrderEvent::Paid(OrderPaid { amount_cents: 1 }));
    let payloads = std::iter::once(order_placed(events.saturating_sub(1).max(1))).chain(paid);
    payloads.zip(1..).map(|(payload, version)| order_event(number, version, payload)).collect()
}

/// Returns the item of a stored event.
///
/// # Panics
/// Never: such events serialise.
pub fn event_record(event: &Event) -> (Key, Attributes) {
    let order_id: OrderId = valid(event.aggregate_id.parse());
    let key = EventRecord::key(&order_id, event.version);
    let command_id = valid(format!("command-{}", event.version).parse());
    let record = EventRecord { event: event.clone(), inserted_at: event.occurred_at, command_id };
    let attributes = valid(record.attributes(&key));
    (key, attributes)
}

#[allow(clippy::panic)]
fn valid<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("a sample is invalid: {error}"),
    }
}
