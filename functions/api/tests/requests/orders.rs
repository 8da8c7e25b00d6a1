//! `/orders`: commands, what an order is and was, and the list of gaps.

use std::collections::BTreeSet;
use std::time::Duration;

use aws::items;
use aws::ledger::DynamoLedger;
use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use axum::http::StatusCode;
use consumer::{Clock, Delivery, Driver, Ledger, Outcome, Random};
use domain::orders::{CommandRecord, EventRecord, Order, OrderViews, Snapshot};
use domain::{Attributes, Key, Need, State, Table};
use events::{Consumer, Event, OrderId, PlayerId, Timestamp};
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::RecordedVisibility;
use testkit::sample::{event_record, order_history, order_id};

use crate::stage::{Answer, Fault, NOW, Stage, canceled, now, post};

/// A moment that lasts. Those who sleep wait for the tables, which take real time.
struct Moment(Timestamp);

impl Clock for Moment {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

impl Random for Moment {
    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}

fn id(text: &str) -> OrderId {
    text.parse().unwrap()
}

fn placement(order_id: &str, command_id: &str) -> Value {
    json!({
        "order_id": order_id, "command_id": command_id, "player_id": "ann",
        "items": [
            {"sku": "board", "quantity": 1, "unit_price_cents": 4_000},
            {"sku": "clock", "quantity": 2, "unit_price_cents": 500},
        ],
    })
}

async fn shop() -> Stage {
    let stage = Stage::new().await;
    stage.register("ann").await;
    stage
}

async fn placed(order_id: &str) -> Stage {
    let stage = shop().await;
    let answer = stage.post("/orders", placement(order_id, "place")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    stage
}

impl Stage {
    async fn command(&self, path: &str, command_id: &str, fields: Value) -> Answer {
        let mut body = fields;
        body["command_id"] = json!(command_id);
        self.post(path, body).await
    }

    /// Wakes the consumer up for an event, `seconds` after the present of all tests.
    async fn wake(&self, event: &Event, seconds: u64) -> Outcome {
        let environment = Moment(now() + Duration::from_secs(seconds));
        let deadline = environment.0 + Duration::from_secs(60);
        let driver = Driver {
            consumer: Consumer::OrderChanged,
            decider: OrderViews,
            ledger: DynamoLedger::new(self.client.clone(), self.tables.clone()),
            environment,
            visibility: RecordedVisibility::default(),
        };
        let delivery = Delivery {
            message_id: "message".to_owned().try_into().unwrap(),
            receipt_handle: None,
            receive_count: 1,
            group: Some(event.aggregate_id.clone()),
            body: event.encode().into_bytes(),
        };
        driver.handle(&[delivery], deadline).await.records.remove(0).outcome
    }

    async fn order_event(&self, order_id: &str, version: u64) -> Event {
        self.event_of(&EventRecord::key(&id(order_id), version)).await
    }

    async fn remove(&self, key: &Key) {
        let call = self.client.delete_item().table_name(self.tables.name(key.table));
        call.set_key(Some(items::key_item(key))).send().await.unwrap();
    }

    async fn store(&self, rows: impl IntoIterator<Item = (Key, Attributes)>) {
        let rows: Vec<(Key, Attributes)> = rows.into_iter().collect();
        for chunk in rows.chunks(25) {
            let mut call = self.client.batch_write_item();
            for (key, attributes) in chunk {
                let item = items::item(key, 1, attributes.clone()).unwrap();
                let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
                let request = WriteRequest::builder().put_request(put).build();
                let table = self.tables.name(key.table).to_owned();
                let mut requests = call.get_request_items().clone().unwrap_or_default();
                requests.entry(table).or_default().push(request);
                call = call.set_request_items(Some(requests));
            }
            assert!(call.send().await.unwrap().unprocessed_items.unwrap_or_default().is_empty());
        }
    }
}

#[tokio::test]
async fn an_order_is_the_fold_of_its_commands() {
    let stage = shop().await;
    let answer = stage.post("/orders", placement("o-1", "c-1")).await;
    assert_eq!((answer.status, &answer.headers["location"]), (StatusCode::CREATED, &"/orders/o-1".parse().unwrap()));
    assert_eq!((&answer.body["event_type"], &answer.body["version"]), (&json!("order_placed"), &json!(1)));
    for (path, command, fields, event_type) in [
        ("payment", "c-2", json!({"amount_cents": 1_000}), "order_paid"),
        ("payment", "c-3", json!({"amount_cents": 4_000, "occurred_at": "2026-11-29T08:00:00Z"}), "order_paid"),
        ("shipment", "c-4", json!({"tracking_code": "T-1"}), "order_shipped"),
        ("delivery", "c-5", json!({}), "order_delivered"),
        ("refund", "c-6", json!({}), "order_refunded"),
    ] {
        let answer = stage.command(&format!("/orders/o-1/{path}"), command, fields).await;
        assert_eq!(
            (answer.status, &answer.body["event_type"]),
            (StatusCode::CREATED, &json!(event_type)),
            "{answer:?}"
        );
    }
    let order = stage.get("/orders/o-1").await.body;
    let expected = json!({
        "order_id": "o-1", "player_id": "ann", "status": "refunded", "version": 6, "currency": "EUR",
        "items": placement("o-1", "c-1")["items"], "total_cents": 5_000, "paid_cents": 5_000, "refunded_cents": 5_000,
        "due_cents": 0, "tracking_code": "T-1", "placed_at": NOW, "changed_at": NOW,
    });
    assert_eq!(order, expected);

    let audit = stage.get("/orders/o-1/events?limit=4").await.body;
    assert_eq!((audit["events"].as_array().unwrap().len(), &audit["next_after"]), (4, &json!(4)));
    let third = &audit["events"][2];
    assert_eq!(
        (&third["version"], &third["inserted_at"], &third["command_id"]),
        (&json!(3), &json!(NOW), &json!("c-3"))
    );
    assert_eq!(third["event"]["occurred_at"], "2026-11-29T08:00:00.000Z");
    let rest = stage.get("/orders/o-1/events?after=4").await.body;
    assert_eq!((rest["events"].as_array().unwrap().len(), &rest["next_after"]), (2, &Value::Null));
}

#[tokio::test]
async fn a_command_is_one_transaction_of_its_event_and_its_record() {
    let stage = shop().await;
    stage.calls();
    let answer = stage.post("/orders", placement("o-1", "c-1")).await;
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 1, "Query": 1, "TransactWriteItems": 1}));
    let records = stage.all(Table::Records).await;
    let event = &records[&EventRecord::key(&id("o-1"), 1)];
    assert_eq!(event.attributes.as_ref().unwrap()["event"], answer.body);
    assert_eq!(event.version, 1);
    let command = &records[&CommandRecord::key(&id("o-1"), &"c-1".parse().unwrap())];
    assert_eq!(command.attributes, json!({"event_version": 1}).as_object().cloned());
    assert_eq!(stage.all(Table::Views).await.len(), 0, "views come later");
}

