//! Who may do what: nobody without a token, everybody for themselves, and more only with a scope. What is refused leaves no trace.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use domain::{Key, Row, Table};
use serde_json::{Value, json};

use crate::stage::{Answer, Stage, game};
use crate::tokens::{ALL_SCOPES, sent_by};

/// A request that acts, where the body or path names `ann`, and what is refused if somebody else sends it.
const FOR_ANN: [(&str, &str, &str, &str); 14] = [
    ("POST", "/players", r##"{"player_id": "ann", "username": "ann"}"##, "#/player_id"),
    ("PUT", "/players/ann/username", r##"{"username": "Annie"}"##, "player_id"),
    ("PUT", "/posts/p-2", r##"{"author_id": "ann", "text": "A text."}"##, "#/author_id"),
    ("DELETE", "/posts/p-1", "", "post_id"),
    ("PUT", "/posts/p-1/reactions/ann", r##"{"kind": "love"}"##, "player_id"),
    ("DELETE", "/posts/p-1/reactions/ann", "", "player_id"),
    ("PUT", "/players/ann/follows/cleo", "", "player_id"),
    ("DELETE", "/players/ann/follows/bea", "", "player_id"),
    ("PUT", "/players/ann/notifications/n-1/read", "", "player_id"),
    ("GET", "/players/ann/notifications", "", "player_id"),
    ("GET", "/players/ann/suggestions", "", "player_id"),
    ("POST", "/orders", ORDER, "#/player_id"),
    ("POST", "/orders/o-1/payment", r##"{"command_id": "pay", "amount_cents": 4000}"##, "order_id"),
    ("POST", "/orders/o-1/cancellation", r##"{"command_id": "cancel", "reason": "customer_request"}"##, "order_id"),
];

const ORDER: &str = r##"{"order_id": "o-2", "command_id": "place", "player_id": "ann",
    "items": [{"sku": "board", "quantity": 1, "unit_price_cents": 4000}]}"##;

/// Requests that read what is somebody's, but which operators may read as well.
const FOR_ANN_AND_OPERATORS: [(&str, &str); 3] =
    [("/orders/o-1", "order_id"), ("/orders/o-1/events", "order_id"), ("/players/ann/orders", "player_id")];

/// Requests for which a scope is needed.
fn with_scope() -> [(&'static str, &'static str, &'static str, String); 7] {
    let command = |command_id: &str| json!({"command_id": command_id}).to_string();
    [
        ("games:write", "POST", "/games", game("g-1", ("ann", 1_510), ("bea", 1_490)).to_string()),
        ("moderate", "PUT", "/players/ann/restriction", r#"{"reason": "spam"}"#.to_owned()),
        ("moderate", "DELETE", "/players/ann/restriction", String::new()),
        (
            "operate",
            "POST",
            "/orders/o-1/shipment",
            r#"{"command_id": "ship", "tracking_code": "parcel-1"}"#.to_owned(),
        ),
        ("operate", "POST", "/orders/o-1/delivery", command("deliver")),
        ("operate", "POST", "/orders/o-1/refund", command("refund")),
        ("operate", "GET", "/operations/gaps", String::new()),
    ]
}

/// Requests of anybody.
const FOR_ANYBODY: [&str; 9] = [
    "/players/ann",
    "/players/ann/stats",
    "/players/ann/followers",
    "/players/ann/following",
    "/players/ann/mutual",
    "/posts/p-1",
    "/statistics/days/2026-11-30",
    "/leaderboards/blitz",
    "/leaderboards/blitz/players/ann",
];

fn request(method: &str, path: &str, body: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = if body.is_empty() { request } else { request.header("content-type", "application/json") };
    request.body(Body::from(body.to_owned())).unwrap()
}

/// Three players, of whom `ann` has a post, a reaction, follows `bea`, and has an order and a game.
async fn town() -> Stage {
    let stage = Stage::new().await;
    for player_id in ["ann", "bea", "cleo"] {
        stage.register(player_id).await;
    }
    let order: Value = serde_json::from_str(ORDER).unwrap();
    let mut first = order;
    first["order_id"] = json!("o-1");
    for answer in [
        stage.put("/posts/p-1", json!({"author_id": "ann", "text": "The first one."})).await,
        stage.put("/posts/p-1/reactions/ann", json!({"kind": "like"})).await,
        stage.put("/players/ann/follows/bea", "").await,
        stage.post("/orders", first).await,
    ] {
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    }
    stage.play("g-0", ("ann", 1_500), ("bea", 1_500)).await;
    stage
}

async fn everything(stage: &Stage) -> [BTreeMap<Key, Row>; 3] {
    [stage.all(Table::Records).await, stage.all(Table::Views).await, stage.all(Table::Ledger).await]
}

fn check(what: &str, answer: &Answer, status: StatusCode, places: &[&str]) {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    assert_eq!(answer.places(), places, "{what}");
}

#[tokio::test]
async fn without_a_token_nobody_acts() {
    let stage = town().await;
    let before = everything(&stage).await;
    let scoped = with_scope();
    let acting = FOR_ANN.iter().map(|(method, path, body, _)| (*method, *path, *body));
    let acting = acting.chain(FOR_ANN_AND_OPERATORS.iter().map(|(path, _)| ("GET", *path, "")));
    for (method, path, body) in
        acting.chain(scoped.iter().map(|(_, method, path, body)| (*method, *path, body.as_str())))
    {
        let answer = stage.exchange(request(method, path, body)).await;
        check(&format!("{method} {path}"), &answer, StatusCode::UNAUTHORIZED, &["Authorization"]);
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    assert_eq!(everything(&stage).await, before);
}

#[tokio::test]
async fn nobody_acts_for_another_player_whatever_the_scopes() {
    let stage = town().await;
    let before = everything(&stage).await;
    for subject in ["bea", "Ann", "stranger"] {
        for (method, path, body, place) in FOR_ANN {
            let answer = stage.exchange(sent_by(subject, ALL_SCOPES, request(method, path, body))).await;
            check(&format!("{subject}: {method} {path}"), &answer, StatusCode::FORBIDDEN, &[place]);
        }
        for (path, place) in FOR_ANN_AND_OPERATORS {
            let answer = stage.exchange(sent_by(subject, "games:write moderate", request("GET", path, ""))).await;
            check(&format!("{subject}: GET {path}"), &answer, StatusCode::FORBIDDEN, &[place]);
        }
    }
    assert_eq!(everything(&stage).await, before);
}

#[tokio::test]
async fn a_command_that_was_carried_out_is_repeated_to_nobody_else() {
    let stage = town().await;
    let pay = || request("POST", "/orders/o-1/payment", r#"{"command_id": "pay", "amount_cents": 4000}"#);
    assert_eq!(stage.exchange(sent_by("ann", "", pay())).await.status, StatusCode::CREATED);
    assert_eq!(stage.exchange(sent_by("ann", "", pay())).await.status, StatusCode::OK);
    let answer = stage.exchange(sent_by("bea", ALL_SCOPES, pay())).await;
    check("a payment", &answer, StatusCode::FORBIDDEN, &["order_id"]);
}

#[tokio::test]
async fn without_the_scope_nobody_does_what_needs_one() {
    let stage = town().await;
    let before = everything(&stage).await;
    for (scope, method, path, body) in with_scope() {
        let others: Vec<&str> = ALL_SCOPES.split(' ').filter(|other| *other != scope).collect();
        for scopes in ["", &others.join(" "), &scope.to_uppercase(), &format!("{scope}:all")] {
            let answer = stage.exchange(sent_by("ann", scopes, request(method, path, &body))).await;
            check(&format!("{scopes}: {method} {path}"), &answer, StatusCode::FORBIDDEN, &["Authorization"]);
        }
    }
    assert_eq!(everything(&stage).await, before);
}

#[tokio::test]
async fn everybody_acts_for_themselves_without_a_scope() {
    for (method, path, body, _) in FOR_ANN {
        let stage = town().await;
        let answer = stage.exchange(sent_by("ann", "", request(method, path, body))).await;
        // There is no notification to be read.
        let expected =
            if path.contains("n-1") { answer.status == StatusCode::NOT_FOUND } else { answer.status.is_success() };
        assert!(expected, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn whoever_has_the_scope_does_it_for_anybody() {
    let stage = town().await;
    let paid = request("POST", "/orders/o-1/payment", r#"{"command_id": "pay", "amount_cents": 4000}"#);
    assert_eq!(stage.exchange(sent_by("ann", "", paid)).await.status, StatusCode::CREATED);
    for (scope, method, path, body) in with_scope() {
        let answer = stage.exchange(sent_by("somebody", scope, request(method, path, &body))).await;
        assert!(answer.status.is_success(), "{method} {path}: {answer:?}");
    }
    for (path, _) in FOR_ANN_AND_OPERATORS {
        for (subject, scopes) in [("somebody", "operate"), ("ann", "")] {
            let answer = stage.exchange(sent_by(subject, scopes, request("GET", path, ""))).await;
            assert_eq!(answer.status, StatusCode::OK, "{subject}: GET {path}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn what_anybody_may_see_needs_no_token() {
    let stage = town().await;
    for path in FOR_ANYBODY {
        let answer = stage.exchange(request("GET", path, "")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn what_nobody_has_placed_is_not_found_by_anybody() {
    let stage = town().await;
    for (method, path, body) in [
        ("GET", "/orders/o-9", ""),
        ("GET", "/orders/o-9/events", ""),
        ("POST", "/orders/o-9/payment", r#"{"command_id": "pay", "amount_cents": 4000}"#),
        ("DELETE", "/posts/p-9", ""),
    ] {
        let answer = stage.exchange(sent_by("bea", "", request(method, path, body))).await;
        check(&format!("{method} {path}"), &answer, StatusCode::NOT_FOUND, &[]);
    }
}
