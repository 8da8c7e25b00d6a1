//! What holds for every order: whatever is commanded, its invariants; however its wake-ups are delivered and whatever is
//! missing for a while, the views that its events in order would give.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use consumer::{Delivery, Driver, Outcome};
use domain::orders::{
    Illegal, Order, OrderLine, OrderRequest, OrderStatus, OrderViews, Refusal, Snapshot, TRANSITIONS, decide,
    same_request,
};
use domain::{Attributes, Key, Row};
use events::{CancellationReason, Consumer, Currency, Event, OrderEvent, OrderItem};
use proptest::prelude::*;
use testkit::sample::{event_record, now, order_event, order_history, order_id, order_placed, player_id};
use testkit::{Fault, ManualEnvironment, MemoryLedger, RecordedVisibility};

use crate::TestDriver;
use crate::history::fault;

/// Orders of a history.
const ORDERS: u32 = 3;

fn request() -> impl Strategy<Value = OrderRequest> {
    prop_oneof![
        1 => (1..4_u32, 1..300_u32).prop_map(|(quantity, unit_price_cents)| OrderRequest::Place {
            player_id: player_id(1),
            currency: Currency::Usd,
            items: vec![OrderItem { sku: "clock".parse().expect("an article"), quantity, unit_price_cents }],
        }),
        6 => (0..400_u64).prop_map(|amount_cents| OrderRequest::Pay { amount_cents }),
        3 => Just(OrderRequest::Ship { tracking_code: "T-1".parse().expect("a code") }),
        3 => Just(OrderRequest::Deliver),
        1 => Just(OrderRequest::Cancel { reason: CancellationReason::OutOfStock }),
        2 => Just(OrderRequest::Refund),
    ]
}

/// What has happened to an order, counted without its fold.
#[derive(Debug, Default)]
struct Account {
    price: u64,
    paid: u64,
    refunded: u64,
    placed: u32,
    shipped: u32,
    refunds: u32,
}

impl Account {
    fn enter(&mut self, event: &OrderEvent) {
        match event {
            OrderEvent::Placed(placed) => {
                self.placed += 1;
                let line = |item: &OrderItem| u64::from(item.quantity) * u64::from(item.unit_price_cents);
                self.price = placed.items.iter().map(line).sum();
            }
            OrderEvent::Paid(paid) => self.paid += paid.amount_cents,
            OrderEvent::Shipped(_) => {
                self.shipped += 1;
                assert_eq!(self.paid, self.price, "shipped unpaid");
            }
            OrderEvent::Delivered(_) => assert_eq!(self.shipped, 1, "delivered before it was shipped"),
            OrderEvent::Cancelled(_) => assert_eq!(self.shipped, 0, "cancelled on its way"),
            OrderEvent::Refunded(refunded) => {
                self.refunds += 1;
                self.refunded += refunded.amount_cents;
            }
        }
    }

