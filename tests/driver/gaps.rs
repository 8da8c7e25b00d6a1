//! Wake-ups of orders: what is folded, what is waited for, what is listed, and what happens when an instance dies in between.

use std::time::Duration;

use consumer::{Delivery, Driver, Outcome};
use domain::orders::{EventRecord, FOLD_MAX, Gap, Order, OrderLine, OrderViews, Snapshot, Wait};
use domain::{Attributes, Key, Row};
use events::{Consumer, Event, OrderEvent, OrderPaid, Payload};
use serde_json::{Value, json};
use testkit::sample::{event_record, now, order_event, order_history, order_id};
use testkit::{Fault, ManualEnvironment, MemoryLedger, RecordedVisibility};

use crate::support::{TestDriver, delivery, names, outcomes};

/// An order's history, some of which is in the store, and its consumer.
struct Shop {
    driver: TestDriver<OrderViews>,
    history: Vec<Event>,
}

impl Shop {
    fn new(events: u32) -> Self {
        let driver = Driver {
            consumer: Consumer::OrderChanged,
            decider: OrderViews,
            ledger: MemoryLedger::default(),
            environment: ManualEnvironment::new(now(), 7),
            visibility: RecordedVisibility::default(),
        };
        Self { driver, history: order_history(1, events) }
    }

    /// A shop with these events in its store.
    fn with(events: u32, stored: &[u64]) -> Self {
        let shop = Self::new(events);
        shop.store(stored);
        shop
    }

    fn whole(events: u32) -> Self {
        let shop = Self::new(events);
        shop.store(&(1..=u64::from(events)).collect::<Vec<_>>());
        shop
    }

    fn store(&self, versions: &[u64]) {
        for version in versions {
            let (key, attributes) = event_record(self.event(*version));
            self.driver.ledger.put(key, attributes);
        }
    }

    fn event(&self, version: u64) -> &Event {
        &self.history[version as usize - 1]
    }

    fn messages(&self, versions: &[u64]) -> Vec<Delivery> {
        let messages = versions.iter().enumerate().map(|(position, version)| Delivery {
            group: Some(order_id(1).to_string()),
            ..delivery(position, self.event(*version).encode())
        });
        messages.collect()
    }

    async fn outcomes(&self, versions: &[u64]) -> Vec<Outcome> {
        let deadline = consumer::Clock::now(&self.driver.environment) + Duration::from_secs(60);
        outcomes(&self.driver.handle(&self.messages(versions), deadline).await)
    }

    /// Delivers wake-ups as one batch of the order's message group.
    async fn wake(&self, versions: &[u64]) -> Vec<&'static str> {
        names(&self.outcomes(versions).await)
    }

    fn pass(&self, seconds: u64) {
        self.driver.environment.advance(Duration::from_secs(seconds));
    }

    fn rows(&self, key: &Key) -> Option<Attributes> {
        self.driver.ledger.rows().get(key).cloned()
    }

    /// The version that view and list show; they never differ.
    fn viewed(&self) -> u64 {
        let Some(view) = self.rows(&Order::view_key(&order_id(1))) else { return 0 };
        let order: Order = serde_json::from_value(Value::Object(view)).unwrap();
        let line: OrderLine =
            serde_json::from_value(Value::Object(self.rows(&OrderLine::key(&order)).unwrap())).unwrap();
        assert_eq!(line, OrderLine::of(&order));
        assert_eq!(order, self.folded(order.version));
        order.version
    }

    fn folded(&self, version: u64) -> Order {
        let mut order = None;
        for event in &self.history[..version as usize] {
            Order::follow(&mut order, &order_id(1), event).unwrap();
        }
        order.unwrap()
    }

    /// What is on the list, and what is waited for.
    fn open(&self) -> (Option<String>, Option<String>) {
        let gap = self.rows(&Gap::key(&order_id(1))).map(|row| serde_json::from_value::<Gap>(row.into()).unwrap());
        let wait = self.rows(&Wait::key(&order_id(1))).map(|row| serde_json::from_value::<Wait>(row.into()).unwrap());
        (gap.map(|gap| gap.missing.to_string()), wait.map(|wait| wait.missing.to_string()))
    }

    fn kept(&self) -> Option<u64> {
        let attributes = Some(self.rows(&Snapshot::key(&order_id(1)))?);
        Snapshot::read(&order_id(1), &Row { version: 1, attributes }).map(|order| order.version)
    }
}

