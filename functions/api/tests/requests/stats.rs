//! `/players/{player_id}/stats`.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::stage::{Fault, Stage, game};

async fn stage() -> Stage {
    let stage = Stage::new().await;
    for player_id in ["ann", "bea"] {
        stage.register(player_id).await;
    }
    stage
}

async fn play(stage: &Stage, game_id: &str, ended_at: &str, time_control: &str, result: &str) {
    let mut command = game(game_id, ("ann", 1_500), ("bea", 1_500));
    command["ended_at"] = json!(ended_at);
    command["time_control"] = json!(time_control);
    command["result"] = json!(result);
    assert_eq!(stage.post("/games", command).await.status, StatusCode::CREATED);
    stage.consume(&stage.event(game_id).await).await;
}

fn results(wins: u64, draws: u64, losses: u64) -> Value {
    json!({"wins": wins, "draws": draws, "losses": losses, "games": wins + draws + losses})
}

fn day(day: &str, time_control: &str, results: Value) -> Value {
    let mut entry = results;
    entry["day"] = json!(day);
    entry["time_control"] = json!(time_control);
    entry
}

#[tokio::test]
async fn results_are_counted_in_total_and_by_day() {
    let stage = stage().await;
    play(&stage, "g-1", "2026-10-31T23:59:59.999Z", "blitz", "1-0").await;
    play(&stage, "g-2", "2026-11-01T00:00:00Z", "blitz", "1-0").await;
    play(&stage, "g-3", "2026-11-01T12:00:00Z", "blitz", "1/2-1/2").await;
    play(&stage, "g-4", "2026-11-30T12:00:00Z", "blitz", "0-1").await;
    play(&stage, "g-5", "2026-11-30T12:00:00Z", "rapid", "1-0").await;

    let ann = stage.get("/players/ann/stats").await;
    assert_eq!(ann.status, StatusCode::OK);
    let expected = json!({
        "player_id": "ann", "from": "2026-11-01", "to": "2026-11-30",
        "totals": {"blitz": results(2, 1, 1), "rapid": results(1, 0, 0)},
        "days": [
            day("2026-11-01", "blitz", results(1, 1, 0)),
            day("2026-11-30", "blitz", results(0, 0, 1)),
            day("2026-11-30", "rapid", results(1, 0, 0)),
        ],
    });
    assert_eq!(ann.body, expected);

    let bea = stage.get("/players/bea/stats?from=2026-10-31&to=2026-10-31").await;
    assert_eq!(bea.body["days"], json!([day("2026-10-31", "blitz", results(0, 0, 1))]));
    assert_eq!(bea.body["totals"]["blitz"], results(1, 1, 2));
}

#[tokio::test]
async fn results_are_read_to_the_last_page() {
    let stage = stage().await;
    for number in 1..=4 {
        play(&stage, &format!("g-{number}"), &format!("2026-11-0{number}T12:00:00Z"), "blitz", "1-0").await;
        play(&stage, &format!("h-{number}"), &format!("2026-11-0{number}T12:00:00Z"), "rapid", "1-0").await;
    }
    let whole = stage.get("/players/ann/stats").await;
    assert_eq!(whole.body["days"].as_array().unwrap().len(), 8);
    stage.fail("Query", vec![Fault::SmallPage; 20]);
    let paged = stage.get("/players/ann/stats").await;
    assert_eq!((paged.status, paged.body), (whole.status, whole.body));
}

#[tokio::test]
async fn a_player_without_games_has_no_results() {
    let stage = stage().await;
    let answer = stage.get("/players/ann/stats?to=2026-03-01").await;
    let expected = json!({"player_id": "ann", "from": "2026-01-31", "to": "2026-03-01", "totals": {}, "days": []});
    assert_eq!((answer.status, answer.body), (StatusCode::OK, expected));
}

#[tokio::test]
async fn a_player_who_is_not_there_has_no_statistics() {
    let stage = stage().await;
    let answer = stage.get("/players/nobody/stats").await;
    assert_eq!((answer.status, answer.places()), (StatusCode::NOT_FOUND, vec![]));
}

#[tokio::test]
async fn bad_days_are_named() {
    let stage = stage().await;
    let cases = [
        ("from=yesterday", vec!["from"]),
        ("from=2026-13-01&to=2026-11-31", vec!["from", "to"]),
        ("from=2026-11-30T00:00:00Z", vec!["from"]),
        ("from=2026-11-02&to=2026-11-01", vec!["from"]),
        ("from=2025-11-29&to=2026-11-30", vec!["from"]),
        ("since=2026-11-01", vec!["since"]),
    ];
    for (query, places) in cases {
        let answer = stage.get(&format!("/players/ann/stats?{query}")).await;
        assert_eq!(
            (answer.status, answer.places()),
            (StatusCode::BAD_REQUEST, places.iter().map(|p| (*p).to_owned()).collect()),
            "{query}"
        );
    }
    let widest = stage.get("/players/ann/stats?from=2025-11-30&to=2026-11-30").await;
    assert_eq!(widest.status, StatusCode::OK);
}