    fn check(&self, order: &Order) {
        assert_eq!((self.price, self.paid, self.refunded), (order.total_cents, order.paid_cents, order.refunded_cents));
        assert!(self.paid <= self.price, "paid too much");
        assert!(self.refunds <= 1 && self.placed == 1 && self.shipped <= 1);
        assert!(self.refunded == 0 || self.refunded == self.paid, "refunded in part");
        assert_eq!(self.paid + order.due_cents(), self.price);
        assert_eq!(order.status == OrderStatus::Refunded, self.refunds == 1);
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn no_sequence_of_commands_breaks_an_order(requests in prop::collection::vec(request(), 1..40)) {
        let mut order: Option<Order> = None;
        let mut account = Account::default();
        for request in requests {
            let before = order.clone();
            let status = before.as_ref().map(|order| order.status);
            match decide(&request, order.as_ref()) {
                Ok(decision) => {
                    prop_assert!(same_request(&request, &decision.event));
                    account.enter(&decision.event);
                    let event = order_event(1, decision.version, decision.event);
                    Order::follow(&mut order, &order_id(1), &event).expect("what is decided can be folded");
                    let after = order.as_ref().expect("an order");
                    let legal = |step: &&domain::orders::Transition| {
                        (step.from, step.action, step.to) == (status, request.action(), after.status)
                    };
                    prop_assert!(TRANSITIONS.iter().any(|step| legal(&step)), "{request:?} from {status:?}");
                    account.check(after);
                }
                Err(refusal) => {
                    let illegal = matches!(refusal, Refusal::Illegal(Illegal::Status { .. } | Illegal::NoOrder));
                    let listed = TRANSITIONS.iter().any(|step| (step.from, step.action) == (status, request.action()));
                    prop_assert!(illegal != listed || refusal == Refusal::Taken, "{refusal:?}");
                }
            }
        }
    }

}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn wake_ups_in_any_order_end_where_the_events_in_order_end(run in deliveries(130)) {
        let driver = driver();
        store(&driver.ledger, &run.history);
        for (batch, fault) in &run.batches {
            fault.iter().for_each(|fault| driver.ledger.inject(fault.clone()));
            deliver_until_done(&driver, batch.iter().map(|index| run.history[*index].clone()).collect());
        }
        prop_assert_eq!(views(&driver.ledger), folded(&run.history));
        prop_assert_eq!(notes(&driver.ledger), 0);
        check_snapshots(&driver.ledger, &run.history);
        let before = driver.ledger.rows();
        prop_assert!(handle(&driver, &run.history).iter().all(|outcome| *outcome == Outcome::Stale));
        prop_assert_eq!(driver.ledger.rows(), before);
    }

}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn a_batch_decided_as_one_equals_its_records_one_by_one(run in deliveries(130)) {
        let [whole, single] = [driver(), driver()];
        for driver in [&whole, &single] {
            store(&driver.ledger, &run.history);
        }
        deliver_until_done(&whole, run.history.clone());
        run.history.iter().for_each(|event| deliver_until_done(&single, vec![event.clone()]));
        prop_assert_eq!(views(&whole.ledger), views(&single.ledger));
        prop_assert_eq!((notes(&whole.ledger), notes(&single.ledger)), (0, 0));
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn events_that_come_late_are_neither_skipped_nor_forgotten(
        run in deliveries(14),
        bits in prop::collection::vec(0..4_u8, 42),
    ) {
        let driver = driver();
        let is_late = |index: usize| bits[index % bits.len()] == 0;
        let (late, in_time): (Vec<usize>, Vec<usize>) = (0..run.history.len()).partition(|index| is_late(*index));
        let of = |indexes: &[usize]| indexes.iter().map(|index| run.history[*index].clone()).collect::<Vec<Event>>();
        store(&driver.ledger, &of(&in_time));
        // All wake-ups come, those of the missing events too, and what is missing is listed.
        for (batch, fault) in &run.batches {
            fault.iter().for_each(|fault| driver.ledger.inject(fault.clone()));
            deliver_until_done(&driver, of(batch));
        }
        let shown = views(&driver.ledger);
        let expected = folded(&contiguous(&of(&in_time)));
        prop_assert_eq!(&shown, &expected, "nothing is skipped");
        let gaps = late.iter().map(|index| &run.history[*index].aggregate_id).collect::<BTreeSet<_>>();
        prop_assert_eq!(listed(&driver.ledger), gaps.iter().map(|order| format!("ORDER#{order}")).collect::<BTreeSet<_>>());
        // They come one by one, each with its wake-up.
        for index in late {
            store(&driver.ledger, &of(&[index]));
            deliver_until_done(&driver, of(&[index]));
        }
        prop_assert_eq!(views(&driver.ledger), folded(&run.history));
        prop_assert_eq!(notes(&driver.ledger), 0);
    }
}

/// Histories of some orders, and wake-ups in any order and any number, in batches, with what goes wrong before each.
#[derive(Debug, Clone)]
struct Deliveries {
    history: Vec<Event>,
    batches: Vec<(Vec<usize>, Option<Fault>)>,
}

fn deliveries(longest: u32) -> impl Strategy<Value = Deliveries> {
    prop::collection::vec(1..=longest, ORDERS as usize).prop_flat_map(|lengths| {
        let histories = lengths.iter().zip(1..).flat_map(|(length, number)| order_history(number, *length));
        let history: Vec<Event> = histories.collect();
        let count = history.len();
        let order = prop::collection::vec(0..count, 0..count / 4 + 1).prop_flat_map(move |repeats| {
            let all: Vec<usize> = (0..count).chain(repeats).collect();
            Just(all).prop_shuffle()
        });
        let cuts = prop::collection::vec((1..11_usize, prop::option::weighted(0.2, fault())), count * 2);
        (Just(history), order, cuts).prop_map(|(history, order, cuts)| {
            let mut rest = order.as_slice();
            let mut batches = Vec::new();
            for (size, fault) in cuts {
                let (batch, others) = rest.split_at(rest.len().min(size));
                if !batch.is_empty() {
                    batches.push((batch.to_vec(), fault));
                }
                rest = others;
            }
            Deliveries { history, batches }
        })
    })
}

fn driver() -> TestDriver<OrderViews> {
    Driver {
        consumer: Consumer::OrderChanged,
        decider: OrderViews,
        ledger: MemoryLedger::default(),
        environment: ManualEnvironment::new(now(), 3),
        visibility: RecordedVisibility::default(),
    }
}

