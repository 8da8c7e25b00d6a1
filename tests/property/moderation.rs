//! Boards of players who are renamed, restricted and reinstated while their games are being counted.

use std::collections::BTreeMap;

use consumer::Outcome;
use domain::leaderboard::{BoardRow, Leaderboard, PlayerOnBoards};
use domain::players::{Player, Visibility, reinstate, rename, restrict};
use domain::{Attributes, Change, Decider, Decision, Key, Need, RowError, State};
use events::{Consumer, Event, Payload};
use proptest::prelude::*;
use serde_json::Value;
use testkit::Fault;
use testkit::sample::{event, now, player_id};

use crate::history::{Drawn, PLAYERS, fault, game, history};
use crate::{Cells, TestDriver, driver, handle, histograms};

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// A game ends.
    Game(Drawn),
    /// A player's record is changed.
    Change(u32, Command),
    /// A batch of events that have happened before, each by its number counted round.
    Batch(Vec<usize>),
    /// Something goes wrong with one of the next calls.
    Fault(Fault),
}

#[derive(Debug, Clone, Copy)]
enum Command {
    Rename(u8),
    Restrict(u8),
    Reinstate,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let command = prop_oneof![
        (0..4_u8).prop_map(Command::Rename),
        (0..2_u8).prop_map(Command::Restrict),
        Just(Command::Reinstate),
    ];
    let step = prop_oneof![
        3 => game().prop_map(Step::Game),
        3 => (0..PLAYERS, command).prop_map(|(player, command)| Step::Change(player, command)),
        3 => prop::collection::vec(any::<usize>(), 1..8).prop_map(Step::Batch),
        1 => fault().prop_map(Step::Fault),
    ];
    prop::collection::vec(step, 1..80)
}

/// Both consumers in one: which of them is asked is a matter of the event.
struct Boards;

impl Decider for Boards {
    fn needs(&self, event: &Event) -> Vec<Need> {
        if is_game(event) { Leaderboard.needs(event) } else { PlayerOnBoards.needs(event) }
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if is_game(event) { Leaderboard.decide(event, state) } else { PlayerOnBoards.decide(event, state) }
    }
}

fn is_game(event: &Event) -> bool {
    matches!(event.payload, Payload::GameEnded(_))
}

/// The platform: its records, what has happened, and the boards.
struct World {
    driver: TestDriver<Boards>,
    players: BTreeMap<u32, (u64, Player)>,
    happened: Vec<Event>,
}

impl World {
    fn after(steps: &[Step]) -> Self {
        let mut world =
            Self { driver: driver(Consumer::GameEnded, Boards), players: BTreeMap::new(), happened: Vec::new() };
        for number in 0..PLAYERS {
            let (_, record) = testkit::sample::player_record(number);
            let player = serde_json::from_value(Value::Object(record)).expect("a player");
            world.players.insert(number, (1, player));
        }
        let games: Vec<Drawn> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Game(game) => Some(*game),
                Step::Change(..) | Step::Batch(_) | Step::Fault(_) => None,
            })
            .collect();
        let mut games = history(&games).into_iter();
        for step in steps {
            match step {
                Step::Game(_) => world.happened.extend(games.next()),
                Step::Change(player, command) => world.change(*player, *command),
                Step::Batch(numbers) if !world.happened.is_empty() => {
                    let count = world.happened.len();
                    let events = numbers.iter().map(|number| world.happened[number % count].clone()).collect();
                    world.deliver(events);
                }
                Step::Batch(_) => {}
                Step::Fault(fault) => world.driver.ledger.inject(fault.clone()),
            }
        }
        // Whatever has not been delivered comes now, the newest first.
        let rest = world.happened.iter().rev().cloned().collect();
        world.deliver(rest);
        world
    }

    /// Makes the same platform with the same records, on which nothing of what has happened was delivered.
    fn undelivered(&self) -> Self {
        let driver = driver(Consumer::GameEnded, Boards);
        for (version, player) in self.players.values() {
            (1..*version).for_each(|_| driver.ledger.put(Player::key(&player.player_id), attributes(player)));
        }
        Self { driver, players: self.players.clone(), happened: self.happened.clone() }
    }

    fn change(&mut self, number: u32, command: Command) {
        let (version, player) = self.players.get_mut(&number).expect("a player");
        let change = match command {
            Command::Rename(name) => rename(player.clone(), format!("Name {name}").parse().expect("a name")),
            Command::Restrict(reason) => {
                restrict(player.clone(), format!("reason {reason}").parse().expect("a reason"), now())
            }
            Command::Reinstate => reinstate(player.clone()),
        };
        let Change::Write { record, payload } = change else { return };
        *version += 1;
        *player = record;
        self.driver.ledger.put(Player::key(&player.player_id), attributes(player));
        let event_number = 1_000 + self.happened.len() as u32;
        self.happened.push(event(event_number, player.player_id.as_str(), *version, payload));
    }

    fn deliver(&mut self, events: Vec<Event>) {
        let (games, changes): (Vec<Event>, Vec<Event>) = events.into_iter().partition(is_game);
        for (consumer, mut pending) in [(Consumer::PlayerChanged, changes), (Consumer::GameEnded, games)] {
            self.driver.consumer = consumer;
            while !pending.is_empty() {
                let outcomes = handle(&self.driver, &pending);
                let mut outcomes = outcomes.iter().map(Outcome::acknowledges);
                pending.retain(|_| !outcomes.next().expect("an outcome each"));
            }
        }
    }

    fn rows(&self) -> BTreeMap<Key, BoardRow> {
        let rows = self.driver.ledger.rows().into_iter().filter(|(key, _)| key.partition.starts_with("BOARD#"));
        rows.map(|(key, row)| (key, serde_json::from_value(Value::Object(row)).expect("a board row"))).collect()
    }

    /// What the games in order and the players' records say.
    fn expected(&self) -> BTreeMap<Key, Expected> {
        let mut expected = BTreeMap::new();
        for event in &self.happened {
            let Payload::GameEnded(game) = &event.payload else { continue };
            for side in [&game.white, &game.black] {
                let number = (0..PLAYERS).find(|number| player_id(*number) == side.player_id).expect("a player");
                let (version, player) = &self.players[&number];
                let name = player.username.to_string();
                let row =
                    (side.rating.points(), side.games, name, *version, player.visibility() == Visibility::Visible);
                expected.insert(BoardRow::key(game.time_control, &side.player_id), row);
            }
        }
        expected
    }
}

