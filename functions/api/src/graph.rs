//! Lists of players around a player: followers, those followed, those who follow back, and whom the player may know. Names are
//! those of now; restricted players are not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws::items::{self, Item};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use domain::graph::{Direction, FollowRow};
use domain::players::Player;
use domain::{Key, Table};
use events::{PlayerId, Timestamp, Username};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;

use crate::Api;
use crate::access::Actor;
use crate::input::{self, Parameters};
use crate::list_cursor::{List, ListCursor};
use crate::people;
use crate::players::not_found;
use crate::problem::{Problem, parameter};
use crate::store::{self, Range, Sort, Store};

/// Players of a page, at most.
const LIMIT_MAX: usize = 100;
/// Players of a page unless another number is asked for.
const LIMIT_DEFAULT: usize = 50;
/// Queries for one page, at most: one that meets only ended follows and hidden players ends short of its limit.
const QUERIES_MAX: usize = 10;
/// How many of those whom a player follows are asked whom they follow.
const FRIENDS_MAX: usize = 50;
/// How many players whom one of them follows are looked at.
const FRIENDS_OF_FRIEND_MAX: usize = 100;
/// Queries under way at the same time, at most.
const QUERIES_AT_ONCE: usize = 8;
/// Players who are weighed against what the player knows already, at most.
const CANDIDATES_MAX: usize = 100;
/// Players who are suggested, at most.
const SUGGESTIONS_MAX: usize = 20;

/// A page of a list.
#[derive(Debug, Serialize)]
struct Page {
    players: Vec<Listed>,
    /// What asks for the next page; null on the last one.
    next_cursor: Option<String>,
}

/// A player of a list.
#[derive(Debug, Clone, Serialize)]
struct Listed {
    player_id: PlayerId,
    username: Username,
    /// Since when the one follows the other.
    since: Timestamp,
}

/// Players whom a player may know.
#[derive(Debug, Serialize)]
struct Suggestions {
    players: Vec<Suggested>,
}

/// A player whom a player may know.
#[derive(Debug, Serialize)]
struct Suggested {
    player_id: PlayerId,
    username: Username,
    /// How many of those whom the player follows follow this one.
    shared: usize,
}

