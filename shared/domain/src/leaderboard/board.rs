//! The rows of the boards, and the decision that a game's end makes on them.

use events::{Event, GameEnded, Payload, PlayerId, PlayerResult, Rating, TimeControl, Username};
use serde::{Deserialize, Serialize};

use super::histogram::{Block, moved};
use crate::decision::attributes;
use crate::players::Player;
use crate::{Check, Content, Decider, Decision, Guard, Key, Need, RowError, State, Write};

/// The index that lists a block's rows by rating.
pub const ORDER_INDEX: &str = "order";
/// The index's partition key attribute.
pub const ORDER_BLOCK: &str = "order_block";
/// The index's sort key attribute.
pub const ORDER_RANK: &str = "order_rank";

/// A player on a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardRow {
    /// Who.
    pub player_id: PlayerId,
    /// The player's name, copied from the player's record.
    pub username: Username,
    /// Version of the player's record that the name is from.
    pub player_version: u64,
    /// The rating after the newest game that was seen.
    pub rating: Rating,
    /// That game's number among the player's games: the row's source version.
    pub games: u64,
    /// Partition of the order index.
    pub order_block: String,
    /// Position within it.
    pub order_rank: String,
}

impl BoardRow {
    /// Returns the key of a player's row.
    pub fn key(time_control: TimeControl, player_id: &PlayerId) -> Key {
        Key::view(format!("BOARD#{time_control}#{player_id}"), "ROW")
    }
}

/// Returns the partition of the order index that lists a block.
pub fn order_partition(time_control: TimeControl, block: Block) -> String {
    format!("BOARD#{time_control}#{:02}", block.number())
}

/// Returns a row's position within its block: by rating, then by player.
pub fn order_rank(rating: Rating, player_id: &PlayerId) -> String {
    format!("{:04}#{player_id}", rating.points())
}

/// Keeps the boards: both players of a game get the rating that the newest of their games says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leaderboard;

impl Decider for Leaderboard {
    fn needs(&self, event: &Event) -> Vec<Need> {
        let Payload::GameEnded(game) = &event.payload;
        [&game.white, &game.black]
            .into_iter()
            .flat_map(|side| [BoardRow::key(game.time_control, &side.player_id), Player::key(&side.player_id)])
            .map(Need::Key)
            .collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Payload::GameEnded(game) = &event.payload;
        let mut writes = Vec::new();
        let mut checks = Vec::new();
        for side in [&game.white, &game.black] {
            match decide_side(game, side, state)? {
                Side::Stale => {}
                Side::Unknown => return Ok(Decision::Reject(format!("player {} has no record", side.player_id))),
                Side::Moves { row, check } => {
                    writes.extend(row);
                    checks.extend(check);
                }
            }
        }
        Ok(if writes.is_empty() { Decision::Stale } else { Decision::Apply { writes, checks } })
    }
}

enum Side {
    Stale,
    Unknown,
    Moves { row: Vec<Write>, check: Option<Check> },
}

fn decide_side(game: &GameEnded, side: &PlayerResult, state: &State) -> Result<Side, RowError> {
    let key = BoardRow::key(game.time_control, &side.player_id);
    let row = state.row(&key)?;
    let before = row.decode::<BoardRow>(&key)?;
    let (username, player_version, check) = match &before {
        Some(before) if before.games >= side.games => return Ok(Side::Stale),
        Some(before) => (before.username.clone(), before.player_version, None),
        None => {
            // Later the player's own events keep the name; until there is a row they find nothing to change. The check
            // closes the gap between reading the name and creating the row.
            let player_key = Player::key(&side.player_id);
            let record = state.row(&player_key)?;
            let Some(player) = record.decode::<Player>(&player_key)? else {
                return Ok(Side::Unknown);
            };
            (player.username, record.version, Some(Check { key: player_key, version: record.version }))
        }
    };
    let after = BoardRow {
        player_id: side.player_id.clone(),
        username,
        player_version,
        rating: side.rating,
        games: side.games,
        order_block: order_partition(game.time_control, Block::of(side.rating)),
        order_rank: order_rank(side.rating, &side.player_id),
    };
    let content = Content::Row(attributes(&after, &key)?);
    let mut writes = vec![Write::Replace { key, content, guard: Guard::Unchanged(row.version) }];
    writes.extend(moved(game.time_control, before.map(|before| before.rating), Some(side.rating)));
    Ok(Side::Moves { row: writes, check })
}