#[tokio::test]
async fn the_same_command_again_is_answered_with_the_event_it_made() {
    let stage = placed("o-1").await;
    let first = stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 5_000})).await;
    stage.command("/orders/o-1/shipment", "ship", json!({"tracking_code": "T-1"})).await;
    let written = stage.all(Table::Records).await;
    for _ in 0..2 {
        let again = stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 5_000})).await;
        assert_eq!((again.status, &again.body), (StatusCode::OK, &first.body));
    }
    let again = stage.post("/orders", placement("o-1", "place")).await;
    assert_eq!((again.status, &again.body["event_type"]), (StatusCode::OK, &json!("order_placed")));
    for (path, fields) in [("payment", json!({"amount_cents": 4_999})), ("delivery", json!({}))] {
        let other = stage.command(&format!("/orders/o-1/{path}"), "pay", fields).await;
        assert_eq!((other.status, other.places()), (StatusCode::CONFLICT, vec![]), "{path}");
    }
    let other = stage.post("/orders", placement("o-1", "another")).await;
    assert_eq!((other.status, other.places()), (StatusCode::CONFLICT, vec![]));
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn an_id_that_is_missing_is_derived_from_the_idempotency_key() {
    let stage = shop().await;
    let mut body = placement("", "");
    body.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_id") || name == "player_id");
    let request = || {
        let mut request = post("/orders", &body);
        request.headers_mut().insert("idempotency-key", "cart-17".parse().unwrap());
        request
    };
    let [first, second] = [stage.send(request()).await, stage.send(request()).await];
    assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(first.body, second.body);
    assert_eq!(stage.post("/orders", &body).await.places(), ["#/order_id", "#/command_id"]);
}

