//! Every claim stands for one effect, and is kept until no delivery could have any effect without it.

use std::collections::BTreeSet;
use std::time::Duration;

use consumer::CLAIM_AGE_MAX;
use events::{Consumer, Event, EventId, EventType, Payload};

use super::super::core::Core;
use super::super::deciders::Role;
use super::super::probes::winner;
use super::Broken;

/// By how much the clocks of two instances differ at most.
const CLOCK_SKEW_MAX: Duration = Duration::from_hours(12);

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    for ((consumer, event_id), (_, commits)) in &core.history.claims {
        if *commits != 1 {
            let what = format!("{consumer} has applied {event_id} {commits} times through a claim");
            return Err(Broken { what, about: core.history.names(*event_id) });
        }
    }
    for (claim, swept_at) in &core.history.swept {
        // An instance whose clock is slow believes the event to be younger than it is.
        if swept_at.since(claim.event_id.minted_at()) <= CLAIM_AGE_MAX + CLOCK_SKEW_MAX {
            let what = format!("the claim on {} was forgotten at {swept_at}, too early", claim.event_id);
            return Err(Broken { what, about: core.history.names(claim.event_id) });
        }
    }
    let game = |event: &Event| event.payload.event_type() == EventType::GameEnded;
    claimed(core, Role::Production(Consumer::GameEndedStatistics), game)?;
    let counted = |event: &Event| {
        let event_type = event.payload.event_type();
        event_type != EventType::CanarySent && event_type.consumers().iter().any(|one| one == Consumer::Activity)
    };
    claimed(core, Role::Production(Consumer::Activity), counted)?;
    claimed(core, Role::Medals, |event| {
        let Payload::GameEnded(game) = &event.payload else { return false };
        winner(game).is_none()
    })
}

/// Every event of a role has its claim, or was refused for its age.
fn claimed(core: &Core, role: Role, claims: impl Fn(&Event) -> bool) -> Result<(), Broken> {
    let too_old = core.history.too_old(role);
    let events = core.history.events.iter().filter(|event| claims(event));
    let expected: BTreeSet<EventId> =
        events.map(|event| event.event_id).filter(|event_id| !too_old.contains(event_id)).collect();
    let of_role = core.history.claims.keys().filter(|(consumer, _)| *consumer == role.consumer());
    let found: BTreeSet<EventId> = of_role.map(|(_, event_id)| *event_id).collect();
    match found.symmetric_difference(&expected).next() {
        None => Ok(()),
        Some(event_id) => {
            let is = if found.contains(event_id) { "claimed without an effect" } else { "not claimed" };
            let what = format!("{event_id} is {is} by {}", role.queue());
            Err(Broken { what, about: core.history.names(*event_id) })
        }
    }
}
