//! What happens to players: registered, renamed, restricted, reinstated. The aggregate is the player.

use serde::{Deserialize, Serialize};

use crate::{PlayerId, RestrictionReason, Username};

/// Payload of `player_registered`, schema version 1: there is a new player.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerRegistered {
    /// Who.
    pub player_id: PlayerId,
    /// The player's first name.
    pub username: Username,
}

/// Payload of `player_renamed`, schema version 1: a player goes by another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerRenamed {
    /// Who.
    pub player_id: PlayerId,
    /// The new name.
    pub username: Username,
}

/// Payload of `player_restricted`, schema version 1: a moderator has hidden a player, or has a new reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerRestricted {
    /// Who.
    pub player_id: PlayerId,
    /// Why.
    pub reason: RestrictionReason,
}

/// Payload of `player_reinstated`, schema version 1: a player is as if never restricted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerReinstated {
    /// Who.
    pub player_id: PlayerId,
}
