//! What the driver writes to the log: one line a record, with all that a search for an event needs; an unresolved gap is an
//! error.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use consumer::{Clock, Driver};
use domain::orders::OrderViews;
use events::{Consumer, Event, OrderEvent, OrderPaid};
use serde_json::Value;
use testkit::sample::{event_record, now, order_event, order_placed};
use testkit::{ManualEnvironment, MemoryLedger, RecordedVisibility};

use crate::support::{deliveries, names, outcomes};

/// What every line about a record says.
const FIELDS: [&str; 8] =
    ["event_id", "event_type", "aggregate_id", "version", "trace_id", "message_id", "receive_count", "outcome"];
/// The order that no other test writes about: the log is the whole process's.
const ORDER: u32 = 77;

struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn every_record_is_one_line_and_an_unresolved_gap_one_error_with_order_and_versions() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&log);
    let levels = aws::telemetry::levels(|_| None).unwrap();
    let subscriber = aws::telemetry::subscriber(levels, move || Memory(Arc::clone(&writer)));
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let driver = Driver {
        consumer: Consumer::OrderChanged,
        decider: OrderViews,
        ledger: MemoryLedger::default(),
        environment: ManualEnvironment::new(now(), 7),
        visibility: RecordedVisibility::default(),
    };
    let paid = |version| order_event(ORDER, version, OrderEvent::Paid(OrderPaid { amount_cents: 1 }));
    let [first, fourth, fifth] = [order_event(ORDER, 1, order_placed(9)), paid(4), paid(5)];
    for event in [&first, &fourth, &fifth] {
        let (key, attributes) = event_record(event);
        driver.ledger.put(key, attributes);
    }
    let wake = async |events: &[Event]| {
        let deadline = driver.environment.now() + Duration::from_secs(60);
        names(&outcomes(&driver.handle(&deliveries(events), deadline).await))
    };
    assert_eq!(wake(std::slice::from_ref(&fourth)).await, ["waiting"]);
    driver.environment.advance(Duration::from_secs(30));
    assert_eq!(wake(&[fourth.clone(), fourth, fifth.clone()]).await, ["unresolved", "duplicate", "ignored"]);
    assert_eq!(wake(&[fifth]).await, ["ignored"]);

    let text = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own: Vec<Value> = lines.filter(|line| line["aggregate_id"] == "order-00077").collect();
    let outcomes: Vec<&str> = own.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["waiting", "unresolved", "duplicate", "ignored", "ignored"], "one line a record");
    for line in &own {
        let missing: Vec<&str> = FIELDS.into_iter().filter(|field| line.get(*field).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} are not in {line}");
    }
    let errors: Vec<&Value> = own.iter().filter(|line| line["level"] == "ERROR").collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((&errors[0]["outcome"], &errors[0]["version"]), (&"unresolved".into(), &4.into()));
    assert_eq!(errors[0]["reason"], "versions 2-3 are missing");
    assert_eq!(errors[0]["event_type"], "order_paid");
}