/// `GET /players/{player_id}/followers?limit=&cursor=`.
pub(crate) async fn followers(
    State(api): State<Arc<Api>>,
    Path(player_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    page(&api, &player_id, &uri, List::Followers).await
}

/// `GET /players/{player_id}/following?limit=&cursor=`.
pub(crate) async fn following(
    State(api): State<Arc<Api>>,
    Path(player_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    page(&api, &player_id, &uri, List::Following).await
}

/// `GET /players/{player_id}/mutual?limit=&cursor=`: those whom the player follows and who follow the player.
pub(crate) async fn mutual(
    State(api): State<Arc<Api>>,
    Path(player_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    page(&api, &player_id, &uri, List::Mutual).await
}

/// `GET /players/{player_id}/suggestions`: those whom the most of the players follow whom this one follows. Bounded: 50 of
/// these, 100 of those of each.
pub(crate) async fn suggestions(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(player_id): Path<String>,
) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    actor.must_be(&player_id, parameter("player_id"))?;
    let store = &api.store;
    known(store, &player_id).await?;
    let followed = follows(store, &player_id, FRIENDS_MAX).await?;
    let friends = people::visible(store, &followed).await?;
    let lists = stream::iter(
        friends.into_keys().map(|friend| async move { follows(store, &friend, FRIENDS_OF_FRIEND_MAX).await }),
    );
    let lists: Vec<Vec<PlayerId>> = lists.buffer_unordered(QUERIES_AT_ONCE).try_collect().await?;
    let mut shared: BTreeMap<PlayerId, usize> = BTreeMap::new();
    for candidate in lists.into_iter().flatten().filter(|candidate| *candidate != player_id) {
        *shared.entry(candidate).or_default() += 1;
    }
    let mut ranked: Vec<(PlayerId, usize)> = shared.into_iter().collect();
    ranked.sort_by(|(one_id, one), (other_id, other)| other.cmp(one).then_with(|| one_id.cmp(other_id)));
    ranked.truncate(CANDIDATES_MAX);
    let candidates: Vec<PlayerId> = ranked.iter().map(|(candidate, _)| candidate.clone()).collect();
    let (known, mut names) = tokio::try_join!(
        among(store, Direction::Following, &player_id, &candidates),
        people::visible(store, &candidates)
    )?;
    let suggested =
        ranked.into_iter().filter(|(candidate, _)| !known.contains(candidate)).filter_map(|(player_id, shared)| {
            let username = names.remove(&player_id)?;
            Some(Suggested { player_id, username, shared })
        });
    Ok(Json(Suggestions { players: suggested.take(SUGGESTIONS_MAX).collect() }).into_response())
}

async fn page(api: &Api, player_id: &str, uri: &Uri, list: List) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", player_id)?;
    let mut parameters = Parameters::of(uri, &["limit", "cursor"])?;
    let limit = parameters.optional("limit", |text| input::limit(text, LIMIT_MAX)).unwrap_or(LIMIT_DEFAULT);
    let cursor = parameters.optional("cursor", |text| ListCursor::decode(text, list, &player_id));
    parameters.finish()?;
    known(&api.store, &player_id).await?;
    let mut last = cursor.map(|cursor| cursor.last);
    let mut players = Vec::new();
    for _ in 0..QUERIES_MAX {
        // One more than asked for tells whether there is a next page.
        let rows = rows(&api.store, list.direction(), &player_id, last.as_ref(), limit + 1).await?;
        let is_end = rows.len() <= limit;
        let shown = shown(&api.store, list, &player_id, &rows).await?;
        for (other, _) in &rows {
            if players.len() == limit {
                return Ok(answer(list, &player_id, players, last));
            }
            if let Some(listed) = shown.get(other) {
                players.push(listed.clone());
            }
            last = Some(other.clone());
        }
        if is_end {
            return Ok(answer(list, &player_id, players, None));
        }
    }
    Ok(answer(list, &player_id, players, last))
}

fn answer(list: List, player_id: &PlayerId, players: Vec<Listed>, last: Option<PlayerId>) -> Response {
    let next_cursor = last.map(|last| ListCursor::behind(list, player_id.clone(), last).encode());
    Json(Page { players, next_cursor }).into_response()
}

/// Returns those of the rows that the list shows.
async fn shown(
    store: &Store,
    list: List,
    player_id: &PlayerId,
    rows: &[(PlayerId, FollowRow)],
) -> Result<BTreeMap<PlayerId, Listed>, Problem> {
    let since: BTreeMap<PlayerId, Timestamp> =
        rows.iter().filter_map(|(other, row)| Some((other.clone(), row.since?))).collect();
    let others: Vec<PlayerId> = since.keys().cloned().collect();
    let names = people::visible(store, &others);
    let (mut names, back) = match list {
        List::Followers | List::Following => (names.await?, None),
        List::Mutual => {
            let (names, back) = tokio::try_join!(names, among(store, Direction::Followers, player_id, &others))?;
            (names, Some(back))
        }
    };
    let in_list = |other: &PlayerId| back.as_ref().is_none_or(|back| back.contains(other));
    let listed = since.into_iter().filter(|(other, _)| in_list(other)).filter_map(|(player_id, since)| {
        let username = names.remove(&player_id)?;
        Some((player_id.clone(), Listed { player_id, username, since }))
    });
    Ok(listed.collect())
}

/// Returns the rows of one direction behind a player.
async fn rows(
    store: &Store,
    direction: Direction,
    player_id: &PlayerId,
    after: Option<&PlayerId>,
    limit: usize,
) -> Result<Vec<(PlayerId, FollowRow)>, Problem> {
    let range = Range {
        table: Table::Views,
        index: None,
        partition: FollowRow::partition(direction, player_id),
        sort: after.map_or(Sort::All, |after| Sort::Above(after.to_string())),
        direction: store::Direction::Ascending,
        limit: Some(limit),
    };
    store.query(&range).await?.into_iter().filter_map(|item| row(item).transpose()).collect()
}

fn row(item: Item) -> Result<Option<(PlayerId, FollowRow)>, Problem> {
    let (key, row) = items::row(Table::Views, item).map_err(|error| Problem::internal(&error))?;
    let other: PlayerId = key.sort.parse().map_err(|error: events::InvalidId| Problem::internal(&error))?;
    Ok(row.decode::<FollowRow>(&key)?.map(|row| (other, row)))
}

/// Returns up to `limit` of the players whom a player follows.
async fn follows(store: &Store, player_id: &PlayerId, limit: usize) -> Result<Vec<PlayerId>, Problem> {
    let rows = rows(store, Direction::Following, player_id, None, limit).await?;
    Ok(rows.into_iter().filter(|(_, row)| row.since.is_some()).map(|(other, _)| other).collect())
}

/// Returns those of the players who are in a player's rows of one direction.
async fn among(
    store: &Store,
    direction: Direction,
    player_id: &PlayerId,
    others: &[PlayerId],
) -> Result<BTreeSet<PlayerId>, Problem> {
    let keys: Vec<Key> = others.iter().map(|other| FollowRow::key(direction, player_id, other)).collect();
    let state = store.fetch(&keys).await?;
    let mut among = BTreeSet::new();
    for (key, other) in keys.iter().zip(others) {
        if state.row(key)?.decode::<FollowRow>(key)?.is_some_and(|row| row.since.is_some()) {
            among.insert(other.clone());
        }
    }
    Ok(among)
}

/// Finds out whether a player is registered.
pub(crate) async fn known(store: &Store, player_id: &PlayerId) -> Result<(), Problem> {
    let key = Player::key(player_id);
    let state = store.fetch(std::slice::from_ref(&key)).await?;
    if state.row(&key)?.attributes.is_some() { Ok(()) } else { Err(not_found(player_id)) }
}
