//! Deciders that use what no production decider uses yet: rows guarded by a source version, tombstones, rows that are created
//! once, and claims beside another consumer's.

use domain::players::{Player, Visibility};
use domain::{Attributes, Check, Content, Decider, Decision, Deltas, Guard, Key, Need, RowError, Spread, State, Write};
use events::{Event, GameEnded, GameResult, Payload, PlayerId, PlayerResult};
use serde_json::json;

/// Counter of a player's medals.
pub(super) const MEDALS: &str = "medals";
/// Counter of a player's drawn games.
pub(super) const DRAWN: &str = "drawn";

/// Keeps a row for every player whose newest decided game has an odd number, and a tombstone for the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Presence;

impl Presence {
    /// Returns the key of a player's row.
    pub(super) fn key(game: &GameEnded, player_id: &PlayerId) -> Key {
        Key::view(format!("PRESENCE#{player_id}"), game.time_control.to_string())
    }

    /// Returns the sides of a game that it concerns: both players of a draw, or the winner alone.
    pub(super) fn sides(game: &GameEnded) -> Vec<&PlayerResult> {
        winner(game).map_or_else(|| vec![&game.white, &game.black], |winner| vec![winner])
    }
}

impl Decider for Presence {
    fn needs(&self, _event: &Event) -> Vec<Need> {
        Vec::new()
    }

    fn decide(&self, event: &Event, _state: &State) -> Result<Decision, RowError> {
        let Payload::GameEnded(game) = &event.payload else { return Ok(Decision::Ignore("no game".to_owned())) };
        let writes = Self::sides(game).into_iter().map(|side| {
            let present = Content::Row(attributes([("games", json!(side.games))]));
            let content = if side.games % 2 == 1 { present } else { Content::Tombstone };
            Write::Replace { key: Self::key(game, &side.player_id), content, guard: Guard::Newer(side.games) }
        });
        Ok(Decision::Apply { writes: writes.collect(), checks: Vec::new() })
    }
}

/// Gives the winner of a game a medal, unless the player is restricted, and counts medals and drawn games.
#[derive(Debug, Clone, Copy)]
pub(super) struct Medals;

impl Medals {
    /// Returns the key of a game's medal.
    pub(super) fn key(game_id: &str) -> Key {
        Key::view(format!("MEDAL#{game_id}"), "MEDAL")
    }

    /// Returns the target of a player's counters.
    pub(super) fn counters(player_id: &PlayerId) -> Key {
        Key::view(format!("MEDALS#{player_id}"), "COUNTERS")
    }
}

impl Decider for Medals {
    fn needs(&self, event: &Event) -> Vec<Need> {
        let Payload::GameEnded(game) = &event.payload else { return Vec::new() };
        winner(game).map(|winner| Need::Key(Player::key(&winner.player_id))).into_iter().collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Payload::GameEnded(game) = &event.payload else { return Ok(Decision::Ignore("no game".to_owned())) };
        let Some(winner) = winner(game) else {
            let drawn = [&game.white, &game.black].map(|side| counted(&side.player_id, DRAWN));
            return Ok(Decision::Apply { writes: drawn.to_vec(), checks: Vec::new() });
        };
        let player_key = Player::key(&winner.player_id);
        let record = state.row(&player_key)?;
        let Some(player) = record.decode::<Player>(&player_key)? else {
            return Ok(Decision::Reject(format!("player {} has no record", winner.player_id)));
        };
        if player.visibility() == Visibility::Hidden {
            return Ok(Decision::Ignore("the winner is restricted".to_owned()));
        }
        let medal = attributes([("player_id", json!(winner.player_id))]);
        let key = Self::key(&event.aggregate_id);
        let writes = vec![Write::Create { key, attributes: medal }, counted(&winner.player_id, MEDALS)];
        Ok(Decision::Apply { writes, checks: vec![Check { key: player_key, version: record.version }] })
    }
}

/// Returns who has won a game; nobody wins a draw.
pub(super) fn winner(game: &GameEnded) -> Option<&PlayerResult> {
    match game.result {
        GameResult::WhiteWins => Some(&game.white),
        GameResult::BlackWins => Some(&game.black),
        GameResult::Draw => None,
    }
}

fn counted(player_id: &PlayerId, counter: &str) -> Write {
    let deltas = Deltas::from([(counter.to_owned(), 1)]);
    Write::Add { key: Medals::counters(player_id), deltas, spread: Spread::NONE }
}

fn attributes<const N: usize>(values: [(&str, serde_json::Value); N]) -> Attributes {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
