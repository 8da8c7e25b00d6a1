//! The graph shows every follow from both its ends as its record says.

use std::collections::BTreeMap;

use domain::Key;
use domain::follows::Follow;
use domain::graph::{Direction, FollowRow};
use events::Timestamp;
use serde_json::Value;

use super::super::core::Core;
use super::counts::records;
use super::{Broken, compare};

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let rows = core.ledger.rows().into_iter();
    let of_graph = |key: &Key| ["FOLLOWERS#", "FOLLOWING#"].iter().any(|prefix| key.partition.starts_with(prefix));
    let found: BTreeMap<Key, Option<Timestamp>> = rows
        .filter(|(key, _)| of_graph(key))
        .map(|(key, attributes)| {
            let row: Option<FollowRow> = serde_json::from_value(Value::Object(attributes)).ok();
            (key, row.and_then(|row| row.since))
        })
        .collect();
    let mut expected = BTreeMap::new();
    for Follow { followed_id, follower_id, since } in records::<Follow>(core, "FOLLOWED#") {
        expected.insert(FollowRow::key(Direction::Followers, &followed_id, &follower_id), since);
        expected.insert(FollowRow::key(Direction::Following, &follower_id, &followed_id), since);
    }
    compare(&found, &expected, |key| core.history.concerning(&key.to_string()))
}
