//! A row stands where the newest event put it, and none where the newest event removed it, however late the others came, and no version was
//! written twice.

use std::collections::BTreeMap;

use domain::Key;
use events::Payload;

use super::super::core::Core;
use super::super::probes::Presence;
use super::{Broken, compare};

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let rows = core.ledger.rows().into_iter().filter(|(key, _)| key.partition.starts_with("PRESENCE#"));
    let found: BTreeMap<Key, Option<u64>> =
        rows.map(|(key, attributes)| (key, attributes.get("games").and_then(serde_json::Value::as_u64))).collect();
    let again = core.history.source_versions.iter().find(|(_, times)| **times > 1);
    if let Some(((key, version), times)) = again {
        let what = format!("version {version} of {key} was written {times} times");
        return Err(Broken { what, about: core.history.concerning(&key.partition) });
    }
    compare(&found, &expected(core), |key| core.history.concerning(&key.partition))
}

fn expected(core: &Core) -> BTreeMap<Key, Option<u64>> {
    let mut rows = BTreeMap::new();
    for event in &core.history.events {
        let Payload::GameEnded(game) = &event.payload else { continue };
        for side in Presence::sides(game) {
            rows.insert(Presence::key(game, &side.player_id), Some(side.games));
        }
    }
    rows.retain(|_, games| games.is_some_and(|games| games % 2 == 1));
    rows
}
