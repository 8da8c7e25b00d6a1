//! `/players/{player_id}/follows/{other}`: following and ending it.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::response::Response;
use domain::Change;
use domain::follows::{self, Follow};
use domain::players::Player;
use events::{PlayerId, Timestamp, TraceId};
use serde::Serialize;

use crate::Api;
use crate::access::Actor;
use crate::change::{Target, change};
use crate::input;
use crate::players::not_found;
use crate::problem::{Problem, parameter};

/// A follow, as commands show it.
#[derive(Debug, Serialize)]
struct Shown {
    follower_id: PlayerId,
    followed_id: PlayerId,
    /// Null for a follow that has ended or never was.
    since: Option<Timestamp>,
}

/// `PUT /players/{player_id}/follows/{other}`.
pub(crate) async fn follow(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(path): Path<(String, String)>,
    Extension(trace_id): Extension<TraceId>,
) -> Result<Response, Problem> {
    let (follower, followed) = parameters(&path, &actor)?;
    let follow = |existing, now| follows::follow(existing, followed.clone(), follower.clone(), now);
    change_follow(&api, &follower, &followed, trace_id, follow).await
}

/// `DELETE /players/{player_id}/follows/{other}`.
pub(crate) async fn unfollow(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(path): Path<(String, String)>,
    Extension(trace_id): Extension<TraceId>,
) -> Result<Response, Problem> {
    let (follower, followed) = parameters(&path, &actor)?;
    let unfollow = |existing, _| follows::unfollow(existing, followed.clone(), follower.clone());
    change_follow(&api, &follower, &followed, trace_id, unfollow).await
}

async fn change_follow(
    api: &Api,
    follower: &PlayerId,
    followed: &PlayerId,
    trace_id: TraceId,
    decide: impl Fn(Option<Follow>, Timestamp) -> Change<Follow>,
) -> Result<Response, Problem> {
    let players = [follower, followed].map(|player_id| (Player::key(player_id), player_id));
    let target = Target {
        key: Follow::key(followed, follower),
        aggregate_id: format!("{follower}/{followed}"),
        others: players.iter().map(|(key, _)| key.clone()).collect(),
        trace_id,
    };
    let changed = change(api, &target, |existing, state, now| {
        for (key, player_id) in &players {
            if state.row(key)?.attributes.is_none() {
                return Err(not_found(player_id));
            }
        }
        Ok(decide(existing, now))
    });
    let changed = changed.await?;
    let Follow { follower_id, followed_id, since } = changed.record.clone();
    Ok(changed.answer(Shown { follower_id, followed_id, since }))
}

fn parameters((player_id, other): &(String, String), actor: &Actor) -> Result<(PlayerId, PlayerId), Problem> {
    let follower: PlayerId = input::path_parameter("player_id", player_id)?;
    actor.must_be(&follower, parameter("player_id"))?;
    let followed: PlayerId = input::path_parameter("other", other)?;
    if follower == followed {
        return Err(input::invalid_parameter("other", "is the player who follows"));
    }
    Ok((follower, followed))
}