/// Rating, games, name, version of the player's record, and whether the row is visible.
type Expected = (u16, u64, String, u64, bool);

fn shown(rows: &BTreeMap<Key, BoardRow>) -> BTreeMap<Key, Expected> {
    let row = |row: &BoardRow| {
        let visible = row.visibility() == Visibility::Visible;
        (row.rating.points(), row.games, row.username.to_string(), row.player_version, visible)
    };
    rows.iter().map(|(key, value)| (key.clone(), row(value))).collect()
}

fn counted(rows: &BTreeMap<Key, Expected>) -> Cells {
    let mut cells = Cells::new();
    for (key, (rating, _, _, _, visible)) in rows {
        if *visible {
            let board = key.partition.split('#').nth(1).expect("a board").to_owned();
            *cells.entry((board, *rating)).or_default() += 1;
        }
    }
    cells
}

fn attributes(player: &Player) -> Attributes {
    let value = serde_json::to_value(player).expect("a player serialises");
    value.as_object().cloned().expect("to an object")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boards_show_the_last_game_and_the_players_as_they_are(steps in steps()) {
        let world = World::after(&steps);
        prop_assert_eq!(shown(&world.rows()), world.expected());
        prop_assert_eq!(histograms(&world.driver.ledger), counted(&world.expected()));
    }

    #[test]
    fn deciding_on_a_player_twice_changes_nothing(steps in steps()) {
        let mut world = World::after(&steps);
        let before = world.driver.ledger.rows();
        let commits = world.driver.ledger.commits();
        let again = world.happened.clone();
        world.deliver(again);
        prop_assert_eq!(world.driver.ledger.rows(), before);
        prop_assert_eq!(world.driver.ledger.commits(), commits);
    }

    #[test]
    fn a_batch_decided_as_one_equals_its_records_one_by_one(steps in steps()) {
        let world = World::after(&steps);
        let [mut whole, mut single] = [world.undelivered(), world.undelivered()];
        whole.deliver(world.happened.clone());
        world.happened.iter().for_each(|event| single.deliver(vec![event.clone()]));
        prop_assert_eq!(shown(&whole.rows()), shown(&single.rows()));
        prop_assert_eq!(histograms(&whole.driver.ledger), histograms(&single.driver.ledger));
    }

    #[test]
    fn after_a_reinstatement_everything_is_as_if_there_had_been_no_restriction(steps in steps()) {
        let unmoderated: Vec<Step> = steps
            .iter()
            .filter(|step| !matches!(step, Step::Change(_, Command::Restrict(_) | Command::Reinstate)))
            .cloned()
            .collect();
        let reinstated: Vec<Step> =
            steps.into_iter().chain((0..PLAYERS).map(|player| Step::Change(player, Command::Reinstate))).collect();
        let (with, without) = (World::after(&reinstated), World::after(&unmoderated));
        let order = |world: &World| -> BTreeMap<Key, _> {
            world.rows().into_iter().map(|(key, row)| (key, (row.rating, row.games, row.username, row.order))).collect()
        };
        prop_assert_eq!(order(&with), order(&without));
        prop_assert_eq!(histograms(&with.driver.ledger), histograms(&without.driver.ledger));
    }
}
