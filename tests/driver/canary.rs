//! A canary: from its record through stream and relay to every consumer's driver, which counts it and asks no decider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::metrics::Metrics;
use aws::publisher::{Failure, Message, SendBatch};
use canary::Sender;
use consumer::{Delivery, Driver, EffectDriver, Notifier, NotifyError, Outcome};
use domain::inbox::Letter;
use domain::{Courier, Decider, Decision, End, Errand, Need, RowError, State};
use events::{CanarySent, Consumer, Event, EventId, Payload, QueueOrder, TraceId};
use outbox_relay::Relay;
use serde_json::{Value, json};
use testkit::sample::{event, event_id, game_ended, now};
use testkit::{ManualEnvironment, MemoryLedger, RecordedVisibility};
use tests::DynamoDb;
use tokio::time::Instant;

use crate::support::{deadline, deliveries, delivery, driver, outcomes};

/// A decider that must not be asked about a canary, neither for decisions nor for errands.
struct Untouched;

impl Decider for Untouched {
    fn needs(&self, event: &Event) -> Vec<Need> {
        assert!(!matches!(event.payload, Payload::CanarySent(_)), "asked about a canary");
        Vec::new()
    }

    fn decide(&self, event: &Event, _: &State) -> Result<Decision, RowError> {
        assert!(!matches!(event.payload, Payload::CanarySent(_)), "asked about a canary");
        Ok(Decision::Ignore("seen".to_owned()))
    }
}

impl Courier for Untouched {
    type Letter = Letter;

    fn errand(&self, event: &Event, _: &State) -> Result<Errand<Letter>, RowError> {
        assert!(!matches!(event.payload, Payload::CanarySent(_)), "asked about a canary");
        Ok(Errand::Nothing)
    }

    fn settle(&self, _: &Event, _: &State, _: End) -> Result<Decision, RowError> {
        panic!("there was no errand")
    }
}

struct Nobody;

impl Notifier<Letter> for Nobody {
    async fn send(&self, _: &str, _: TraceId, letter: &Letter) -> Result<(), NotifyError> {
        panic!("a letter: {letter:?}")
    }
}

fn canary(number: u32) -> Event {
    event(number, "canary", number.into(), Payload::CanarySent(CanarySent {}))
}

#[tokio::test]
async fn a_canary_between_other_records_arrives_and_they_are_decided() {
    let driver = driver(Untouched);
    let game = game_ended(2, (1, 1_500, 1), (2, 1_500, 1));
    let batch = deliveries(&[canary(1), game, canary(3), canary(1)]);
    let report = driver.handle(&batch, deadline()).await;
    let seen = Outcome::Ignored("seen".to_owned());
    assert_eq!(outcomes(&report), [Outcome::Canary, seen, Outcome::Canary, Outcome::Canary]);
    assert_eq!(report.failures().count(), 0);
    assert!(driver.ledger.rows().is_empty() && driver.visibility.take().is_empty());
    assert_eq!(report.records[0].occurred_at, Some(now()));
}

#[tokio::test]
async fn a_courier_sends_no_letter_about_a_canary() {
    let driver = Driver { consumer: Consumer::NotificationRequested, ..driver(Untouched) };
    let courier = EffectDriver { driver, notifier: Some(Nobody), send_timeout: Duration::from_secs(2) };
    let report = courier.handle(&deliveries(&[canary(1)]), deadline()).await;
    assert_eq!(outcomes(&report), [Outcome::Canary]);
    assert_eq!(report.cost.calls, 0, "nothing was read for it");
}

/// Takes what the relay sends, by queue.
#[derive(Default)]
struct Queues(Mutex<BTreeMap<String, Vec<Message>>>);

impl SendBatch for &Queues {
    async fn send_batch(&self, queue_url: &str, messages: &[&Message]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let mut queues = self.0.lock().unwrap();
        queues.entry(queue_url.to_owned()).or_default().extend(messages.iter().map(|message| (*message).clone()));
        Ok(messages.iter().map(|_| Ok(())).collect())
    }
}

