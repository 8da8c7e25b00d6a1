//! `/games`: the game server says that a game has ended.

use std::sync::Arc;
use std::time::Duration;

use aws::items::EVENT;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension as ResponseExtension, Json};
use domain::games::{EndGame, Game, GameDecision, decide, needs};
use domain::players::PlayerRating;
use events::{Event, EventId, GameId, PlayerId, Rating, Timestamp, TraceId};
use serde_json::Value;

use crate::access::{Actor, Scope};
use crate::change::published;
use crate::input::{self, Object};
use crate::log;
use crate::problem::{Kind, Place, Problem};
use crate::store::{Commit, Replacement};
use crate::tries::{Tries, Try};
use crate::{Api, Published};

/// How far ahead of this clock a game may have ended: the game server's clock may be fast.
const AHEAD_MAX: Duration = Duration::from_secs(5 * 60);

/// `POST /games`: 201 for a new game, 200 for the same one again, 409 for another one under the same id, 422 for a player
/// who is not registered.
pub(crate) async fn end(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    actor.must_have(Scope::GamesWrite)?;
    let body = input::json(&headers, body).await?;
    let command = command(&body, &headers, api.now())?;
    let mut tries = Tries::begin();
    loop {
        match try_once(&api, &command, trace_id).await? {
            Try::Done(response) => return Ok(response),
            Try::Again(reason) => tries.again(reason).await?,
        }
    }
}

/// Reads, decides and writes once.
async fn try_once(api: &Api, command: &EndGame, trace_id: TraceId) -> Result<Try<Response>, Problem> {
    let state = api.store.fetch(&needs(command)).await?;
    // A new id for every try, of which one at most is written: it serves as the transaction's token, too.
    let event_id = api.mint_event_id()?;
    match decide(command, &state, event_id, trace_id)? {
        GameDecision::Write { game, event, ratings } => {
            let records = records(api, &game, &event, &ratings)?;
            Ok(match api.store.replace(records, event_id.to_string()).await? {
                Commit::Done => {
                    log::written(&event, &Game::key(&game.game_id));
                    Try::Done(answer(StatusCode::CREATED, &game, Some(event_id)))
                }
                Commit::Again(reason) => Try::Again(reason),
            })
        }
        GameDecision::Done(game) => {
            let event_id = published(state.row(&Game::key(&command.game_id))?);
            Ok(Try::Done(answer(StatusCode::OK, &game, event_id)))
        }
        GameDecision::Conflict => {
            Err(Problem::new(Kind::Conflict, format!("Another game was recorded as {}.", command.game_id)))
        }
        GameDecision::UnknownPlayer(player_id) => Err(unknown_player(command, &player_id)),
    }
}

/// The three records that a new game changes. The game's record carries the event.
fn records(
    api: &Api,
    game: &Game,
    event: &Event,
    ratings: &[(PlayerRating, u64); 2],
) -> Result<Vec<Replacement>, Problem> {
    let mut attributes = api.attributes(game)?;
    attributes.insert(EVENT.to_owned(), Value::Object(api.attributes(event)?));
    let mut records = vec![Replacement { key: Game::key(&game.game_id), before: 0, attributes }];
    for (rating, before) in ratings {
        let key = PlayerRating::key(&rating.player_id, rating.time_control);
        records.push(Replacement { key, before: *before, attributes: api.attributes(rating)? });
    }
    Ok(records)
}

fn answer(status: StatusCode, game: &Game, event_id: Option<EventId>) -> Response {
    let published = event_id.map(|event_id| ResponseExtension(Published(event_id)));
    match published {
        Some(published) => (status, published, Json(game)).into_response(),
        None => (status, Json(game)).into_response(),
    }
}

fn unknown_player(command: &EndGame, player_id: &PlayerId) -> Problem {
    let side = if command.white.0 == *player_id { "white" } else { "black" };
    Problem::new(Kind::UnknownPlayer, format!("There is no player {player_id}."))
        .with_error(Place::Pointer(format!("#/{side}/player_id")), "is not registered")
}

fn command(body: &Value, headers: &HeaderMap, now: Timestamp) -> Result<EndGame, Problem> {
    let known = ["game_id", "time_control", "ended_at", "result", "white", "black"];
    let mut fields = Object::body(body, &known);
    let game_id = fields.id("game_id", headers, GameId::derived);
    let time_control = fields.required("time_control", input::text);
    let ended_at = fields.required("ended_at", |value| {
        let ended_at: Timestamp = input::text(value)?;
        let ahead = ended_at > now + AHEAD_MAX;
        if ahead { Err("is more than 5 minutes ahead".to_owned()) } else { Ok(ended_at) }
    });
    let result = fields.required("result", |value| input::one_of(value, "\"1-0\", \"0-1\", \"1/2-1/2\""));
    let white = fields.object("white", &["player_id", "rating"], side);
    let black = fields.object("black", &["player_id", "rating"], side);
    if let (Some((white, _)), Some((black, _))) = (&white, &black)
        && white == black
    {
        fields.note_field(&["black", "player_id"], "is the player of the white side, too");
    }
    let game = || {
        Some(EndGame {
            game_id: game_id?,
            time_control: time_control?,
            ended_at: ended_at?,
            result: result?,
            white: white?,
            black: black?,
        })
    };
    fields.finish(game())
}

fn side(fields: &mut Object<'_>) -> Option<(PlayerId, Rating)> {
    let player_id = fields.required("player_id", input::text);
    let rating = fields.required("rating", input::rating);
    Some((player_id?, rating?))
}
