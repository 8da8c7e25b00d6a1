//! Every won game has one medal, and the counters are a recount of the medals. While a player is restricted none is created:
//! what a decision relied on still held when it was committed.

use std::collections::{BTreeMap, BTreeSet};

use events::{EventType, Payload, PlayerId, Timestamp};

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
        let restrictions = restrictions(core, &winner.player_id);
        if !standing.contains(&key) {
            if restrictions.is_empty() {
                return Err(Broken { what: format!("{key} is missing"), about: about() });
            }
            continue;
        }
        *expected.entry((Medals::counters(&winner.player_id), MEDALS.to_owned())).or_default() += 1;
        let created = core.history.created.get(&key).copied();
        let within = |(from, until): &&(Timestamp, Option<Timestamp>)| {
            created.is_some_and(|created| *from < created && until.is_none_or(|until| created < until))
        };
        if let Some((from, _)) = restrictions.iter().find(within) {
            let what = format!("{key} was created while {} was restricted, since {from}", winner.player_id);
            return Err(Broken { what, about: about().into_iter().chain([winner.player_id.to_string()]).collect() });
        }
    }
    compare(&counters(core, "MEDALS#"), &expected, |(key, _)| core.history.concerning(&key.partition))
}

/// Returns from when until when a player was restricted.
fn restrictions(core: &Core, player_id: &PlayerId) -> Vec<(Timestamp, Option<Timestamp>)> {
    let mut restrictions: Vec<(Timestamp, Option<Timestamp>)> = Vec::new();
    for event in core.history.events.iter().filter(|event| event.aggregate_id == player_id.as_str()) {
        let open = restrictions.last_mut().filter(|(_, until)| until.is_none());
        match (event.payload.event_type(), open) {
            (EventType::PlayerReinstated, Some((_, until))) => *until = Some(event.occurred_at),
            (EventType::PlayerRestricted, None) => restrictions.push((event.occurred_at, None)),
            (_, _) => {}
        }
    }
    restrictions
}
