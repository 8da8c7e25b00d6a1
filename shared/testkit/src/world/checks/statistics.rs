//! Every game is counted once for both players, except those that came too late for a claim and were set aside for repair.

use std::collections::BTreeMap;

use domain::Key;
use domain::statistics::{DRAWS, LOSSES, WINS, day_key, total_key};
use events::{Consumer, GameResult, Payload};

use super::super::core::Core;
use super::super::deciders::Role;
use super::{Broken, compare};

/// A counter: its item and its name.
pub(super) type Counter = (Key, String);

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    compare(&counters(core, "STATISTICS#"), &expected(core), |(key, _)| core.history.concerning(&key.partition))
}

/// Returns the counters of all items whose partition begins with a prefix.
pub(super) fn counters(core: &Core, prefix: &str) -> BTreeMap<Counter, i64> {
    let items = core.ledger.rows().into_iter().filter(|(key, _)| key.partition.starts_with(prefix));
    let numbers = items.flat_map(|(key, counters)| {
        let numbers = counters.into_iter().filter_map(|(name, count)| Some((name, count.as_i64()?)));
        numbers.map(move |(name, count)| ((key.clone(), name), count))
    });
    numbers.filter(|(_, count)| *count != 0).collect()
}

fn expected(core: &Core) -> BTreeMap<Counter, i64> {
    let too_old = core.history.too_old(Role::Production(Consumer::GameEndedStatistics));
    let mut counters = BTreeMap::new();
    for event in core.history.events.iter().filter(|event| !too_old.contains(&event.event_id)) {
        let Payload::GameEnded(game) = &event.payload else { continue };
        let (white, black) = match game.result {
            GameResult::WhiteWins => (WINS, LOSSES),
            GameResult::BlackWins => (LOSSES, WINS),
            GameResult::Draw => (DRAWS, DRAWS),
        };
        for (side, counter) in [(&game.white, white), (&game.black, black)] {
            let day = day_key(&side.player_id, game.time_control, event.occurred_at.day());
            for key in [total_key(&side.player_id, game.time_control), day] {
                *counters.entry((key, counter.to_owned())).or_default() += 1;
            }
        }
    }
    counters
}
