//! What happens to a world from outside: clients' commands, outages, bodies that are no events, operators, and time.

use std::time::Duration;

use domain::games::EndGame;
use events::{GameResult, OrderId, PlayerId, PostId, QueueOrder, Rating, ReactionKind, TimeControl, Timestamp};

use super::commands::Command;
use super::core::Core;
use super::deciders::Role;
use super::hazards::Hazard;
use super::history::Body;
use crate::sample;

/// Posts of a world, at most.
const POSTS: u32 = 3;
/// Orders of a world, at most.
const ORDERS: u32 = 2;
/// Canaries of a world.
const CANARIES: u32 = 2;
/// Occasions for an outage of the tables.
const OUTAGES_MAX: usize = 8;
/// Bodies that are no event for any consumer, by what is wrong with them.
const POISONS: [(&str, &str); 6] = [
    ("empty", " "),
    ("not JSON", "{"),
    ("not an envelope", "{}"),
    (
        "of an unknown type",
        r#"{"event_id":"019ad6ad-e0c0-7000-8000-000000000001","aggregate_type":"game","aggregate_id":"g","version":1,"event_type":"game_forgotten","schema_version":1,"occurred_at":"2026-11-30T18:00:00.000Z","trace_id":"00000000000000000000000000000001","payload":{}}"#,
    ),
    (
        "of version 0",
        r#"{"event_id":"019ad6ad-e0c0-7000-8000-000000000001","aggregate_type":"game","aggregate_id":"g","version":0,"event_type":"game_ended","schema_version":1,"occurred_at":"2026-11-30T18:00:00.000Z","trace_id":"00000000000000000000000000000001","payload":{}}"#,
    ),
    (
        "of a newer schema",
        r#"{"event_id":"019ad6ad-e0c0-7000-8000-000000000001","aggregate_type":"game","aggregate_id":"g","version":1,"event_type":"game_ended","schema_version":9,"occurred_at":"2026-11-30T18:00:00.000Z","trace_id":"00000000000000000000000000000001","payload":{}}"#,
    ),
];

/// How much happens in a world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    pub(super) players: u32,
    /// Games that end.
    pub(super) games: u32,
    /// Other things that players do.
    pub(super) acts: u32,
    /// Commands on each order, at most.
    pub(super) commands: u32,
    /// How long it goes on.
    pub(super) span: Duration,
}

impl Core {
    /// Plans everything that clients do. A player's games are posted in their order.
    pub(super) fn plan_traffic(&mut self, traffic: Traffic) {
        let start = self.now;
        for number in 0..traffic.players {
            let command = Command::Register(sample::player_id(number), sample::username(number));
            self.at(start, move |core| core.command(&command));
        }
        let mut moments: Vec<Duration> = (0..traffic.games).map(|_| self.moment_in(traffic.span)).collect();
        moments.sort();
        for (number, moment) in (1..).zip(&moments) {
            let command = Command::EndGame(self.game(number, traffic.players, start + *moment));
            self.at(start + *moment, move |core| core.command(&command));
        }
        for _ in 0..traffic.acts {
            let command = self.act(traffic.players);
            let moment = self.moment_in(traffic.span);
            self.at(start + moment, move |core| core.command(&command));
        }
        for number in 0..ORDERS {
            self.plan_order(&sample::order_id(number), traffic);
        }
        // While games are on their way to the consumers, so that what a decision has read changes before its commit.
        for moment in moments {
            if self.random.u8(0..4) == 0 {
                let command = self.moderation(traffic.players);
                let moment = moment + self.millis(0, 700);
                self.at(start + moment, move |core| core.command(&command));
            }
        }
        for _ in 0..OUTAGES_MAX {
            if self.strikes(Hazard::Outage) {
                let (moment, duration) = (self.moment_in(traffic.span), self.millis(1_000, 120_000));
                self.at(start + moment, move |core| core.outage_until = core.outage_until.max(core.now + duration));
            }
        }
        for role in Role::all() {
            // In a group there is somebody behind it, whom a body that may be readable some day holds up.
            let kinds = match role.queue_order() {
                QueueOrder::Standard => vec![POISONS[self.random.usize(0..POISONS.len())]],
                QueueOrder::FifoByAggregate => vec![POISONS[0], POISONS[5], POISONS[5], POISONS[5]],
            };
            for (kind, body) in kinds {
                if self.strikes(Hazard::Poison) {
                    let moment = self.moment_in(traffic.span);
                    self.at(start + moment, move |core| {
                        core.send(role, body.to_owned(), Body::Poison(kind), Duration::ZERO);
                    });
                }
            }
        }
        for _ in 0..CANARIES {
            let moment = self.moment_in(traffic.span);
            self.at(start + moment, |core| core.command(&Command::Canary));
        }
    }

