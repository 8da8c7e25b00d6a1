//! Notifications on their way: a fan-out to an audience goes on, a notification is wanted.

use serde::{Deserialize, Serialize};

use crate::{NotificationId, PlayerId, PostId};

/// Payload of `fan_out_advanced`, schema version 1: one range of a post's audience has a page less to go. The aggregate is the
/// range, whose record says where it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOutAdvanced {
    /// Of which post.
    pub post_id: PostId,
    /// Whose followers are the audience.
    pub author_id: PlayerId,
    /// Which range of them, from 0.
    pub range: u16,
}

/// Payload of `notification_requested`, schema version 1: somebody is to be told of something, if it is still so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationRequested {
    /// Which notification. The same event never makes two for one recipient.
    pub notification_id: NotificationId,
    /// Who is to be told.
    pub recipient_id: PlayerId,
    /// Of what.
    pub cause: NotificationCause,
}

/// What a notification tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NotificationCause {
    /// Somebody whom the recipient follows has published a post.
    Post {
        /// Which post.
        post_id: PostId,
        /// Whose.
        author_id: PlayerId,
    },
    /// Somebody has reacted to the recipient's post.
    Reaction {
        /// Which post.
        post_id: PostId,
        /// Who has reacted.
        player_id: PlayerId,
    },
    /// Somebody follows the recipient.
    Follow {
        /// Who.
        follower_id: PlayerId,
    },
}

impl NotificationCause {
    /// Returns who did what the notification tells.
    pub fn actor(&self) -> &PlayerId {
        match self {
            Self::Post { author_id, .. } => author_id,
            Self::Reaction { player_id, .. } => player_id,
            Self::Follow { follower_id } => follower_id,
        }
    }

    /// Returns the post that it is about, if it is about one.
    pub fn post(&self) -> Option<&PostId> {
        match self {
            Self::Post { post_id, .. } | Self::Reaction { post_id, .. } => Some(post_id),
            Self::Follow { .. } => None,
        }
    }
}
