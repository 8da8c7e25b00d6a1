//! Every stored and sent shape, byte for byte. A golden file that has to change is a new schema version.

use std::collections::BTreeMap;

use consumer::{Draft, Scope};
use domain::leaderboard::Leaderboard;
use domain::players::PlayerRating;
use domain::statistics::Statistics;
use domain::{Decider, Decision, Key, Need, Row, State};
use events::{Consumer, Event, Rating, TimeControl};
use serde_json::{Value, json};
use testkit::sample::{game_ended, now, player_id, player_record};

/// Compares text with a golden file. `UPDATE_GOLDEN=1 cargo test -p tests --test wire` writes the files anew.
fn check(name: &str, actual: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, golden, "{} differs", path.display());
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn event() -> Event {
    game_ended(7, (1, 1512, 1204), (2, 1488, 31))
}

/// The state in which nothing is there that the boards need.
fn absent_rows() -> State {
    let key = |need| match need {
        Need::Key(key) => key,
        Need::Range(range) => panic!("the boards read no ranges: {range}"),
    };
    Leaderboard.needs(&event()).into_iter().map(|need| (key(need), Row::default())).collect()
}

/// The writes of a decision as the plan that is committed.
fn plan(consumer: Consumer, decision: Decision) -> String {
    let Decision::Apply { writes, checks } = decision else { panic!("nothing to write: {decision:?}") };
    let scope = Scope { consumer, event_id: event().event_id, now: now() };
    let plan = Draft::new(scope, writes, checks).expect("a plan").seal(0, 2);
    format!("{plan:#?}\n")
}

#[test]
fn game_ended_version_1() {
    let sent = event().encode();
    check("game_ended.v1.json", &format!("{sent}\n"));
    let golden = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/wire/golden/game_ended.v1.json")).unwrap();
    assert_eq!(Event::decode(&golden).unwrap(), event());
}

#[test]
fn a_board_row_that_is_created() {
    let mut state = absent_rows();
    for number in [1, 2] {
        let (key, attributes) = player_record(number);
        state.insert(key, Row { version: 3, attributes: Some(attributes) });
    }
    check("board_row_created.txt", &plan(Consumer::GameEnded, Leaderboard.decide(&event(), &state).unwrap()));
}

#[test]
fn a_board_row_that_moves_to_another_block() {
    let mut state = absent_rows();
    let row = |number: u32, rating: u16, games: u64| {
        json!({
            "player_id": player_id(number), "username": "Old Name", "player_version": 1, "rating": rating, "games": games,
            "order_block": "BOARD#blitz#23", "order_rank": format!("{rating:04}#{}", player_id(number)),
        })
    };
    for (number, rating, games) in [(1, 1_500, 1203), (2, 1_500, 30)] {
        let key = domain::leaderboard::BoardRow::key(TimeControl::Blitz, &player_id(number));
        let attributes = row(number, rating, games).as_object().cloned();
        state.insert(key, Row { version: 8, attributes });
    }
    check("board_row_moved.txt", &plan(Consumer::GameEnded, Leaderboard.decide(&event(), &state).unwrap()));
}

#[test]
fn statistics_of_a_game() {
    let decision = Statistics.decide(&event(), &State::default()).unwrap();
    check("statistics.txt", &plan(Consumer::GameEndedStatistics, decision));
}

#[test]
fn source_records() {
    let (player_key, player) = player_record(1);
    let rating = PlayerRating {
        player_id: player_id(1),
        time_control: TimeControl::Blitz,
        rating: Rating::try_from(1_512).unwrap(),
        games: 1204,
    };
    let rating_key: Key = PlayerRating::key(&player_id(1), TimeControl::Blitz);
    let shapes = BTreeMap::from([
        (player_key.to_string(), Value::Object(player)),
        (rating_key.to_string(), serde_json::to_value(&rating).unwrap()),
    ]);
    check("source_records.json", &pretty(&json!(shapes)));
}
