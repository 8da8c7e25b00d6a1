//! `/players`.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use domain::Table;
use serde_json::json;

use crate::stage::{Fault, Stage, now, post};
use crate::tokens::sent_by;

#[tokio::test]
async fn a_player_is_registered_once() {
    let stage = Stage::new().await;
    let command = json!({"player_id": "ann-1", "username": "Ann"});
    let first = stage.post("/players", &command).await;
    assert_eq!((first.status, &first.body), (StatusCode::CREATED, &command));
    assert_eq!(first.headers["location"], "/players/ann-1");
    let written = stage.all(Table::Records).await;
    assert_eq!(written.len(), 1);

    let again = stage.post("/players", &command).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &command));
    let other = stage.post("/players", json!({"player_id": "ann-1", "username": "Bea"})).await;
    assert_eq!((other.status, other.places()), (StatusCode::CONFLICT, vec![]));
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn a_registration_is_published() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    let key = domain::players::Player::key(&"ann".parse().unwrap());
    let event = stage.event_of(&key).await;
    assert_eq!((event.aggregate_id.as_str(), event.version, event.occurred_at), ("ann", 1, now()));
    assert_eq!(json!(event.payload), json!({"player_id": "ann", "username": "ann"}));
    let row = stage.row(&key).await;
    assert_eq!(row.version, 1);
    let mut attributes = row.attributes.unwrap();
    attributes.remove("event");
    assert_eq!(json!(attributes), json!({"player_id": "ann", "username": "ann"}));
}

#[tokio::test]
async fn without_an_id_the_token_names_the_player() {
    let stage = Stage::new().await;
    let by = |subject: &str| sent_by(subject, "", post("/players", json!({"username": "Ann"})));
    let first = stage.exchange(by("ann")).await;
    assert_eq!((first.status, &first.body), (StatusCode::CREATED, &json!({"player_id": "ann", "username": "Ann"})));
    let again = stage.exchange(by("ann")).await;
    assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));

    let nobody = stage.exchange(by("auth0|17 a")).await;
    assert_eq!((nobody.status, nobody.places()), (StatusCode::FORBIDDEN, vec!["Authorization".to_owned()]));
}

#[tokio::test]
async fn everything_wrong_with_a_registration_is_named() {
    let stage = Stage::new().await;
    let cases = [
        (json!({}), vec!["#/username"]),
        (json!({"player_id": "a b", "username": ""}), vec!["#/player_id", "#/username"]),
        (json!({"player_id": null, "username": 7}), vec!["#/player_id", "#/username"]),
        (json!({"player_id": "a", "username": "A", "a/b": 1, "z": 2}), vec!["#/a~1b", "#/z"]),
        (json!({"player_id": "a", "username": "x".repeat(41)}), vec!["#/username"]),
        (json!([]), vec!["#"]),
        (json!("text"), vec!["#"]),
    ];
    for (command, places) in cases {
        let answer = stage.post("/players", &command).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{command}");
        assert_eq!(answer.places(), places, "{command}");
    }
    assert!(stage.all(Table::Records).await.is_empty());
}

#[tokio::test]
async fn a_lost_answer_counts_as_the_same_command() {
    let stage = Stage::new().await;
    stage.fail("PutItem", [Fault::LostAnswer]);
    let command = json!({"player_id": "ann", "username": "Ann"});
    let answer = stage.post("/players", &command).await;
    assert_eq!((answer.status, &answer.body), (StatusCode::OK, &command));
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 2, "PutItem": 1}));
}

#[tokio::test]
async fn a_player_is_shown_with_ratings() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage.register("bea").await;
    let fresh = stage.get("/players/ann").await;
    assert_eq!(
        (fresh.status, fresh.body),
        (
            StatusCode::OK,
            json!({
                "player_id": "ann", "username": "ann", "posts": 0, "followers": 0, "following": 0, "ratings": {},
            })
        )
    );

    stage.play("g-1", ("ann", 1_510), ("bea", 1_490)).await;
    stage.play("g-2", ("bea", 1_495), ("ann", 1_505)).await;
    let shown = stage.get("/players/ann").await;
    assert_eq!(shown.body["ratings"], json!({"blitz": {"rating": 1_505, "games": 2}}));
}

#[tokio::test]
async fn a_player_who_is_not_there_is_not_found() {
    let stage = Stage::new().await;
    let answer = stage.get("/players/nobody").await;
    assert_eq!((answer.status, answer.places()), (StatusCode::NOT_FOUND, vec![]));
    let answer = stage.get("/players/no%20id").await;
    assert_eq!((answer.status, answer.places()), (StatusCode::BAD_REQUEST, vec!["player_id".to_owned()]));
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    let stage = Stage::new().await;
    let typed = |content_type: Option<&str>| {
        let mut request = Request::post("/players");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        request.body(Body::from(r#"{"player_id":"ann","username":"Ann"}"#)).unwrap()
    };
    let refused = stage.send(typed(Some("application/x-www-form-urlencoded"))).await;
    assert_eq!(
        (refused.status, refused.places()),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, vec!["Content-Type".to_owned()])
    );
    assert!(stage.all(Table::Records).await.is_empty());
    assert_eq!(stage.send(typed(None)).await.status, StatusCode::CREATED);
    assert_eq!(stage.send(typed(Some("application/json; charset=utf-8"))).await.status, StatusCode::OK);
}
