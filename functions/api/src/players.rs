//! `/players`: registration, and a player with the ratings.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::players::{Player, PlayerRating};
use domain::{Key, Table};
use events::{PlayerId, Rating, TimeControl};
use serde::Serialize;
use serde_json::Value;

use crate::Api;
use crate::input::{self, Object};
use crate::problem::{Kind, Problem};
use crate::store::{Creation, Direction, Range, Sort};

/// A player with the ratings, as the API shows them.
#[derive(Debug, Serialize)]
struct PlayerView {
    #[serde(flatten)]
    player: Player,
    ratings: BTreeMap<TimeControl, RatingView>,
}

/// A rating, as the API shows it.
#[derive(Debug, Serialize)]
struct RatingView {
    rating: Rating,
    games: u64,
}

/// `POST /players`: 201 for a new player, 200 for the same one again, 409 for another one under the same id.
pub(crate) async fn register(State(api): State<Arc<Api>>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let body = input::json(&headers, body).await?;
    let player = command(&body, &headers)?;
    let key = Player::key(&player.player_id);
    match api.store.create(&key, api.attributes(&player)?).await? {
        Creation::Created => {
            let location = [(LOCATION, format!("/players/{}", player.player_id))];
            Ok((StatusCode::CREATED, location, Json(player)).into_response())
        }
        Creation::Exists(row) if row.decode::<Player>(&key)?.as_ref() == Some(&player) => {
            Ok(Json(player).into_response())
        }
        Creation::Exists(_) => {
            let detail = format!("Another player is registered as {}.", player.player_id);
            Err(Problem::new(Kind::Conflict, detail))
        }
    }
}

/// `GET /players/{player_id}`.
pub(crate) async fn show(State(api): State<Arc<Api>>, Path(player_id): Path<String>) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    let player_key = Player::key(&player_id);
    let all = Range {
        table: Table::Records,
        index: None,
        partition: player_key.partition.clone(),
        sort: Sort::All,
        direction: Direction::Ascending,
        limit: None,
    };
    let state = rows(&api.store.query(&all).await?)?;
    let row = |key: &Key| state.iter().find(|(other, _)| other == key).map(|(_, row)| row);
    let player = row(&player_key).map(|row| row.decode::<Player>(&player_key)).transpose()?.flatten();
    let player = player.ok_or_else(|| not_found(&player_id))?;
    let mut ratings = BTreeMap::new();
    for time_control in TimeControl::ALL {
        let key = PlayerRating::key(&player_id, time_control);
        let rating = row(&key).map(|row| row.decode::<PlayerRating>(&key)).transpose()?.flatten();
        ratings.extend(rating.map(|PlayerRating { rating, games, .. }| (time_control, RatingView { rating, games })));
    }
    Ok(Json(PlayerView { player, ratings }).into_response())
}

/// The problem of a player who is not registered.
pub(crate) fn not_found(player_id: &PlayerId) -> Problem {
    Problem::new(Kind::NotFound, format!("There is no player {player_id}."))
}

fn rows(items: &[aws::items::Item]) -> Result<Vec<(Key, domain::Row)>, Problem> {
    let rows = items.iter().map(|item| aws::items::row(Table::Records, item.clone()));
    rows.collect::<Result<_, _>>().map_err(|error| Problem::internal(&error))
}

fn command(body: &Value, headers: &HeaderMap) -> Result<Player, Problem> {
    let mut fields = Object::body(body, &["player_id", "username"]);
    let player_id = fields.id("player_id", headers, PlayerId::derived);
    let username = fields.required("username", input::text);
    let player = || Some(Player { player_id: player_id?, username: username? });
    fields.finish(player())
}
