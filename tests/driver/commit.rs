//! Deciding on an overlay, grouping, and the cheapest commit.

use std::sync::Arc;

use domain::leaderboard::{BoardRow, Leaderboard};
use domain::{Decider, Decision, Guard, Need, RowError, State};
use events::{Event, TimeControl};
use futures::executor::block_on;
use serde_json::json;
use testkit::MemoryLedger;
use testkit::sample::{game_ended, player_id, player_record};

use crate::support::{
    Fake, Once, TestDriver, add, apply, blind, deadline, deliveries, driver, handle, key, names, need, replace,
    row_number, sharing, stored,
};

fn leaderboard(players: u32) -> TestDriver<Leaderboard> {
    let driver = driver(Leaderboard);
    for number in 1..=players {
        let (key, attributes) = player_record(number);
        driver.ledger.put(key, attributes);
    }
    driver
}

fn games_and_rating(ledger: &MemoryLedger, player: u32) -> (u64, u64) {
    let rows = ledger.rows();
    let row = &rows[&BoardRow::key(TimeControl::Blitz, &player_id(player))];
    (row["games"].as_u64().unwrap(), row["rating"].as_u64().unwrap())
}

fn players_on_board(ledger: &MemoryLedger) -> i64 {
    let rows = ledger.rows();
    let tops = rows.iter().filter(|(key, _)| key.partition.starts_with("HISTOGRAM#blitz") && key.sort == "TOP");
    tops.flat_map(|(_, counters)| counters.values()).filter_map(serde_json::Value::as_i64).sum()
}

#[tokio::test]
async fn two_games_of_a_player_in_either_order_fold_into_one_write() {
    let [older, newer] = [game_ended(1, (1, 1510, 1204), (2, 1490, 9)), game_ended(2, (1, 1520, 1205), (3, 1480, 4))];
    for events in [[older.clone(), newer.clone()], [newer, older]] {
        let driver = leaderboard(3);
        let outcomes = handle(&driver, &events).await;
        assert!(outcomes.iter().all(|outcome| outcome.acknowledges()), "{outcomes:?}");
        assert_eq!(games_and_rating(&driver.ledger, 1), (1205, 1520));
        assert_eq!(players_on_board(&driver.ledger), 3);
        assert_eq!(driver.ledger.commits(), 1);
        let again = handle(&driver, &events).await;
        assert_eq!(names(&again), ["stale", "stale"]);
        assert_eq!(players_on_board(&driver.ledger), 3);
    }
}

/// Keeps the boards, and lets another instance handle its batch between this one's read and its write.
struct Interrupted<F> {
    once: Once,
    other: F,
}

impl<F: Fn() + Send + Sync> Decider for Interrupted<F> {
    fn needs(&self, event: &Event) -> Vec<Need> {
        Leaderboard.needs(event)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if self.once.first() {
            (self.other)();
        }
        Leaderboard.decide(event, state)
    }
}

#[tokio::test]
async fn two_instances_with_one_players_games_count_the_player_once() {
    let [older, newer] = [game_ended(1, (1, 1510, 1204), (2, 1490, 9)), game_ended(2, (1, 1520, 1205), (2, 1480, 10))];
    let forward = vec![older.clone(), newer.clone(), older.clone(), newer.clone()];
    let backward: Vec<Event> = forward.iter().rev().cloned().collect();
    for (one, other) in [
        (forward.clone(), backward.clone()),
        (backward, forward),
        (vec![older.clone()], vec![newer.clone()]),
        (vec![newer], vec![older]),
    ] {
        let ledger = Arc::new(MemoryLedger::default());
        for number in [1, 2] {
            let (key, attributes) = player_record(number);
            ledger.put(key, attributes);
        }
        let second = sharing(&ledger, Leaderboard);
        let handled_by_second = deliveries(&other);
        let interrupt = move || {
            let report = block_on(second.handle(&handled_by_second, deadline()));
            assert_eq!(report.failures().count(), 0);
        };
        let first = sharing(&ledger, Interrupted { once: Once::new(), other: interrupt });
        let report = first.handle(&deliveries(&one), deadline()).await;
        assert_eq!(report.failures().count(), 0, "{report:?}");
        assert_eq!(games_and_rating(&ledger, 1), (1205, 1520));
        assert_eq!(games_and_rating(&ledger, 2), (10, 1480));
        assert_eq!(players_on_board(&ledger), 2);
    }
}

#[tokio::test]
async fn a_group_larger_than_a_transaction_is_committed_part_by_part() {
    // A chain: every game shares a player with the next one.
    let events: Vec<Event> =
        (1..=150).map(|n| game_ended(n, (n, 1500 + n as u16, 2), (n + 1, 1400 + n as u16, 1))).collect();
    let driver = leaderboard(151);
    let outcomes = handle(&driver, &events).await;
    assert!(outcomes.iter().all(|outcome| outcome.name() == "applied"), "{outcomes:?}");
    assert!(driver.ledger.commits() >= 2);
    for player in 2..=150 {
        assert_eq!(games_and_rating(&driver.ledger, player), (2, 1500 + u64::from(player)));
    }
    assert_eq!(players_on_board(&driver.ledger), 151);
}

#[tokio::test]
async fn a_large_batch_is_packed_into_few_transactions() {
    let events: Vec<Event> = (0..250).map(|n| game_ended(n, (2 * n + 1, 1500, 1), (2 * n + 2, 1500, 1))).collect();
    let driver = leaderboard(500);
    let outcomes = handle(&driver, &events).await;
    assert!(outcomes.iter().all(|outcome| outcome.name() == "applied"));
    // Every new row brings a check of its player's record; two items a player and the two of the histogram.
    assert_eq!(driver.ledger.commits(), 11);
    assert_eq!(players_on_board(&driver.ledger), 500);
}

