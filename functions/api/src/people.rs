//! Players as others see them in lists: by their names of now, and not at all while they are restricted.

use std::collections::BTreeMap;

use domain::Key;
use domain::players::{Player, Visibility};
use events::{PlayerId, Username};

use crate::problem::Problem;
use crate::store::Store;

/// Returns the names of those of these players whom others get to see.
pub(crate) async fn visible(store: &Store, players: &[PlayerId]) -> Result<BTreeMap<PlayerId, Username>, Problem> {
    let keys: Vec<Key> = players.iter().map(Player::key).collect();
    let state = store.fetch(&keys).await?;
    let mut visible = BTreeMap::new();
    for key in &keys {
        match state.row(key)?.decode::<Player>(key)? {
            Some(player) if player.visibility() == Visibility::Visible => {
                visible.insert(player.player_id, player.username);
            }
            Some(_) | None => {}
        }
    }
    Ok(visible)
}
