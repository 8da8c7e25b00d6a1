//! Follows, and the lists of players that come of them.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use domain::Table;
use domain::follows::Follow;
use events::Payload;
use serde_json::{Value, json};

use crate::stage::{NOW, Stage};

async fn stage(players: &[&str]) -> Stage {
    let stage = Stage::new().await;
    for player in players {
        stage.register(player).await;
    }
    stage
}

fn key(follower: &str, followed: &str) -> domain::Key {
    Follow::key(&followed.parse().unwrap(), &follower.parse().unwrap())
}

/// Follows a player and lets the consumers have the event.
async fn follow(stage: &Stage, follower: &str, followed: &str) {
    let answer = stage.put(&format!("/players/{follower}/follows/{followed}"), "").await;
    assert!(answer.status.is_success(), "{answer:?}");
    stage.consume(&stage.event_of(&key(follower, followed)).await).await;
}

async fn unfollow(stage: &Stage, follower: &str, followed: &str) {
    let answer = stage.delete(&format!("/players/{follower}/follows/{followed}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    stage.consume(&stage.event_of(&key(follower, followed)).await).await;
}

/// Reads a list page by page to its end.
async fn listed(stage: &Stage, path: &str, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = stage.get(&format!("{path}?limit={limit}{cursor}")).await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        let players = page.body["players"].as_array().unwrap();
        assert!(players.len() <= limit);
        all.extend(players.iter().map(|player| player["player_id"].as_str().unwrap().to_owned()));
        assert!(all.len() < 1_000, "the pages do not end");
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

#[tokio::test]
async fn a_follow_is_one_write_and_one_event_and_can_be_ended_and_begun_again() {
    let stage = stage(&["ann", "bea"]).await;
    stage.calls();
    let first = stage.put("/players/ann/follows/bea", "").await;
    let shown = json!({"follower_id": "ann", "followed_id": "bea", "since": NOW});
    assert_eq!((first.status, &first.body), (StatusCode::CREATED, &shown));
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 1, "PutItem": 1}));
    let event = stage.event_of(&key("ann", "bea")).await;
    assert_eq!((event.aggregate_id.as_str(), event.version), ("ann/bea", 1));
    assert_eq!(json!(event.payload), json!({"follower_id": "ann", "followed_id": "bea"}));
    let again = stage.put("/players/ann/follows/bea", "").await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &shown));
    assert_eq!(stage.row(&key("ann", "bea")).await.version, 1);

    let ended = stage.delete("/players/ann/follows/bea").await;
    assert_eq!((ended.status, &ended.body["since"]), (StatusCode::OK, &Value::Null));
    assert!(matches!(stage.event_of(&key("ann", "bea")).await.payload, Payload::FollowEnded(_)));
    assert_eq!(stage.delete("/players/ann/follows/bea").await.body, ended.body);
    assert_eq!(stage.row(&key("ann", "bea")).await.version, 2);
    assert_eq!(stage.put("/players/ann/follows/bea", "").await.body, shown);
    assert_eq!(stage.row(&key("ann", "bea")).await.version, 3);
}

#[tokio::test]
async fn followers_and_following_are_counted_and_listed_in_both_directions() {
    let stage = stage(&["ann", "bea", "cleo"]).await;
    follow(&stage, "ann", "cleo").await;
    follow(&stage, "bea", "cleo").await;
    follow(&stage, "cleo", "ann").await;
    let cleo = stage.get("/players/cleo").await.body;
    assert_eq!((&cleo["followers"], &cleo["following"]), (&json!(2), &json!(1)));
    let page = stage.get("/players/cleo/followers").await;
    let row = |player: &str| json!({"player_id": player, "username": player, "since": NOW});
    assert_eq!(page.body, json!({"players": [row("ann"), row("bea")], "next_cursor": null}));
    assert_eq!(stage.get("/players/cleo/following").await.body["players"], json!([row("ann")]));
    assert_eq!(listed(&stage, "/players/cleo/mutual", 5).await, ["ann"]);

    unfollow(&stage, "ann", "cleo").await;
    let cleo = stage.get("/players/cleo").await.body;
    assert_eq!((&cleo["followers"], &cleo["following"]), (&json!(1), &json!(1)));
    assert_eq!(listed(&stage, "/players/cleo/followers", 5).await, ["bea"]);
    assert_eq!(listed(&stage, "/players/ann/following", 5).await, Vec::<String>::new());
    assert_eq!(listed(&stage, "/players/cleo/mutual", 5).await, Vec::<String>::new());
    follow(&stage, "ann", "cleo").await;
    assert_eq!(listed(&stage, "/players/cleo/mutual", 5).await, ["ann"]);
}

#[tokio::test]
async fn lists_go_to_the_very_end_past_the_hidden_and_those_who_left() {
    let players: Vec<String> = (0..40).map(|number| format!("p{number:02}")).collect();
    let stage = stage(&players.iter().map(String::as_str).chain(["star"]).collect::<Vec<_>>()).await;
    let mut expected = Vec::new();
    for (number, player) in players.iter().enumerate() {
        follow(&stage, player, "star").await;
        // A long run of those who left, and some who are hidden.
        if (5..30).contains(&number) {
            unfollow(&stage, player, "star").await;
        } else if number % 3 == 0 {
            stage.put(&format!("/players/{player}/restriction"), json!({"reason": "spam"})).await;
        } else {
            expected.push(player.clone());
        }
    }
    for limit in [1, 2, 3, 7, 50, 100] {
        assert_eq!(listed(&stage, "/players/star/followers", limit).await, expected, "{limit}");
    }
    for player in &players {
        stage.delete(&format!("/players/{player}/restriction")).await;
    }
    assert_eq!(listed(&stage, "/players/star/followers", 7).await.len(), 15);
}

