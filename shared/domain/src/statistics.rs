//! Players' results by time control, in total and by day: counters that an event adds to, caught by its claim. They cannot
//! be computed from what they were, so they cannot be rebuilt from a newer state either, only from all games.

use events::{Day, Event, GameEnded, GameResult, Payload, PlayerId, TimeControl};

use crate::decision::foreign;
use crate::{Decider, Decision, Deltas, Key, Need, RowError, Spread, State, Write};

/// Counter of games won.
pub const WINS: &str = "wins";
/// Counter of games drawn.
pub const DRAWS: &str = "draws";
/// Counter of games lost.
pub const LOSSES: &str = "losses";

/// Returns the partition of all of a player's statistics.
pub fn partition(player_id: &PlayerId) -> String {
    format!("STATISTICS#{player_id}")
}

/// Returns the key of a player's results of one time control, over all days.
pub fn total_key(player_id: &PlayerId, time_control: TimeControl) -> Key {
    Key::view(partition(player_id), format!("TOTAL#{time_control}"))
}

/// Returns the key of a player's results of one time control on one day.
pub fn day_key(player_id: &PlayerId, time_control: TimeControl, day: Day) -> Key {
    Key::view(partition(player_id), format!("DAY#{day}#{time_control}"))
}

/// Counts each game once for both players.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics;

impl Decider for Statistics {
    fn needs(&self, _event: &Event) -> Vec<Need> {
        Vec::new()
    }

    fn decide(&self, event: &Event, _state: &State) -> Result<Decision, RowError> {
        let Payload::GameEnded(game) = &event.payload else { return foreign(event) };
        Ok(Decision::Apply { writes: writes(game, event.occurred_at.day()), checks: Vec::new() })
    }
}

fn writes(game: &GameEnded, day: Day) -> Vec<Write> {
    let (white_counter, black_counter) = match game.result {
        GameResult::WhiteWins => (WINS, LOSSES),
        GameResult::BlackWins => (LOSSES, WINS),
        GameResult::Draw => (DRAWS, DRAWS),
    };
    [(&game.white, white_counter), (&game.black, black_counter)]
        .into_iter()
        .flat_map(|(side, counter)| {
            let player_id = &side.player_id;
            [total_key(player_id, game.time_control), day_key(player_id, game.time_control, day)]
                .map(|key| Write::Add { key, deltas: Deltas::from([(counter.to_owned(), 1)]), spread: Spread::NONE })
        })
        .collect()
}