    /// Plans the commands on an order: it is placed first, and then anything is tried.
    fn plan_order(&mut self, order_id: &OrderId, traffic: Traffic) {
        let count = self.random.u32(0..=traffic.commands);
        let mut moments: Vec<Duration> = (0..count).map(|_| self.moment_in(traffic.span)).collect();
        moments.sort();
        for (position, moment) in moments.into_iter().enumerate() {
            let command = match (position, self.random.u8(0..40)) {
                (0, _) => Command::Order(order_id.clone(), self.placement(traffic.players)),
                (_, 0) => Command::PayByCents(order_id.clone()),
                (_, _) => Command::Order(order_id.clone(), self.order_request(traffic.players)),
            };
            self.at(self.now + moment, move |core| core.command(&command));
        }
    }

    /// Publishes some events again, as an operator does after an outage.
    pub(super) fn republish(&mut self) {
        for event in self.history.events.clone() {
            if self.random.u8(0..8) == 0 {
                let roles: Vec<Role> = Role::of(event.payload.event_type()).collect();
                let role = roles[self.random.usize(0..roles.len())];
                self.note(|_| format!("{} is published again", event.aggregate_id));
                self.send_anew(role, event.encode(), Body::Event(event.event_id));
            }
        }
    }

    /// Lets days pass: tokens are forgotten, and time to live deletes what has expired, some day.
    pub(super) fn let_days_pass(&mut self, duration: Duration, swept: bool) {
        self.now = self.now + duration;
        self.ledger.forget_tokens();
        if swept {
            let now = self.now;
            let swept = self.ledger.sweep(now);
            self.history.swept.extend(swept.into_iter().map(|claim| (claim, now)));
        }
        self.note(|_| format!("{} days have passed", duration.as_secs() / 86_400));
    }

    fn moment_in(&mut self, span: Duration) -> Duration {
        self.millis(0, u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    fn game(&mut self, number: u32, players: u32, ended_at: Timestamp) -> EndGame {
        let (white, black) = self.pair(players);
        let boards = [TimeControl::Blitz, TimeControl::Blitz, TimeControl::Bullet];
        let results = [GameResult::WhiteWins, GameResult::BlackWins, GameResult::Draw];
        let mut rating = || {
            // Close together, so that players share ratings and blocks.
            Rating::try_from(i64::from(1_470 + self.random.u16(0..80))).unwrap_or(Rating::MAX)
        };
        let (white, black) = ((white, rating()), (black, rating()));
        EndGame {
            game_id: sample::game_id(number),
            time_control: boards[self.random.usize(0..boards.len())],
            ended_at,
            result: results[self.random.usize(0..results.len())],
            white,
            black,
        }
    }

    /// Draws something that a player does besides games: often the opposite of what was done before.
    fn act(&mut self, players: u32) -> Command {
        let (player, other) = self.pair(players);
        let post = self.post();
        let kinds = ReactionKind::ALL;
        match self.random.u8(0..8) {
            0 => Command::Publish(post, player),
            1 => Command::Delete(post),
            2 | 3 => Command::React(post, player, kinds[self.random.usize(0..kinds.len())]),
            4 => Command::Unreact(post, player),
            5 | 6 => Command::Follow(player, other),
            _ => Command::Unfollow(player, other),
        }
    }

    /// Draws something that changes a player.
    fn moderation(&mut self, players: u32) -> Command {
        let (player, _) = self.pair(players);
        match self.random.u8(0..5) {
            0 => Command::Rename(player, sample::username(self.random.u32(100..103))),
            1..=2 => Command::Reinstate(player),
            _ => Command::Restrict(player),
        }
    }

    fn pair(&mut self, players: u32) -> (PlayerId, PlayerId) {
        let one = self.random.u32(0..players);
        let other = (one + self.random.u32(1..players)) % players;
        (sample::player_id(one), sample::player_id(other))
    }

    fn post(&mut self) -> PostId {
        sample::post_id(self.random.u32(0..POSTS))
    }
}