#[tokio::test]
async fn what_an_order_does_not_allow_is_refused_with_the_reason() {
    let stage = placed("o-1").await;
    let check = async |path: &str, fields: Value, reason: &str| {
        let answer = stage.command(&format!("/orders/o-1/{path}"), &format!("x-{path}"), fields).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
        assert_eq!(answer.body["type"], "urn:players-engine:problem:illegal-transition");
        assert_eq!(answer.body["detail"], format!("Order o-1: {reason}."));
    };
    let ship = json!({"tracking_code": "T-1"});
    check("shipment", ship.clone(), "an order that is placed cannot be shipped").await;
    check("delivery", json!({}), "an order that is placed cannot be delivered").await;
    check("refund", json!({}), "an order that is placed cannot be refunded").await;
    let too_much = "a payment of 5001 is not between 1 and the 5000 that are due";
    check("payment", json!({"amount_cents": 5_001}), too_much).await;
    stage.command("/orders/o-1/cancellation", "cancel", json!({"reason": "out_of_stock"})).await;
    check("refund", json!({}), "nothing was paid that could be paid back").await;
    check("payment", json!({"amount_cents": 1}), "an order that is cancelled cannot be paid").await;
    assert_eq!(stage.get("/orders/o-1").await.body["version"], 2);
}

#[tokio::test]
async fn what_is_wrong_with_a_command_is_named_and_nothing_is_written() {
    let stage = placed("o-1").await;
    let written = stage.all(Table::Records).await;
    let mut wrong = placement("o 2", "c#1");
    wrong["currency"] = json!("eur");
    wrong["items"] = json!([
        {"sku": "", "quantity": 0, "unit_price_cents": 1.5}, 7, {"sku": "board", "quantity": 10_001, "colour": "red"},
    ]);
    let expected = [
        "#/order_id",
        "#/currency",
        "#/items/0/sku",
        "#/items/0/quantity",
        "#/items/0/unit_price_cents",
        "#/items/1",
        "#/items/2/colour",
        "#/items/2/quantity",
        "#/items/2/unit_price_cents",
        "#/command_id",
    ];
    assert_eq!(stage.post("/orders", &wrong).await.places(), expected);
    for (path, body, places) in [
        ("/orders", json!({}), vec!["#/order_id", "#/items", "#/command_id"]),
        ("/orders", json!({"order_id": "o", "command_id": "c", "player_id": "ann", "items": []}), vec!["#/items"]),
        ("/orders/o-1/payment", json!({"command_id": "c", "amount_cents": "1"}), vec!["#/amount_cents"]),
        ("/orders/o-1/payment", json!({"command_id": "c", "amount_cents": 0}), vec!["#/amount_cents"]),
        ("/orders/o-1/payment", json!({"command_id": "c", "amount_cents": u64::MAX}), vec!["#/amount_cents"]),
        ("/orders/o-1/shipment", json!({"command_id": "c"}), vec!["#/tracking_code"]),
        ("/orders/o-1/delivery", json!({"command_id": "c", "to": "ann"}), vec!["#/to"]),
        ("/orders/o-1/cancellation", json!({"command_id": "c", "reason": "none"}), vec!["#/reason"]),
        ("/orders/o-1/refund", json!({"command_id": 1}), vec!["#/command_id"]),
        (
            "/orders/o-1/refund",
            json!({"command_id": "c", "occurred_at": "2026-11-30T18:06:00Z"}),
            vec!["#/occurred_at"],
        ),
        ("/orders/o$1/refund", json!({"command_id": "c"}), vec!["order_id"]),
    ] {
        let answer = stage.post(path, &body).await;
        assert_eq!(
            (answer.status, answer.places()),
            (StatusCode::BAD_REQUEST, places.iter().map(|p| (*p).to_owned()).collect()),
            "{path} {body}"
        );
    }
    for path in [
        "/orders/o-1/events?after=x&limit=501",
        "/players/ann/orders?limit=0&cursor=zz",
        "/operations/gaps?after=a%20b&limit=x",
    ] {
        let answer = stage.get(path).await;
        assert_eq!((answer.status, answer.places().len()), (StatusCode::BAD_REQUEST, 2), "{path}");
    }
    assert_eq!(stage.all(Table::Records).await, written);
}

