//! Every player stands on the board as the player's newest game says.

use std::collections::BTreeMap;

use domain::leaderboard::BoardRow;
use events::{Payload, TimeControl};
use serde_json::Value;

use super::super::core::Core;
use super::{Broken, compare};
use crate::sample;

/// A player's place: board and player.
pub(super) type Place = (TimeControl, String);

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    compare(&rows(core)?, &expected(core), |(_, player_id)| core.history.concerning(player_id))
}

/// Returns the rows of all boards: rating, games, name.
pub(super) fn rows(core: &Core) -> Result<BTreeMap<Place, (u16, u64, String)>, Broken> {
    let rows = core.ledger.rows().into_iter().filter(|(key, _)| key.partition.starts_with("BOARD#"));
    rows.map(|(key, attributes)| {
        let row: BoardRow = serde_json::from_value(Value::Object(attributes)).map_err(|error| Broken {
            what: format!("{key} is no board row: {error}"),
            about: vec![key.to_string()],
        })?;
        let time_control = TimeControl::ALL.into_iter().find(|board| key == BoardRow::key(*board, &row.player_id));
        let unknown = || Broken { what: format!("{key} is on no board"), about: vec![key.to_string()] };
        let place = (time_control.ok_or_else(unknown)?, row.player_id.to_string());
        Ok((place, (row.rating.points(), row.games, row.username.to_string())))
    })
    .collect()
}

fn expected(core: &Core) -> BTreeMap<Place, (u16, u64, String)> {
    let mut rows = BTreeMap::new();
    for event in &core.history.events {
        let Payload::GameEnded(game) = &event.payload else { continue };
        for side in [&game.white, &game.black] {
            let place = (game.time_control, side.player_id.to_string());
            rows.insert(place, (side.rating.points(), side.games, side.username.to_string()));
        }
    }
    debug_assert!(
        rows.values().all(|(_, _, name)| (0..64).any(|number| sample::username(number).to_string() == *name))
    );
    rows
}
