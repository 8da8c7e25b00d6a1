//! Sending the events of records once more: those of the time that is meant, to the consumers that are meant, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use domain::games::Game;
use domain::{Attributes, EVENT, Key};
use events::{Consumer, Event, EventId, EventType, Timestamp};
use operations::dead_letters::{FifoPlace, Message, Mode, QueueError, Queues, Received};
use operations::progress::Unwatched;
use operations::republish::{Published, Republish, RepublishReport};
use operations::stop::Stop;
use operations::tables::Tables;
use serde_json::{Value, json};
use testkit::sample::{event_record, game_ended, game_id, now, order_history};

use super::{Shop, names};

/// Queues that take everything but what is for one of them.
#[derive(Default)]
struct Taking {
    sent: Mutex<BTreeMap<String, Vec<String>>>,
    closed: Option<&'static str>,
}

impl Queues for Taking {
    async fn count(&self, _: &str) -> Result<u64, QueueError> {
        Ok(0)
    }

    async fn receive(&self, _: &str, _: Duration) -> Result<Vec<Received>, QueueError> {
        Ok(Vec::new())
    }

    async fn send(
        &self,
        queue: &str,
        messages: &[(&Message, Option<FifoPlace>)],
    ) -> Result<Vec<Result<(), String>>, QueueError> {
        if self.closed == Some(queue) {
            return Ok(vec![Err("AccessDenied".to_owned()); messages.len()]);
        }
        let groups: BTreeSet<&str> =
            messages.iter().filter_map(|(_, it)| Some(it.as_ref()?.group_id.as_str())).collect();
        assert_eq!(groups.len(), if queue.ends_with(".fifo") { messages.len() } else { 0 }, "one message of a group");
        let bodies = messages.iter().map(|(message, _)| message.body.clone());
        self.sent.lock().unwrap().entry(queue.to_owned()).or_default().extend(bodies);
        Ok(vec![Ok(()); messages.len()])
    }

    async fn delete(&self, _: &str, _: &[String]) -> Result<Vec<Result<(), String>>, QueueError> {
        Ok(Vec::new())
    }

    async fn release(&self, _: &str, _: &[String]) -> Result<(), QueueError> {
        Ok(())
    }
}

impl Taking {
    /// What was sent to a queue, as events.
    fn events(&self, consumer: Consumer) -> Vec<Event> {
        let sent = self.sent.lock().unwrap();
        let bodies = sent.get(consumer.queue_name()).cloned().unwrap_or_default();
        bodies.iter().map(|body| Event::decode(body.as_bytes()).unwrap()).collect()
    }
}

fn at(hour: u64) -> Timestamp {
    now() + Duration::from_hours(hour)
}

/// A game that ended at this hour.
fn game(hour: u32) -> Event {
    let mut random = [7; 10];
    random[9] = u8::try_from(hour).unwrap();
    let event_id = EventId::mint(at(u64::from(hour)), random);
    Event { event_id, ..game_ended(hour, (1, 1512, 1204), (2, 1488, 31)) }
}

/// Games of 24 hours, an order of the first minute, and records without events.
async fn shop() -> Shop {
    let shop = Shop { dynamodb: tests::DynamoDb::start().await, histories: Vec::new() };
    for hour in 0..24 {
        let event = serde_json::to_value(game(hour)).unwrap();
        let attributes: Attributes = serde_json::from_value(json!({"data": hour, EVENT: event})).unwrap();
        shop.put(&Game::key(&game_id(hour)), attributes).await;
        let silent: Attributes = serde_json::from_value(json!({"data": hour})).unwrap();
        shop.put(&Key::record(format!("PLAYER#{hour}"), "RATING#blitz"), silent).await;
    }
    for event in order_history(1, 3) {
        let (key, attributes) = event_record(&event);
        shop.put(&key, attributes).await;
    }
    shop
}

fn hours(since: u64, until: u64) -> Published {
    let (event_types, consumers) = (BTreeSet::new(), BTreeSet::new());
    Published { since: at(since), until: at(until), event_types, consumers }
}

async fn republish(shop: &Shop, queues: &Taking, published: &Published, mode: Mode, stop: &Stop) -> RepublishReport {
    let tables = Tables::new(shop.dynamodb.client.clone(), shop.dynamodb.client.clone(), names());
    let republish = Republish { queues, published, mode, rate: None, stop };
    republish.run(&tables, &Unwatched).await.unwrap()
}

