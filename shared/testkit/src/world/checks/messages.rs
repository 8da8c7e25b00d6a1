//! Every message is acknowledged with its outcome or in the dead letter queue for a reason; never neither, never both. A canary's
//! outcome is that it is one.

use std::time::Duration;

use consumer::{CLAIM_AGE_MAX, Outcome};
use events::{EventId, Payload};

use super::super::core::Core;
use super::super::history::{Body, Fate, Story, is_too_old};
use super::Broken;

/// By how much an instance's clock is ahead at most.
const CLOCK_SKEW_MAX: Duration = Duration::from_hours(12);

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let (expired, waiting) = (core.expired(), core.waiting());
    if expired + waiting as u64 > 0 {
        let what = format!("{expired} messages have expired and {waiting} are still waiting");
        return Err(Broken { what, about: Vec::new() });
    }
    if let Some(game_id) = core.history.refused.first() {
        return Err(Broken {
            what: format!("{game_id} was refused by the request path"),
            about: vec![game_id.clone()],
        });
    }
    for (message, story) in &core.history.messages {
        judged(core, story).map_err(|what| {
            let about = match &story.body {
                Body::Event(event_id) => core.history.names(*event_id),
                Body::Poison(_) => vec![message.to_string()],
            };
            Broken { what: format!("{}: {what}; it was {:?}", core.story_name(*message), story.outcomes), about }
        })?;
    }
    Ok(())
}

fn judged(core: &Core, story: &Story) -> Result<(), String> {
    for (at, outcome) in &story.outcomes {
        if let (Body::Event(event_id), Outcome::Rejected(reason)) = (&story.body, outcome) {
            let age = at.since(event_id.minted_at());
            if !is_too_old(outcome) || age + CLOCK_SKEW_MAX <= CLAIM_AGE_MAX {
                return Err(format!("rejected at the age of {age:?} although it can be read: {reason}"));
            }
        }
    }
    match (&story.fate, &story.body) {
        (Fate::Waiting, _) => Err("neither acknowledged nor dead-lettered".to_owned()),
        (Fate::Redriven, _) | (Fate::DeadLettered, Body::Poison(_)) => Ok(()),
        (Fate::Acknowledged(_), Body::Poison(_)) => Err("poison acknowledged".to_owned()),
        (Fate::Acknowledged(Some(outcome)), Body::Event(event_id)) if outcome.acknowledges() => {
            if (*outcome == Outcome::Canary) == is_canary(core, *event_id) {
                Ok(())
            } else {
                Err(format!("acknowledged as {outcome:?}"))
            }
        }
        (Fate::Acknowledged(outcome), Body::Event(_)) => Err(format!("acknowledged although it was {outcome:?}")),
        (Fate::DeadLettered, Body::Event(event_id)) => dead_letter(core, story, *event_id),
    }
}

fn is_canary(core: &Core, event_id: EventId) -> bool {
    core.history.event(event_id).is_some_and(|event| matches!(event.payload, Payload::CanarySent(_)))
}

/// What is in the dead letter queue after the last redrive, when nothing goes wrong any more, is there because of its age.
fn dead_letter(core: &Core, story: &Story, event_id: EventId) -> Result<(), String> {
    let refused_for_age = story.outcomes.last().is_some_and(|(_, outcome)| is_too_old(outcome));
    let claimed = core.history.claims.contains_key(&(story.role.consumer(), event_id));
    match (refused_for_age, claimed) {
        (true, _) => Ok(()),
        (false, _) => Err(format!("dead-lettered after {} receives although nothing is wrong with it", story.receives)),
    }
}
