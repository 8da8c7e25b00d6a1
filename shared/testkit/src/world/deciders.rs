//! Who decides in a world: the production deciders, the probes, and any of them misjudging.

use domain::activity::{ActivePlayers, EventCounts};
use domain::fan_out::FanOut;
use domain::graph::FollowGraph;
use domain::inbox::{Inbox, Letter};
use domain::leaderboard::{BoardRow, Leaderboard, PlayerOnBoards};
use domain::orders::{GAPS, OrderViews};
use domain::posts::PostCounts;
use domain::reactions::ReactionCounts;
use domain::statistics::Statistics;
use domain::{Content, Courier, Decider, Decision, End, Errand, Guard, Need, RowError, State, Table, Write};
use events::{Consumer, Event, EventType, Payload, QueueOrder};
use serde_json::json;

use super::probes::{Medals, Presence};
use super::sabotage::Misjudgement;

/// A role in the world: which decider runs behind which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A consumer as it is in production.
    Production(Consumer),
    /// A probe of rows under source versions and of tombstones.
    Presence,
    /// A probe of rows that are created once, of checks and of claims.
    Medals,
}

impl Role {
    /// Returns all roles.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Consumer::ALL.into_iter().map(Self::Production).chain([Self::Presence, Self::Medals])
    }

    /// Returns the roles that get events of a type.
    pub(super) fn of(event_type: EventType) -> impl Iterator<Item = Self> {
        let probes = if event_type == EventType::GameEnded { &[Self::Presence, Self::Medals][..] } else { &[] };
        event_type.consumers().iter().map(Self::Production).chain(probes.iter().copied())
    }

    /// Returns the role's place among all roles.
    pub(super) fn lane(self) -> usize {
        Self::all().take_while(|role| *role != self).count()
    }

    /// Returns the name of the role's queue.
    pub(super) fn queue(self) -> &'static str {
        match self {
            Self::Production(consumer) => consumer.queue_name(),
            Self::Presence => "presence",
            Self::Medals => "medals",
        }
    }

    /// Returns in which order the role's queue hands out messages.
    pub(super) fn queue_order(self) -> QueueOrder {
        match self {
            Self::Production(consumer) => consumer.queue_order(),
            Self::Presence | Self::Medals => QueueOrder::Standard,
        }
    }

    /// Returns the consumer in whose name it decides. Probes borrow one.
    pub(super) fn consumer(self) -> Consumer {
        match self {
            Self::Production(consumer) => consumer,
            Self::Presence | Self::Medals => Consumer::GameEnded,
        }
    }

    /// Returns the decider, with its mistakes.
    pub(super) fn decider(self, misjudgements: Vec<Misjudgement>) -> Roleplay {
        let decider: Box<dyn Decider> = match self {
            Self::Production(Consumer::GameEnded) => Box::new(Leaderboard),
            Self::Production(Consumer::GameEndedStatistics) => Box::new(Statistics),
            Self::Production(Consumer::PlayerChanged) => Box::new(PlayerOnBoards),
            Self::Production(Consumer::PostChanged) => Box::new(PostCounts),
            Self::Production(Consumer::ReactionChanged) => Box::new(ReactionCounts),
            Self::Production(Consumer::FollowChanged) => Box::new(FollowGraph),
            Self::Production(Consumer::Activity) => Box::new(EventCounts),
            Self::Production(Consumer::ActivePlayers) => Box::new(ActivePlayers),
            Self::Production(Consumer::FanOut) => Box::new(FanOut),
            Self::Production(Consumer::NotificationRequested) => Box::new(Inbox),
            Self::Production(Consumer::OrderChanged) => Box::new(OrderViews),
            Self::Presence => Box::new(Presence),
            Self::Medals => Box::new(Medals),
        };
        Roleplay { role: self, decider, misjudgements }
    }
}

