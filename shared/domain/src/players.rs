//! Players and their ratings as source records, and the commands that change a player.

use events::{
    Payload, PlayerId, PlayerRegistered, PlayerReinstated, PlayerRenamed, PlayerRestricted, Rating, RestrictionReason,
    TimeControl, Timestamp, Username,
};
use serde::{Deserialize, Serialize};

use crate::{Change, Key};

/// A player's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// Who.
    pub player_id: PlayerId,
    /// The name that the player goes by now.
    pub username: Username,
    /// The name that the player registered with, if it was another one: it tells the same registration from another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_as: Option<Username>,
    /// Why the player is hidden, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restriction: Option<Restriction>,
}

/// A moderator's decision to hide a player.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restriction {
    /// Why.
    pub reason: RestrictionReason,
    /// Since when, whatever reasons it had since.
    pub since: Timestamp,
}

impl Player {
    /// Returns the key of a player's record.
    pub fn key(player_id: &PlayerId) -> Key {
        Key::record(format!("PLAYER#{player_id}"), "PLAYER")
    }

    /// Returns whether others get to see the player.
    pub fn visibility(&self) -> Visibility {
        match &self.restriction {
            Some(_) => Visibility::Hidden,
            None => Visibility::Visible,
        }
    }
}

/// Whether others get to see a player on boards and in listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// They do.
    Visible,
    /// They do not: the player is restricted.
    Hidden,
}

/// Registers a player under an id that may be taken; `None` where another player has it.
pub fn register(existing: Option<Player>, player_id: PlayerId, username: Username) -> Option<Change<Player>> {
    match existing {
        None => {
            let payload = PlayerRegistered { player_id: player_id.clone(), username: username.clone() };
            let record = Player { player_id, username, registered_as: None, restriction: None };
            Some(Change::Write { record, payload: Payload::PlayerRegistered(payload) })
        }
        Some(player) if *player.registered_as.as_ref().unwrap_or(&player.username) == username => {
            Some(Change::Same(player))
        }
        Some(_) => None,
    }
}

/// Gives a player another name.
pub fn rename(player: Player, username: Username) -> Change<Player> {
    if player.username == username {
        return Change::Same(player);
    }
    let payload = PlayerRenamed { player_id: player.player_id.clone(), username: username.clone() };
    let registered_as = player.registered_as.or(Some(player.username));
    let record = Player { username, registered_as, ..player };
    Change::Write { record, payload: Payload::PlayerRenamed(payload) }
}

/// Hides a player from `now` on, or gives another reason for it.
pub fn restrict(player: Player, reason: RestrictionReason, now: Timestamp) -> Change<Player> {
    if player.restriction.as_ref().is_some_and(|restriction| restriction.reason == reason) {
        return Change::Same(player);
    }
    let since = player.restriction.as_ref().map_or(now, |restriction| restriction.since);
    let payload = PlayerRestricted { player_id: player.player_id.clone(), reason: reason.clone() };
    let record = Player { restriction: Some(Restriction { reason, since }), ..player };
    Change::Write { record, payload: Payload::PlayerRestricted(payload) }
}

/// Shows a player again.
pub fn reinstate(player: Player) -> Change<Player> {
    if player.restriction.is_none() {
        return Change::Same(player);
    }
    let payload = PlayerReinstated { player_id: player.player_id.clone() };
    let record = Player { restriction: None, ..player };
    Change::Write { record, payload: Payload::PlayerReinstated(payload) }
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
