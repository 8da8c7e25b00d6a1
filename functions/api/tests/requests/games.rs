//! `/games`.

use axum::http::StatusCode;
use domain::Table;
use domain::players::PlayerRating;
use events::{Payload, TimeControl};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::stage::{NOW, Stage, game, now, post};

async fn stage() -> Stage {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage.register("bea").await;
    stage
}

fn ann_beats_bea() -> Value {
    game("g-1", ("ann", 1_510), ("bea", 1_490))
}

#[tokio::test]
async fn a_game_is_written_with_its_event_and_both_ratings() {
    let stage = stage().await;
    stage.calls();
    let mut request = post("/games", ann_beats_bea());
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    request.headers_mut().insert("traceparent", traceparent.parse().unwrap());
    let answer = stage.send(request).await;

    assert_eq!(answer.status, StatusCode::CREATED);
    let mut expected = ann_beats_bea();
    expected["white"]["games"] = json!(1);
    expected["black"]["games"] = json!(1);
    assert_eq!(answer.body, expected);
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 1, "TransactWriteItems": 1}));

    let event = stage.event("g-1").await;
    assert_eq!((event.aggregate_id.as_str(), event.version), ("g-1", 1));
    assert_eq!(event.event_id.minted_at(), now());
    assert_eq!(event.occurred_at.to_string(), NOW);
    assert_eq!(event.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    let Payload::GameEnded(ended) = event.payload else { panic!("no game: {event:?}") };
    let side =
        |player: &str, rating: u16| json!({"player_id": player, "username": player, "rating": rating, "games": 1});
    assert_eq!(json!(ended.white), side("ann", 1_510));
    assert_eq!(json!(ended.black), side("bea", 1_490));
    for (player, rating) in [("ann", 1_510), ("bea", 1_490)] {
        let row = stage.row(&PlayerRating::key(&player.parse().unwrap(), TimeControl::Blitz)).await;
        assert_eq!(row.version, 1);
        let expected = json!({"player_id": player, "time_control": "blitz", "rating": rating, "games": 1});
        assert_eq!(json!(row.attributes), expected);
    }
}

