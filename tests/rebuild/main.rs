//! Rebuilding derived rows gives what the consumer has made, to the byte, from nothing, from wrong rows, and in parts. And the
//! records' events go out once more.

mod republish;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use aws::items::{self, TableNames};
use consumer::{Clock, Delivery, Driver, Outcome, Random};
use domain::orders::{EventRecord, Order, OrderLine, OrderViews, Snapshot};
use domain::{Attributes, Key, Table};
use events::{Consumer, Event, Timestamp};
use operations::rebuild::{Begin, OrderRebuild, Progress, RebuildError, Report};
use operations::tables::TablesError;
use serde_json::json;
use testkit::contract::Subject;
use testkit::sample::{event_record, now, order_history, order_id};
use testkit::{Fault, RecordedVisibility};
use tests::DynamoDb;

/// Events of the orders, one of which has three snapshots' worth.
const LENGTHS: [u32; 12] = [1, 2, 3, 5, 8, 13, 21, 99, 100, 101, 320, 4];
/// Records of a page: several orders, or less than one.
const PAGE_RECORDS: i32 = 60;

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

fn names() -> TableNames {
    TableNames { records: "records".to_owned(), views: "views".to_owned(), ledger: "ledger".to_owned() }
}

/// Tables with orders and all that the consumer makes of them.
struct Shop {
    dynamodb: DynamoDb,
    histories: Vec<Vec<Event>>,
}

impl Shop {
    async fn new() -> Self {
        let dynamodb = DynamoDb::start().await;
        let histories = LENGTHS.iter().zip(1..).map(|(events, number)| order_history(number, *events)).collect();
        let shop = Self { dynamodb, histories };
        for history in &shop.histories {
            for event in history {
                let (key, attributes) = event_record(event);
                shop.put(&key, attributes).await;
            }
            let outcome = shop.wake(&history[history.len() - 1], 0).await;
            assert_eq!(outcome, Outcome::Applied);
        }
        shop
    }

    async fn put(&self, key: &Key, attributes: Attributes) {
        let item = items::item(key, 1, attributes).unwrap();
        let table = names().name(key.table).to_owned();
        self.dynamodb.client.put_item().table_name(table).set_item(Some(item)).send().await.unwrap();
    }

    async fn remove(&self, key: &Key) {
        let delete = self.dynamodb.client.delete_item().table_name(names().name(key.table));
        delete.set_key(Some(items::key_item(key))).send().await.unwrap();
    }

