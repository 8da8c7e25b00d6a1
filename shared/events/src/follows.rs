//! What happens to follows: started, ended. The aggregate is one player's follow of another one.

use serde::{Deserialize, Serialize};

use crate::PlayerId;

/// Payload of `follow_started`, schema version 1: a player follows another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowStarted {
    /// Who follows.
    pub follower_id: PlayerId,
    /// Who is followed.
    pub followed_id: PlayerId,
}

/// Payload of `follow_ended`, schema version 1: a player follows another one no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowEnded {
    /// Who followed.
    pub follower_id: PlayerId,
    /// Who was followed.
    pub followed_id: PlayerId,
}
