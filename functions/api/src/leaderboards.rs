//! `/leaderboards`: a board page by page, and a player's place on it. A restricted player has none. Ranks come from the
//! histogram, which counts every player whom the board shows, so a page needs none of the pages before it. While games are
//! being counted, an answer is made of rows and counts of slightly different moments.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use domain::leaderboard::BoardRow;
use domain::players::Visibility;
use events::{PlayerId, Rating, TimeControl, Username};
use serde::Serialize;

use crate::Api;
use crate::board::{Board, Place};
use crate::cursor::Cursor;
use crate::input::{self, Parameters};
use crate::problem::{Kind, Problem};

/// Rows of a page, at most.
const LIMIT_MAX: usize = 100;
/// Rows of a page unless another number is asked for.
const LIMIT_DEFAULT: usize = 50;
/// Rows on either side of a player, at most.
const NEIGHBOURS_MAX: usize = 5;

/// A page of a board.
#[derive(Debug, Serialize)]
struct Page {
    time_control: TimeControl,
    /// How many players are on the board.
    players: u64,
    rows: Vec<RankedRow>,
    /// What asks for the next page; null on the last one.
    next_cursor: Option<String>,
}

/// A row with its rank: 1 + the number of players with a higher rating, so equal ratings share a rank ("1224").
#[derive(Debug, Serialize)]
struct RankedRow {
    rank: u64,
    player_id: PlayerId,
    username: Username,
    rating: Rating,
    games: u64,
}

/// A player's place on a board.
#[derive(Debug, Serialize)]
struct Standing {
    time_control: TimeControl,
    #[serde(flatten)]
    row: RankedRow,
    /// How many players are on the board.
    players: u64,
    /// Of 100 players on the board, how many have a lower rating; one decimal.
    percentile: f64,
    /// The rows right above, in the board's order.
    above: Vec<RankedRow>,
    /// The rows right below, in the board's order.
    below: Vec<RankedRow>,
}

/// `GET /leaderboards/{time_control}?limit=&cursor=`: highest ratings first, equal ratings by descending player id.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    Path(time_control): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let time_control: TimeControl = input::path_parameter("time_control", &time_control)?;
    let mut parameters = Parameters::of(&uri, &["limit", "cursor"])?;
    let limit = parameters.optional("limit", |text| input::limit(text, LIMIT_MAX)).unwrap_or(LIMIT_DEFAULT);
    let cursor = parameters.optional("cursor", |text| Cursor::decode(text, time_control));
    parameters.finish()?;

    let mut board = Board::load(&api.store, time_control).await?;
    let after = cursor.map(|cursor| Place { rating: cursor.rating, player_id: cursor.player_id });
    // One more than asked for tells whether there is a next page.
    let mut rows = board.below(after.as_ref(), limit + 1).await?;
    let is_last = rows.len() <= limit;
    rows.truncate(limit);
    board.load_blocks_of(&rows).await?;
    let last = rows.last().filter(|_| !is_last);
    let next_cursor = last.map(|row| Cursor::behind(time_control, row.rating, row.player_id.clone()).encode());
    let players = board.histogram().players();
    let rows = rows.into_iter().map(|row| ranked(&board, row)).collect();
    Ok(Json(Page { time_control, players, rows, next_cursor }).into_response())
}

/// `GET /leaderboards/{time_control}/players/{player_id}`.
pub(crate) async fn standing(
    State(api): State<Arc<Api>>,
    Path((time_control, player_id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let time_control: TimeControl = input::path_parameter("time_control", &time_control)?;
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    let key = BoardRow::key(time_control, &player_id);
    let (state, mut board) =
        tokio::try_join!(api.store.fetch(std::slice::from_ref(&key)), Board::load(&api.store, time_control))?;
    let row = state.row(&key)?.decode::<BoardRow>(&key)?;
    let row = row.filter(|row| row.visibility() == Visibility::Visible).ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("Player {player_id} is not on the {time_control} leaderboard."))
    })?;

    let place = Place { rating: row.rating, player_id };
    let (above, below) =
        tokio::try_join!(board.above(&place, NEIGHBOURS_MAX), board.below(Some(&place), NEIGHBOURS_MAX))?;
    board.load_blocks_of(above.iter().chain(&below).chain([&row])).await?;
    let above = above.into_iter().map(|row| ranked(&board, row)).collect();
    let below = below.into_iter().map(|row| ranked(&board, row)).collect();
    let players = board.histogram().players();
    let percentile = percentile(&board, row.rating);
    let row = ranked(&board, row);
    Ok(Json(Standing { time_control, row, players, percentile, above, below }).into_response())
}

fn ranked(board: &Board<'_>, row: BoardRow) -> RankedRow {
    let rank = board.histogram().rank(row.rating);
    let BoardRow { player_id, username, rating, games, .. } = row;
    RankedRow { rank, player_id, username, rating, games }
}

/// Returns how many of 100 players have a lower rating, to one decimal.
fn percentile(board: &Board<'_>, rating: Rating) -> f64 {
    let histogram = board.histogram();
    let not_lower = histogram.rank(rating) - 1 + histogram.players_at(rating);
    let players = histogram.players();
    let lower = players.saturating_sub(not_lower);
    // Counts of players are far below the 2^53 that a float holds exactly.
    (1_000.0 * lower as f64 / players.max(1) as f64).round() / 10.0
}