#[tokio::test]
async fn events_of_the_time_go_to_all_consumers_as_they_were_stored() {
    let (shop, queues) = (shop().await, Taking::default());
    let report = republish(&shop, &queues, &hours(5, 9), Mode::Send, &Stop::new().1).await;
    assert_eq!((report.events, report.failed, report.interrupted), (4, 0, false), "{report}");
    assert_eq!(report.records, 51);
    for consumer in EventType::GameEnded.consumers().iter() {
        let mut sent = queues.events(consumer);
        sent.sort_by_key(|event| event.event_id);
        assert_eq!(sent, (5..9).map(game).collect::<Vec<_>>(), "{consumer}");
        assert_eq!(report.messages[consumer.queue_name()], 4);
    }
    assert_eq!(report.messages.len(), EventType::GameEnded.consumers().iter().count());
}

#[tokio::test]
async fn events_of_an_order_go_one_after_the_other() {
    let (shop, queues) = (shop().await, Taking::default());
    let mut published = hours(0, 1);
    published.consumers.insert(Consumer::OrderChanged);
    let report = republish(&shop, &queues, &published, Mode::Send, &Stop::new().1).await;
    assert_eq!(queues.events(Consumer::OrderChanged), order_history(1, 3), "{report}");
    assert_eq!(queues.sent.lock().unwrap().len(), 1, "to the consumer that is meant alone");
}

#[tokio::test]
async fn types_are_selected_and_a_dry_run_sends_nothing() {
    let (shop, queues) = (shop().await, Taking::default());
    let mut published = hours(0, 100);
    published.event_types.insert(EventType::OrderPaid);
    let report = republish(&shop, &queues, &published, Mode::DryRun, &Stop::new().1).await;
    assert_eq!((report.events, report.messages["order-changed.fifo"]), (2, 2), "{report}");
    assert!(queues.sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_be_sent_is_named_and_holds_nothing_up() {
    let (shop, queues) = (shop().await, Taking { closed: Some("activity"), ..Taking::default() });
    let mut unknown = serde_json::to_value(game(6)).unwrap();
    unknown["event_type"] = Value::from("game_over");
    unknown["event_id"] = Value::from(EventId::mint(at(6), [9; 10]).to_string());
    let attributes: Attributes = serde_json::from_value(json!({EVENT: unknown})).unwrap();
    shop.put(&Key::record("GAME#unknown", "GAME"), attributes).await;
    let report = republish(&shop, &queues, &hours(5, 9), Mode::Send, &Stop::new().1).await;
    assert_eq!((report.events, report.failed, report.messages["game-ended"]), (4, 5, 4), "{report}");
    let text = report.to_string();
    assert!(text.contains("queue activity: AccessDenied") && text.contains("game_over"), "{text}");
}

#[tokio::test]
async fn who_stops_is_told_that_it_is_not_the_end() {
    let (shop, queues) = (shop().await, Taking::default());
    let (wish, stop) = Stop::new();
    wish.make();
    let report = republish(&shop, &queues, &hours(0, 100), Mode::Send, &stop).await;
    assert!(report.interrupted && queues.sent.lock().unwrap().is_empty(), "{report}");
}

#[tokio::test]
async fn open_gaps_are_listed_page_by_page_without_those_that_have_closed() {
    use domain::Versions;
    use domain::orders::Gap;
    let shop = Shop { dynamodb: tests::DynamoDb::start().await, histories: Vec::new() };
    for number in 0..620 {
        let order_id = testkit::sample::order_id(number);
        let gap = Gap {
            order_id: order_id.clone(),
            missing: Versions::run(2, 3),
            unreadable: Versions::default(),
            since: now(),
            listed_at: now(),
            listed_by: game(1).event_id,
        };
        let attributes = if number % 2 == 0 { serde_json::to_value(gap).unwrap() } else { json!({"removed": true}) };
        shop.put(&Gap::key(&order_id), serde_json::from_value(attributes).unwrap()).await;
    }
    let tables = Tables::new(shop.dynamodb.client.clone(), shop.dynamodb.client.clone(), names());
    let (mut listed, mut after, mut pages) = (Vec::new(), Some(String::new()), 0);
    while let Some(place) = after {
        let (gaps, end) = operations::gaps::page(&tables, &place).await.unwrap();
        listed.extend(gaps.into_iter().map(|gap| gap.0.order_id));
        (after, pages) = (end, pages + 1);
    }
    assert_eq!(listed, (0..620).step_by(2).map(testkit::sample::order_id).collect::<Vec<_>>());
    assert!(pages > 1, "there is more than one page");
}
