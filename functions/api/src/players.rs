//! `/players`: registration, names and restrictions, and a player with the ratings.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::graph::{FOLLOWER_SPREAD, FOLLOWERS, FOLLOWING, followers_key, following_key};
use domain::players::{self, Player, PlayerRating, Restriction};
use domain::posts::{POSTS, count_key};
use domain::{Change, Key, Table};
use events::{PlayerId, Rating, RestrictionReason, TimeControl, Timestamp, TraceId, Username};
use serde::Serialize;
use serde_json::Value;

use crate::Api;
use crate::access::{Actor, Scope};
use crate::change::{Changed, Target, change};
use crate::input::{self, Object};
use crate::problem::{Kind, Problem, parameter};
use crate::store::{Direction, Range, Sort};

/// A player, as the API shows one.
#[derive(Debug, Serialize)]
struct Shown {
    player_id: PlayerId,
    username: Username,
    #[serde(skip_serializing_if = "Option::is_none")]
    restriction: Option<Restriction>,
}

/// A player with the ratings, as the API shows them.
#[derive(Debug, Serialize)]
struct PlayerView {
    #[serde(flatten)]
    player: Shown,
    posts: u64,
    followers: u64,
    following: u64,
    ratings: BTreeMap<TimeControl, RatingView>,
}

/// A rating, as the API shows it.
#[derive(Debug, Serialize)]
struct RatingView {
    rating: Rating,
    games: u64,
}

/// `POST /players`: 201 for a new player, 200 for the same one again, 409 for another one under the same id.
pub(crate) async fn register(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = input::json(&headers, body).await?;
    let (player_id, username) = registration(&body, &actor)?;
    let target = target(&player_id, trace_id);
    let changed = change(&api, &target, |player, _, _| {
        players::register(player, player_id.clone(), username.clone())
            .ok_or_else(|| Problem::new(Kind::Conflict, format!("Another player is registered as {player_id}.")))
    });
    let response = answer(changed.await?);
    Ok(match response.status() {
        StatusCode::CREATED => ([(LOCATION, format!("/players/{player_id}"))], response).into_response(),
        _ => response,
    })
}

/// `PUT /players/{player_id}/username` `{username}`.
pub(crate) async fn rename(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(player_id): Path<String>,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    actor.must_be(&player_id, parameter("player_id"))?;
    let body = input::json(&headers, body).await?;
    let mut fields = Object::body(&body, &["username"]);
    let username: Option<Username> = fields.required("username", input::text);
    let username = fields.finish(username)?;
    let rename = |player, _| players::rename(player, username.clone());
    change_player(&api, &player_id, trace_id, rename).await
}

/// `PUT /players/{player_id}/restriction` `{reason}`: for moderators. Hides the player, whatever the player goes on to do.
pub(crate) async fn restrict(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(player_id): Path<String>,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    actor.must_have(Scope::Moderate)?;
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    let body = input::json(&headers, body).await?;
    let mut fields = Object::body(&body, &["reason"]);
    let reason: Option<RestrictionReason> = fields.required("reason", input::text);
    let reason = fields.finish(reason)?;
    let restrict = |player, now| players::restrict(player, reason.clone(), now);
    change_player(&api, &player_id, trace_id, restrict).await
}

/// `DELETE /players/{player_id}/restriction`: for moderators. Everything is as if it had never been.
pub(crate) async fn reinstate(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(player_id): Path<String>,
    Extension(trace_id): Extension<TraceId>,
) -> Result<Response, Problem> {
    actor.must_have(Scope::Moderate)?;
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    change_player(&api, &player_id, trace_id, |player, _| players::reinstate(player)).await
}

async fn change_player(
    api: &Api,
    player_id: &PlayerId,
    trace_id: TraceId,
    decide: impl Fn(Player, Timestamp) -> Change<Player>,
) -> Result<Response, Problem> {
    let target = target(player_id, trace_id);
    let changed = change(api, &target, |player: Option<Player>, _, now| {
        player.map(|player| decide(player, now)).ok_or_else(|| not_found(player_id))
    });
    Ok(answer(changed.await?))
}

fn target(player_id: &PlayerId, trace_id: TraceId) -> Target {
    Target { key: Player::key(player_id), aggregate_id: player_id.to_string(), others: Vec::new(), trace_id }
}

fn answer(changed: Changed<Player>) -> Response {
    let shown = shown(changed.record.clone());
    changed.answer(shown)
}

fn shown(player: Player) -> Shown {
    Shown { player_id: player.player_id, username: player.username, restriction: player.restriction }
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
    let mut counters = FOLLOWER_SPREAD.keys(&followers_key(&player_id));
    counters.extend([following_key(&player_id), count_key(&player_id)]);
    let (items, counts) = tokio::try_join!(api.store.query(&all), api.store.counts(&counters))?;
    let state = rows(&items)?;
    let row = |key: &Key| state.iter().find(|(other, _)| other == key).map(|(_, row)| row);
    let player = row(&player_key).map(|row| row.decode::<Player>(&player_key)).transpose()?.flatten();
    let player = player.ok_or_else(|| not_found(&player_id))?;
    let mut ratings = BTreeMap::new();
    for time_control in TimeControl::ALL {
        let key = PlayerRating::key(&player_id, time_control);
        let rating = row(&key).map(|row| row.decode::<PlayerRating>(&key)).transpose()?.flatten();
        ratings.extend(rating.map(|PlayerRating { rating, games, .. }| (time_control, RatingView { rating, games })));
    }
    let count = |name| counts.get(name).copied().unwrap_or(0);
    let (posts, followers, following) = (count(POSTS), count(FOLLOWERS), count(FOLLOWING));
    Ok(Json(PlayerView { player: shown(player), posts, followers, following, ratings }).into_response())
}

/// The problem of a player who is not registered.
pub(crate) fn not_found(player_id: &PlayerId) -> Problem {
    Problem::new(Kind::NotFound, format!("There is no player {player_id}."))
}

fn rows(items: &[aws::items::Item]) -> Result<Vec<(Key, domain::Row)>, Problem> {
    let rows = items.iter().map(|item| aws::items::row(Table::Records, item.clone()));
    rows.collect::<Result<_, _>>().map_err(|error| Problem::internal(&error))
}

fn registration(body: &Value, actor: &Actor) -> Result<(PlayerId, Username), Problem> {
    let mut fields = Object::body(body, &["player_id", "username"]);
    let named = fields.optional("player_id", input::text);
    let username = fields.required("username", input::text);
    let username = fields.finish(username)?;
    Ok((actor.player(named, "#/player_id")?, username))
}
