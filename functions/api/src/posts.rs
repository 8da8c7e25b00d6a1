//! `/posts`: publishing, deleting, reacting, and a post with its reactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use domain::players::Player;
use domain::posts::{self, Post, PublishError};
use domain::reactions::{self, REACTION_SPREAD, Reaction};
use events::{PlayerId, PostId, PostText, ReactionKind, Timestamp, TraceId, Username};
use serde::Serialize;

use crate::Api;
use crate::access::Actor;
use crate::change::{Changed, Target, change};
use crate::input::{self, Object};
use crate::people;
use crate::players::not_found as no_player;
use crate::problem::{Kind, Place, Problem, parameter};

/// A post, as commands show it.
#[derive(Debug, Serialize)]
struct Shown {
    post_id: PostId,
    author_id: PlayerId,
    published_at: Timestamp,
    /// Null for a deleted post.
    text: Option<PostText>,
}

/// A post with what others make of it.
#[derive(Debug, Serialize)]
struct PostView {
    post_id: PostId,
    author: Author,
    published_at: Timestamp,
    text: PostText,
    reactions: BTreeMap<ReactionKind, u64>,
}

#[derive(Debug, Serialize)]
struct Author {
    player_id: PlayerId,
    username: Username,
}

/// A reaction, as commands show it.
#[derive(Debug, Serialize)]
struct ShownReaction {
    post_id: PostId,
    player_id: PlayerId,
    /// Null for none.
    kind: Option<ReactionKind>,
}

/// `PUT /posts/{post_id}` `{author_id, text}`: 201 for a new post, 200 for the same one again, 409 for another one under the
/// same id or one that was deleted, 422 for an author who is not registered.
pub(crate) async fn publish(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(post_id): Path<String>,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let post_id: PostId = input::path_parameter("post_id", &post_id)?;
    let body = input::json(&headers, body).await?;
    let mut fields = Object::body(&body, &["author_id", "text"]);
    let named: Option<PlayerId> = fields.optional("author_id", input::text);
    let text: Option<PostText> = fields.required("text", input::text);
    let text = fields.finish(text)?;
    let author_id = actor.player(named, "#/author_id")?;
    let author_key = Player::key(&author_id);
    let target = Target { others: vec![author_key.clone()], ..target(&post_id, trace_id) };
    let changed = change(&api, &target, |post, state, now| {
        if state.row(&author_key)?.attributes.is_none() {
            return Err(unknown_author(&author_id));
        }
        posts::publish(post, post_id.clone(), author_id.clone(), text.clone(), now).map_err(|error| {
            Problem::new(
                Kind::Conflict,
                match error {
                    PublishError::Taken => format!("Another post was published as {post_id}."),
                    PublishError::Deleted => format!("Post {post_id} was deleted."),
                },
            )
        })
    });
    Ok(answer(changed.await?))
}

/// `DELETE /posts/{post_id}`: for the author.
pub(crate) async fn delete(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(post_id): Path<String>,
    Extension(trace_id): Extension<TraceId>,
) -> Result<Response, Problem> {
    let post_id: PostId = input::path_parameter("post_id", &post_id)?;
    let target = target(&post_id, trace_id);
    let changed = change(&api, &target, |post: Option<Post>, _, _| {
        let post = post.ok_or_else(|| not_found(&post_id))?;
        actor.must_own(&post.author_id, parameter("post_id"))?;
        Ok(posts::delete(post))
    });
    Ok(answer(changed.await?))
}

