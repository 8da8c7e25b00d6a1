//! Events and rows for tests, valid throughout and named by small numbers.

use domain::players::Player;
use domain::{Attributes, Key};
use events::{
    Event, EventId, GameEnded, GameId, GameResult, Payload, PlayerId, PlayerResult, PostId, Rating, TimeControl,
    Timestamp, TraceId, Username,
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

#[allow(clippy::panic)]
fn valid<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("a sample is invalid: {error}"),
    }
}
