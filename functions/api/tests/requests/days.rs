//! `/statistics/days/{date}`.

use axum::http::StatusCode;
use domain::players::Player;
use serde_json::json;

use crate::stage::Stage;

async fn consume(stage: &Stage, player: &str) {
    stage.consume(&stage.event_of(&Player::key(&player.parse().unwrap())).await).await;
}

#[tokio::test]
async fn a_day_counts_events_by_type_and_each_player_once() {
    let stage = Stage::new().await;
    for player in ["ann", "bea", "cleo"] {
        stage.register(player).await;
    }
    for player in ["ann", "bea"] {
        consume(&stage, player).await;
    }
    stage.play("g-1", ("ann", 1_510), ("bea", 1_490)).await;
    stage.play("g-2", ("ann", 1_520), ("bea", 1_480)).await;
    // A restriction is an event, but nothing that the player did.
    stage.put("/players/cleo/restriction", json!({"reason": "spam"})).await;
    consume(&stage, "cleo").await;

    let day = stage.get("/statistics/days/2026-11-30").await;
    let events = json!({"game_ended": 2, "player_registered": 2, "player_restricted": 1});
    assert_eq!((day.status, &day.body["events"]), (StatusCode::OK, &events));
    assert_eq!((&day.body["date"], &day.body["active_players"]), (&json!("2026-11-30"), &json!(2)));
}

#[tokio::test]
async fn a_day_without_events_is_empty_and_no_day_is_refused() {
    let stage = Stage::new().await;
    let empty = stage.get("/statistics/days/2020-02-29").await;
    assert_eq!(empty.body, json!({"date": "2020-02-29", "active_players": 0, "events": {}}));
    for bad in ["today", "2026-02-30", "2026-11-30T00:00:00Z", "2026-1-1"] {
        let answer = stage.get(&format!("/statistics/days/{bad}")).await;
        assert_eq!((answer.status, answer.places()), (StatusCode::BAD_REQUEST, vec!["date".to_owned()]), "{bad}");
    }
}