    async fn wake(&self, event: &Event, seconds: u64) -> Outcome {
        let environment = Moment(now() + Duration::from_secs(seconds));
        let deadline = environment.0 + Duration::from_secs(60);
        let driver = Driver {
            consumer: Consumer::OrderChanged,
            decider: OrderViews,
            ledger: self.dynamodb.ledger().clone(),
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

    /// All derived rows that stand, without what counts their writes.
    async fn rows(&self) -> BTreeMap<Key, Attributes> {
        let mut rows = BTreeMap::new();
        for table in [Table::Views, Table::Ledger] {
            let scan = self.dynamodb.client.scan().table_name(names().name(table)).send().await.unwrap();
            assert!(scan.last_evaluated_key.is_none());
            for item in scan.items.unwrap_or_default() {
                let (key, row) = items::row(table, item).unwrap();
                rows.extend(row.attributes.map(|attributes| (key, attributes)));
            }
        }
        rows
    }

    async fn rebuild(&self, begin: Begin, progress: &impl Progress) -> Result<Report, RebuildError> {
        let client = self.dynamodb.client.clone();
        OrderRebuild::new(client.clone(), client, names()).page_records(PAGE_RECORDS).run(begin, progress).await
    }
}

/// Notes what it is told, and does something after a page.
struct Noted<F> {
    pages: RefCell<Vec<(u64, u64)>>,
    after_page: F,
}

fn noted<F: Fn(usize)>(after_page: F) -> Noted<F> {
    Noted { pages: RefCell::new(Vec::new()), after_page }
}

impl<F: Fn(usize)> Progress for Noted<F> {
    fn begin(&self, _records: u64) {}

    fn page(&self, records: u64, report: &Report) {
        self.pages.borrow_mut().push((records, report.orders));
        (self.after_page)(self.pages.borrow().len());
    }

    fn end(&self) {
        self.pages.borrow_mut().push((0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_rebuilt_from_nothing_is_what_the_consumer_has_made() {
    let shop = Shop::new().await;
    let made = shop.rows().await;
    // Two rows an order, and a snapshot of those with a hundred events.
    assert_eq!(made.len(), 2 * LENGTHS.len() + 3);
    for key in made.keys() {
        shop.remove(key).await;
    }
    let report = shop.rebuild(Begin::WhereItEnded, &noted(|_| ())).await.unwrap();
    assert_eq!((report.orders, report.rewritten, report.incomplete.len()), (12, 12, 0));
    assert_eq!(shop.rows().await, made);

    let again = shop.rebuild(Begin::WhereItEnded, &noted(|_| ())).await.unwrap();
    assert_eq!((again.orders, again.rewritten), (12, 0), "what is right stays as it is");
    assert_eq!(shop.rows().await, made);
    // The consumer goes on from what was rebuilt.
    assert_eq!(shop.wake(&shop.histories[3][4], 0).await, Outcome::Stale);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_wrong_are_replaced_and_the_others_are_not() {
    let shop = Shop::new().await;
    let made = shop.rows().await;
    let nonsense = || json!({"nonsense": true}).as_object().cloned().unwrap();
    let of = |number: u32| {
        serde_json::from_value::<Order>(made[&Order::view_key(&order_id(number))].clone().into()).unwrap()
    };
    // A view that shows another state, a line and a snapshot that nobody can read, a snapshot that lies, a line that is gone.
    let mut paid = made[&Order::view_key(&order_id(5))].clone();
    paid.insert("paid_cents".to_owned(), json!(1));
    shop.put(&Order::view_key(&order_id(5)), paid).await;
    shop.put(&OrderLine::key(&of(6)), nonsense()).await;
    shop.put(&Snapshot::key(&order_id(9)), nonsense()).await;
    let mut lying = made[&Snapshot::key(&order_id(11))].clone();
    lying["order"]["refunded_cents"] = json!(7);
    shop.put(&Snapshot::key(&order_id(11)), lying).await;
    shop.remove(&OrderLine::key(&of(7))).await;
    assert_ne!(shop.rows().await, made);

    let report = shop.rebuild(Begin::WhereItEnded, &noted(|_| ())).await.unwrap();
    assert_eq!((report.orders, report.rewritten), (12, 5));
    assert_eq!(shop.rows().await, made);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_rebuild_goes_on_where_it_ended() {
    let shop = Shop::new().await;
    let made = shop.rows().await;
    for key in made.keys() {
        shop.remove(key).await;
    }
    // After the third page the tables stop answering, for longer than a rebuild tries.
    let fail = |page| {
        for _ in 0..if page == 3 { 2_000 } else { 0 } {
            shop.dynamodb.inject(Fault::Unreadable);
        }
    };
    let first = noted(fail);
    let failed = shop.rebuild(Begin::WhereItEnded, &first).await;
    assert!(matches!(failed, Err(RebuildError::Tables(TablesError::Fetch(_)))), "{failed:?}");
    let (records, orders) = *first.pages.borrow().last().unwrap();
    assert!(records >= 3 * PAGE_RECORDS as u64 && orders < 12, "{orders} orders of {records} records");

    shop.dynamodb.heal();
    let second = noted(|_| ());
    let report = shop.rebuild(Begin::WhereItEnded, &second).await.unwrap();
    assert_eq!(report.orders, 12, "those before the interruption are counted too");
    let (next_records, _) = second.pages.borrow()[0];
    assert_eq!(next_records, records + PAGE_RECORDS as u64, "{orders} orders were done before");
    assert_eq!(shop.rows().await, made);

    // One that is begun anew looks at all of them again.
    let third = noted(|_| ());
    assert_eq!(shop.rebuild(Begin::Anew, &third).await.unwrap().rewritten, 0);
    assert_eq!(third.pages.borrow()[0].0, PAGE_RECORDS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gap_is_reported_and_closed_once_its_event_is_there() {
    let shop = Shop::new().await;
    let made = shop.rows().await;
    let history = &shop.histories[4];
    let key = EventRecord::key(&order_id(5), 3);
    shop.remove(&key).await;
    for row in [Order::view_key(&order_id(5))] {
        shop.remove(&row).await;
    }
    assert_eq!(shop.wake(&history[7], 0).await.name(), "waiting");
    assert_eq!(shop.wake(&history[7], 30).await.name(), "unresolved");
    let report = shop.rebuild(Begin::WhereItEnded, &noted(|_| ())).await.unwrap();
    assert_eq!(report.incomplete, [(order_id(5), 3)]);
    assert!(shop.rows().await.keys().any(|key| key.partition == "GAPS"), "the list still says so");

    let (key, attributes) = event_record(&history[2]);
    shop.put(&key, attributes).await;
    let report = shop.rebuild(Begin::WhereItEnded, &noted(|_| ())).await.unwrap();
    assert_eq!((report.rewritten, report.incomplete.len()), (1, 0));
    assert_eq!(shop.rows().await, made);
}
