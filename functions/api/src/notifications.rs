//! `/players/{player_id}/notifications`: what a player was told, newest first, and what of it was read. What a restricted player
//! did is not shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws::items::{self, Item};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::inbox::InboxRow;
use domain::notifications::Notification;
use domain::{Key, Table};
use events::{NotificationCause, NotificationId, PlayerId, PostId, Timestamp, Username};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Api;
use crate::access;
use crate::graph::known;
use crate::input::{self, Parameters};
use crate::people;
use crate::problem::{Kind, Problem, parameter};
use crate::store::{Commit, Direction, Range, Replacement, Sort, Store};
use crate::tries::{Tries, Try};

/// Notifications of a page, at most.
const LIMIT_MAX: usize = 100;
/// Notifications of a page unless another number is asked for.
const LIMIT_DEFAULT: usize = 50;
/// Queries for one page, at most: one that meets only hidden players ends short of its limit.
const QUERIES_MAX: usize = 10;
/// Version of a cursor's content.
const CURSOR_VERSION: u8 = 1;
/// Characters of a cursor, at most; a genuine one is shorter.
const CURSOR_LENGTH_MAX: usize = 400;
/// Attribute of a notification's record that says since when it is read.
const READ_AT: &str = "read_at";

/// A page of an inbox.
#[derive(Debug, Serialize)]
struct Page {
    notifications: Vec<Listed>,
    /// What asks for the next page; null on the last one.
    next_cursor: Option<String>,
}

/// A notification, as the API shows it.
#[derive(Debug, Serialize)]
struct Listed {
    notification_id: NotificationId,
    kind: &'static str,
    actor: Actor,
    #[serde(skip_serializing_if = "Option::is_none")]
    post_id: Option<PostId>,
    occurred_at: Timestamp,
    /// Null for one that was not read.
    read_at: Option<Timestamp>,
}

/// Who did what the notification tells.
#[derive(Debug, Serialize)]
struct Actor {
    player_id: PlayerId,
    username: Username,
}

/// A notification that is read.
#[derive(Debug, Serialize)]
struct Read {
    notification_id: NotificationId,
    read_at: Timestamp,
}

/// Where a page ends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "o")]
    player_id: PlayerId,
    /// Position of the last notification that was looked at.
    #[serde(rename = "s")]
    last: String,
}

/// `GET /players/{player_id}/notifications?limit=&cursor=`: newest first.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    actor: access::Actor,
    Path(player_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    actor.must_be(&player_id, parameter("player_id"))?;
    let mut parameters = Parameters::of(&uri, &["limit", "cursor"])?;
    let limit = parameters.optional("limit", |text| input::limit(text, LIMIT_MAX)).unwrap_or(LIMIT_DEFAULT);
    let mut last = parameters.optional("cursor", |text| position(text, &player_id));
    parameters.finish()?;
    known(&api.store, &player_id).await?;
    let mut notifications = Vec::new();
    for _ in 0..QUERIES_MAX {
        // One more than asked for tells whether there is a next page.
        let rows = rows(&api.store, &player_id, last.as_deref(), limit + 1).await?;
        let is_end = rows.len() <= limit;
        let mut shown = shown(&api.store, &rows).await?;
        for (sort, _) in rows {
            if notifications.len() == limit {
                return answer(&player_id, notifications, last);
            }
            notifications.extend(shown.remove(&sort));
            last = Some(sort);
        }
        if is_end {
            return answer(&player_id, notifications, None);
        }
    }
    answer(&player_id, notifications, last)
}

