//! The rows of the boards, and the decisions on them: what a game's end makes of them, and what a player's own change does.
//! Both replace the row unchanged since it was read, so neither undoes the other.

use events::{Event, GameEnded, Payload, PlayerId, PlayerResult, Rating, TimeControl, Username};
use serde::{Deserialize, Serialize};

use super::histogram::{Block, moved};
use crate::decision::{attributes, foreign};
use crate::players::{Player, Visibility};
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
    /// Version of the player's record that the name and the visibility are from.
    pub player_version: u64,
    /// The rating after the newest game that was seen.
    pub rating: Rating,
    /// That game's number among the player's games: the row's source version.
    pub games: u64,
    /// Where the order index has the row; a hidden player's row is not in it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
}

/// Keys of the order index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Partition of the order index.
    pub order_block: String,
    /// Position within it.
    pub order_rank: String,
}

impl Order {
    fn of(time_control: TimeControl, player_id: &PlayerId, rating: Rating, visibility: Visibility) -> Option<Self> {
        match visibility {
            Visibility::Visible => Some(Self {
                order_block: order_partition(time_control, Block::of(rating)),
                order_rank: order_rank(rating, player_id),
            }),
            Visibility::Hidden => None,
        }
    }
}

impl BoardRow {
    /// Returns the key of a player's row.
    pub fn key(time_control: TimeControl, player_id: &PlayerId) -> Key {
        Key::view(format!("BOARD#{time_control}#{player_id}"), "ROW")
    }

    /// Returns whether the board shows the row.
    pub fn visibility(&self) -> Visibility {
        match &self.order {
            Some(_) => Visibility::Visible,
            None => Visibility::Hidden,
        }
    }

    /// Returns the rating that the histogram counts; it does not count the hidden.
    fn counted_rating(&self) -> Option<Rating> {
        self.order.as_ref().map(|_| self.rating)
    }

    /// Returns the row with what a player's record says, if it has not said so before.
    fn with_player(&self, time_control: TimeControl, player: &Player, player_version: u64) -> Option<Self> {
        let newer = player_version > self.player_version;
        newer.then(|| Self {
            username: player.username.clone(),
            player_version,
            order: Order::of(time_control, &self.player_id, self.rating, player.visibility()),
            ..self.clone()
        })
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
        let Payload::GameEnded(game) = &event.payload else { return Vec::new() };
        [&game.white, &game.black]
            .into_iter()
            .flat_map(|side| [BoardRow::key(game.time_control, &side.player_id), Player::key(&side.player_id)])
            .map(Need::Key)
            .collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Payload::GameEnded(game) = &event.payload else { return foreign(event) };
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
    let (username, player_version, visibility, check) = match &before {
        Some(before) if before.games >= side.games => return Ok(Side::Stale),
        Some(before) => (before.username.clone(), before.player_version, before.visibility(), None),
        None => {
            // Later the player's own events keep name and visibility; until there is a row they find nothing to change.
            // The check closes the gap between reading the record and creating the row.
            let player_key = Player::key(&side.player_id);
            let record = state.row(&player_key)?;
            let Some(player) = record.decode::<Player>(&player_key)? else {
                return Ok(Side::Unknown);
            };
            let check = Check { key: player_key, version: record.version };
            let visibility = player.visibility();
            (player.username, record.version, visibility, Some(check))
        }
    };
    let after = BoardRow {
        player_id: side.player_id.clone(),
        username,
        player_version,
        rating: side.rating,
        games: side.games,
        order: Order::of(game.time_control, &side.player_id, side.rating, visibility),
    };
    let writes = replaced(game.time_control, row.version, before.as_ref(), &after)?;
    Ok(Side::Moves { row: writes, check })
}

/// Keeps names and visibility on the boards: every row of a player gets what the player's record says now.
///
/// The event only says that there is something to read. Whichever event of a player comes first brings all rows up to
/// the record; the others find them as new as the record and change nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlayerOnBoards;

impl Decider for PlayerOnBoards {
    fn needs(&self, event: &Event) -> Vec<Need> {
        let Some(player_id) = changed_player(&event.payload) else { return Vec::new() };
        let rows = TimeControl::ALL.map(|time_control| BoardRow::key(time_control, player_id));
        std::iter::once(Player::key(player_id)).chain(rows).map(Need::Key).collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Some(player_id) = changed_player(&event.payload) else { return foreign(event) };
        let player_key = Player::key(player_id);
        let record = state.row(&player_key)?;
        let Some(player) = record.decode::<Player>(&player_key)? else {
            return Ok(Decision::Reject(format!("player {player_id} has no record")));
        };
        let mut writes = Vec::new();
        for time_control in TimeControl::ALL {
            let key = BoardRow::key(time_control, player_id);
            let row = state.row(&key)?;
            let Some(before) = row.decode::<BoardRow>(&key)? else { continue };
            if let Some(after) = before.with_player(time_control, &player, record.version) {
                writes.extend(replaced(time_control, row.version, Some(&before), &after)?);
            }
        }
        if writes.is_empty() {
            return Ok(Decision::Ignore("no board shows an older state of the player".to_owned()));
        }
        // Whoever has been restricted since the record was read is not shown again in between.
        Ok(Decision::Apply { writes, checks: vec![Check { key: player_key, version: record.version }] })
    }
}

fn changed_player(payload: &Payload) -> Option<&PlayerId> {
    if let Payload::PlayerRegistered(player) = payload {
        return Some(&player.player_id);
    }
    if let Payload::PlayerRenamed(player) = payload {
        return Some(&player.player_id);
    }
    if let Payload::PlayerRestricted(player) = payload {
        return Some(&player.player_id);
    }
    let Payload::PlayerReinstated(player) = payload else { return None };
    Some(&player.player_id)
}

/// Returns the writes that put `after` in the place of the row `before`, which had this version.
fn replaced(
    time_control: TimeControl,
    version: u64,
    before: Option<&BoardRow>,
    after: &BoardRow,
) -> Result<Vec<Write>, RowError> {
    let key = BoardRow::key(time_control, &after.player_id);
    let content = Content::Row(attributes(after, &key)?);
    let mut writes = vec![Write::Replace { key, content, guard: Guard::Unchanged(version) }];
    writes.extend(moved(time_control, before.and_then(BoardRow::counted_rating), after.counted_rating()));
    Ok(writes)
}
