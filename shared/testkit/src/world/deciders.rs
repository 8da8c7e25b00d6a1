//! Who decides in a world: the production deciders, the probes, and any of them misjudging.

use domain::leaderboard::{BoardRow, Leaderboard};
use domain::statistics::Statistics;
use domain::{Decider, Decision, Guard, Need, Row, RowError, State, Write};
use events::{Consumer, Event, Payload};
use serde_json::json;

use super::probes::{Medals, Presence};
use super::sabotage::Misjudgement;

/// A consumer's role in the world: which decider runs behind which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Leaderboard,
    Statistics,
    Presence,
    Medals,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [Self::Leaderboard, Self::Statistics, Self::Presence, Self::Medals];

    /// Returns the name of the role's queue.
    pub(super) fn queue(self) -> &'static str {
        match self {
            Self::Leaderboard => Consumer::GameEnded.as_str(),
            Self::Statistics => Consumer::GameEndedStatistics.as_str(),
            Self::Presence => "presence",
            Self::Medals => "medals",
        }
    }

    /// Returns the consumer in whose name it decides. Probes borrow one.
    pub(super) fn consumer(self) -> Consumer {
        match self {
            Self::Leaderboard | Self::Presence | Self::Medals => Consumer::GameEnded,
            Self::Statistics => Consumer::GameEndedStatistics,
        }
    }

    /// Returns the decider, with its mistakes.
    pub(super) fn decider(self, misjudgements: Vec<Misjudgement>) -> Roleplay {
        Roleplay { role: self, misjudgements }
    }
}

/// A decider in its role.
#[derive(Debug)]
pub(super) struct Roleplay {
    role: Role,
    misjudgements: Vec<Misjudgement>,
}

impl Roleplay {
    fn misjudges(&self, misjudgement: Misjudgement) -> bool {
        self.misjudgements.contains(&misjudgement)
    }
}

impl Decider for Roleplay {
    fn needs(&self, event: &Event) -> Vec<Need> {
        match self.role {
            Role::Leaderboard => Leaderboard.needs(event),
            Role::Statistics => Statistics.needs(event),
            Role::Presence => Presence.needs(event),
            Role::Medals => Medals.needs(event),
        }
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        match self.role {
            Role::Statistics => Statistics.decide(event, state),
            Role::Presence => Presence.decide(event, state),
            Role::Medals => Medals.decide(event, state),
            Role::Leaderboard if self.misjudgements.is_empty() => Leaderboard.decide(event, state),
            Role::Leaderboard => self.misjudged(event, state),
        }
    }
}

impl Roleplay {
    /// Decides on a state that is bent so that the decider does what the mistake would make it do.
    fn misjudged(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Payload::GameEnded(game) = &event.payload else { return Leaderboard.decide(event, state) };
        let mut bent = state.clone();
        for side in [&game.white, &game.black] {
            let key = BoardRow::key(game.time_control, &side.player_id);
            let row = bent.row(&key)?.clone();
            let games = row.attributes.as_ref().and_then(|attributes| attributes.get("games")?.as_u64());
            if self.misjudges(Misjudgement::SameNumberIsNewer) && games == Some(side.games) {
                let mut row = row.clone();
                if let Some(attributes) = &mut row.attributes {
                    attributes.insert("games".to_owned(), json!(side.games - 1));
                }
                bent.insert(key.clone(), row);
            }
            if self.misjudges(Misjudgement::RowBeforeForgotten) && games.is_some_and(|games| games < side.games) {
                bent.insert(key, Row { version: row.version, attributes: None });
            }
        }
        let mut decision = Leaderboard.decide(event, &bent)?;
        if self.misjudges(Misjudgement::DeltaGuardedByNewer)
            && let Decision::Apply { writes, .. } = &mut decision
        {
            for write in writes {
                if let Write::Replace { key, guard, .. } = write {
                    let sides = [&game.white, &game.black].into_iter();
                    let mut own = sides.filter(|side| *key == BoardRow::key(game.time_control, &side.player_id));
                    *guard = own.next().map_or(*guard, |side| Guard::Newer(side.games));
                }
            }
        }
        Ok(decision)
    }
}
