//! What holds for every history, however it is delivered: in any order, any number of times, in any batches, by a
//! ledger that throttles, conflicts and loses answers.

mod activity;
mod fan_out;
mod history;
mod moderation;
mod orders;
mod social;

use std::collections::BTreeMap;

use consumer::{Driver, Outcome};
use domain::leaderboard::{BoardRow, Histogram, Leaderboard};
use domain::players::Player;
use domain::statistics::Statistics;
use domain::{Attributes, Decider, Key};
use events::{Consumer, Event, PlayerId};
use proptest::prelude::*;
use serde_json::Value;
use testkit::sample::{now, player_record};
use testkit::{ManualEnvironment, MemoryLedger, RecordedVisibility};

use history::{Delivered, PLAYERS, Run, run};

type TestDriver<D> = Driver<D, MemoryLedger, ManualEnvironment, RecordedVisibility>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boards_end_where_the_games_in_order_end(run in run()) {
        let driver = delivered(Consumer::GameEnded, Leaderboard, &run);
        prop_assert_eq!(boards(&driver.ledger), folded_boards(&run.games));
        prop_assert_eq!(histograms(&driver.ledger), counted(&folded_boards(&run.games)));
    }

    #[test]
    fn statistics_count_every_game_once(run in run()) {
        let driver = delivered(Consumer::GameEndedStatistics, Statistics, &run);
        prop_assert_eq!(counters(&driver.ledger), folded_statistics(&run.games));
    }

    #[test]
    fn deciding_twice_changes_nothing(run in run()) {
        let boards = delivered(Consumer::GameEnded, Leaderboard, &run);
        let before = boards.ledger.rows();
        let outcomes = handle(&boards, &run.games);
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Stale), "{outcomes:?}");
        prop_assert_eq!(boards.ledger.rows(), before);

        let statistics = delivered(Consumer::GameEndedStatistics, Statistics, &run);
        let before = statistics.ledger.rows();
        let outcomes = handle(&statistics, &run.games);
        prop_assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Duplicate), "{outcomes:?}");
        prop_assert_eq!(statistics.ledger.rows(), before);
    }

    #[test]
    fn a_batch_decided_as_one_equals_its_records_one_by_one(run in run()) {
        let [whole, single] = whole_and_single(Consumer::GameEnded, Leaderboard, &run);
        prop_assert_eq!(boards(&whole.ledger), boards(&single.ledger));
        prop_assert_eq!(histograms(&whole.ledger), histograms(&single.ledger));

        let [whole, single] = whole_and_single(Consumer::GameEndedStatistics, Statistics, &run);
        prop_assert_eq!(counters(&whole.ledger), counters(&single.ledger));
    }
}

fn driver<D: Decider>(consumer: Consumer, decider: D) -> TestDriver<D> {
    let ledger = MemoryLedger::default();
    for number in 0..PLAYERS {
        let (key, attributes) = player_record(number);
        ledger.put(key, attributes);
    }
    let environment = ManualEnvironment::new(now(), 3);
    Driver { consumer, decider, ledger, environment, visibility: RecordedVisibility::default() }
}

/// Delivers a history as one batch to the one driver, and game by game to the other.
fn whole_and_single<D: Decider + Copy>(consumer: Consumer, decider: D, run: &Run) -> [TestDriver<D>; 2] {
    let drivers = [driver(consumer, decider), driver(consumer, decider)];
    handle(&drivers[0], &run.games);
    for game in &run.games {
        handle(&drivers[1], std::slice::from_ref(game));
    }
    drivers
}

/// Delivers a history as the run says, and what came back once more until all is acknowledged.
fn delivered<D: Decider>(consumer: Consumer, decider: D, run: &Run) -> TestDriver<D> {
    let driver = driver(consumer, decider);
    for delivered in &run.deliveries {
        match delivered {
            Delivered::Fault(fault) => driver.ledger.inject(fault.clone()),
            Delivered::Batch(indexes) => {
                let mut pending: Vec<Event> = indexes.iter().map(|index| run.games[*index].clone()).collect();
                while !pending.is_empty() {
                    let outcomes = handle(&driver, &pending);
                    pending = pending
                        .into_iter()
                        .zip(outcomes)
                        .filter(|(_, outcome)| !outcome.acknowledges())
                        .map(|(event, _)| event)
                        .collect();
                }
            }
        }
    }
    driver
}