fn store(ledger: &MemoryLedger, events: &[Event]) {
    for event in events {
        let (key, attributes) = event_record(event);
        ledger.put(key, attributes);
    }
}

fn handle(driver: &TestDriver<OrderViews>, events: &[Event]) -> Vec<Outcome> {
    let deliveries: Vec<Delivery> = events
        .iter()
        .enumerate()
        .map(|(position, event)| Delivery {
            message_id: position.to_string().try_into().expect("not empty"),
            receipt_handle: None,
            receive_count: 1,
            group: Some(event.aggregate_id.clone()),
            body: event.encode().into_bytes(),
        })
        .collect();
    let deadline = consumer::Clock::now(&driver.environment) + Duration::from_secs(3_600);
    let report = futures::executor::block_on(driver.handle(&deliveries, deadline));
    report.records.into_iter().map(|record| record.outcome).collect()
}

/// Delivers what goes back again after half a minute, until all is acknowledged.
fn deliver_until_done(driver: &TestDriver<OrderViews>, mut pending: Vec<Event>) {
    for _ in 0..40 {
        let outcomes = handle(driver, &pending);
        let mut outcomes = outcomes.iter();
        pending.retain(|_| outcomes.next().is_some_and(|outcome| !outcome.acknowledges()));
        if pending.is_empty() {
            return;
        }
        driver.environment.advance(Duration::from_secs(30));
    }
    panic!("{} wake-ups go back for ever", pending.len());
}

/// The views, without what counts their writes.
fn views(ledger: &MemoryLedger) -> BTreeMap<Key, Attributes> {
    let rows = ledger.rows();
    rows.into_iter().filter(|(key, _)| key.sort == "ORDER" || key.partition.starts_with("ORDERS#")).collect()
}

fn folded(events: &[Event]) -> BTreeMap<Key, Attributes> {
    let mut orders: BTreeMap<&str, Option<Order>> = BTreeMap::new();
    for event in events {
        let order_id = event.aggregate_id.parse().expect("an order id");
        let order = orders.entry(&event.aggregate_id).or_default();
        Order::follow(order, &order_id, event).expect("a history");
    }
    let object = |value: serde_json::Value| value.as_object().cloned().expect("an object");
    orders
        .into_values()
        .flatten()
        .flat_map(|order| {
            [
                (Order::view_key(&order.order_id), object(serde_json::to_value(&order).expect("a row"))),
                (OrderLine::key(&order), object(serde_json::to_value(OrderLine::of(&order)).expect("a row"))),
            ]
        })
        .collect()
}

/// The events of each order before its first gap.
fn contiguous(events: &[Event]) -> Vec<Event> {
    let mut next: BTreeMap<&str, u64> = BTreeMap::new();
    let mut kept = Vec::new();
    for event in events {
        let next = next.entry(&event.aggregate_id).or_insert(1);
        if event.version == *next {
            *next += 1;
            kept.push(event.clone());
        }
    }
    kept
}

/// The orders on the list of gaps.
fn listed(ledger: &MemoryLedger) -> BTreeSet<String> {
    ledger.rows().into_keys().filter(|key| key.partition == "GAPS").map(|key| key.sort).collect()
}

/// How many waits and gaps are open.
fn notes(ledger: &MemoryLedger) -> usize {
    ledger.rows().keys().filter(|key| key.partition == "GAPS" || key.partition.starts_with("WAIT#")).count()
}

/// Snapshots say what the fold says, and none is a hundred events behind.
fn check_snapshots(ledger: &MemoryLedger, history: &[Event]) {
    let rows = ledger.rows();
    for number in 1..=ORDERS {
        let order_id = order_id(number);
        let own: Vec<&Event> = history.iter().filter(|event| event.aggregate_id == order_id.as_str()).collect();
        let attributes = rows.get(&Snapshot::key(&order_id)).cloned();
        let kept = Snapshot::read(&order_id, &Row { version: 1, attributes });
        let version = kept.as_ref().map_or(0, |order| order.version);
        assert!(own.len() as u64 - version < 100, "{version} of {}", own.len());
        let mut order = None;
        for event in &own[..version as usize] {
            Order::follow(&mut order, &order_id, event).expect("a history");
        }
        assert_eq!(kept, order);
    }
}

#[test]
fn a_price_that_no_number_holds_is_no_reason_to_panic() {
    let OrderEvent::Placed(mut placed) = order_placed(1) else { panic!("a placed order") };
    placed.items = vec![OrderItem { quantity: u32::MAX, unit_price_cents: u32::MAX, ..placed.items[0].clone() }; 3];
    let mut order = None;
    Order::follow(&mut order, &order_id(1), &order_event(1, 1, OrderEvent::Placed(placed))).expect("a first event");
    assert_eq!(order.map(|order| order.total_cents), Some(u64::MAX));
}
