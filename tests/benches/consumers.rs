//! What a record costs: the driver alone, and consumers on DynamoDB. `cargo bench --bench consumers`.

use std::collections::BTreeMap;
use std::time::Instant;

use aws::ledger::DynamoLedger;
use consumer::{BatchReport, Cost, Driver, Ledger};
use domain::leaderboard::Leaderboard;
use domain::statistics::Statistics;
use domain::{Attributes, Decider, Key};
use events::{Consumer, Event};
use testkit::contract::Subject;
use testkit::sample::{game_ended, player_id, player_record, username};
use testkit::{MemoryLedger, RecordedVisibility};
use tests::DynamoDb;
use tests::bench::{RealTime, deliveries, no_deadline};

/// Players, of whom the first hundredth plays a tenth of the games.
const PLAYERS: u32 = 10_000;
/// Records per measurement.
const RECORDS: usize = 6_000;
/// Sizes of batches.
const BATCHES: [usize; 3] = [10, 100, 500];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    println!("{RECORDS} games of {PLAYERS} players a line; a game is two score sets; one batch at a time");
    println!("{:<44} {:>10} {:>11} {:>9} {:>9} {:>9}", "", "records/s", "µs/record", "calls", "WRU", "index WRU");
    println!("{:<44} {:>10} {:>11} {:>9} {:>9} {:>9}", "", "", "", "/batch", "/unit", "/unit");
    for size in BATCHES {
        runtime.block_on(on_memory(Consumer::GameEnded, Leaderboard, size));
        runtime.block_on(on_memory(Consumer::GameEndedStatistics, Statistics, size));
    }
    for size in BATCHES {
        runtime.block_on(on_dynamodb(Consumer::GameEnded, Leaderboard, size, Unit::ScoreSet));
    }
    for size in BATCHES {
        runtime.block_on(on_dynamodb(Consumer::GameEndedStatistics, Statistics, size, Unit::Record));
    }
}

/// What the write units of a line are divided by.
#[derive(Debug, Clone, Copy)]
enum Unit {
    ScoreSet,
    Record,
}

async fn on_memory<D: Decider>(consumer: Consumer, decider: D, size: usize) {
    let ledger = MemoryLedger::default();
    for number in 0..PLAYERS {
        let (key, attributes) = player_record(number);
        ledger.put(key, attributes);
    }
    let environment = RealTime::default();
    let driver = Driver { consumer, decider, ledger, environment, visibility: RecordedVisibility::default() };
    measure(&format!("{consumer}, memory, batches of {size}"), &driver, size, None).await;
}

async fn on_dynamodb<D: Decider>(consumer: Consumer, decider: D, size: usize, unit: Unit) {
    let dynamodb = DynamoDb::start_without_faults().await;
    let ledger: DynamoLedger = dynamodb.ledger().clone();
    register(&dynamodb).await;
    let environment = RealTime::default();
    let driver = Driver { consumer, decider, ledger, environment, visibility: RecordedVisibility::default() };
    measure(&format!("{consumer}, DynamoDB, batches of {size}"), &driver, size, Some(unit)).await;
}

/// Handles games of players who are on the board already, and prints what that took.
async fn measure<D: Decider, L: Ledger>(
    name: &str,
    driver: &Driver<D, L, RealTime, RecordedVisibility>,
    size: usize,
    unit: Option<Unit>,
) {
    let games = games();
    let (first, measured) = games.split_at(games.len() - RECORDS);
    for batch in first.chunks(500) {
        handle(driver, batch).await;
    }
    let mut cost = Cost::default();
    let mut batches = 0;
    let started = Instant::now();
    for batch in measured.chunks(size) {
        cost += handle(driver, batch).await;
        batches += 1;
    }
    let elapsed = started.elapsed();
    let micros = elapsed.as_secs_f64() * 1e6 / RECORDS as f64;
    let rate = RECORDS as f64 / elapsed.as_secs_f64();
    let calls = f64::from(cost.calls) / f64::from(batches);
    let units = match unit {
        Some(Unit::ScoreSet) => 2.0 * RECORDS as f64,
        Some(Unit::Record) => RECORDS as f64,
        None => return println!("{name:<44} {rate:>10.0} {micros:>11.1}"),
    };
    let (writes, index) = (cost.write_units / units, cost.index_write_units / units);
    println!("{name:<44} {rate:>10.0} {micros:>11.1} {calls:>9.1} {writes:>9.2} {index:>9.2}");
}

async fn handle<D: Decider, L: Ledger>(driver: &Driver<D, L, RealTime, RecordedVisibility>, games: &[Event]) -> Cost {
    let report: BatchReport = driver.handle(&deliveries(games), no_deadline()).await;
    assert_eq!(report.failures().count(), 0, "a benchmark of failures is none");
    report.cost
}

/// First a game for every player, then games with skew.
fn games() -> Vec<Event> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut played: BTreeMap<u32, u64> = BTreeMap::new();
    let pairs = (0..PLAYERS / 2).map(|pair| (2 * pair, 2 * pair + 1));
    let mut player = {
        let mut rng = rng.fork();
        move || {
            let position = rng.f64();
            (position * position * f64::from(PLAYERS)) as u32
        }
    };
    let skewed = (0..RECORDS).map(|_| {
        let white = player();
        let black = player();
        (white, if black == white { (black + 1) % PLAYERS } else { black })
    });
    pairs
        .chain(skewed)
        .zip(1..)
        .map(|((white, black), number)| {
            let mut side = |player| {
                let games = played.entry(player).or_default();
                *games += 1;
                // Ratings as they are: around 1500, most within 300 points.
                let rating = 1_500.0 + 600.0 * (rng.f64() + rng.f64() + rng.f64() - 1.5);
                (player, rating as u16, *games)
            };
            game_ended(number, side(white), side(black))
        })
        .collect()
}

async fn register(dynamodb: &DynamoDb) {
    for number in 0..PLAYERS {
        let (key, attributes): (Key, Attributes) = player_record(number);
        let item = aws::items::item(&key, 1, attributes).expect("an item");
        dynamodb
            .client
            .put_item()
            .table_name("records")
            .set_item(Some(item))
            .send()
            .await
            .unwrap_or_else(|error| panic!("{} {}: {error}", player_id(number), username(number)));
    }
}
