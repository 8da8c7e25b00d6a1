//! What the relay could not send goes to all consumers of its event as soon as it can, and stays otherwise.

use aws::telemetry::chain;
use domain::games::Game;
use events::{Event, EventType};
use operations::dead_letters::{RedriveReport, Selection, Source};
use operations::progress::Unwatched;
use operations::stop::Stop;
use queue::SendRequest;
use serde_json::{Value, json};
use testkit::sample::{event_record, game_ended, game_id, order_history};

use crate::world::{Table, World, plan};

const REJECTED: &str = "relay-rejected";

fn world(event_type: EventType) -> World {
    let queues = event_type.consumers().iter().map(|consumer| consumer.queue_name());
    World::new(&queues.chain([REJECTED]).collect::<Vec<_>>())
}

/// Writes a value as a table's stream does.
fn as_stream(value: &Value) -> Value {
    match value {
        Value::Null => json!({"NULL": true}),
        Value::Bool(value) => json!({"BOOL": value}),
        Value::Number(number) => json!({"N": number.to_string()}),
        Value::String(text) => json!({"S": text}),
        Value::Array(values) => json!({"L": values.iter().map(as_stream).collect::<Vec<_>>()}),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), as_stream(value)));
            json!({"M": fields.collect::<serde_json::Map<_, _>>()})
        }
    }
}

fn whole(event: &Event) -> String {
    let event = as_stream(&serde_json::to_value(event).unwrap());
    let record = json!({"eventName": "INSERT", "dynamodb": {"NewImage": {"event": event}, "SequenceNumber": "7"}});
    json!({"reason": "queue activity: AccessDenied", "left_out": [], "record": record}).to_string()
}

fn keys_alone(event: &Event) -> String {
    let keys = json!({"pk": {"S": "GAME#game-00007"}, "sk": {"S": "GAME"}});
    json!({"reason": "too big", "left_out": ["record"], "keys": keys, "event_id": event.event_id}).to_string()
}

fn game() -> Event {
    game_ended(7, (1, 1512, 1204), (2, 1488, 31))
}

async fn redrive(world: &World, records: &Table) -> RedriveReport {
    let (selection, (_wish, stop)) = (Selection::default(), Stop::new());
    match plan(world, &selection, records, &stop).run(Source::Relay, &Unwatched).await {
        Ok(report) => report,
        Err(error) => panic!("{}", chain(&error)),
    }
}

#[tokio::test]
async fn an_event_goes_to_every_consumer_of_its_type_as_it_was_stored() {
    for event in [game(), order_history(3, 2).remove(1)] {
        let event_type = event.payload.event_type();
        let world = world(event_type);
        world.send(REJECTED, SendRequest::from_body(whole(&event)));
        let report = redrive(&world, &Table::default()).await;
        assert_eq!((report.selected, report.sent, report.after), (1, 1, 0), "{report}");
        for consumer in event_type.consumers().iter() {
            let bodies = world.drain(consumer.queue_name());
            assert_eq!(bodies.len(), 1, "{consumer}");
            assert_eq!(Event::decode(bodies[0].as_bytes()).unwrap(), event, "{consumer}");
        }
    }
}

#[tokio::test]
async fn an_event_too_big_for_the_message_is_read_from_its_record_while_that_still_has_it() {
    let event = game();
    let key = Game::key(&game_id(7));
    let table = |event: &Event| Table([(key.clone(), serde_json::to_value(event).unwrap())].into());
    let world = world(EventType::GameEnded);
    world.send(REJECTED, SendRequest::from_body(keys_alone(&event)));

    let other = game_ended(8, (1, 1512, 1204), (2, 1488, 31));
    let report = redrive(&world, &table(&other)).await;
    assert_eq!((report.sent, report.failed, report.after), (0, 1, 1));
    assert!(report.to_string().contains("carries another event by now"), "{report}");

    let report = redrive(&world, &table(&event)).await;
    assert_eq!((report.sent, report.after), (1, 0), "{report}");
    assert_eq!(Event::decode(world.drain("game-ended")[0].as_bytes()).unwrap(), event);
}

#[tokio::test]
async fn one_queue_that_does_not_take_it_keeps_the_letter() {
    let world = world(EventType::GameEnded);
    let mut event = serde_json::to_value(game()).unwrap();
    event["aggregate_id"] = "x".repeat(2_000).into();
    let record = json!({"dynamodb": {"NewImage": {"event": as_stream(&event)}}});
    let body = json!({"reason": "r", "left_out": [], "record": record}).to_string();
    world.send(REJECTED, SendRequest::from_body(body));
    world.set_attribute("activity", "MaximumMessageSize", "1024");
    let report = redrive(&world, &Table::default()).await;
    assert_eq!((report.sent, report.failed, report.after), (0, 1, 1));
    assert!(report.to_string().contains("queue activity"), "{report}");
    world.set_attribute("activity", "MaximumMessageSize", "262144");
    let report = redrive(&world, &Table::default()).await;
    assert_eq!((report.sent, report.after), (1, 0));
    assert_eq!(world.counts("activity").1, 1);
    assert_eq!(world.counts("game-ended").1, 2, "whoever has it already takes it for a duplicate");
}

#[tokio::test]
async fn what_can_still_not_be_sent_stays_with_its_reason() {
    let world = world(EventType::GameEnded);
    let mut unknown = serde_json::to_value(game()).unwrap();
    unknown["event_type"] = "game_over".into();
    let record = json!({"dynamodb": {"NewImage": {"event": as_stream(&unknown)}}});
    for body in [json!({"reason": "r", "left_out": [], "record": record}).to_string(), "no JSON".to_owned()] {
        world.send(REJECTED, SendRequest::from_body(body));
    }
    let report = redrive(&world, &Table::default()).await;
    assert_eq!((report.selected, report.sent, report.failed, report.after), (2, 0, 2, 2));
    let text = report.to_string();
    assert!(text.contains("game_over") && text.contains("not what the relay says"), "{text}");
    assert!(!report.is_done());
}

#[test]
fn records_of_orders_are_events_themselves() {
    let (key, attributes) = event_record(&order_history(3, 1).remove(0));
    assert!(attributes.contains_key(domain::EVENT), "{key}");
}