#[tokio::test]
async fn an_unknown_order_or_player_is_told_apart() {
    let stage = shop().await;
    for path in ["/orders/o-9", "/orders/o-9/events", "/players/bea/orders"] {
        assert_eq!(stage.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let answer = stage.command("/orders/o-9/delivery", "c", json!({})).await;
    assert_eq!((answer.status, answer.places()), (StatusCode::NOT_FOUND, vec![]));
    let mut order = placement("o-1", "c-1");
    order["player_id"] = json!("bea");
    let answer = stage.post("/orders", order).await;
    assert_eq!((answer.status, answer.places()), (StatusCode::UNPROCESSABLE_ENTITY, vec!["#/player_id".to_owned()]));
}

#[tokio::test]
async fn a_command_whose_answer_was_lost_is_carried_out_once() {
    let stage = placed("o-1").await;
    stage.fail("TransactWriteItems", [Fault::LostAnswer]);
    let answer = stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 700})).await;
    assert_eq!((answer.status, &answer.body["version"]), (StatusCode::OK, &json!(2)));
    assert_eq!(stage.get("/orders/o-1").await.body["paid_cents"], 700);
}

#[tokio::test]
async fn a_command_that_its_own_earlier_request_overtakes_is_answered_with_the_event_it_made() {
    let stage = placed("o-1").await;
    let pay = async || stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 5_000})).await;
    let first = pay().await;
    assert_eq!(first.status, StatusCode::CREATED);
    // What the second request would have read of the command's record before the first one was carried out.
    let nothing = json!({"Responses": {}, "UnprocessedKeys": {}});
    stage.fail("BatchGetItem", [Fault::Answer(200, nothing)]);
    let second = pay().await;
    assert_eq!((second.status, second.body), (StatusCode::OK, first.body));
}

#[tokio::test]
async fn a_command_that_is_overtaken_is_decided_again() {
    let stage = placed("o-1").await;
    stage.fail("TransactWriteItems", [Fault::Overtaken, Fault::Overtaken]);
    let answer = stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 1_000})).await;
    assert_eq!((answer.status, &answer.body["version"]), (StatusCode::CREATED, &json!(4)));
    assert_eq!(stage.get("/orders/o-1").await.body["paid_cents"], 3_000);

    // What the others did may forbid it.
    stage.fail("TransactWriteItems", [Fault::Overtaken]);
    let answer = stage.command("/orders/o-1/payment", "last", json!({"amount_cents": 2_000})).await;
    assert_eq!(answer.body["type"], "urn:players-engine:problem:illegal-transition");
}