#[tokio::test]
async fn lone_guarded_writes_need_no_transaction() {
    let driver = driver(blind(|event| apply(vec![replace(&event.aggregate_id, 1, Guard::Newer(event.version))])));
    let events: Vec<Event> = (1..=40).map(|n| game_ended(n, (1, 1, 1), (2, 1, 1))).collect();
    let report = driver.handle(&deliveries(&events), deadline()).await;
    assert_eq!(driver.ledger.commits(), 40);
    assert_eq!(report.cost.write_units, 40.0);
}

#[tokio::test]
async fn increments_of_a_batch_share_a_transaction() {
    let driver = driver(crate::support::counting());
    let events: Vec<Event> = (1..=10).map(|n| game_ended(n, (1, 1, 1), (2, 1, 1))).collect();
    let report = driver.handle(&deliveries(&events), deadline()).await;
    assert_eq!(report.cost.calls, 1);
    assert_eq!(stored(&driver.ledger, "count"), Some(10));
    assert_eq!(driver.ledger.claims(), 10);
}

#[tokio::test]
async fn deltas_that_cancel_out_write_no_counter() {
    let driver = driver(blind(|event| {
        let up = if event.aggregate_id == "game-00001" { 1 } else { -1 };
        apply(vec![add("balance", up)])
    }));
    let events = [game_ended(1, (1, 1, 1), (2, 1, 1)), game_ended(2, (1, 1, 1), (2, 1, 1))];
    assert_eq!(names(&handle(&driver, &events).await), ["applied", "applied"]);
    assert_eq!(stored(&driver.ledger, "balance"), None);
    assert_eq!(driver.ledger.claims(), 2);
}

#[tokio::test]
async fn a_decision_of_more_than_a_hundred_items_is_rejected() {
    let driver = driver(blind(|_| apply((0..101).map(|n| replace(&n.to_string(), 1, Guard::Newer(1))).collect())));
    let outcomes = handle(&driver, &[game_ended(1, (1, 1, 1), (2, 1, 1))]).await;
    assert_eq!(names(&outcomes), ["rejected"]);
    assert!(outcomes[0].reason().unwrap().contains("101"), "{outcomes:?}");
}

#[tokio::test]
async fn an_event_that_is_too_old_for_a_claim_is_rejected() {
    let driver = driver(crate::support::counting());
    driver.environment.advance(std::time::Duration::from_hours(29 * 24 + 1));
    let batch = deliveries(&[game_ended(1, (1, 1, 1), (2, 1, 1))]);
    let later = deadline() + std::time::Duration::from_hours(30 * 24);
    let report = driver.handle(&batch, later).await;
    let reason = report.records[0].outcome.reason().unwrap_or_default();
    assert!(reason.contains("too old for a claim"), "{report:?}");
    assert_eq!(stored(&driver.ledger, "count"), None);
}

#[tokio::test]
async fn a_record_sees_what_the_batch_decided_before_it() {
    let driver = driver(Fake {
        needs: |_: &Event| vec![need("sum")],
        decide: |_: &Event, state: &State| {
            let (version, sum) = row_number(state, "sum");
            apply(vec![replace("sum", sum.unwrap_or(0) + 1, Guard::Unchanged(version)), add("count", 1)])
        },
    });
    let events: Vec<Event> = (1..=5).map(|n| game_ended(n, (1, 1, 1), (2, 1, 1))).collect();
    handle(&driver, &events).await;
    handle(&driver, &[game_ended(6, (1, 1, 1), (2, 1, 1))]).await;
    assert_eq!((stored(&driver.ledger, "sum"), stored(&driver.ledger, "count")), (Some(6), Some(6)));
    assert_eq!(driver.ledger.commits(), 2);
}

#[tokio::test]
async fn a_decider_that_reads_what_it_did_not_name_is_retried() {
    struct Careless;
    impl Decider for Careless {
        fn needs(&self, _: &Event) -> Vec<Need> {
            vec![need("named")]
        }
        fn decide(&self, _: &Event, state: &State) -> Result<Decision, RowError> {
            state.row(&key("other")).map(|_| Decision::Stale)
        }
    }
    let outcomes = handle(&driver(Careless), &[game_ended(1, (1, 1, 1), (2, 1, 1))]).await;
    assert_eq!(names(&outcomes), ["retry"]);
}

#[tokio::test]
async fn a_row_that_cannot_be_decoded_is_retried_and_named() {
    let driver = leaderboard(2);
    let broken = json!({"rating": "high"}).as_object().cloned().unwrap();
    driver.ledger.put(BoardRow::key(TimeControl::Blitz, &player_id(1)), broken);
    let outcomes = handle(&driver, &[game_ended(1, (1, 1500, 1), (2, 1500, 1))]).await;
    assert_eq!(names(&outcomes), ["retry"]);
    assert!(outcomes[0].reason().unwrap().contains("BOARD#blitz#player-00001"), "{outcomes:?}");
}

#[tokio::test]
async fn a_player_without_a_record_is_rejected() {
    let driver = leaderboard(1);
    let outcomes = handle(&driver, &[game_ended(1, (1, 1500, 1), (2, 1500, 1))]).await;
    assert_eq!(names(&outcomes), ["rejected"]);
    assert_eq!(players_on_board(&driver.ledger), 0);
}
