//! Posts as source records, the commands that change one, and how many a player has published.

use events::{Event, Payload, PlayerId, PostDeleted, PostId, PostPublished, PostText, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::decision::{attributes, foreign};
use crate::{Change, Content, Decider, Decision, Deltas, Guard, Key, Need, RowError, Spread, State, Write};

/// Counter of published posts.
pub const POSTS: &str = "posts";

/// A post's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// Which post.
    pub post_id: PostId,
    /// Whose.
    pub author_id: PlayerId,
    /// Since when.
    pub published_at: Timestamp,
    /// What it says; a deleted post says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<PostText>,
}

impl Post {
    /// Returns the key of a post's record.
    pub fn key(post_id: &PostId) -> Key {
        Key::record(format!("POST#{post_id}"), "POST")
    }
}

/// Why a post cannot be published under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PublishError {
    /// Another post has the id.
    #[error("another post has this id")]
    Taken,
    /// The post was deleted, which is final.
    #[error("the post was deleted")]
    Deleted,
}

/// Publishes a post.
///
/// # Errors
/// The id is taken by another post or a deleted one.
pub fn publish(
    existing: Option<Post>,
    post_id: PostId,
    author_id: PlayerId,
    text: PostText,
    now: Timestamp,
) -> Result<Change<Post>, PublishError> {
    match existing {
        None => {
            let payload = PostPublished { post_id: post_id.clone(), author_id: author_id.clone() };
            let record = Post { post_id, author_id, published_at: now, text: Some(text) };
            Ok(Change::Write { record, payload: Payload::PostPublished(payload) })
        }
        Some(post) if post.author_id == author_id && post.text.as_ref() == Some(&text) => Ok(Change::Same(post)),
        Some(Post { text: None, .. }) => Err(PublishError::Deleted),
        Some(_) => Err(PublishError::Taken),
    }
}

/// Deletes a post for good.
pub fn delete(post: Post) -> Change<Post> {
    if post.text.is_none() {
        return Change::Same(post);
    }
    let payload = PostDeleted { post_id: post.post_id.clone(), author_id: post.author_id.clone() };
    Change::Write { record: Post { text: None, ..post }, payload: Payload::PostDeleted(payload) }
}

/// Returns the key of the number of a player's posts.
pub fn count_key(author_id: &PlayerId) -> Key {
    Key::view(format!("COUNTS#{author_id}"), "POSTS")
}

/// A post as the counts know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostRow {
    /// Version of the post's record that the state is from.
    pub record_version: u64,
    /// Whether it counts.
    pub state: PostState,
}

/// Whether a post counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostState {
    /// It does.
    Published,
    /// It does no more.
    Deleted,
}

impl PostState {
    fn count(self) -> i64 {
        match self {
            Self::Published => 1,
            Self::Deleted => 0,
        }
    }
}

impl PostRow {
    /// Returns the key of a post's row.
    pub fn key(author_id: &PlayerId, post_id: &PostId) -> Key {
        Key::view(format!("POSTS#{author_id}"), post_id.as_str())
    }
}

/// Counts the posts of each player.
#[derive(Debug, Clone, Copy, Default)]
pub struct PostCounts;

impl Decider for PostCounts {
    fn needs(&self, event: &Event) -> Vec<Need> {
        changed(&event.payload)
            .map(|(author_id, post_id, _)| PostRow::key(author_id, post_id))
            .map(Need::Key)
            .into_iter()
            .collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Some((author_id, post_id, post_state)) = changed(&event.payload) else { return foreign(event) };
        let key = PostRow::key(author_id, post_id);
        let row = state.row(&key)?;
        let before = row.decode::<PostRow>(&key)?;
        if before.as_ref().is_some_and(|before| before.record_version >= event.version) {
            return Ok(Decision::Stale);
        }
        let after = PostRow { record_version: event.version, state: post_state };
        let delta = post_state.count() - before.map_or(0, |before| before.state.count());
        let content = Content::Row(attributes(&after, &key)?);
        let mut writes = vec![Write::Replace { key, content, guard: Guard::Unchanged(row.version) }];
        if delta != 0 {
            let deltas = Deltas::from([(POSTS.to_owned(), delta)]);
            writes.push(Write::Add { key: count_key(author_id), deltas, spread: Spread::NONE });
        }
        Ok(Decision::Apply { writes, checks: Vec::new() })
    }
}

fn changed(payload: &Payload) -> Option<(&PlayerId, &PostId, PostState)> {
    if let Payload::PostPublished(post) = payload {
        return Some((&post.author_id, &post.post_id, PostState::Published));
    }
    let Payload::PostDeleted(post) = payload else { return None };
    Some((&post.author_id, &post.post_id, PostState::Deleted))
}