fn handle<D: Decider>(driver: &TestDriver<D>, events: &[Event]) -> Vec<Outcome> {
    let deliveries: Vec<_> = events
        .iter()
        .enumerate()
        .map(|(position, event)| consumer::Delivery {
            message_id: position.to_string().try_into().expect("not empty"),
            receipt_handle: None,
            receive_count: 1,
            group: None,
            body: event.encode().into_bytes(),
        })
        .collect();
    let deadline = consumer::Clock::now(&driver.environment) + std::time::Duration::from_secs(3_600);
    let report = futures::executor::block_on(driver.handle(&deliveries, deadline));
    report.records.into_iter().map(|record| record.outcome).collect()
}

/// A player's place: rating, games and name.
type Place = (u16, u64, String);

fn boards(ledger: &MemoryLedger) -> BTreeMap<Key, Place> {
    let rows = ledger.rows();
    let boards = rows.into_iter().filter(|(key, _)| key.partition.starts_with("BOARD#"));
    boards
        .map(|(key, attributes)| {
            let row: BoardRow = serde_json::from_value(Value::Object(attributes)).expect("a board row");
            (key, (row.rating.points(), row.games, row.username.to_string()))
        })
        .collect()
}

fn folded_boards(games: &[Event]) -> BTreeMap<Key, Place> {
    let mut boards = BTreeMap::new();
    for event in games {
        let events::Payload::GameEnded(game) = &event.payload else { panic!("no game: {event:?}") };
        for side in [&game.white, &game.black] {
            let key = BoardRow::key(game.time_control, &side.player_id);
            boards.insert(key, (side.rating.points(), side.games, name(&side.player_id)));
        }
    }
    boards
}

fn name(player_id: &PlayerId) -> String {
    let records = (0..PLAYERS).map(player_record);
    let (_, record) = records.into_iter().find(|(key, _)| *key == Player::key(player_id)).expect("a player");
    record["username"].as_str().expect("a name").to_owned()
}

/// Players by board and rating.
type Cells = BTreeMap<(String, u16), i64>;

/// The histograms' cells; panics where the two levels differ.
fn histograms(ledger: &MemoryLedger) -> Cells {
    let mut by_board: BTreeMap<String, Histogram> = BTreeMap::new();
    for (key, counters) in ledger.rows() {
        if let Some(board) = key.partition.strip_prefix("HISTOGRAM#").and_then(|rest| rest.split('#').next()) {
            by_board.entry(board.to_owned()).or_default().add_item(numbers(&counters));
        }
    }
    let mut cells = Cells::new();
    for (board, histogram) in by_board {
        let players: i64 = histogram.cells().map(|(_, players)| players).sum();
        assert_eq!(histogram.players() as i64, players, "{board}: blocks and cells differ");
        cells.extend(histogram.cells().map(|(rating, players)| ((board.clone(), rating), players)));
    }
    cells
}

fn counted(boards: &BTreeMap<Key, Place>) -> Cells {
    let mut cells = Cells::new();
    for (key, (rating, _, _)) in boards {
        let board = key.partition.split('#').nth(1).expect("a board").to_owned();
        *cells.entry((board, *rating)).or_default() += 1;
    }
    cells
}

fn counters(ledger: &MemoryLedger) -> BTreeMap<(Key, String), i64> {
    let rows = ledger.rows();
    let statistics = rows.iter().filter(|(key, _)| key.partition.starts_with("STATISTICS#"));
    statistics
        .flat_map(|(key, counters)| numbers(counters).map(|(name, n)| ((key.clone(), name.to_owned()), n)))
        .collect()
}

fn folded_statistics(games: &[Event]) -> BTreeMap<(Key, String), i64> {
    use domain::statistics::{DRAWS, LOSSES, WINS, day_key, total_key};
    let mut counters = BTreeMap::new();
    for event in games {
        let events::Payload::GameEnded(game) = &event.payload else { panic!("no game: {event:?}") };
        let (white, black) = match game.result {
            events::GameResult::WhiteWins => (WINS, LOSSES),
            events::GameResult::BlackWins => (LOSSES, WINS),
            events::GameResult::Draw => (DRAWS, DRAWS),
        };
        for (side, counter) in [(&game.white, white), (&game.black, black)] {
            let day = day_key(&side.player_id, game.time_control, event.occurred_at.day());
            for key in [total_key(&side.player_id, game.time_control), day] {
                *counters.entry((key, counter.to_owned())).or_default() += 1;
            }
        }
    }
    counters
}

fn numbers(counters: &Attributes) -> impl Iterator<Item = (&str, i64)> {
    counters.iter().filter_map(|(name, value)| value.as_i64().map(|number| (name.as_str(), number)))
}
