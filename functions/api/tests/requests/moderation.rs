//! `/players/{player_id}/username` and `/players/{player_id}/restriction`, and what they do to boards.

use axum::http::StatusCode;
use domain::Table;
use domain::players::Player;
use events::Payload;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::stage::{Answer, Fault, NOW, Stage, error};

async fn stage() -> Stage {
    let stage = Stage::new().await;
    for player in ["ann", "bea", "cleo", "dora"] {
        stage.register(player).await;
    }
    stage
}

/// Lets the consumers have the event of a player's last change.
async fn consume(stage: &Stage, player: &str) {
    let event = stage.event_of(&Player::key(&player.parse().unwrap())).await;
    stage.consume(&event).await;
}

async fn version(stage: &Stage, player: &str) -> u64 {
    stage.row(&Player::key(&player.parse().unwrap())).await.version
}

fn ok(answer: &Answer) -> &Value {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    &answer.body
}

#[tokio::test]
async fn a_new_name_is_one_write_and_one_event() {
    let stage = stage().await;
    stage.calls();
    let answer = stage.put("/players/ann/username", json!({"username": "Anna"})).await;
    assert_eq!(ok(&answer), &json!({"player_id": "ann", "username": "Anna"}));
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 1, "PutItem": 1}));
    let event = stage.event_of(&Player::key(&"ann".parse().unwrap())).await;
    assert_eq!((event.version, event.aggregate_id.as_str()), (2, "ann"));
    assert!(matches!(event.payload, Payload::PlayerRenamed(_)), "{event:?}");
    assert_eq!(json!(event.payload), json!({"player_id": "ann", "username": "Anna"}));
}

#[tokio::test]
async fn what_changes_nothing_writes_nothing_and_publishes_nothing() {
    let stage = stage().await;
    stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    let written = stage.all(Table::Records).await;
    stage.calls();

    let restricted = json!({"player_id": "ann", "username": "ann", "restriction": {"reason": "spam", "since": NOW}});
    let answer = stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    assert_eq!(ok(&answer), &restricted);
    assert_eq!(ok(&stage.put("/players/ann/username", json!({"username": "ann"})).await), &restricted);
    let free = json!({"player_id": "bea", "username": "bea"});
    assert_eq!(ok(&stage.delete("/players/bea/restriction").await), &free);

    assert_eq!(stage.all(Table::Records).await, written);
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 3}));
}

#[tokio::test]
async fn a_restriction_has_a_reason_and_a_beginning() {
    let stage = stage().await;
    stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    let other = stage.put("/players/ann/restriction", json!({"reason": "cheating"})).await;
    assert_eq!(ok(&other)["restriction"], json!({"reason": "cheating", "since": NOW}));
    let event = stage.event_of(&Player::key(&"ann".parse().unwrap())).await;
    assert_eq!((event.version, json!(event.payload)), (3, json!({"player_id": "ann", "reason": "cheating"})));

    let free = stage.delete("/players/ann/restriction").await;
    assert_eq!(ok(&free), &json!({"player_id": "ann", "username": "ann"}));
    let event = stage.event_of(&Player::key(&"ann".parse().unwrap())).await;
    assert!(matches!(event.payload, Payload::PlayerReinstated(_)), "{event:?}");
    assert_eq!((event.version, json!(event.payload)), (4, json!({"player_id": "ann"})));
}

#[tokio::test]
async fn a_registration_is_known_by_its_first_name() {
    let stage = stage().await;
    for name in ["Anna", "Annie"] {
        stage.put("/players/ann/username", json!({"username": name})).await;
    }
    let again = stage.post("/players", json!({"player_id": "ann", "username": "ann"})).await;
    assert_eq!(ok(&again), &json!({"player_id": "ann", "username": "Annie"}));
    let other = stage.post("/players", json!({"player_id": "ann", "username": "Annie"})).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(version(&stage, "ann").await, 3);
}