/// `GET /posts/{post_id}`: deleted posts and those of restricted authors are not found.
pub(crate) async fn show(State(api): State<Arc<Api>>, Path(post_id): Path<String>) -> Result<Response, Problem> {
    let post_id: PostId = input::path_parameter("post_id", &post_id)?;
    let key = Post::key(&post_id);
    let counters = REACTION_SPREAD.keys(&reactions::count_key(&post_id));
    let (state, counts) = tokio::try_join!(api.store.fetch(std::slice::from_ref(&key)), api.store.counts(&counters))?;
    let Some(Post { author_id, published_at, text: Some(text), .. }) = state.row(&key)?.decode(&key)? else {
        return Err(not_found(&post_id));
    };
    let author = people::visible(&api.store, std::slice::from_ref(&author_id)).await?.remove(&author_id);
    let username = author.ok_or_else(|| not_found(&post_id))?;
    let reactions = ReactionKind::ALL.into_iter().map(|kind| (kind, counts.get(kind.as_str()).copied().unwrap_or(0)));
    let reactions = reactions.filter(|(_, count)| *count > 0).collect();
    let author = Author { player_id: author_id, username };
    Ok(Json(PostView { post_id, author, published_at, text, reactions }).into_response())
}

/// `PUT /posts/{post_id}/reactions/{player_id}` `{kind}`: one reaction a player; another kind takes its place.
pub(crate) async fn react(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(path): Path<(String, String)>,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (post_id, player_id) = reaction_path(&path)?;
    actor.must_be(&player_id, parameter("player_id"))?;
    let body = input::json(&headers, body).await?;
    let mut fields = Object::body(&body, &["kind"]);
    let kind: Option<ReactionKind> = fields.required("kind", input::text);
    let kind = fields.finish(kind)?;
    let react = |reaction| reactions::react(reaction, post_id.clone(), player_id.clone(), kind);
    change_reaction(&api, &post_id, &player_id, trace_id, react).await
}

/// `DELETE /posts/{post_id}/reactions/{player_id}`.
pub(crate) async fn unreact(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Path(path): Path<(String, String)>,
    Extension(trace_id): Extension<TraceId>,
) -> Result<Response, Problem> {
    let (post_id, player_id) = reaction_path(&path)?;
    actor.must_be(&player_id, parameter("player_id"))?;
    let unreact = |reaction| reactions::unreact(reaction, post_id.clone(), player_id.clone());
    change_reaction(&api, &post_id, &player_id, trace_id, unreact).await
}

async fn change_reaction(
    api: &Api,
    post_id: &PostId,
    player_id: &PlayerId,
    trace_id: TraceId,
    decide: impl Fn(Option<Reaction>) -> domain::Change<Reaction>,
) -> Result<Response, Problem> {
    let (post_key, player_key) = (Post::key(post_id), Player::key(player_id));
    let target = Target {
        key: Reaction::key(post_id, player_id),
        aggregate_id: format!("{post_id}/{player_id}"),
        others: vec![post_key.clone(), player_key.clone()],
        trace_id,
    };
    let changed = change(api, &target, |reaction, state, _| {
        let post = state.row(&post_key)?.decode::<Post>(&post_key)?;
        if post.is_none_or(|post| post.text.is_none()) {
            return Err(not_found(post_id));
        }
        if state.row(&player_key)?.attributes.is_none() {
            return Err(no_player(player_id));
        }
        Ok(decide(reaction))
    });
    let changed = changed.await?;
    let Reaction { post_id, player_id, kind } = changed.record.clone();
    Ok(changed.answer(ShownReaction { post_id, player_id, kind }))
}

fn reaction_path((post_id, player_id): &(String, String)) -> Result<(PostId, PlayerId), Problem> {
    Ok((input::path_parameter("post_id", post_id)?, input::path_parameter("player_id", player_id)?))
}

fn target(post_id: &PostId, trace_id: TraceId) -> Target {
    Target { key: Post::key(post_id), aggregate_id: post_id.to_string(), others: Vec::new(), trace_id }
}

fn answer(changed: Changed<Post>) -> Response {
    let Post { post_id, author_id, published_at, text } = changed.record.clone();
    changed.answer(Shown { post_id, author_id, published_at, text })
}

fn not_found(post_id: &PostId) -> Problem {
    Problem::new(Kind::NotFound, format!("There is no post {post_id}."))
}

fn unknown_author(author_id: &PlayerId) -> Problem {
    Problem::new(Kind::UnknownPlayer, format!("There is no player {author_id}."))
        .with_error(Place::Pointer("#/author_id".to_owned()), "is not registered")
}
