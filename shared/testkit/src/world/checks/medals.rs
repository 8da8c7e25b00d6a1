//! Every won game has one medal, and the counters are a recount of the medals. After a player's restriction has been written,
//! none is created any more: what a decision relied on still held when it was committed.

use std::collections::{BTreeMap, BTreeSet};

use events::Payload;

use super::super::core::Core;
use super::super::deciders::Role;
use super::super::probes::{DRAWN, MEDALS, Medals, winner};
use super::statistics::counters;
use super::{Broken, compare};

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let too_old = core.history.too_old(Role::Medals);
    let standing: BTreeSet<_> = core.ledger.rows().into_keys().collect();
    let mut expected = BTreeMap::new();
    for event in &core.history.events {
        let Payload::GameEnded(game) = &event.payload else { continue };
        let about = || vec![event.aggregate_id.clone()];
        let Some(winner) = winner(game) else {
            if !too_old.contains(&event.event_id) {
                for side in [&game.white, &game.black] {
                    *expected.entry((Medals::counters(&side.player_id), DRAWN.to_owned())).or_default() += 1;
                }
            }
            continue;
        };
        let key = Medals::key(&event.aggregate_id);
        let restricted = core.history.restricted.get(&winner.player_id);
        match (standing.contains(&key), restricted) {
            (true, Some(restricted)) if core.history.created.get(&key).is_none_or(|created| created > restricted) => {
                let what = format!("{key} was created after {} was restricted at {restricted}", winner.player_id);
                return Err(Broken { what, about: about() });
            }
            (true, Some(_) | None) => {
                *expected.entry((Medals::counters(&winner.player_id), MEDALS.to_owned())).or_default() += 1;
            }
            (false, Some(_)) => {}
            (false, None) => return Err(Broken { what: format!("{key} is missing"), about: about() }),
        }
    }
    compare(&counters(core, "MEDALS#"), &expected, |(key, _)| core.history.concerning(&key.partition))
}
