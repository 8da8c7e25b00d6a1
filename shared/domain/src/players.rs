//! Players and their ratings as source records.

use events::{PlayerId, Rating, TimeControl, Username};
use serde::{Deserialize, Serialize};

use crate::Key;

/// A player's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// Who.
    pub player_id: PlayerId,
    /// The name that the player goes by now.
    pub username: Username,
}

impl Player {
    /// Returns the key of a player's record.
    pub fn key(player_id: &PlayerId) -> Key {
        Key::record(format!("PLAYER#{player_id}"), "PLAYER")
    }
}

/// A player's rating of one time control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerRating {
    /// Whose.
    pub player_id: PlayerId,
    /// Of which time control.
    pub time_control: TimeControl,
    /// After the last game that was written.
    pub rating: Rating,
    /// How many rated games of this time control have been written.
    pub games: u64,
}

impl PlayerRating {
    /// Returns the key of a player's rating record.
    pub fn key(player_id: &PlayerId, time_control: TimeControl) -> Key {
        Key::record(format!("PLAYER#{player_id}"), format!("RATING#{time_control}"))
    }
}