#[tokio::test]
async fn the_same_game_again_is_answered_alike_and_writes_nothing() {
    let stage = stage().await;
    let first = stage.post("/games", ann_beats_bea()).await;
    // Another game in between: the answer is about the game, not about the players now.
    stage.post("/games", game("g-2", ("ann", 1_600), ("bea", 1_400))).await;
    let written = stage.all(Table::Records).await;
    let again = stage.post("/games", ann_beats_bea()).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));

    let mut same_moment = ann_beats_bea();
    same_moment["ended_at"] = json!("2026-11-30T19:00:00.0004+01:00");
    let again = stage.post("/games", same_moment).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn another_game_under_the_same_id_is_a_conflict() {
    let stage = stage().await;
    stage.post("/games", ann_beats_bea()).await;
    let written = stage.all(Table::Records).await;
    let changes: [(&[&str], Value); 5] = [
        (&["result"], json!("0-1")),
        (&["time_control"], json!("rapid")),
        (&["ended_at"], json!("2026-11-30T17:59:59.999Z")),
        (&["white", "rating"], json!(1_511)),
        (&["black", "player_id"], json!("cat")),
    ];
    for (path, value) in changes {
        let mut other = ann_beats_bea();
        *path.iter().fold(&mut other, |object, name| &mut object[name]) = value;
        let answer = stage.post("/games", &other).await;
        assert_eq!((answer.status, answer.places()), (StatusCode::CONFLICT, vec![]), "{other}");
    }
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn without_an_id_the_idempotency_key_names_the_game() {
    let stage = stage().await;
    let keyed = |key: &str| {
        let mut command = ann_beats_bea();
        command.as_object_mut().unwrap().remove("game_id");
        let mut request = post("/games", command);
        request.headers_mut().insert("Idempotency-Key", key.parse().unwrap());
        request
    };
    let first = stage.send(keyed("k-1")).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = stage.send(keyed("k-1")).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
    let other = stage.send(keyed("k-2")).await;
    assert_eq!(other.status, StatusCode::CREATED);
    assert_ne!(other.body["game_id"], first.body["game_id"]);

    for bad in ["", " ", &"k".repeat(256)] {
        let answer = stage.send(keyed(bad)).await;
        assert_eq!((answer.status, answer.places()), (StatusCode::BAD_REQUEST, vec!["Idempotency-Key".to_owned()]));
    }
}

#[tokio::test]
async fn a_game_of_a_player_who_is_not_registered_is_refused() {
    let stage = stage().await;
    let written = stage.all(Table::Records).await;
    for (white, black, place) in [("nobody", "bea", "#/white/player_id"), ("ann", "nobody", "#/black/player_id")] {
        let answer = stage.post("/games", game("g-1", (white, 1_500), (black, 1_500))).await;
        assert_eq!((answer.status, answer.places()), (StatusCode::UNPROCESSABLE_ENTITY, vec![place.to_owned()]));
    }
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn everything_wrong_with_a_game_is_named_and_nothing_written() {
    let stage = stage().await;
    let written = stage.all(Table::Records).await;
    let mut cases: Vec<(Value, Vec<&str>)> = vec![
        (json!({}), vec!["#/game_id", "#/time_control", "#/ended_at", "#/result", "#/white", "#/black"]),
        (
            json!({
                "game_id": "a b", "time_control": "hyper", "ended_at": "now", "result": "1:0",
                "white": {"player_id": "", "rating": 4001}, "black": {"rating": "1500", "elo": 1}, "rated": true,
            }),
            vec![
                "#/rated",
                "#/game_id",
                "#/time_control",
                "#/ended_at",
                "#/result",
                "#/white/player_id",
                "#/white/rating",
                "#/black/elo",
                "#/black/player_id",
                "#/black/rating",
            ],
        ),
        (game("g-1", ("ann", 1_500), ("ann", 1_500)), vec!["#/black/player_id"]),
        (json!(null), vec!["#"]),
    ];
    let change = |path: &[&str], value: Value| {
        let mut command = ann_beats_bea();
        *path.iter().fold(&mut command, |object, name| &mut object[name]) = value;
        command
    };
    for rating in [json!(-1), json!(4_001), json!(1_500.5), json!("1500"), json!("NaN"), json!(1e300), json!(null)] {
        cases.push((change(&["white", "rating"], rating), vec!["#/white/rating"]));
    }
    for time_control in [json!("Blitz"), json!(""), json!(1), json!(["blitz"])] {
        cases.push((change(&["time_control"], time_control), vec!["#/time_control"]));
    }
    for result in [json!("*"), json!({"1-0": null}), json!(1)] {
        cases.push((change(&["result"], result), vec!["#/result"]));
    }
    for ended_at in [json!("2026-11-30T18:05:00.001Z"), json!("2026-11-30"), json!(1_796_000_000)] {
        cases.push((change(&["ended_at"], ended_at), vec!["#/ended_at"]));
    }
    for side in [json!([]), json!("ann"), json!(null)] {
        cases.push((change(&["black"], side), vec!["#/black"]));
    }
    for (command, places) in cases {
        let answer = stage.post("/games", &command).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{command}");
        assert_eq!(answer.places(), places, "{command}");
    }
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn what_is_not_json_is_named_as_far_as_it_was_read() {
    let stage = stage().await;
    let written = stage.all(Table::Records).await;
    let valid = ann_beats_bea().to_string();
    let cases = [
        (String::new(), "#"),
        ("not json".to_owned(), "#"),
        (format!("{valid} {{}}"), "#"),
        (valid.replace("1510", "NaN"), "#/white/rating"),
        (valid.replace("1490", "Infinity"), "#/black/rating"),
        (valid.replace("\"1-0\"", "'1-0'"), "#/result"),
        ("[".repeat(10_000), ""),
    ];
    for (body, place) in cases {
        let answer = stage.post("/games", &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        let places = answer.places();
        assert!(places.len() == 1 && (place.is_empty() || places[0] == place), "{body}: {places:?}");
    }
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn a_body_has_64_kibibytes_at_most() {
    let stage = stage().await;
    let padded = |bytes: usize| {
        let command = ann_beats_bea().to_string();
        format!("{command}{}", " ".repeat(bytes - command.len()))
    };
    let answer = stage.post("/games", padded(64 * 1024 + 1)).await;
    assert_eq!((answer.status, answer.places()), (StatusCode::PAYLOAD_TOO_LARGE, vec!["#".to_owned()]));
    assert_eq!(stage.post("/games", padded(64 * 1024)).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_game_may_have_ended_five_minutes_ahead() {
    let stage = stage().await;
    let mut command = ann_beats_bea();
    command["ended_at"] = json!("2026-11-30T18:05:00.000Z");
    assert_eq!(stage.post("/games", command).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn the_ends_of_the_scale_are_ratings() {
    let stage = stage().await;
    assert_eq!(stage.post("/games", game("g-1", ("ann", 4_000), ("bea", 0))).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn parallel_games_of_one_player_are_all_counted() {
    const GAMES: usize = 20;
    let stage = Stage::new().await;
    stage.register("ann").await;
    for number in 0..GAMES {
        stage.register(&format!("rival-{number}")).await;
    }
    let posts = (0..GAMES).map(|number| {
        let rival = format!("rival-{number}");
        let command = game(&format!("g-{number}"), ("ann", 1_500 + number as u16), (&rival, 1_400));
        let stage = &stage;
        async move {
            // As a client does: a busy service is asked again, with the same command.
            loop {
                let answer = stage.post("/games", &command).await;
                if answer.status != StatusCode::SERVICE_UNAVAILABLE {
                    return answer;
                }
                assert_eq!(answer.headers["retry-after"], "1");
            }
        }
    });
    let answers = join_all(posts).await;

    let mut counts: Vec<u64> = answers.iter().map(|answer| answer.body["white"]["games"].as_u64().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=GAMES as u64).collect::<Vec<_>>());
    let row = stage.row(&PlayerRating::key(&"ann".parse().unwrap(), TimeControl::Blitz)).await;
    assert_eq!(row.version, GAMES as u64);
    let last = answers.iter().find(|answer| answer.body["white"]["games"] == GAMES).unwrap();
    let expected = json!({
        "player_id": "ann", "time_control": "blitz", "rating": last.body["white"]["rating"], "games": GAMES,
    });
    assert_eq!(json!(row.attributes), expected);
}

#[tokio::test]
async fn parallel_posts_of_one_game_write_it_once() {
    let stage = stage().await;
    let answers = join_all((0..8).map(|_| stage.post("/games", ann_beats_bea()))).await;
    let created = answers.iter().filter(|answer| answer.status == StatusCode::CREATED).count();
    assert_eq!(created, 1);
    for answer in &answers {
        assert!(answer.status.is_success(), "{answer:?}");
        assert_eq!(answer.body, answers[0].body);
    }
    let row = stage.row(&PlayerRating::key(&"ann".parse().unwrap(), TimeControl::Blitz)).await;
    assert_eq!(row.version, 1);
}