#[tokio::test]
async fn a_command_that_is_overtaken_each_time_is_refused() {
    let stage = placed("o-1").await;
    stage.fail("TransactWriteItems", vec![Fault::Overtaken; 8]);
    let answer = stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 1})).await;
    assert_eq!((answer.status, answer.places()), (StatusCode::CONFLICT, vec![]));
    assert_eq!(answer.body["type"], "urn:players-engine:problem:concurrent-change");
    assert_eq!(stage.get("/orders/o-1").await.body["paid_cents"], 8, "eight others");

    stage.fail("TransactWriteItems", vec![canceled(["ThrottlingError", "None"]); 8]);
    let answer = stage.command("/orders/o-1/payment", "pay", json!({"amount_cents": 1})).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "nobody was faster");
}

#[tokio::test]
async fn payments_at_the_same_time_are_each_counted_once() {
    let stage = placed("o-1").await;
    let payments = (0..12).map(|number| {
        let stage = &stage;
        async move { stage.command("/orders/o-1/payment", &format!("pay-{number}"), json!({"amount_cents": 1})).await }
    });
    let statuses: Vec<StatusCode> = join_all(payments).await.into_iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| [StatusCode::CREATED, StatusCode::CONFLICT].contains(status)), "{statuses:?}");
    let paid = statuses.iter().filter(|status| **status == StatusCode::CREATED).count();
    let order = stage.get("/orders/o-1").await.body;
    assert_eq!((&order["paid_cents"], &order["version"]), (&json!(paid), &json!(paid + 1)));
}

