//! `/players/{player_id}/notifications`.

use axum::http::StatusCode;
use domain::follows::Follow;
use domain::notifications::Notification;
use domain::posts::Post;
use domain::reactions::Reaction;
use domain::{Key, Table};
use events::{NotificationId, Payload};
use serde_json::{Value, json};

use crate::stage::{NOW, Stage};

async fn stage(players: &[&str]) -> Stage {
    let stage = Stage::new().await;
    for player in players {
        stage.register(player).await;
    }
    stage
}

/// Lets the consumers have the event of a record, and then those of the notifications that come of it.
async fn consume(stage: &Stage, key: &Key) {
    let before = stage.all(Table::Records).await;
    stage.consume(&stage.event_of(key).await).await;
    for (key, _) in stage.all(Table::Records).await {
        if key.partition.starts_with("NOTIFICATION#") && !before.contains_key(&key) {
            stage.consume(&stage.event_of(&key).await).await;
        }
    }
}

async fn follow(stage: &Stage, follower: &str, followed: &str) {
    let answer = stage.put(&format!("/players/{follower}/follows/{followed}"), "").await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    consume(stage, &Follow::key(&followed.parse().unwrap(), &follower.parse().unwrap())).await;
}

async fn inbox(stage: &Stage, path: &str) -> Vec<Value> {
    let answer = stage.get(path).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.body["notifications"].as_array().unwrap().clone()
}

fn id(notification: &Value) -> String {
    notification["notification_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_follow_and_a_reaction_are_told() {
    let stage = stage(&["ann", "bea"]).await;
    follow(&stage, "ann", "bea").await;
    let told = inbox(&stage, "/players/bea/notifications").await;
    let expected = json!([{
        "notification_id": id(&told[0]), "kind": "follow", "actor": {"player_id": "ann", "username": "ann"},
        "occurred_at": NOW, "read_at": null,
    }]);
    assert_eq!(json!(told), expected);
    assert!(inbox(&stage, "/players/ann/notifications").await.is_empty());

    stage.put("/posts/p-1", json!({"author_id": "ann", "text": "Hello"})).await;
    stage.put("/posts/p-1/reactions/bea", json!({"kind": "like"})).await;
    consume(&stage, &Reaction::key(&"p-1".parse().unwrap(), &"bea".parse().unwrap())).await;
    let told = inbox(&stage, "/players/ann/notifications").await;
    assert_eq!((&told[0]["kind"], &told[0]["post_id"]), (&json!("reaction"), &json!("p-1")));
    assert_eq!(told[0]["actor"]["player_id"], "bea");

    // Nobody is told of their own reaction.
    stage.put("/posts/p-1/reactions/ann", json!({"kind": "like"})).await;
    consume(&stage, &Reaction::key(&"p-1".parse().unwrap(), &"ann".parse().unwrap())).await;
    assert_eq!(inbox(&stage, "/players/ann/notifications").await.len(), 1);
}

#[tokio::test]
async fn the_same_event_for_the_same_recipient_is_one_notification() {
    let stage = stage(&["ann", "bea"]).await;
    follow(&stage, "ann", "bea").await;
    let key = Follow::key(&"bea".parse().unwrap(), &"ann".parse().unwrap());
    let event = stage.event_of(&key).await;
    let told = inbox(&stage, "/players/bea/notifications").await;
    let expected = NotificationId::derived(&format!("{} bea", event.event_id));
    assert_eq!(id(&told[0]), expected.to_string());
    let requested = stage.event_of(&Notification::key(&expected)).await;
    assert!(matches!(requested.payload, Payload::NotificationRequested(_)), "{requested:?}");
    stage.consume(&requested).await;
    assert_eq!(inbox(&stage, "/players/bea/notifications").await.len(), 1);
}

#[tokio::test]
async fn a_read_notification_is_read_once_and_publishes_nothing() {
    let stage = stage(&["ann", "bea"]).await;
    follow(&stage, "ann", "bea").await;
    let notification = id(&inbox(&stage, "/players/bea/notifications").await[0]);
    let key = Notification::key(&notification.parse().unwrap());
    let event = stage.event_of(&key).await;
    let path = format!("/players/bea/notifications/{notification}/read");
    let read = stage.put(&path, "").await;
    assert_eq!((read.status, &read.body), (StatusCode::OK, &json!({"notification_id": notification, "read_at": NOW})));
    assert_eq!(stage.put(&path, "").await.body, read.body);
    assert_eq!(inbox(&stage, "/players/bea/notifications").await[0]["read_at"], NOW);
    assert_eq!((stage.row(&key).await.version, stage.event_of(&key).await), (2, event));
}

#[tokio::test]
async fn an_inbox_goes_to_its_end_newest_first_without_the_hidden() {
    let stage = stage(&["star", "p0", "p1", "p2", "p3", "p4", "p5", "p6"]).await;
    for number in 0..7 {
        follow(&stage, &format!("p{number}"), "star").await;
    }
    for hidden in ["p2", "p5"] {
        stage.put(&format!("/players/{hidden}/restriction"), json!({"reason": "spam"})).await;
    }
    let all = inbox(&stage, "/players/star/notifications").await;
    assert_eq!(all.len(), 5);
    for limit in [1, 2, 4, 5] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = stage.get(&format!("/players/star/notifications?limit={limit}{cursor}")).await;
            let rows = page.body["notifications"].as_array().unwrap();
            assert!(rows.len() <= limit && seen.len() <= 5, "{page:?}");
            seen.extend(rows.clone());
            match page.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, all, "{limit}");
    }
    stage.delete("/players/p2/restriction").await;
    assert_eq!(inbox(&stage, "/players/star/notifications").await.len(), 6);
}