fn listed(missing: &str) -> (Option<String>, Option<String>) {
    (Some(missing.to_owned()), None)
}

fn awaited(missing: &str) -> (Option<String>, Option<String>) {
    (None, Some(missing.to_owned()))
}

const CLOSED: (Option<String>, Option<String>) = (None, None);

#[tokio::test]
async fn a_wake_up_folds_all_that_follows_without_a_gap() {
    let shop = Shop::whole(6);
    assert_eq!(shop.wake(&[2]).await, ["applied"]);
    assert_eq!((shop.viewed(), shop.open()), (6, CLOSED));
    assert_eq!(shop.wake(&[1, 3, 6, 2]).await, ["stale"; 4]);
}

#[tokio::test]
async fn wake_ups_of_one_batch_are_one_commit() {
    let shop = Shop::whole(8);
    assert_eq!(
        shop.wake(&[1, 2, 3, 4, 5, 6, 7, 8]).await,
        ["applied", "stale", "stale", "stale", "stale", "stale", "stale", "stale"]
    );
    assert_eq!(shop.driver.ledger.commits(), 1);
}

/// Waits, is listed after half a minute, and closes when the missing events and their wake-ups have come.
async fn check_gap(stored: &[u64], wake_up: u64, seen: u64, missing: &str, late: &[u64]) {
    let shop = Shop::with(6, stored);
    assert_eq!(shop.wake(&[wake_up]).await, ["waiting"], "{missing}");
    assert_eq!((shop.viewed(), shop.open()), (seen, awaited(missing)));
    shop.pass(29);
    assert_eq!(shop.wake(&[wake_up]).await, ["waiting"], "{missing}");
    shop.pass(1);
    let outcomes = shop.outcomes(&[wake_up]).await;
    assert_eq!(outcomes, [Outcome::Unresolved(format!("versions {missing} are missing"))]);
    assert_eq!((shop.viewed(), shop.open()), (seen, listed(missing)));

    shop.store(late);
    for version in late {
        assert!(shop.outcomes(&[*version]).await[0].acknowledges());
    }
    assert_eq!((shop.viewed(), shop.open()), (6, CLOSED), "{missing}");
}

#[tokio::test]
async fn a_hole_at_the_head_is_waited_for_listed_and_closed() {
    check_gap(&[2, 3, 4, 5, 6], 2, 0, "1", &[1]).await;
    check_gap(&[3, 4, 5, 6], 6, 0, "1-2", &[1, 2]).await;
    check_gap(&[3, 4, 5, 6], 6, 0, "1-2", &[2, 1]).await;
}

#[tokio::test]
async fn a_hole_in_the_middle_is_waited_for_listed_and_closed() {
    check_gap(&[1, 2, 4, 5, 6], 4, 2, "3", &[3]).await;
    // Also if the wake-up itself is content with what stands before the hole.
    check_gap(&[1, 2, 4, 5, 6], 2, 2, "3", &[3]).await;
}

#[tokio::test]
async fn a_hole_at_the_end_is_waited_for_listed_and_closed() {
    check_gap(&[1, 2, 3, 4, 5], 6, 5, "6", &[6]).await;
    check_gap(&[1, 2, 3], 6, 3, "4-6", &[6, 4, 5]).await;
    check_gap(&[], 6, 0, "1-6", &[3, 2, 6, 1, 4, 5]).await;
}

#[tokio::test]
async fn several_holes_are_one_entry() {
    check_gap(&[1, 3, 5], 5, 1, "2, 4", &[6, 4, 2]).await;
    check_gap(&[1, 3, 5], 6, 1, "2, 4, 6", &[2, 4, 6]).await;
    check_gap(&[2, 5], 5, 0, "1, 3-4", &[4, 6, 1, 3]).await;
}