/// A decider in its role.
pub(super) struct Roleplay {
    role: Role,
    decider: Box<dyn Decider>,
    misjudgements: Vec<Misjudgement>,
}

impl Decider for Roleplay {
    fn needs(&self, event: &Event) -> Vec<Need> {
        self.decider.needs(event)
    }

    fn further_needs(&self, event: &Event, state: &State) -> Result<Vec<Need>, RowError> {
        self.decider.further_needs(event, state)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if self.misjudgements.is_empty() {
            return self.decider.decide(event, state);
        }
        let mut decision = self.decider.decide(event, &self.bent(event, state))?;
        if let Decision::Apply { writes, .. } | Decision::Continue { writes, .. } = &mut decision {
            writes.retain(|write| !self.leaves_out(write));
            writes.iter_mut().for_each(|write| self.bend(event, write));
        }
        match decision {
            Decision::Wait { writes, checks, .. } if self.misjudges(Misjudgement::GapsSkipped) => {
                Ok(Decision::Apply { writes, checks })
            }
            decision => Ok(decision),
        }
    }
}

impl Courier for Roleplay {
    type Letter = Letter;

    fn errand(&self, event: &Event, state: &State) -> Result<Errand<Letter>, RowError> {
        Inbox.errand(event, &self.bent(event, state))
    }

    fn settle(&self, event: &Event, state: &State, end: End) -> Result<Decision, RowError> {
        Inbox.settle(event, state, end)
    }
}

impl Roleplay {
    fn misjudges(&self, misjudgement: Misjudgement) -> bool {
        self.misjudgements.contains(&misjudgement)
    }

    /// Returns the state bent in such a way that the decider does what the mistake would make it do.
    fn bent(&self, event: &Event, state: &State) -> State {
        let mut bent = state.clone();
        let consumer = self.role.consumer();
        for need in self.decider.needs(event) {
            let Need::Key(key) = need else { continue };
            let Ok(row) = bent.row(&key) else { continue };
            let mut row = row.clone();
            if key.table == Table::Views && self.misjudges(Misjudgement::RowsForgotten(consumer)) {
                row.attributes = None;
            }
            if let Some(attributes) = &mut row.attributes {
                if self.misjudges(Misjudgement::RestrictionsForgotten(consumer)) {
                    attributes.remove("restriction");
                }
                let own = board_rows(event).into_iter().find(|(own, _)| *own == key);
                if let (Some((_, games)), true) = (own, self.misjudges(Misjudgement::SameNumberIsNewer))
                    && attributes.get("games") == Some(&json!(games))
                {
                    attributes.insert("games".to_owned(), json!(games - 1));
                }
            }
            bent.insert(key, row);
        }
        bent
    }

    fn leaves_out(&self, write: &Write) -> bool {
        let Write::Replace { key, content, .. } = write else { return false };
        let closes_gap = key.partition == GAPS && *content == Content::Tombstone;
        let snapshot = key.table == Table::Ledger && key.sort == "SNAPSHOT";
        closes_gap && self.misjudges(Misjudgement::GapsLeftListed)
            || snapshot && self.misjudges(Misjudgement::SnapshotsLeftOut)
    }

    fn bend(&self, event: &Event, write: &mut Write) {
        if let (Write::Replace { key, guard, .. }, true) = (write, self.misjudges(Misjudgement::DeltaGuardedByNewer)) {
            let own = board_rows(event).into_iter().find(|(own, _)| own == key);
            *guard = own.map_or(*guard, |(_, games)| Guard::Newer(games));
        }
    }
}

/// Returns the board rows that a game's end concerns, each with the number of the game among the player's games.
fn board_rows(event: &Event) -> Vec<(domain::Key, u64)> {
    let Payload::GameEnded(game) = &event.payload else { return Vec::new() };
    let sides = [&game.white, &game.black].into_iter();
    sides.map(|side| (BoardRow::key(game.time_control, &side.player_id), side.games)).collect()
}
