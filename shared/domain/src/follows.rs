//! Follows as source records, and the commands that change one. The records are the truth about an audience: those of one
//! followed player are one partition.

use events::{FollowEnded, FollowStarted, Payload, PlayerId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Change, Key};

/// The record of one player's follow of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// Who is followed.
    pub followed_id: PlayerId,
    /// Who follows.
    pub follower_id: PlayerId,
    /// Since when; `None` for a follow that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Follow {
    /// Returns the key of a follow's record.
    pub fn key(followed_id: &PlayerId, follower_id: &PlayerId) -> Key {
        Key::record(Self::partition(followed_id), Self::sort(follower_id))
    }

    /// Returns the partition of the records of all who follow or have followed a player.
    pub fn partition(followed_id: &PlayerId) -> String {
        format!("FOLLOWED#{followed_id}")
    }

    /// Returns a follower's position within the partition. It begins with two digits of a hash, so that ranges of positions
    /// hold about as many followers as any other range of the same width, whatever ids look like.
    pub fn sort(follower_id: &PlayerId) -> String {
        format!("{}#{follower_id}", Self::position(u16::from(follower_id.bucket())))
    }

    /// Returns the position behind which the followers begin whose hash begins with this number, 0 to 255.
    pub fn position(bucket: u16) -> String {
        format!("FOLLOWER#{bucket:02x}")
    }
}

/// Follows a player from `now` on.
pub fn follow(
    existing: Option<Follow>,
    followed_id: PlayerId,
    follower_id: PlayerId,
    now: Timestamp,
) -> Change<Follow> {
    match existing {
        Some(follow) if follow.since.is_some() => Change::Same(follow),
        Some(_) | None => {
            let payload = FollowStarted { follower_id: follower_id.clone(), followed_id: followed_id.clone() };
            let record = Follow { followed_id, follower_id, since: Some(now) };
            Change::Write { record, payload: Payload::FollowStarted(payload) }
        }
    }
}

/// Follows a player no more.
pub fn unfollow(existing: Option<Follow>, followed_id: PlayerId, follower_id: PlayerId) -> Change<Follow> {
    let record = Follow { followed_id, follower_id, since: None };
    if existing.is_none_or(|follow| follow.since.is_none()) {
        return Change::Same(record);
    }
    let payload = FollowEnded { follower_id: record.follower_id.clone(), followed_id: record.followed_id.clone() };
    Change::Write { record, payload: Payload::FollowEnded(payload) }
}