/// The record of canaries as the stream shows it.
fn image(dynamodb: &DynamoDb) -> Value {
    let key = canary::key();
    let request = json!({
        "TableName": "records", "ConsistentRead": true,
        "Key": {"pk": {"S": key.partition}, "sk": {"S": key.sort}},
    });
    let found = dynamodb.database.get_item(serde_json::from_value(request).unwrap()).unwrap();
    serde_json::to_value(found.item).unwrap()
}

fn ids(number: u32) -> (EventId, TraceId) {
    (event_id(number, now()), TraceId::mint(number.into()))
}

#[tokio::test]
async fn a_canary_goes_the_whole_way_to_every_consumer() {
    let dynamodb = DynamoDb::start().await;
    let sender = Sender { dynamodb: dynamodb.client.clone(), records_table: "records".to_owned() };
    let mut before = Value::Null;
    for number in 1..=2 {
        let (event_id, trace_id) = ids(number);
        sender.send(now(), event_id, trace_id).await.unwrap();
        let after = image(&dynamodb);
        let record = json!({"eventName": "MODIFY", "dynamodb": {
            "SequenceNumber": number.to_string(), "OldImage": before, "NewImage": after,
        }});
        let queues = Queues::default();
        let relay = Relay::new(&queues, "queue/", Metrics::new("stack", |_| {}));
        let batch = json!({"Records": [record]});
        let response = relay.handle(&batch, Instant::now() + Duration::from_secs(50)).await.unwrap();
        assert!(response.batch_item_failures.is_empty());

        let mut queues = queues.0.into_inner().unwrap();
        for consumer in Consumer::ALL {
            let sent = queues.remove(&format!("queue/{}", consumer.queue_name())).unwrap();
            assert_eq!(sent.len(), 1, "{consumer}");
            check_arrival(consumer, &sent[0], event_id, u64::from(number)).await;
        }
        assert!(queues.is_empty(), "{queues:?}");
        before = after;
    }
}

async fn check_arrival(consumer: Consumer, message: &Message, event_id: EventId, version: u64) {
    let event = Event::decode(message.body.as_bytes()).unwrap();
    assert_eq!((event.event_id, event.version, event.aggregate_id.as_str()), (event_id, version, "canary"));
    let group = message.fifo.as_ref().map(|place| place.group_id.clone());
    assert_eq!(group.is_some(), consumer.queue_order() == QueueOrder::FifoByAggregate, "{consumer}");
    let driver = Driver {
        consumer,
        decider: Untouched,
        ledger: MemoryLedger::default(),
        environment: ManualEnvironment::new(now(), 7),
        visibility: RecordedVisibility::default(),
    };
    let delivery = Delivery { group, ..delivery(0, message.body.clone()) };
    let report = driver.handle(&[delivery], deadline()).await;
    assert_eq!(outcomes(&report), [Outcome::Canary], "{consumer}");
    assert_eq!(measured(consumer, &report.tally(now())), json!({"CanaryArrived": 1, "Processed": 0}));
}

/// What the alarms see of a batch.
fn measured(consumer: Consumer, tally: &consumer::Tally) -> Value {
    let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
    let written = Arc::clone(&lines);
    let metrics = Metrics::new("stack", move |line| written.lock().unwrap().push(serde_json::from_str(line).unwrap()));
    metrics.batch(consumer, tally, now());
    let lines = lines.lock().unwrap();
    assert_eq!((lines.len(), &lines[0]["Consumer"]), (1, &consumer.as_str().into()));
    json!({"CanaryArrived": lines[0]["CanaryArrived"], "Processed": lines[0]["Processed"]})
}

#[tokio::test]
async fn a_canary_that_somebody_else_was_faster_with_is_under_way_all_the_same() {
    let dynamodb = DynamoDb::start().await;
    let sender = Sender { dynamodb: dynamodb.client.clone(), records_table: "records".to_owned() };
    let sends = (1..=8).map(|number| {
        let (event_id, trace_id) = ids(number);
        sender.send(now(), event_id, trace_id)
    });
    for sent in futures::future::join_all(sends).await {
        sent.unwrap();
    }
    let version: u32 = image(&dynamodb)["version"]["N"].as_str().unwrap().parse().unwrap();
    assert!((1..=8).contains(&version), "{version}");
    let event = &image(&dynamodb)["event"]["M"];
    assert_eq!(event["version"]["N"], version.to_string());
}