/// `PUT /players/{player_id}/notifications/{notification_id}/read`. Publishes nothing: nobody else is concerned.
pub(crate) async fn read(
    State(api): State<Arc<Api>>,
    actor: access::Actor,
    Path((player_id, notification_id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    actor.must_be(&player_id, parameter("player_id"))?;
    let notification_id: NotificationId = input::path_parameter("notification_id", &notification_id)?;
    let mut tries = Tries::begin();
    loop {
        match read_once(&api, &player_id, &notification_id).await? {
            Try::Done(read_at) => return Ok(Json(Read { notification_id, read_at }).into_response()),
            Try::Again(reason) => tries.again(reason).await?,
        }
    }
}

async fn read_once(
    api: &Api,
    player_id: &PlayerId,
    notification_id: &NotificationId,
) -> Result<Try<Timestamp>, Problem> {
    let key = Notification::key(notification_id);
    let state = api.store.fetch(std::slice::from_ref(&key)).await?;
    let row = state.row(&key)?;
    let notification = row.decode::<Notification>(&key)?.filter(|notification| notification.recipient_id == *player_id);
    let (Some(notification), Some(attributes)) = (notification, &row.attributes) else {
        let detail = format!("Player {player_id} has no notification {notification_id}.");
        return Err(Problem::new(Kind::NotFound, detail));
    };
    if let Some(read_at) = notification.read_at {
        return Ok(Try::Done(read_at));
    }
    let read_at = api.now();
    // With the event of before: a change without a new event publishes none.
    let mut attributes = attributes.clone();
    attributes.insert(READ_AT.to_owned(), Value::from(read_at.to_string()));
    Ok(match api.store.put(Replacement { key, before: row.version, attributes }).await? {
        Commit::Done => Try::Done(read_at),
        Commit::Again(reason) => Try::Again(reason),
    })
}

fn answer(player_id: &PlayerId, notifications: Vec<Listed>, last: Option<String>) -> Result<Response, Problem> {
    let cursor = |last| Cursor { version: CURSOR_VERSION, player_id: player_id.clone(), last };
    let json = last.map(|last| serde_json::to_vec(&cursor(last))).transpose();
    let json = json.map_err(|error| Problem::internal(&error))?;
    let next_cursor = json.map(|json| URL_SAFE_NO_PAD.encode(json));
    Ok(Json(Page { notifications, next_cursor }).into_response())
}

fn position(text: &str, player_id: &PlayerId) -> Result<String, String> {
    let foreign = || "is not a cursor that a page of this inbox came with".to_owned();
    if text.len() > CURSOR_LENGTH_MAX {
        return Err(foreign());
    }
    let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
    let cursor: Cursor = serde_json::from_slice(&json).map_err(|_| foreign())?;
    let genuine = cursor.version == CURSOR_VERSION && cursor.player_id == *player_id && !cursor.last.is_empty();
    if genuine { Ok(cursor.last) } else { Err(foreign()) }
}

async fn rows(
    store: &Store,
    player_id: &PlayerId,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<(String, InboxRow)>, Problem> {
    let range = Range {
        table: Table::Views,
        index: None,
        partition: InboxRow::partition(player_id),
        sort: before.map_or(Sort::All, |before| Sort::Below(before.to_owned())),
        direction: Direction::Descending,
        limit: Some(limit),
    };
    store.query(&range).await?.into_iter().filter_map(|item| row(item).transpose()).collect()
}

fn row(item: Item) -> Result<Option<(String, InboxRow)>, Problem> {
    let (key, row) = items::row(Table::Views, item).map_err(|error| Problem::internal(&error))?;
    Ok(row.decode::<InboxRow>(&key)?.map(|row| (key.sort, row)))
}

/// Returns those of the notifications that are shown, by position.
async fn shown(store: &Store, rows: &[(String, InboxRow)]) -> Result<BTreeMap<String, Listed>, Problem> {
    let actors: BTreeSet<PlayerId> = rows.iter().map(|(_, row)| row.cause.actor().clone()).collect();
    let actors: Vec<PlayerId> = actors.into_iter().collect();
    let keys: Vec<Key> = rows.iter().map(|(_, row)| Notification::key(&row.notification_id)).collect();
    let records = async { store.fetch(&keys).await.map_err(Problem::from) };
    let (names, state) = tokio::try_join!(people::visible(store, &actors), records)?;
    let mut shown = BTreeMap::new();
    for ((sort, row), key) in rows.iter().zip(&keys) {
        let player_id = row.cause.actor().clone();
        let Some(username) = names.get(&player_id).cloned() else { continue };
        let record = state.row(key)?.decode::<Notification>(key)?;
        let listed = Listed {
            notification_id: row.notification_id.clone(),
            kind: kind(&row.cause),
            actor: Actor { player_id, username },
            post_id: row.cause.post().cloned(),
            occurred_at: row.occurred_at,
            read_at: record.and_then(|record| record.read_at),
        };
        shown.insert(sort.clone(), listed);
    }
    Ok(shown)
}

fn kind(cause: &NotificationCause) -> &'static str {
    match cause {
        NotificationCause::Post { .. } => "post",
        NotificationCause::Reaction { .. } => "reaction",
        NotificationCause::Follow { .. } => "follow",
    }
}
