//! The request path: players register, games end, players are restricted. Each command is one atomic write by the production
//! decisions, and its event is on the stream with it.

use std::time::Duration;

use domain::games::{EndGame, GameDecision, decide, needs};
use domain::{Attributes, Key, State};
use events::{Event, EventId, GameResult, Rating, TimeControl, Timestamp, TraceId};
use serde_json::json;

use super::core::{Core, queue_time};
use super::deciders::Role;
use super::hazards::Hazard;
use super::history::Body;
use super::probes::RESTRICTED;
use crate::sample;

/// Attribute of a record that holds the event of its last change.
const EVENT: &str = "event";
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
    pub(super) games: u32,
    /// How long the games go on.
    pub(super) span: Duration,
}

impl Core {
    /// Plans everything that clients do. A player's games are posted in their order.
    pub(super) fn plan_traffic(&mut self, traffic: Traffic) {
        let start = self.now;
        for number in 0..traffic.players {
            self.at(start, move |core| core.register(number));
        }
        let mut moments: Vec<Duration> = (0..traffic.games).map(|_| self.moment_in(traffic.span)).collect();
        moments.sort();
        for (number, moment) in (1..).zip(&moments) {
            let command = self.game(number, traffic.players, start + *moment);
            self.at(start + *moment, move |core| core.end_game(&command));
        }
        // While games are on their way to the consumers, so that what a decision has read changes before its commit.
        for _ in 0..self.random.u32(0..=traffic.players / 2) {
            let moment = moments[self.random.usize(0..moments.len())] + self.millis(0, 700);
            let player = self.random.u32(0..traffic.players);
            self.at(start + moment, move |core| core.restrict(player));
        }
        for _ in 0..OUTAGES_MAX {
            if self.strikes(Hazard::Outage) {
                let (moment, duration) = (self.moment_in(traffic.span), self.millis(1_000, 120_000));
                self.at(start + moment, move |core| core.outage_until = core.outage_until.max(core.now + duration));
            }
        }
        for role in Role::ALL {
            for poison in POISONS {
                if self.strikes(Hazard::Poison) {
                    let moment = self.moment_in(traffic.span);
                    self.at(start + moment, move |core| core.poison(role, poison));
                }
            }
        }
    }

    /// Publishes some events again, as an operator does after an outage.
    pub(super) fn republish(&mut self) {
        for event in self.history.events.clone() {
            if self.random.u8(0..8) == 0 {
                let role = Role::ALL[self.random.usize(0..Role::ALL.len())];
                self.note(|_| format!("{} is published again", event.aggregate_id));
                self.send(role, event.encode(), Body::Event(event.event_id), Duration::ZERO);
            }
        }
    }

    fn moment_in(&mut self, span: Duration) -> Duration {
        self.millis(0, u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    fn game(&mut self, number: u32, players: u32, ended_at: Timestamp) -> EndGame {
        let white = self.random.u32(0..players);
        let black = (white + self.random.u32(1..players)) % players;
        let boards = [TimeControl::Blitz, TimeControl::Blitz, TimeControl::Bullet];
        let results = [GameResult::WhiteWins, GameResult::BlackWins, GameResult::Draw];
        let mut side = |player| {
            // Close together, so that players share ratings and blocks.
            let rating = 1_470 + self.random.u16(0..80);
            (sample::player_id(player), Rating::try_from(i64::from(rating)).unwrap_or(Rating::MAX))
        };
        let (white, black) = (side(white), side(black));
        EndGame {
            game_id: sample::game_id(number),
            time_control: boards[self.random.usize(0..boards.len())],
            ended_at,
            result: results[self.random.usize(0..results.len())],
            white,
            black,
        }
    }

    fn register(&mut self, number: u32) {
        let (key, attributes) = sample::player_record(number);
        self.put(key, attributes, None);
    }

    /// Carries out a command, again if its client repeats it.
    fn end_game(&mut self, command: &EndGame) {
        let state: State = needs(command).into_iter().map(|key| (key.clone(), self.ledger.row(&key))).collect();
        // The clocks of the hosts of the request path differ, too.
        let minted_at = self.now + self.millis(0, 2_000);
        let mut random = [0; 10];
        self.random.fill(&mut random);
        let event_id = EventId::mint(minted_at, random);
        let decision = decide(command, &state, event_id, TraceId::mint(self.random.u128(..)));
        match decision {
            Ok(GameDecision::Write { game, event, ratings }) => {
                self.put(domain::games::Game::key(&command.game_id), attributes(&*game), Some(&event));
                for (rating, _) in ratings {
                    let key = domain::players::PlayerRating::key(&rating.player_id, rating.time_control);
                    self.put(key, attributes(&rating), None);
                }
                self.publish(*event);
            }
            Ok(GameDecision::Done(_)) => self.note(|_| format!("{} posted again", command.game_id)),
            Ok(GameDecision::Conflict | GameDecision::UnknownPlayer(_)) | Err(_) => {
                self.history.refused.push(command.game_id.to_string());
            }
        }
        if self.strikes(Hazard::CommandRepeated) {
            let (delay, command) = (self.millis(0, 10_000), command.clone());
            self.after(delay, move |core| core.end_game(&command));
        }
    }

    fn restrict(&mut self, number: u32) {
        let player_id = sample::player_id(number);
        let (key, mut attributes) = sample::player_record(number);
        attributes.insert(RESTRICTED.to_owned(), json!(true));
        self.note(|_| format!("{player_id} restricted"));
        self.put(key, attributes, None);
        self.history.restricted.entry(player_id).or_insert(self.now);
    }

    fn poison(&mut self, role: Role, (kind, body): (&'static str, &'static str)) {
        self.send(role, body.to_owned(), Body::Poison(kind), Duration::ZERO);
    }

    fn put(&mut self, key: Key, mut attributes: Attributes, event: Option<&Event>) {
        attributes.extend(event.map(|event| (EVENT.to_owned(), json!(event))));
        self.remember(&key);
        self.ledger.put(key, attributes);
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
        self.note(|core| {
            format!("{} days have passed (queues are at {})", duration.as_secs() / 86_400, queue_time(core.now))
        });
    }
}

fn attributes(record: &impl serde::Serialize) -> Attributes {
    serde_json::to_value(record).and_then(serde_json::from_value).unwrap_or_default()
}