#[tokio::test]
async fn a_restricted_player_leaves_the_board_and_comes_back_as_if_never_gone() {
    let stage = stage().await;
    stage.play("g-1", ("ann", 1_510), ("bea", 1_490)).await;
    stage.play("g-2", ("cleo", 1_500), ("dora", 1_480)).await;
    let before = stage.get("/leaderboards/blitz").await;

    stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    consume(&stage, "ann").await;
    let hidden = stage.get("/leaderboards/blitz").await;
    assert_eq!(hidden.body["players"], 3);
    let ranks: Vec<(u64, &str)> = hidden.body["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["rank"].as_u64().unwrap(), row["player_id"].as_str().unwrap()))
        .collect();
    assert_eq!(ranks, [(1, "cleo"), (2, "bea"), (3, "dora")]);
    assert_eq!(stage.get("/leaderboards/blitz/players/ann").await.status, StatusCode::NOT_FOUND);

    stage.delete("/players/ann/restriction").await;
    consume(&stage, "ann").await;
    assert_eq!(stage.get("/leaderboards/blitz").await.body, before.body);
}

#[tokio::test]
async fn games_of_the_restricted_count_in_secret() {
    let stage = stage().await;
    stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    stage.play("g-1", ("ann", 1_510), ("bea", 1_490)).await;
    stage.play("g-2", ("ann", 1_520), ("cleo", 1_480)).await;
    let board = stage.get("/leaderboards/blitz").await;
    assert_eq!((&board.body["players"], board.body["rows"].as_array().unwrap().len()), (&json!(2), 2));

    stage.delete("/players/ann/restriction").await;
    consume(&stage, "ann").await;
    let place = stage.get("/leaderboards/blitz/players/ann").await;
    assert_eq!(
        (&ok(&place)["rank"], &place.body["rating"], &place.body["games"]),
        (&json!(1), &json!(1_520), &json!(2))
    );
}

#[tokio::test]
async fn a_new_name_shows_on_the_board() {
    let stage = stage().await;
    stage.play("g-1", ("ann", 1_510), ("bea", 1_490)).await;
    stage.put("/players/ann/username", json!({"username": "Anna"})).await;
    consume(&stage, "ann").await;
    assert_eq!(stage.get("/leaderboards/blitz").await.body["rows"][0]["username"], "Anna");
    // A later game leaves the name as it is.
    stage.play("g-2", ("ann", 1_520), ("bea", 1_480)).await;
    assert_eq!(stage.get("/leaderboards/blitz").await.body["rows"][0]["username"], "Anna");
}

#[tokio::test]
async fn commands_at_the_same_time_get_a_version_each() {
    let stage = stage().await;
    let rename = |number: u32| stage.put("/players/ann/username", json!({"username": format!("Ann {number}")}));
    let (first, second, third) =
        futures::join!(rename(1), rename(2), stage.put("/players/ann/restriction", json!({"reason": "spam"})));
    for answer in [first, second, third] {
        ok(&answer);
    }
    assert_eq!(version(&stage, "ann").await, 4);
}

#[tokio::test]
async fn a_restriction_gets_through_conflicts_and_lost_answers() {
    let conflict = error(400, "TransactionConflictException");
    let throttled = error(400, "ProvisionedThroughputExceededException");
    for fault in [conflict, throttled, error(500, "InternalServerError"), Fault::LostAnswer] {
        let stage = stage().await;
        stage.fail("PutItem", [fault.clone()]);
        let answer = stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
        assert_eq!(ok(&answer)["restriction"]["reason"], "spam", "{fault:?}");
        assert_eq!(version(&stage, "ann").await, 2, "{fault:?}");
    }
    let stage = stage().await;
    stage.fail("PutItem", [error(400, "ValidationException")]);
    let answer = stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    assert_eq!((answer.status, answer.places()), (StatusCode::INTERNAL_SERVER_ERROR, vec![]));
}

#[tokio::test]
async fn what_is_wrong_with_a_command_is_named_and_nothing_written() {
    let stage = stage().await;
    let written = stage.all(Table::Records).await;
    let cases = [
        ("/players/ann/username", json!({}), StatusCode::BAD_REQUEST, vec!["#/username"]),
        ("/players/ann/username", json!({"username": " x"}), StatusCode::BAD_REQUEST, vec!["#/username"]),
        ("/players/ann/username", json!({"username": "x", "y": 1}), StatusCode::BAD_REQUEST, vec!["#/y"]),
        ("/players/a%20b/username", json!({"username": "x"}), StatusCode::BAD_REQUEST, vec!["player_id"]),
        ("/players/nobody/username", json!({"username": "x"}), StatusCode::NOT_FOUND, vec![]),
        ("/players/ann/restriction", json!({"reason": " "}), StatusCode::BAD_REQUEST, vec!["#/reason"]),
        ("/players/ann/restriction", json!({"reason": "x".repeat(501)}), StatusCode::BAD_REQUEST, vec!["#/reason"]),
        ("/players/nobody/restriction", json!({"reason": "spam"}), StatusCode::NOT_FOUND, vec![]),
    ];
    for (path, body, status, places) in cases {
        let answer = stage.put(path, &body).await;
        assert_eq!(
            (answer.status, answer.places()),
            (status, places.iter().map(|p| (*p).to_owned()).collect()),
            "{path}"
        );
    }
    let answers =
        join_all(["/players/nobody/restriction", "/players/a%20b/restriction"].map(|path| stage.delete(path)));
    let statuses: Vec<StatusCode> = answers.await.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST]);
    assert_eq!(stage.all(Table::Records).await, written);
}
