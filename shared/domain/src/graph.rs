//! The graph of follows as derived rows, in both directions, and how many each player has of either.

use events::{Event, Payload, PlayerId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::decision::{attributes, foreign};
use crate::{Content, Decider, Decision, Deltas, Guard, Key, Need, RowError, Spread, State, Write};

/// Counter of followers.
pub const FOLLOWERS: &str = "followers";
/// Counter of players who are followed.
pub const FOLLOWING: &str = "following";
/// A player whom everybody follows is counted in four items.
pub const FOLLOWER_SPREAD: Spread = Spread::over(4);

/// The two ways to look at follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Who follows a player.
    Followers,
    /// Whom a player follows.
    Following,
}

/// One end of a follow, as its other end sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowRow {
    /// Version of the follow's record that the row is from.
    pub record_version: u64,
    /// Since when; `None` for a follow that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl FollowRow {
    /// Returns the partition of a player's rows of one direction.
    pub fn partition(direction: Direction, player_id: &PlayerId) -> String {
        match direction {
            Direction::Followers => format!("FOLLOWERS#{player_id}"),
            Direction::Following => format!("FOLLOWING#{player_id}"),
        }
    }

    /// Returns the key of the row that shows `other` to a player.
    pub fn key(direction: Direction, player_id: &PlayerId, other: &PlayerId) -> Key {
        Key::view(Self::partition(direction, player_id), other.as_str())
    }
}

/// Returns the target of the number of a player's followers.
pub fn followers_key(player_id: &PlayerId) -> Key {
    Key::view(format!("COUNTS#{player_id}"), "FOLLOWERS")
}

/// Returns the key of the number of players whom a player follows.
pub fn following_key(player_id: &PlayerId) -> Key {
    Key::view(format!("COUNTS#{player_id}"), "FOLLOWING")
}

/// Keeps the graph and its counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct FollowGraph;

impl Decider for FollowGraph {
    fn needs(&self, event: &Event) -> Vec<Need> {
        changed(event).map(|follow| follow.keys().map(Need::Key).to_vec()).unwrap_or_default()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Some(follow) = changed(event) else { return foreign(event) };
        let keys = follow.keys();
        // The two rows are written together, always: either of them says what both say.
        let before = state.row(&keys[0])?.decode::<FollowRow>(&keys[0])?;
        if before.as_ref().is_some_and(|before| before.record_version >= event.version) {
            return Ok(Decision::Stale);
        }
        let after = FollowRow { record_version: event.version, since: follow.since };
        let mut writes = Vec::new();
        for key in keys {
            let guard = Guard::Unchanged(state.row(&key)?.version);
            let content = Content::Row(attributes(&after, &key)?);
            writes.push(Write::Replace { key, content, guard });
        }
        let follows = |row: &FollowRow| i64::from(row.since.is_some());
        let delta = follows(&after) - before.as_ref().map_or(0, follows);
        if delta != 0 {
            let one = |counter: &str| Deltas::from([(counter.to_owned(), delta)]);
            let (followers, following) = (followers_key(follow.followed_id), following_key(follow.follower_id));
            writes.push(Write::Add { key: followers, deltas: one(FOLLOWERS), spread: FOLLOWER_SPREAD });
            writes.push(Write::Add { key: following, deltas: one(FOLLOWING), spread: Spread::NONE });
        }
        Ok(Decision::Apply { writes, checks: Vec::new() })
    }
}

struct Changed<'a> {
    follower_id: &'a PlayerId,
    followed_id: &'a PlayerId,
    since: Option<Timestamp>,
}

impl Changed<'_> {
    fn keys(&self) -> [Key; 2] {
        [
            FollowRow::key(Direction::Followers, self.followed_id, self.follower_id),
            FollowRow::key(Direction::Following, self.follower_id, self.followed_id),
        ]
    }
}

fn changed(event: &Event) -> Option<Changed<'_>> {
    if let Payload::FollowStarted(follow) = &event.payload {
        let since = Some(event.occurred_at);
        return Some(Changed { follower_id: &follow.follower_id, followed_id: &follow.followed_id, since });
    }
    let Payload::FollowEnded(follow) = &event.payload else { return None };
    Some(Changed { follower_id: &follow.follower_id, followed_id: &follow.followed_id, since: None })
}
