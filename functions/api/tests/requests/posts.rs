//! `/posts` and the reactions to them.

use axum::http::StatusCode;
use domain::Table;
use domain::players::Player;
use domain::posts::Post;
use domain::reactions::Reaction;
use events::Payload;
use serde_json::{Value, json};

use crate::stage::{Answer, NOW, Stage};

async fn stage() -> Stage {
    let stage = Stage::new().await;
    for player in ["ann", "bea", "cleo"] {
        stage.register(player).await;
    }
    stage
}

fn hello() -> Value {
    json!({"author_id": "ann", "text": "Hello"})
}

async fn publish(stage: &Stage, post: &str) {
    let answer = stage.put(&format!("/posts/{post}"), hello()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    stage.consume(&stage.event_of(&Post::key(&post.parse().unwrap())).await).await;
}

/// Sends a reaction, or takes it back, and lets the consumers have its event.
async fn react(stage: &Stage, player: &str, kind: Option<&str>) -> Answer {
    let path = format!("/posts/p-1/reactions/{player}");
    let answer = match kind {
        Some(kind) => stage.put(&path, json!({"kind": kind})).await,
        None => stage.delete(&path).await,
    };
    assert!(answer.status.is_success(), "{answer:?}");
    let key = Reaction::key(&"p-1".parse().unwrap(), &player.parse().unwrap());
    stage.consume(&stage.event_of(&key).await).await;
    answer
}

#[tokio::test]
async fn a_post_is_one_write_and_one_event() {
    let stage = stage().await;
    stage.calls();
    let answer = stage.put("/posts/p-1", hello()).await;
    let shown = json!({"post_id": "p-1", "author_id": "ann", "published_at": NOW, "text": "Hello"});
    assert_eq!((answer.status, &answer.body), (StatusCode::CREATED, &shown));
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 1, "PutItem": 1}));
    let event = stage.event_of(&Post::key(&"p-1".parse().unwrap())).await;
    assert_eq!((event.aggregate_id.as_str(), event.version), ("p-1", 1));
    assert!(matches!(event.payload, Payload::PostPublished(_)), "{event:?}");
    assert_eq!(json!(event.payload), json!({"post_id": "p-1", "author_id": "ann"}));

    let written = stage.all(Table::Records).await;
    let again = stage.put("/posts/p-1", hello()).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &shown));
    let other = stage.put("/posts/p-1", json!({"author_id": "ann", "text": "Bye"})).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn a_deleted_post_is_gone_for_good_and_says_nothing() {
    let stage = stage().await;
    publish(&stage, "p-1").await;
    let deleted = stage.delete("/posts/p-1").await;
    assert_eq!((deleted.status, &deleted.body["text"]), (StatusCode::OK, &Value::Null));
    let key = Post::key(&"p-1".parse().unwrap());
    let row = stage.row(&key).await;
    assert_eq!(row.version, 2);
    assert!(!json!(row.attributes).to_string().contains("Hello"));
    assert!(matches!(stage.event_of(&key).await.payload, Payload::PostDeleted(_)));
    assert_eq!(stage.get("/posts/p-1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(stage.put("/posts/p-1", hello()).await.status, StatusCode::CONFLICT);
    assert_eq!(stage.put("/posts/p-1/reactions/bea", json!({"kind": "like"})).await.status, StatusCode::NOT_FOUND);

    let again = stage.delete("/posts/p-1").await;
    assert_eq!((again.status, again.body), (StatusCode::OK, deleted.body));
    assert_eq!(stage.row(&key).await.version, 2);
}

#[tokio::test]
async fn posts_are_counted_while_they_last() {
    let stage = stage().await;
    for post in ["p-1", "p-2"] {
        publish(&stage, post).await;
    }
    assert_eq!(stage.get("/players/ann").await.body["posts"], 2);
    stage.delete("/posts/p-1").await;
    stage.consume(&stage.event_of(&Post::key(&"p-1".parse().unwrap())).await).await;
    assert_eq!(stage.get("/players/ann").await.body["posts"], 1);
}

#[tokio::test]
async fn a_reaction_is_changed_taken_back_and_given_again() {
    let stage = stage().await;
    publish(&stage, "p-1").await;
    let first = react(&stage, "bea", Some("like")).await;
    let shown = json!({"post_id": "p-1", "player_id": "bea", "kind": "like"});
    assert_eq!((first.status, first.body), (StatusCode::CREATED, shown));
    react(&stage, "cleo", Some("like")).await;
    assert_eq!(stage.get("/posts/p-1").await.body["reactions"], json!({"like": 2}));
    react(&stage, "bea", Some("love")).await;
    assert_eq!(stage.get("/posts/p-1").await.body["reactions"], json!({"like": 1, "love": 1}));
    let back = react(&stage, "bea", None).await;
    assert_eq!((back.status, &back.body["kind"]), (StatusCode::OK, &Value::Null));
    assert_eq!(stage.get("/posts/p-1").await.body["reactions"], json!({"like": 1}));
    react(&stage, "bea", Some("like")).await;
    assert_eq!(stage.get("/posts/p-1").await.body["reactions"], json!({"like": 2}));
    let event = stage.event_of(&Reaction::key(&"p-1".parse().unwrap(), &"bea".parse().unwrap())).await;
    assert_eq!((event.aggregate_id.as_str(), event.version), ("p-1/bea", 4));
}

#[tokio::test]
async fn a_reaction_that_changes_nothing_is_no_write() {
    let stage = stage().await;
    publish(&stage, "p-1").await;
    react(&stage, "bea", Some("like")).await;
    let written = stage.all(Table::Records).await;
    let again = stage.put("/posts/p-1/reactions/bea", json!({"kind": "like"})).await;
    assert_eq!((again.status, &again.body["kind"]), (StatusCode::OK, &json!("like")));
    let none = stage.delete("/posts/p-1/reactions/cleo").await;
    assert_eq!((none.status, &none.body["kind"]), (StatusCode::OK, &Value::Null));
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn a_post_shows_its_author_as_of_now_and_not_while_restricted() {
    let stage = stage().await;
    publish(&stage, "p-1").await;
    stage.put("/players/ann/username", json!({"username": "Anna"})).await;
    let shown = json!({
        "post_id": "p-1", "author": {"player_id": "ann", "username": "Anna"}, "published_at": NOW, "text": "Hello",
        "reactions": {},
    });
    assert_eq!(stage.get("/posts/p-1").await.body, shown);
    stage.put("/players/ann/restriction", json!({"reason": "spam"})).await;
    assert_eq!(stage.get("/posts/p-1").await.status, StatusCode::NOT_FOUND);
    stage.delete("/players/ann/restriction").await;
    assert_eq!(stage.get("/posts/p-1").await.body, shown);
    assert_eq!(stage.row(&Player::key(&"ann".parse().unwrap())).await.version, 4);
}

#[tokio::test]
async fn everything_wrong_is_named_and_nothing_written() {
    let stage = stage().await;
    publish(&stage, "p-1").await;
    let written = stage.all(Table::Records).await;
    let (bad, missing) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
    let cases = [
        ("/posts/p-2", json!({}), bad, vec!["#/text"]),
        ("/posts/p-2", json!({"author_id": "a b", "text": " "}), bad, vec!["#/author_id", "#/text"]),
        ("/posts/p-2", json!({"author_id": "ann", "text": "x".repeat(5_001)}), bad, vec!["#/text"]),
        ("/posts/p%202", hello(), bad, vec!["post_id"]),
        (
            "/posts/p-2",
            json!({"author_id": "nobody", "text": "x"}),
            StatusCode::UNPROCESSABLE_ENTITY,
            vec!["#/author_id"],
        ),
        ("/posts/p-1/reactions/bea", json!({"kind": "hug"}), bad, vec!["#/kind"]),
        ("/posts/p-1/reactions/bea", json!({}), bad, vec!["#/kind"]),
        ("/posts/p-1/reactions/b%20a", json!({"kind": "like"}), bad, vec!["player_id"]),
        ("/posts/p-9/reactions/bea", json!({"kind": "like"}), missing, vec![]),
        ("/posts/p-1/reactions/nobody", json!({"kind": "like"}), missing, vec![]),
    ];
    for (path, body, status, places) in cases {
        let answer = stage.put(path, &body).await;
        let places: Vec<String> = places.into_iter().map(str::to_owned).collect();
        assert_eq!((answer.status, answer.places()), (status, places), "{path} {body}");
    }
    assert_eq!(stage.delete("/posts/p-9").await.status, missing);
    assert_eq!(stage.get("/posts/p-9").await.status, missing);
    assert_eq!(stage.all(Table::Records).await, written);
    let long = json!({"author_id": "ann", "text": "\u{e4}".repeat(5_000)});
    assert_eq!(stage.put("/posts/p-2", long).await.status, StatusCode::CREATED);
}
