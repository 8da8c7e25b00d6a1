//! Commands while DynamoDB is busy, slow or gone.

use axum::http::StatusCode;
use domain::Table;
use domain::players::PlayerRating;
use events::TimeControl;
use serde_json::json;

use crate::stage::{Fault, Stage, canceled, error, game};

async fn stage() -> Stage {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage.register("bea").await;
    stage.calls();
    stage
}

async fn games_of_ann(stage: &Stage) -> u64 {
    stage.row(&PlayerRating::key(&"ann".parse().unwrap(), TimeControl::Blitz)).await.version
}

#[tokio::test]
async fn after_a_lost_answer_the_own_game_is_found() {
    let stage = stage().await;
    stage.fail("TransactWriteItems", [Fault::LostAnswer]);
    let command = game("g-1", ("ann", 1_510), ("bea", 1_490));
    let answer = stage.post("/games", &command).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body["white"], json!({"player_id": "ann", "rating": 1_510, "games": 1}));
    assert_eq!(games_of_ann(&stage).await, 1);
    assert_eq!(stage.calls()["TransactWriteItems"], 1);
    assert_eq!(stage.post("/games", &command).await.body, answer.body);
}

#[tokio::test]
async fn a_transaction_that_lost_a_race_is_decided_again() {
    let none_conflict = canceled(["None", "TransactionConflict", "None"]);
    let mixed = canceled(["None", "ConditionalCheckFailed", "TransactionConflict"]);
    let throttled = canceled(["None", "ThrottlingError", "None"]);
    let server = error(500, "InternalServerError");
    let busy = error(400, "ProvisionedThroughputExceededException");
    let running = error(400, "TransactionInProgressException");
    for fault in [none_conflict, mixed, throttled, server, busy, running] {
        let stage = stage().await;
        stage.fail("TransactWriteItems", [fault.clone(), fault.clone()]);
        let answer = stage.post("/games", game("g-1", ("ann", 1_510), ("bea", 1_490))).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{fault:?}: {answer:?}");
        assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 3, "TransactWriteItems": 3}), "{fault:?}");
        assert_eq!(games_of_ann(&stage).await, 1);
    }
}

#[tokio::test]
async fn after_five_tries_the_client_is_asked_to_come_back() {
    let stage = stage().await;
    let written = stage.all(Table::Records).await;
    stage.fail("TransactWriteItems", vec![canceled(["None", "TransactionConflict", "None"]); 5]);
    let answer = stage.post("/games", game("g-1", ("ann", 1_510), ("bea", 1_490))).await;
    assert_eq!((answer.status, answer.places()), (StatusCode::SERVICE_UNAVAILABLE, vec![]));
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(stage.calls()["TransactWriteItems"], 5);
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn a_transaction_that_can_never_succeed_is_not_tried_again() {
    for fault in [canceled(["ValidationError", "None", "None"]), error(400, "ValidationException")] {
        let stage = stage().await;
        stage.fail("TransactWriteItems", [fault.clone()]);
        let answer = stage.post("/games", game("g-1", ("ann", 1_510), ("bea", 1_490))).await;
        assert_eq!((answer.status, answer.places()), (StatusCode::INTERNAL_SERVER_ERROR, vec![]), "{fault:?}");
        assert!(!answer.body.to_string().contains("Validation"), "the cause is for the log: {answer:?}");
        assert_eq!(stage.calls()["TransactWriteItems"], 1);
    }
}

#[tokio::test]
async fn keys_that_a_read_leaves_out_are_read_again() {
    let stage = stage().await;
    stage.fail("BatchGetItem", [Fault::LeftOut, Fault::LeftOut]);
    let answer = stage.post("/games", game("g-1", ("ann", 1_510), ("bea", 1_490))).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(stage.calls()["BatchGetItem"], 3);

    stage.fail("BatchGetItem", vec![Fault::LeftOut; 5]);
    let answer = stage.get("/leaderboards/blitz").await;
    assert_eq!((answer.status, answer.places()), (StatusCode::SERVICE_UNAVAILABLE, vec![]));
}

#[tokio::test]
async fn reads_are_repeated_by_the_sdk() {
    let stage = stage().await;
    stage.fail("BatchGetItem", [error(500, "InternalServerError"), Fault::LostAnswer]);
    let answer = stage.get("/leaderboards/blitz").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(stage.calls()["BatchGetItem"], 3);

    stage.fail("BatchGetItem", vec![Fault::LostAnswer; 3]);
    let answer = stage.get("/leaderboards/blitz").await;
    assert_eq!((answer.status, answer.places()), (StatusCode::SERVICE_UNAVAILABLE, vec![]));
    assert_eq!(answer.headers["retry-after"], "1");
}