#[tokio::test]
async fn what_is_not_so_any_more_is_not_told() {
    let stage = stage(&["ann", "bea"]).await;
    stage.put("/players/ann/follows/bea", "").await;
    let key = Follow::key(&"bea".parse().unwrap(), &"ann".parse().unwrap());
    let started = stage.event_of(&key).await;
    stage.delete("/players/ann/follows/bea").await;
    stage.consume(&started).await;
    let notification = NotificationId::derived(&format!("{} bea", started.event_id));
    stage.consume(&stage.event_of(&Notification::key(&notification)).await).await;
    assert!(inbox(&stage, "/players/bea/notifications").await.is_empty());

    stage.put("/posts/p-1", json!({"author_id": "ann", "text": "Hello"})).await;
    stage.put("/posts/p-1/reactions/bea", json!({"kind": "like"})).await;
    let reaction = stage.event_of(&Reaction::key(&"p-1".parse().unwrap(), &"bea".parse().unwrap())).await;
    stage.consume(&reaction).await;
    stage.delete("/posts/p-1").await;
    let notification = NotificationId::derived(&format!("{} ann", reaction.event_id));
    stage.consume(&stage.event_of(&Notification::key(&notification)).await).await;
    assert!(inbox(&stage, "/players/ann/notifications").await.is_empty());
    assert_eq!(stage.row(&Post::key(&"p-1".parse().unwrap())).await.version, 2);
}

#[tokio::test]
async fn everything_wrong_is_named() {
    let stage = stage(&["ann", "bea"]).await;
    follow(&stage, "ann", "bea").await;
    let notification = id(&inbox(&stage, "/players/bea/notifications").await[0]);
    let (bad, missing) = (StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND);
    for (path, status, places) in [
        ("/players/ann/notifications?limit=0", bad, vec!["limit"]),
        ("/players/ann/notifications?cursor=x", bad, vec!["cursor"]),
        ("/players/a%20b/notifications", bad, vec!["player_id"]),
        ("/players/nobody/notifications", missing, vec![]),
    ] {
        let answer = stage.get(path).await;
        let places: Vec<String> = places.into_iter().map(str::to_owned).collect();
        assert_eq!((answer.status, answer.places()), (status, places), "{path}");
    }
    let others = format!("/players/ann/notifications/{notification}/read");
    for (path, status, places) in [
        (others.as_str(), missing, vec![]),
        ("/players/bea/notifications/none/read", missing, vec![]),
        ("/players/bea/notifications/n%20n/read", bad, vec!["notification_id".to_owned()]),
    ] {
        let answer = stage.put(path, "").await;
        assert_eq!((answer.status, answer.places()), (status, places), "{path}");
    }
    assert_eq!(inbox(&stage, "/players/bea/notifications").await[0]["read_at"], Value::Null);
}
