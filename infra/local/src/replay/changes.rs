//! Changes of players while their games are being posted: seeded names, restrictions and reinstatements.

use events::PlayerId;
use fastrand::Rng;
use serde_json::{Value, json};

use super::caller::Caller;

/// One player in so many is changed.
const ONE_IN: usize = 5;
/// Changes of such a player, at most.
const CHANGES_MAX: usize = 5;

/// A change of one player's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlayerChange {
    /// Whose.
    pub(super) player_id: PlayerId,
    /// What.
    pub(super) step: Step,
    /// How many games are posted before it.
    pub(super) after_games: usize,
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The name becomes this one.
    Rename(String),
    /// The player is hidden.
    Restrict,
    /// The player is shown again.
    Reinstate,
}

impl PlayerChange {
    /// Returns who sends the request.
    pub(super) fn caller(&self) -> Caller {
        match self.step {
            Step::Rename(_) => Caller::Player(self.player_id.to_string()),
            Step::Restrict | Step::Reinstate => Caller::Moderator,
        }
    }

    /// Returns method, path and body of the request.
    pub(super) fn command(&self) -> (&'static str, String, Option<Value>) {
        let player = format!("/players/{}", self.player_id);
        match &self.step {
            Step::Rename(name) => ("PUT", player + "/username", Some(json!({"username": name}))),
            Step::Restrict => ("PUT", player + "/restriction", Some(json!({"reason": "seeded"}))),
            Step::Reinstate => ("DELETE", player + "/restriction", None),
        }
    }
}

/// Draws changes of some of the players, in the order in which they are sent.
pub(super) fn player_changes(players: &[PlayerId], games: usize, seed: u64) -> Vec<PlayerChange> {
    let mut rng = Rng::with_seed(seed);
    let mut changes = Vec::new();
    for player_id in players {
        if rng.usize(..ONE_IN) > 0 {
            continue;
        }
        for _ in 0..rng.usize(1..=CHANGES_MAX) {
            let step = match rng.u8(..3) {
                0 => Step::Rename(format!("Name {}", rng.u32(..1_000))),
                1 => Step::Restrict,
                _ => Step::Reinstate,
            };
            changes.push(PlayerChange { player_id: player_id.clone(), step, after_games: rng.usize(..=games) });
        }
    }
    changes.sort_by_key(|change| change.after_games);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn players() -> Vec<PlayerId> {
        (0..1_000).map(|number| format!("p{number}").parse().unwrap()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_changes() {
        assert_eq!(player_changes(&players(), 100, 7), player_changes(&players(), 100, 7));
        assert_ne!(player_changes(&players(), 100, 7), player_changes(&players(), 100, 8));
    }

    #[test]
    fn some_players_are_changed_in_every_way_over_all_games() {
        let changes = player_changes(&players(), 100, 7);
        for step in [Step::Restrict, Step::Reinstate] {
            assert!(changes.iter().filter(|change| change.step == step).count() > 50);
        }
        assert!(changes.iter().filter(|change| matches!(change.step, Step::Rename(_))).count() > 50);
        assert!(changes.is_sorted_by_key(|change| change.after_games));
        assert!(changes[0].after_games < 10 && changes[changes.len() - 1].after_games > 90);
    }
}
