//! What goes on in a day: events by type, and how many players were active. Both are increments on counters that every event
//! of a day changes, so they are spread.

use std::collections::BTreeSet;

use events::{Day, Event, OrderEvent, Payload, PlayerId};

use crate::decision::foreign;
use crate::{Attributes, Content, Decider, Decision, Deltas, Guard, Key, Need, RowError, Spread, State, Write};

/// Counter of active players.
pub const ACTIVE_PLAYERS: &str = "active_players";
/// Every event of a day changes these counters: eight items each.
pub const DAY_SPREAD: Spread = Spread::over(8);

/// Returns the target of a day's numbers of events, a counter a type.
pub fn events_key(day: Day) -> Key {
    Key::view(format!("ACTIVITY#{day}"), "EVENTS")
}

/// Returns the target of a day's number of active players.
pub fn players_key(day: Day) -> Key {
    Key::view(format!("ACTIVITY#{day}"), "PLAYERS")
}

/// Returns the key of the row that says that a player was active on a day.
pub fn active_key(day: Day, player_id: &PlayerId) -> Key {
    Key::view(format!("ACTIVE#{day}#{player_id}"), "ROW")
}

/// Counts every event once, by its type and the day on which it happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventCounts;

impl Decider for EventCounts {
    fn needs(&self, _event: &Event) -> Vec<Need> {
        Vec::new()
    }

    fn decide(&self, event: &Event, _state: &State) -> Result<Decision, RowError> {
        let deltas = Deltas::from([(event.payload.event_type().as_str().to_owned(), 1)]);
        let writes = vec![Write::Add { key: events_key(event.occurred_at.day()), deltas, spread: DAY_SPREAD }];
        Ok(Decision::Apply { writes, checks: Vec::new() })
    }
}

/// Counts every player once a day on which the player did something.
///
/// The count goes up with the row that says so, and only where there is none: no claim is needed, and no event is too old.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActivePlayers;

impl Decider for ActivePlayers {
    fn needs(&self, event: &Event) -> Vec<Need> {
        let day = event.occurred_at.day();
        active(&event.payload).into_iter().map(|player_id| active_key(day, player_id).into()).collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let day = event.occurred_at.day();
        let players = active(&event.payload);
        if players.is_empty() {
            return foreign(event);
        }
        let mut writes = Vec::new();
        for player_id in players {
            let key = active_key(day, player_id);
            if state.row(&key)?.version == 0 {
                // Not `Create`: where another event has created one of two rows meanwhile, the other one is still to be made.
                let content = Content::Row(Attributes::new());
                writes.push(Write::Replace { key, content, guard: Guard::Unchanged(0) });
            }
        }
        let new_players = i64::try_from(writes.len()).unwrap_or(0);
        if new_players == 0 {
            return Ok(Decision::Ignore("counted on this day before".to_owned()));
        }
        let deltas = Deltas::from([(ACTIVE_PLAYERS.to_owned(), new_players)]);
        writes.push(Write::Add { key: players_key(day), deltas, spread: DAY_SPREAD });
        Ok(Decision::Apply { writes, checks: Vec::new() })
    }
}

/// Returns the players who did what has happened.
fn active(payload: &Payload) -> BTreeSet<&PlayerId> {
    let one = |player_id| BTreeSet::from([player_id]);
    if let Payload::GameEnded(game) = payload {
        return BTreeSet::from([&game.white.player_id, &game.black.player_id]);
    }
    if let Payload::PlayerRegistered(player) = payload {
        return one(&player.player_id);
    }
    if let Payload::PlayerRenamed(player) = payload {
        return one(&player.player_id);
    }
    if let Payload::PostPublished(post) = payload {
        return one(&post.author_id);
    }
    if let Payload::PostDeleted(post) = payload {
        return one(&post.author_id);
    }
    if let Payload::ReactionAdded(reaction) = payload {
        return one(&reaction.player_id);
    }
    if let Payload::ReactionRemoved(reaction) = payload {
        return one(&reaction.player_id);
    }
    if let Payload::FollowStarted(follow) = payload {
        return one(&follow.follower_id);
    }
    if let Payload::Order(OrderEvent::Placed(order)) = payload {
        return one(&order.player_id);
    }
    let Payload::FollowEnded(follow) = payload else { return BTreeSet::new() };
    one(&follow.follower_id)
}
