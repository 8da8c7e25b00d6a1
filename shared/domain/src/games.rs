//! Ending a game: the one command of the request path that writes more than one record.

use events::{
    Event, EventId, GameEnded, GameId, GameResult, Payload, PlayerId, PlayerResult, Rating, TimeControl, Timestamp,
    TraceId,
};
use serde::{Deserialize, Serialize};

use crate::players::{Player, PlayerRating};
use crate::{Key, RowError, State};

/// What the game server says of a game that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndGame {
    /// Which game.
    pub game_id: GameId,
    /// At which pace it was played.
    pub time_control: TimeControl,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub result: GameResult,
    /// The player of the white side, with the new rating.
    pub white: (PlayerId, Rating),
    /// The player of the black side, with the new rating.
    pub black: (PlayerId, Rating),
}

/// A game's record, without the event that its write publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Game {
    /// Which game.
    pub game_id: GameId,
    /// At which pace it was played.
    pub time_control: TimeControl,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub result: GameResult,
    /// The player of the white side after the game.
    pub white: GamePlayer,
    /// The player of the black side after the game.
    pub black: GamePlayer,
}

/// One side of a game's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GamePlayer {
    /// Who played.
    pub player_id: PlayerId,
    /// The rating after the game.
    pub rating: Rating,
    /// How many rated games of the time control the player had ended then.
    pub games: u64,
}

impl Game {
    /// Returns the key of a game's record.
    pub fn key(game_id: &GameId) -> Key {
        Key::record(format!("GAME#{game_id}"), "GAME")
    }
}

/// What ending a game comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GameDecision {
    /// The game is new: these records are to be written, all or none.
    Write {
        /// The game's record; to be written only where there is none.
        game: Box<Game>,
        /// The event that the write publishes.
        event: Box<Event>,
        /// The new rating records, white first, each with the version that it replaces (0: none).
        ratings: [(PlayerRating, u64); 2],
    },
    /// The same command was carried out before.
    Done(Box<Game>),
    /// Another game has this id.
    Conflict,
    /// A player is not registered.
    UnknownPlayer(PlayerId),
}

/// Returns the records that [`decide`] reads.
pub fn needs(command: &EndGame) -> Vec<Key> {
    let mut keys = vec![Game::key(&command.game_id)];
    for (player_id, _) in [&command.white, &command.black] {
        keys.push(Player::key(player_id));
        keys.push(PlayerRating::key(player_id, command.time_control));
    }
    keys
}

/// Decides on the end of a game. The event gets `event_id` if the game is new.
///
/// # Errors
/// A record cannot be read.
pub fn decide(
    command: &EndGame,
    state: &State,
    event_id: EventId,
    trace_id: TraceId,
) -> Result<GameDecision, RowError> {
    let game_key = Game::key(&command.game_id);
    if let Some(game) = state.row(&game_key)?.decode::<Game>(&game_key)? {
        let same = says_the_same(command, &game);
        return Ok(if same { GameDecision::Done(Box::new(game)) } else { GameDecision::Conflict });
    }
    let Some((white, white_version)) = side(command, &command.white, state)? else {
        return Ok(GameDecision::UnknownPlayer(command.white.0.clone()));
    };
    let Some((black, black_version)) = side(command, &command.black, state)? else {
        return Ok(GameDecision::UnknownPlayer(command.black.0.clone()));
    };
    let game = Game {
        game_id: command.game_id.clone(),
        time_control: command.time_control,
        ended_at: command.ended_at,
        result: command.result,
        white: game_player(&white),
        black: game_player(&black),
    };
    let ratings = [
        (player_rating(&white, command.time_control), white_version),
        (player_rating(&black, command.time_control), black_version),
    ];
    let event = Event {
        event_id,
        aggregate_id: command.game_id.to_string(),
        version: 1,
        occurred_at: command.ended_at,
        trace_id,
        payload: Payload::GameEnded(GameEnded {
            time_control: command.time_control,
            result: command.result,
            white,
            black,
        }),
    };
    Ok(GameDecision::Write { game: Box::new(game), event: Box::new(event), ratings })
}

/// Returns a player after the game, with the version of the rating record that it replaces; `None` for an unknown player.
fn side(
    command: &EndGame,
    (player_id, rating): &(PlayerId, Rating),
    state: &State,
) -> Result<Option<(PlayerResult, u64)>, RowError> {
    let key = Player::key(player_id);
    let Some(player) = state.row(&key)?.decode::<Player>(&key)? else { return Ok(None) };
    let rating_key = PlayerRating::key(player_id, command.time_control);
    let row = state.row(&rating_key)?;
    let games = row.decode::<PlayerRating>(&rating_key)?.map_or(0, |before| before.games) + 1;
    let result = PlayerResult { player_id: player_id.clone(), username: player.username, rating: *rating, games };
    Ok(Some((result, row.version)))
}

fn says_the_same(command: &EndGame, game: &Game) -> bool {
    let side = |player: &GamePlayer| (player.player_id.clone(), player.rating);
    command.time_control == game.time_control
        && command.ended_at == game.ended_at
        && command.result == game.result
        && command.white == side(&game.white)
        && command.black == side(&game.black)
}

fn game_player(side: &PlayerResult) -> GamePlayer {
    GamePlayer { player_id: side.player_id.clone(), rating: side.rating, games: side.games }
}

fn player_rating(side: &PlayerResult, time_control: TimeControl) -> PlayerRating {
    PlayerRating { player_id: side.player_id.clone(), time_control, rating: side.rating, games: side.games }
}
