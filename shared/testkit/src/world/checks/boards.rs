//! Every player stands on the board as the player's newest game says, under the name and with the visibility of the player's
//! record.

use std::collections::BTreeMap;

use domain::leaderboard::BoardRow;
use domain::players::{Player, Visibility};
use events::{Payload, PlayerId, TimeControl};
use serde_json::Value;

use super::super::core::Core;
use super::{Broken, compare};

/// A player's place: board and player.
type Place = (TimeControl, PlayerId);
/// What stands there: rating, games, name, and whether others see it.
type Standing = (u16, u64, String, bool);

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let rows = rows(core)?.into_iter().map(|(place, row)| (place, standing(&row))).collect();
    compare(&rows, &expected(core)?, |(_, player_id)| core.history.concerning(player_id.as_str()))
}

/// Returns the rows of all boards.
pub(super) fn rows(core: &Core) -> Result<BTreeMap<Place, BoardRow>, Broken> {
    let rows = core.ledger.rows().into_iter().filter(|(key, _)| key.partition.starts_with("BOARD#"));
    rows.map(|(key, attributes)| {
        let row: BoardRow = serde_json::from_value(Value::Object(attributes)).map_err(|error| Broken {
            what: format!("{key} is no board row: {error}"),
            about: vec![key.to_string()],
        })?;
        let time_control = TimeControl::ALL.into_iter().find(|board| key == BoardRow::key(*board, &row.player_id));
        let unknown = || Broken { what: format!("{key} is on no board"), about: vec![key.to_string()] };
        Ok(((time_control.ok_or_else(unknown)?, row.player_id.clone()), row))
    })
    .collect()
}

fn standing(row: &BoardRow) -> Standing {
    (row.rating.points(), row.games, row.username.to_string(), row.visibility() == Visibility::Visible)
}

fn expected(core: &Core) -> Result<BTreeMap<Place, Standing>, Broken> {
    let mut standings = BTreeMap::new();
    for event in &core.history.events {
        let Payload::GameEnded(game) = &event.payload else { continue };
        for side in [&game.white, &game.black] {
            let key = Player::key(&side.player_id);
            let record = core.ledger.row(&key).decode::<Player>(&key).ok().flatten();
            let gone = || Broken { what: format!("{key} is gone"), about: vec![side.player_id.to_string()] };
            let player = record.ok_or_else(gone)?;
            let visible = player.visibility() == Visibility::Visible;
            let standing = (side.rating.points(), side.games, player.username.to_string(), visible);
            standings.insert((game.time_control, side.player_id.clone()), standing);
        }
    }
    Ok(standings)
}
