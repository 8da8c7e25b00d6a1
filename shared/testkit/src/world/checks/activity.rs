//! A day's events are counted once each by their type, and its active players once each.

use std::collections::{BTreeMap, BTreeSet};

use domain::activity::{ACTIVE_PLAYERS, events_key, players_key};
use events::{Consumer, Day, Event, EventType, OrderEvent, Payload, PlayerId};

use super::super::core::Core;
use super::super::deciders::Role;
use super::counts::summed;
use super::statistics::counters;
use super::{Broken, compare};

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let found = summed(counters(core, "ACTIVITY#").into_iter());
    let mut expected = BTreeMap::new();
    let too_old = core.history.too_old(Role::Production(Consumer::Activity));
    let counted = |event: &&Event| {
        let event_type = event.payload.event_type();
        // No decider is asked about a canary, so nobody counts it here.
        let counts = event_type != EventType::CanarySent
            && event_type.consumers().iter().any(|consumer| consumer == Consumer::Activity);
        counts && !too_old.contains(&event.event_id)
    };
    for event in core.history.events.iter().filter(counted) {
        let counter = event.payload.event_type().as_str().to_owned();
        *expected.entry((events_key(event.occurred_at.day()), counter)).or_default() += 1;
    }
    let active: BTreeSet<(Day, &PlayerId)> = core
        .history
        .events
        .iter()
        .flat_map(|event| active(event).into_iter().map(|player_id| (event.occurred_at.day(), player_id)))
        .collect();
    for (day, _) in active {
        *expected.entry((players_key(day), ACTIVE_PLAYERS.to_owned())).or_default() += 1;
    }
    compare(&found, &expected, |(key, _)| core.history.concerning(&key.partition))
}

/// Returns who did what has happened; what moderators and consumers do is nobody's activity.
fn active(event: &Event) -> Vec<&PlayerId> {
    match &event.payload {
        Payload::GameEnded(game) => vec![&game.white.player_id, &game.black.player_id],
        Payload::PlayerRegistered(player) => vec![&player.player_id],
        Payload::PlayerRenamed(player) => vec![&player.player_id],
        Payload::PlayerRestricted(_)
        | Payload::PlayerReinstated(_)
        | Payload::FanOutAdvanced(_)
        | Payload::NotificationRequested(_)
        | Payload::CanarySent(_) => Vec::new(),
        Payload::PostPublished(post) => vec![&post.author_id],
        Payload::PostDeleted(post) => vec![&post.author_id],
        Payload::ReactionAdded(reaction) => vec![&reaction.player_id],
        Payload::ReactionRemoved(reaction) => vec![&reaction.player_id],
        Payload::FollowStarted(follow) => vec![&follow.follower_id],
        Payload::FollowEnded(follow) => vec![&follow.follower_id],
        Payload::Order(OrderEvent::Placed(order)) => vec![&order.player_id],
        Payload::Order(
            OrderEvent::Paid(_)
            | OrderEvent::Shipped(_)
            | OrderEvent::Delivered(_)
            | OrderEvent::Cancelled(_)
            | OrderEvent::Refunded(_),
        ) => Vec::new(),
    }
}
