//! The shapes of orders: events of every kind and schema version, what stands in the tables, and what the documentation says.

use domain::orders::{CommandRecord, EventRecord, Gap, Order, OrderViews, Snapshot, Wait, partition, transition_table};
use domain::{Attributes, Decider, Decision, Key, Need, Row, State, Versions};
use events::{
    CancellationReason, Consumer, Currency, Event, OrderCancelled, OrderDelivered, OrderEvent, OrderPaid,
    OrderRefunded, OrderShipped, Payload,
};
use serde_json::{Value, json};
use testkit::sample::{event_record, now, order_event, order_history, order_id, order_placed};

use crate::{check, plan, pretty};

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/golden").join(name)).unwrap()
}

fn check_event(name: &str, version: u64, payload: OrderEvent) {
    let event = order_event(1, version, payload);
    check(name, &format!("{}\n", event.encode()));
    assert_eq!(Event::decode(&golden(name)).unwrap(), event);
}

#[test]
fn every_event_of_an_order() {
    check_event("order_placed.v2.json", 1, order_placed(500));
    check_event("order_paid.v1.json", 2, OrderEvent::Paid(OrderPaid { amount_cents: 500 }));
    let shipped = OrderShipped { tracking_code: "JD014600003RU".parse().unwrap() };
    check_event("order_shipped.v1.json", 3, OrderEvent::Shipped(shipped));
    check_event("order_delivered.v1.json", 4, OrderEvent::Delivered(OrderDelivered {}));
    let cancelled = OrderCancelled { reason: CancellationReason::CustomerRequest };
    check_event("order_cancelled.v1.json", 3, OrderEvent::Cancelled(cancelled));
    check_event("order_refunded.v1.json", 4, OrderEvent::Refunded(OrderRefunded { amount_cents: 500 }));
}

#[test]
fn an_order_placed_before_there_were_currencies_is_in_euros() {
    // Nothing writes this shape any more, so nothing writes this file; it stands in event stores.
    let old = golden("order_placed.v1.json");
    let written: Value = serde_json::from_slice(&old).unwrap();
    assert_eq!((&written["schema_version"], written["payload"].get("currency")), (&json!(1), None));
    let event = Event::decode(&old).unwrap();
    assert_eq!(event, order_event(1, 1, order_placed(500)));
    let Payload::Order(OrderEvent::Placed(placed)) = &event.payload else { panic!("{event:?}") };
    assert_eq!(placed.currency, Currency::Eur);
}

/// The state in which an order's first events are in the store and nothing else is there.
fn stored(events: &[Event], wake_up: &Event, rows: Vec<(Key, Attributes)>) -> State {
    let key = |need: &Need| match need {
        Need::Key(key) => key.clone(),
        Need::Range(range) => panic!("{range} are a further need"),
    };
    let mut state: State =
        OrderViews.needs(wake_up).iter().map(|need| (key(need), Row::default())).collect::<State>().at(now());
    for (key, attributes) in rows {
        state.insert(key, Row { version: 1, attributes: Some(attributes) });
    }
    for need in OrderViews.further_needs(wake_up, &state).unwrap() {
        let Need::Range(range) = need else { panic!("{need:?}") };
        let rows = events.iter().map(event_record);
        let rows = rows.map(|(key, attributes)| (key, Row { version: 1, attributes: Some(attributes) }));
        state.insert_range(range, rows);
    }
    state
}

#[test]
fn the_views_and_the_snapshot_of_an_order() {
    let history = order_history(1, 100);
    let state = stored(&history, &history[0], Vec::new());
    let decision = OrderViews.decide(&history[0], &state).unwrap();
    check("order_views.txt", &plan(Consumer::OrderChanged, decision));
}

#[test]
fn a_wait_and_a_gap() {
    let history = order_history(1, 5);
    let [first, _, third, ..] = history.as_slice() else { panic!("a history") };
    let state = stored(&[first.clone(), third.clone()], third, Vec::new());
    let Decision::Wait { writes, checks, .. } = OrderViews.decide(third, &state).unwrap() else { panic!("no wait") };
    check("order_wait.txt", &plan(Consumer::OrderChanged, Decision::Apply { writes, checks }));

    let since = json!({"missing": [[2, 2]], "since": "2026-11-30T17:59:30.000Z"});
    let wait = (Wait::key(&order_id(1)), since.as_object().cloned().unwrap());
    let state = stored(&[first.clone(), third.clone()], third, vec![wait]);
    let decision = OrderViews.decide(third, &state).unwrap();
    let Decision::Unresolved { missing, writes, checks } = decision else { panic!("{decision:?}") };
    assert_eq!(missing, Versions::run(2, 2));
    check("order_gap.txt", &plan(Consumer::OrderChanged, Decision::Apply { writes, checks }));
}

#[test]
fn what_the_request_path_stores() {
    let history = order_history(1, 2);
    let (event_key, event) = event_record(&history[0]);
    let command_key = CommandRecord::key(&order_id(1), &"command-1".parse().unwrap());
    let command = CommandRecord { event_version: 1 }.attributes(&command_key).unwrap();
    let shapes = json!({ event_key.to_string(): event, command_key.to_string(): command });
    check("order_records.json", &pretty(&shapes));
    assert_eq!(EventRecord::read(&event_key, &Row { version: 1, attributes: Some(event) }).unwrap().event, history[0]);
    assert_eq!(event_key, Key::record(partition(&order_id(1)), "00000000000000000001"));
}

#[test]
fn notes_are_read_as_they_were_written() {
    let gap = json!({
        "order_id": "order-00001", "missing": [[2, 2], [4, 6]], "unreadable": [[2, 2]],
        "since": "2026-11-30T17:59:30.000Z", "listed_at": "2026-11-30T18:00:00.000Z",
        "listed_by": testkit::sample::event_id(1, now()),
    });
    assert_eq!(serde_json::to_value(serde_json::from_value::<Gap>(gap.clone()).unwrap()).unwrap(), gap);
    let mut order = None;
    Order::follow(&mut order, &order_id(1), &order_history(1, 1)[0]).unwrap();
    let snapshot = json!({"schema_version": 1, "order": order});
    let row = Row { version: 1, attributes: snapshot.as_object().cloned() };
    assert_eq!(Snapshot::read(&order_id(1), &row), order);
    assert_eq!(Snapshot::read(&order_id(2), &row), None, "another order's");
}

#[test]
fn the_documentation_prints_the_transitions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/orders.md");
    let (begin, end) = ("<!-- transitions: printed by domain::orders::transition_table -->\n", "<!-- /transitions -->");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(begin).unwrap();
    let (printed, after) = rest.split_once(end).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{before}{begin}{}{end}{after}", transition_table())).unwrap();
    } else {
        assert_eq!(printed, transition_table(), "UPDATE_GOLDEN=1 cargo test --test wire prints it anew");
    }
}
