//! Boards and players' records that change between a decision's reading and its commit.

use std::sync::Arc;

use consumer::Outcome;
use domain::leaderboard::{BoardRow, Leaderboard, PlayerOnBoards};
use domain::players::{Player, Visibility};
use domain::{Attributes, Decider, Decision, Need, RowError, State};
use events::{Consumer, Event, Payload, PlayerRestricted, TimeControl};
use serde_json::{Value, json};
use testkit::MemoryLedger;
use testkit::sample::{event, game_ended, now, player_id, player_record};

use crate::support::{Once, deadline, deliveries, outcomes, sharing};

/// A decider beside which the player's record is changed, right after it was read for the first time.
struct Overtaken<D> {
    decider: D,
    ledger: Arc<MemoryLedger>,
    record: Attributes,
    once: Once,
}

impl<D: Decider> Decider for Overtaken<D> {
    fn needs(&self, event: &Event) -> Vec<Need> {
        self.decider.needs(event)
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if self.once.first() {
            self.ledger.put(Player::key(&player_id(1)), self.record.clone());
        }
        self.decider.decide(event, state)
    }
}

fn overtaken<D>(ledger: &Arc<MemoryLedger>, decider: D, record: Attributes) -> Overtaken<D> {
    Overtaken { decider, ledger: ledger.clone(), record, once: Once::new() }
}

fn restricted() -> Attributes {
    let (_, mut record) = player_record(1);
    record.insert("restriction".to_owned(), json!({"reason": "spam", "since": now()}));
    record
}

fn ledger_with_players() -> Arc<MemoryLedger> {
    let ledger = Arc::new(MemoryLedger::default());
    for number in [1, 2] {
        let (key, record) = player_record(number);
        ledger.put(key, record);
    }
    ledger
}

fn row(ledger: &MemoryLedger, number: u32) -> BoardRow {
    let row = ledger.rows().remove(&BoardRow::key(TimeControl::Blitz, &player_id(number))).unwrap();
    serde_json::from_value(Value::Object(row)).unwrap()
}

async fn handle<D: Decider>(ledger: &Arc<MemoryLedger>, consumer: Consumer, decider: D, event: &Event) -> Outcome {
    let mut driver = sharing(ledger, decider);
    driver.consumer = consumer;
    outcomes(&driver.handle(&deliveries(std::slice::from_ref(event)), deadline()).await).remove(0)
}

fn restriction(version: u64) -> Event {
    let payload = PlayerRestricted { player_id: player_id(1), reason: "spam".parse().unwrap() };
    event(50, player_id(1).as_str(), version, Payload::PlayerRestricted(payload))
}

#[tokio::test]
async fn a_row_of_a_player_who_is_restricted_meanwhile_starts_hidden() {
    let ledger = ledger_with_players();
    let decider = overtaken(&ledger, Leaderboard, restricted());
    let game = game_ended(7, (1, 1_512, 1), (2, 1_488, 1));

    assert_eq!(handle(&ledger, Consumer::GameEnded, decider, &game).await, Outcome::Applied);

    assert_eq!((row(&ledger, 1).visibility(), row(&ledger, 1).player_version), (Visibility::Hidden, 2));
    assert_eq!(row(&ledger, 2).visibility(), Visibility::Visible);
}

#[tokio::test]
async fn nobody_is_shown_again_who_is_restricted_meanwhile() {
    let ledger = ledger_with_players();
    let game = game_ended(7, (1, 1_512, 1), (2, 1_488, 1));
    handle(&ledger, Consumer::GameEnded, Leaderboard, &game).await;
    ledger.put(Player::key(&player_id(1)), restricted());
    handle(&ledger, Consumer::PlayerChanged, PlayerOnBoards, &restriction(2)).await;
    assert_eq!(row(&ledger, 1).visibility(), Visibility::Hidden);

    // Reinstated, and restricted again while the reinstatement is being handled.
    let (key, record) = player_record(1);
    ledger.put(key, record);
    let decider = overtaken(&ledger, PlayerOnBoards, restricted());
    assert_eq!(handle(&ledger, Consumer::PlayerChanged, decider, &restriction(3)).await, Outcome::Applied);

    assert_eq!((row(&ledger, 1).visibility(), row(&ledger, 1).player_version), (Visibility::Hidden, 4));
}
