//! What keeping an order's view costs: wake-ups as they come, and the fold of a long history. `cargo bench --bench orders`.

use std::time::{Duration, Instant};

use aws::ledger::DynamoLedger;
use consumer::{BatchReport, Cost, Driver, Ledger};
use domain::orders::OrderViews;
use domain::{Attributes, Key};
use events::{Consumer, Event};
use testkit::contract::Subject;
use testkit::sample::{event_record, order_history};
use testkit::{MemoryLedger, RecordedVisibility};
use tests::DynamoDb;
use tests::bench::{RealTime, deliveries, no_deadline};

/// Orders, each of which gets one event after the other.
const ORDERS: u32 = 1_000;
/// Events of each.
const EVENTS: u32 = 6;
/// Messages in a batch: the most that a FIFO queue's mapping takes.
const BATCH: usize = 10;
/// Events of the one long history.
const LONG: u32 = 10_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    println!("{:<52} {:>9} {:>9} {:>7} {:>7} {:>7}", "", "events/s", "µs/event", "calls", "RRU", "WRU");
    println!("{:<52} {:>9} {:>9} {:>7} {:>7} {:>7}", "", "", "", "/batch", "/event", "/event");
    runtime.block_on(async {
        let on_memory = async |ledger: &MemoryLedger, key: Key, attributes: Attributes| ledger.put(key, attributes);
        wake_ups("memory", MemoryLedger::default(), on_memory).await;
        long_history("memory", MemoryLedger::default(), on_memory).await;
        for measure in [Measure::WakeUps, Measure::LongHistory] {
            let dynamodb = DynamoDb::start_without_faults().await;
            let store =
                async |_: &DynamoLedger, key: Key, attributes: Attributes| put(&dynamodb, &key, attributes).await;
            let ledger = dynamodb.ledger().clone();
            match measure {
                Measure::WakeUps => wake_ups("DynamoDB", ledger, store).await,
                Measure::LongHistory => long_history("DynamoDB", ledger, store).await,
            }
        }
    });
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
enum Measure {
    WakeUps,
    LongHistory,
}

type OrderDriver<L> = Driver<OrderViews, L, RealTime, RecordedVisibility>;

fn driver<L: Ledger>(ledger: L) -> OrderDriver<L> {
    let environment = RealTime::default();
    let (consumer, visibility) = (Consumer::OrderChanged, RecordedVisibility::default());
    Driver { consumer, decider: OrderViews, ledger, environment, visibility }
}

/// Handles a wake-up for each event when it is the last one of its order, in batches of different orders.
async fn wake_ups<L: Ledger>(name: &str, ledger: L, store: impl AsyncFn(&L, Key, Attributes)) {
    let histories: Vec<Vec<Event>> = (0..ORDERS).map(|order| order_history(order, EVENTS)).collect();
    let driver = driver(ledger);
    let (mut cost, mut elapsed) = (Cost::default(), Duration::ZERO);
    for version in 0..EVENTS as usize {
        let events: Vec<Event> = histories.iter().map(|history| history[version].clone()).collect();
        for event in &events {
            let (key, attributes) = event_record(event);
            store(&driver.ledger, key, attributes).await;
        }
        let started = Instant::now();
        for batch in events.chunks(BATCH) {
            cost += handle(&driver, batch).await;
        }
        elapsed += started.elapsed();
    }
    let events = ORDERS * EVENTS;
    print(
        &format!("{name}: {ORDERS} orders, batches of {BATCH} wake-ups"),
        events,
        elapsed,
        cost,
        events / BATCH as u32,
    );
}

/// Folds a long history that one wake-up is the first to speak of.
async fn long_history<L: Ledger>(name: &str, ledger: L, store: impl AsyncFn(&L, Key, Attributes)) {
    let history = order_history(1, LONG);
    let driver = driver(ledger);
    for event in &history {
        let (key, attributes) = event_record(event);
        store(&driver.ledger, key, attributes).await;
    }
    let started = Instant::now();
    let cost = handle(&driver, &history[history.len() - 1..]).await;
    print(&format!("{name}: one wake-up of an order of {LONG} events"), LONG, started.elapsed(), cost, 1);
}

fn print(name: &str, events: u32, elapsed: Duration, cost: Cost, batches: u32) {
    let rate = f64::from(events) / elapsed.as_secs_f64();
    let micros = elapsed.as_secs_f64() * 1e6 / f64::from(events);
    let calls = f64::from(cost.calls) / f64::from(batches);
    let (reads, writes) = (cost.read_units / f64::from(events), cost.write_units / f64::from(events));
    println!("{name:<52} {rate:>9.0} {micros:>9.1} {calls:>7.1} {reads:>7.2} {writes:>7.2}");
}

async fn handle<L: Ledger>(driver: &OrderDriver<L>, events: &[Event]) -> Cost {
    let report: BatchReport = driver.handle(&deliveries(events), no_deadline()).await;
    assert_eq!(report.failures().count(), 0, "a benchmark of failures is none");
    report.cost
}

async fn put(dynamodb: &DynamoDb, key: &Key, attributes: Attributes) {
    let item = aws::items::item(key, 1, attributes).expect("an item");
    let put = dynamodb.client.put_item().table_name("records").set_item(Some(item));
    put.send().await.unwrap_or_else(|error| panic!("{key:?}: {error}"));
}