#[tokio::test]
async fn a_new_name_shows_in_lists_at_once() {
    let stage = stage(&["ann", "bea"]).await;
    follow(&stage, "ann", "bea").await;
    stage.put("/players/ann/username", json!({"username": "Anna"})).await;
    assert_eq!(stage.get("/players/bea/followers").await.body["players"][0]["username"], "Anna");
}

#[tokio::test]
async fn players_one_may_know_are_followed_by_those_one_follows() {
    let stage = stage(&["me", "a", "b", "c", "x", "y", "z", "known"]).await;
    for friend in ["a", "b", "c", "known"] {
        follow(&stage, "me", friend).await;
    }
    for (friend, others) in [("a", vec!["x", "y", "me", "known"]), ("b", vec!["x", "y", "z"]), ("c", vec!["x", "b"])] {
        for other in others {
            follow(&stage, friend, other).await;
        }
    }
    let suggested = |body: &Value| -> Vec<(String, u64)> {
        let players = body["players"].as_array().unwrap().iter();
        players.map(|p| (p["player_id"].as_str().unwrap().to_owned(), p["shared"].as_u64().unwrap())).collect()
    };
    let owned = |players: &[(&str, u64)]| -> Vec<(String, u64)> {
        players.iter().map(|(player, shared)| ((*player).to_owned(), *shared)).collect()
    };
    let answer = stage.get("/players/me/suggestions").await;
    assert_eq!(suggested(&answer.body), owned(&[("x", 3), ("y", 2), ("z", 1)]));
    // The hidden are not suggested, and do not suggest.
    for hidden in ["x", "b"] {
        stage.put(&format!("/players/{hidden}/restriction"), json!({"reason": "spam"})).await;
    }
    assert_eq!(suggested(&stage.get("/players/me/suggestions").await.body), owned(&[("y", 1)]));
    assert_eq!(stage.get("/players/z/suggestions").await.body, json!({"players": []}));
}

#[tokio::test]
async fn suggestions_take_a_bounded_number_of_reads() {
    let stage = stage(&["me"]).await;
    let friends: Vec<String> = (0..60).map(|number| format!("f{number:02}")).collect();
    for friend in &friends {
        stage.register(friend).await;
        follow(&stage, "me", friend).await;
    }
    stage.calls();
    assert_eq!(stage.get("/players/me/suggestions").await.status, StatusCode::OK);
    let calls = stage.calls();
    assert_eq!(calls["Query"], 51, "{calls:?}");
    assert!(calls["BatchGetItem"] <= 4, "{calls:?}");
}

#[tokio::test]
async fn everything_wrong_is_named_and_nothing_written() {
    let stage = stage(&["ann", "bea"]).await;
    let written = stage.all(Table::Records).await;
    let (bad, missing) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
    for (path, status, places) in [
        ("/players/ann/follows/ann", bad, vec!["other"]),
        ("/players/ann/follows/a%20b", bad, vec!["other"]),
        ("/players/a%20b/follows/ann", bad, vec!["player_id"]),
        ("/players/ann/follows/nobody", missing, vec![]),
        ("/players/nobody/follows/ann", missing, vec![]),
    ] {
        let places: Vec<String> = places.into_iter().map(str::to_owned).collect();
        for answer in [stage.put(path, "").await, stage.delete(path).await] {
            assert_eq!((answer.status, answer.places()), (status, places.clone()), "{path}");
        }
    }
    for (path, status, places) in [
        ("/players/ann/followers?limit=0", bad, vec!["limit"]),
        ("/players/ann/following?limit=101&cursor=x", bad, vec!["limit", "cursor"]),
        ("/players/ann/mutual?x=1", bad, vec!["x"]),
        ("/players/nobody/followers", missing, vec![]),
        ("/players/nobody/suggestions", missing, vec![]),
    ] {
        let answer = stage.get(path).await;
        let places: Vec<String> = places.into_iter().map(str::to_owned).collect();
        assert_eq!((answer.status, answer.places()), (status, places), "{path}");
    }
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn a_cursor_is_of_one_list() {
    let stage = stage(&["ann", "bea", "cleo"]).await;
    for follower in ["bea", "cleo"] {
        follow(&stage, follower, "ann").await;
    }
    let page = stage.get("/players/ann/followers?limit=1").await;
    let next = page.body["next_cursor"].as_str().unwrap();
    let mut statuses = BTreeSet::new();
    for path in ["/players/ann/following", "/players/ann/mutual", "/players/bea/followers"] {
        statuses.insert(stage.get(&format!("{path}?cursor={next}")).await.status);
    }
    assert_eq!(statuses, BTreeSet::from([StatusCode::BAD_REQUEST]));
    let rest = stage.get(&format!("/players/ann/followers?cursor={next}")).await;
    assert_eq!(rest.body["players"][0]["player_id"], "cleo");
}