#[tokio::test]
async fn a_player_sees_the_orders_that_the_consumer_has_seen_newest_first() {
    let stage = shop().await;
    for number in 1..=5 {
        let mut order = placement(&format!("o-{number}"), "place");
        order["occurred_at"] = json!(format!("2026-11-0{number}T12:00:00Z"));
        stage.post("/orders", order).await;
    }
    assert_eq!(stage.get("/players/ann/orders").await.body["orders"], json!([]));
    for number in 1..=5 {
        let event = stage.order_event(&format!("o-{number}"), 1).await;
        assert_eq!(stage.wake(&event, 0).await, Outcome::Applied);
    }
    let mut seen = Vec::new();
    let mut path = "/players/ann/orders?limit=2".to_owned();
    loop {
        let page = stage.get(&path).await.body;
        seen.extend(page["orders"].as_array().unwrap().iter().map(|line| line["order_id"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/players/ann/orders?limit=2&cursor={cursor}");
    }
    assert_eq!(json!(seen), json!(["o-5", "o-4", "o-3", "o-2", "o-1"]));
}

#[tokio::test]
async fn a_missing_event_stops_commands_and_is_listed_until_it_has_come() {
    let stage = placed("o-1").await;
    for number in 0..3 {
        stage.command("/orders/o-1/payment", &format!("pay-{number}"), json!({"amount_cents": 1})).await;
    }
    let [second, last] = [stage.order_event("o-1", 2).await, stage.order_event("o-1", 4).await];
    let key = EventRecord::key(&id("o-1"), 2);
    let kept = stage.row(&key).await.attributes.unwrap();
    stage.remove(&key).await;

    let order = stage.get("/orders/o-1").await.body;
    assert_eq!((&order["version"], &order["incomplete_from"]), (&json!(1), &json!(2)));
    let answer = stage.command("/orders/o-1/payment", "pay-9", json!({"amount_cents": 1})).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.body["type"], "urn:players-engine:problem:order-incomplete");
    let answer = stage.command("/orders/o-1/payment", "pay-0", json!({"amount_cents": 1})).await;
    assert_eq!(answer.body["type"], "urn:players-engine:problem:order-incomplete", "its event is the missing one");

    assert_eq!(stage.get("/operations/gaps").await.body, json!({"gaps": [], "next_after": null}));
    assert_eq!(stage.wake(&last, 0).await.name(), "waiting");
    assert_eq!(stage.wake(&last, 30).await.name(), "unresolved");
    let gaps = stage.get("/operations/gaps").await.body;
    let expected = json!([{
        "order_id": "o-1", "missing": [[2, 2]], "unreadable": [], "since": NOW, "listed_at": "2026-11-30T18:00:30.000Z",
        "listed_by": last.event_id,
    }]);
    assert_eq!(gaps["gaps"], expected);

    stage.store([(key, kept)]).await;
    assert_eq!(stage.wake(&second, 60).await, Outcome::Applied);
    assert_eq!(stage.get("/operations/gaps").await.body["gaps"], json!([]));
    assert_eq!(stage.get("/players/ann/orders").await.body["orders"][0]["version"], 4);
    assert_eq!(stage.get("/orders/o-1").await.body["version"], 4);
}

#[tokio::test]
async fn gaps_are_listed_page_by_page_past_those_that_have_closed() {
    let stage = shop().await;
    for number in 1..=9 {
        let order = format!("o-{number}");
        stage.post("/orders", placement(&order, "place")).await;
        stage.command(&format!("/orders/{order}/payment"), "pay", json!({"amount_cents": 1})).await;
        let [first, second] = [stage.order_event(&order, 1).await, stage.order_event(&order, 2).await];
        let key = EventRecord::key(&id(&order), 1);
        let kept = stage.row(&key).await.attributes.unwrap();
        stage.remove(&key).await;
        stage.wake(&second, 0).await;
        assert_eq!(stage.wake(&second, 30).await.name(), "unresolved");
        if number % 3 != 0 {
            stage.store([(key, kept)]).await;
            assert_eq!(stage.wake(&first, 60).await, Outcome::Applied);
        }
    }
    let first = stage.get("/operations/gaps?limit=2").await.body;
    let orders =
        |page: &Value| page["gaps"].as_array().unwrap().iter().map(|gap| gap["order_id"].clone()).collect::<Vec<_>>();
    assert_eq!((orders(&first), &first["next_after"]), (vec![json!("o-3"), json!("o-6")], &json!("o-6")));
    let second = stage.get("/operations/gaps?limit=2&after=o-6").await.body;
    assert_eq!((orders(&second), &second["next_after"]), (vec![json!("o-9")], &Value::Null));
}

#[tokio::test]
async fn an_order_of_ten_thousand_events_costs_a_snapshot_and_a_hundred_events() {
    let stage = shop().await;
    let history = order_history(1, 10_099);
    let ann: PlayerId = "player-00001".parse().unwrap();
    stage.store(history[..10_000].iter().map(event_record)).await;
    assert_eq!(stage.wake(&history[9_999], 0).await, Outcome::Applied);
    stage.store(history[10_000..].iter().map(event_record)).await;
    stage.calls();

    let order = stage.get("/orders/order-00001").await.body;
    assert_eq!((&order["version"], &order["player_id"]), (&json!(10_099), &json!(ann)));
    assert_eq!((&order["status"], &order["paid_cents"]), (&json!("paid"), &json!(10_098)));
    assert_eq!(json!(stage.calls()), json!({"BatchGetItem": 1, "Query": 1}));

    // What these two reads consume, asked of the ledger, whose calls say so.
    let ledger = DynamoLedger::new(stage.client.clone(), stage.tables.clone());
    let snapshot = Snapshot::key(&order_id(1));
    let row = stage.row(&snapshot).await;
    let kept: Order = Snapshot::read(&order_id(1), &row).unwrap();
    assert_eq!(kept.version, 10_000);
    let tail = EventRecord::behind(&order_id(1), kept.version, 500);
    let needs = BTreeSet::from([Need::Key(snapshot.clone()), Need::Range(tail.clone())]);
    let (state, cost): (State, _) = ledger.fetch(&needs).await.unwrap();
    assert_eq!((state.range(&tail).unwrap().len(), cost.calls), (99, 2));
    assert!(cost.read_units <= 11.0, "{} RRU", cost.read_units);

    // Without a snapshot that can be read it costs all of them, and is right all the same.
    stage.store([(snapshot, json!({"schema_version": 99}).as_object().cloned().unwrap())]).await;
    assert_eq!(stage.get("/orders/order-00001").await.body, order);
}