#[tokio::test]
async fn an_event_that_comes_before_the_alert_ends_the_wait_without_one() {
    let shop = Shop::with(6, &[1, 2, 4, 5, 6]);
    assert_eq!(shop.wake(&[6]).await, ["waiting"]);
    shop.pass(10);
    shop.store(&[3]);
    shop.pass(20);
    // The waiting wake-up, which holds its group, sees it first; the event's own finds nothing left.
    assert_eq!(shop.wake(&[6, 3]).await, ["applied", "stale"]);
    assert_eq!((shop.viewed(), shop.open()), (6, CLOSED));
}

#[tokio::test]
async fn repeated_wake_ups_neither_prolong_a_wait_nor_repeat_an_alert() {
    let shop = Shop::with(6, &[1, 2, 4, 5, 6]);
    for _ in 0..6 {
        assert_eq!(shop.wake(&[4, 5, 6, 2]).await, ["waiting", "retry", "retry", "retry"]);
        shop.pass(5);
    }
    assert_eq!(shop.wake(&[4, 5, 6, 2, 4]).await, ["unresolved", "ignored", "ignored", "stale", "duplicate"]);
    assert_eq!(shop.wake(&[5, 6, 2]).await, ["ignored", "ignored", "stale"]);
    assert_eq!(shop.open(), listed("3"));
}

#[tokio::test]
async fn a_wait_at_the_end_survives_wake_ups_that_are_content() {
    let shop = Shop::with(6, &[1, 2, 3]);
    assert_eq!(shop.wake(&[5]).await, ["waiting"]);
    shop.pass(20);
    // Another instance handles an old wake-up that the queue has handed out again.
    assert_eq!(shop.wake(&[3]).await, ["waiting"]);
    assert_eq!(shop.open(), awaited("4-5"));
    shop.pass(10);
    assert_eq!(shop.wake(&[3]).await, ["unresolved"]);
    assert_eq!(shop.open(), listed("4-5"));
}

#[tokio::test]
async fn a_second_hole_is_waited_for_although_the_first_is_listed() {
    let shop = Shop::with(9, &[1, 2, 4]);
    shop.wake(&[4]).await;
    shop.pass(30);
    assert_eq!(shop.wake(&[4]).await, ["unresolved"]);
    shop.store(&[5, 7]);
    assert_eq!(shop.wake(&[5]).await, ["waiting"]);
    assert_eq!(shop.open(), (Some("3".to_owned()), Some("6".to_owned())));
    shop.pass(30);
    assert_eq!(shop.wake(&[5]).await, ["unresolved"]);
    assert_eq!(shop.open(), listed("3, 6"));
    // The first closes, the second stays on the list.
    shop.store(&[3]);
    assert_eq!(shop.wake(&[3]).await, ["applied"]);
    assert_eq!((shop.viewed(), shop.open()), (5, listed("6")));
    shop.store(&[6, 8, 9]);
    assert_eq!(shop.wake(&[9]).await, ["applied"]);
    assert_eq!((shop.viewed(), shop.open()), (9, CLOSED));
}

#[tokio::test]
async fn a_hole_that_moves_on_with_the_traffic_is_listed_in_time() {
    // The store seems to have stopped, and wake-ups go on.
    let shop = Shop::with(20, &[1, 2]);
    for version in 3..=8 {
        assert_eq!(shop.wake(&[version]).await, ["waiting"], "{version}");
        shop.pass(5);
    }
    assert_eq!(shop.wake(&[9]).await, ["unresolved"]);
    assert_eq!(shop.open(), listed("3-9"));
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_a_gap_until_it_can() {
    let shop = Shop::with(6, &[1, 2, 4, 5, 6]);
    let unreadable = [
        json!({"event": {"event_type": "order_gifted"}}),
        {
            let mut newer = Value::Object(event_record(shop.event(3)).1);
            newer["event"]["schema_version"] = json!(99);
            newer
        },
        Value::Object(event_record(shop.event(4)).1),
        // It cannot follow: nothing is due any more.
        Value::Object(event_record(&order_event(1, 3, OrderEvent::Paid(OrderPaid { amount_cents: 5_000 }))).1),
    ];
    for attributes in unreadable {
        let shop = Shop::with(6, &[1, 2, 4, 5, 6]);
        shop.driver.ledger.put(EventRecord::key(&order_id(1), 3), attributes.as_object().cloned().unwrap());
        assert_eq!(shop.wake(&[6]).await, ["waiting"]);
        shop.pass(30);
        assert_eq!(shop.wake(&[6]).await, ["unresolved"]);
        let gap: Gap = serde_json::from_value(shop.rows(&Gap::key(&order_id(1))).unwrap().into()).unwrap();
        assert_eq!((gap.missing.to_string(), gap.unreadable.to_string()), ("3".to_owned(), "3".to_owned()));
        shop.store(&[3]);
        assert_eq!(shop.wake(&[3]).await, ["applied"]);
        assert_eq!((shop.viewed(), shop.open()), (6, CLOSED));
    }
}

#[tokio::test]
async fn notes_and_views_that_cannot_be_read_are_made_anew() {
    let nonsense = || json!({"nonsense": true}).as_object().cloned().unwrap();
    let shop = Shop::with(6, &[1, 2, 4]);
    for key in
        [Order::view_key(&order_id(1)), Wait::key(&order_id(1)), Gap::key(&order_id(1)), Snapshot::key(&order_id(1))]
    {
        shop.driver.ledger.put(key, nonsense());
    }
    assert_eq!(shop.wake(&[4]).await, ["waiting"]);
    assert_eq!((shop.viewed(), shop.open().1), (2, Some("3".to_owned())));
    shop.pass(30);
    assert_eq!(shop.wake(&[4]).await, ["unresolved"]);
    assert_eq!(shop.open(), listed("3"));
}

#[tokio::test]
async fn snapshots_are_never_a_hundred_events_behind() {
    let one_by_one = Shop::new(250);
    for version in 1..=250 {
        one_by_one.store(&[version]);
        assert_eq!(one_by_one.wake(&[version]).await, ["applied"]);
        assert!(version - one_by_one.kept().unwrap_or(0) < 100, "{version}");
    }
    assert_eq!(one_by_one.kept(), Some(200));
    for events in [99, 100, 250, 499] {
        let at_once = Shop::whole(events);
        assert_eq!(at_once.wake(&[1]).await, ["applied"]);
        assert_eq!(at_once.kept(), Some(u64::from(events)).filter(|events| *events >= 100));
    }
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_read_is_rebuilt() {
    let unreadable = [
        json!({"schema_version": 99, "order": {}}),
        json!({"schema_version": 1, "order": {"status": "lost"}}),
        json!({}),
    ];
    for row in unreadable {
        let shop = Shop::new(300);
        shop.store(&(1..=260).collect::<Vec<_>>());
        assert_eq!(shop.wake(&[150]).await, ["applied"]);
        assert_eq!(shop.kept(), Some(260));
        shop.driver.ledger.put(Snapshot::key(&order_id(1)), row.as_object().cloned().unwrap());
        assert_eq!(shop.kept(), None);
        shop.store(&[261]);
        assert_eq!(shop.wake(&[261]).await, ["applied"]);
        assert_eq!((shop.viewed(), shop.kept()), (261, Some(261)));
    }
}

#[tokio::test]
async fn a_lost_view_begins_with_the_snapshot() {
    let shop = Shop::whole(730);
    assert_eq!(shop.wake(&[1]).await, ["applied"]);
    assert_eq!((shop.viewed(), shop.kept()), (500, Some(500)));
    shop.driver.ledger.put(Order::view_key(&order_id(1)), Attributes::new());
    let report = shop.driver.handle(&shop.messages(&[730]), now() + Duration::from_secs(60)).await;
    assert_eq!(names(&outcomes(&report)), ["applied"]);
    assert_eq!(shop.viewed(), 730);
    assert_eq!(report.cost.read_units, 4.0 + 230.0, "four rows and the events behind the snapshot");
}

#[tokio::test]
async fn a_history_of_any_length_is_folded_by_one_wake_up() {
    let length = 2 * FOLD_MAX as u32 + 17;
    let last = u64::from(length);
    let shop = Shop::whole(length);
    assert_eq!(shop.wake(&[last, 3]).await, ["applied", "stale"]);
    assert_eq!((shop.viewed(), shop.open()), (last, CLOSED));
    assert_eq!(shop.driver.ledger.commits(), 3);

    let shop = Shop::new(length);
    shop.store(&(1..last).collect::<Vec<_>>());
    assert_eq!(shop.wake(&[last, 3]).await, ["waiting", "retry"]);
    assert_eq!((shop.viewed(), shop.open()), (last - 1, awaited(&last.to_string())));
}

#[tokio::test]
async fn an_event_of_another_kind_is_rejected() {
    let shop = Shop::whole(1);
    let mut event = shop.event(1).clone();
    event.aggregate_id = "no order id".to_owned();
    let report = shop.driver.handle(&[delivery(0, event.encode())], now() + Duration::from_secs(60)).await;
    assert_eq!(names(&outcomes(&report)), ["rejected"]);
    assert!(matches!(event.payload, Payload::Order(OrderEvent::Placed(_))));
}

/// Where an instance dies.
#[derive(Debug, Clone, Copy)]
enum Crash {
    BeforeCommit,
    AfterCommit,
}

#[tokio::test]
async fn a_crash_at_any_step_changes_nothing_in_the_end() {
    enum Step {
        Store(&'static [u64]),
        Pass(u64),
        Wake(u64),
    }
    use Step::{Pass, Store, Wake};
    let steps = [
        Store(&[1, 2, 4, 6]),
        Wake(1),
        Wake(4),
        Pass(30),
        Wake(4),
        Wake(6),
        Store(&[3]),
        Wake(3),
        Store(&[8]),
        Wake(8),
        Pass(30),
        Wake(8),
        Store(&[5]),
        Wake(5),
        Store(&[7]),
        Wake(7),
    ];
    let wake_ups = steps.iter().filter(|step| matches!(step, Wake(_))).count();
    for crash in [Crash::BeforeCommit, Crash::AfterCommit] {
        for crashed in 0..=wake_ups {
            let shop = Shop::new(8);
            let (mut woken, mut alerts) = (0, Vec::new());
            for step in &steps {
                match step {
                    Store(versions) => shop.store(versions),
                    Pass(seconds) => shop.pass(*seconds),
                    Wake(version) => {
                        if woken == crashed {
                            shop.crash(crash, *version).await;
                        }
                        woken += 1;
                        let outcome = shop.outcomes(&[*version]).await.remove(0);
                        alerts.extend(
                            matches!(outcome, Outcome::Unresolved(_)).then(|| outcome.reason().unwrap().to_owned()),
                        );
                    }
                }
            }
            let announced = ["versions 3, 5 are missing", "versions 5, 7 are missing"];
            assert_eq!(alerts, announced, "{crash:?} at wake-up {crashed}");
            assert_eq!((shop.viewed(), shop.open()), (8, CLOSED), "{crash:?} at wake-up {crashed}");
        }
    }
}

impl Shop {
    /// Lets an instance die with a wake-up: its commit is not carried out, or is and nobody hears of it.
    async fn crash(&self, crash: Crash, version: u64) {
        match crash {
            Crash::BeforeCommit => self.driver.ledger.inject(Fault::Throttled),
            Crash::AfterCommit => self.driver.ledger.inject(Fault::AnswerLost),
        }
        for _ in 0..6 {
            self.driver.ledger.inject(Fault::Throttled);
        }
        let outcome = self.wake(&[version]).await;
        self.driver.ledger.heal();
        assert!(["retry", "stale", "ignored", "waiting"].contains(&outcome[0]), "{outcome:?}");
    }
}
