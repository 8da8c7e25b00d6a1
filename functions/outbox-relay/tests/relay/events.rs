//! Events on their way to standard queues, and what becomes of those that cannot go.

use aws::publisher::{BATCH_BYTES_MAX, Fault};
use events::Event;
use outbox_relay::RelayError;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Queues, event, game, insert, later, relay, relay_to};

const CONSUMERS: [&str; 4] = ["active-players", "activity", "game-ended", "game-ended-statistics"];

fn numbers(range: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    range.collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_goes_to_every_consumer_as_it_was_written() {
    let queues = Queues::default();
    assert!(relay(&queues, vec![game(7)]).await.is_empty());

    for consumer in CONSUMERS {
        let taken = queues.taken.lock().unwrap();
        let message = &taken[consumer][0];
        assert!(message.body.is_ascii());
        let event = Event::decode(message.body.as_bytes()).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&event.encode()).unwrap(),
            serde_json::from_str::<Value>(&message.body).unwrap()
        );
        assert_eq!((event.aggregate_id.as_str(), event.version), ("game-7", 1));
        let attributes = [
            ("event_id", event.event_id.to_string()),
            ("event_type", "game_ended".to_owned()),
            ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
        ];
        assert_eq!(message.attributes, attributes);
    }
}

#[tokio::test(start_paused = true)]
async fn batches_hold_ten_messages() {
    let queues = Queues::default();
    assert!(relay(&queues, (1..=23).map(game).collect()).await.is_empty());
    for consumer in CONSUMERS {
        assert_eq!(queues.events(consumer), numbers(1..=23));
    }
    let mut batches = queues.batches.lock().unwrap().clone();
    batches.sort_unstable();
    assert_eq!(batches, [[3; CONSUMERS.len()], [10; CONSUMERS.len()], [10; CONSUMERS.len()]].concat());
}

#[tokio::test(start_paused = true)]
async fn what_published_nothing_new_is_passed_over() {
    let queues = Queues::default();
    let mut unchanged = game(1);
    unchanged["dynamodb"]["OldImage"] = unchanged["dynamodb"]["NewImage"].clone();
    let mut same_id = game(2);
    same_id["dynamodb"]["OldImage"] = same_id["dynamodb"]["NewImage"].clone();
    same_id["dynamodb"]["OldImage"]["event"]["M"]["version"]["N"] = json!("9");
    let mut no_event = game(3);
    no_event["dynamodb"]["NewImage"].as_object_mut().unwrap().remove("event");
    let mut removed = game(4);
    removed["eventName"] = json!("REMOVE");
    removed["dynamodb"]["OldImage"] = removed["dynamodb"]["NewImage"].take();
    removed["dynamodb"].as_object_mut().unwrap().remove("NewImage");
    let mut still_undecodable = insert(5, json!({"S": "nonsense"}));
    still_undecodable["dynamodb"]["OldImage"] = still_undecodable["dynamodb"]["NewImage"].clone();

    let records = vec![unchanged, same_id, no_event, removed, still_undecodable];
    assert!(relay(&queues, records).await.is_empty());
    assert!(queues.taken.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_changed_record_publishes_its_new_event() {
    let queues = Queues::default();
    let mut changed = game(2);
    changed["eventName"] = json!("MODIFY");
    changed["dynamodb"]["OldImage"] = game(1)["dynamodb"]["NewImage"].clone();
    assert!(relay(&queues, vec![changed]).await.is_empty());
    assert_eq!(queues.events("game-ended"), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_newer_schema_version_is_passed_on_untouched() {
    let queues = Queues::default();
    let mut event = event(1);
    event["M"]["schema_version"]["N"] = json!("2");
    event["M"]["payload"] = json!({"M": {
        "who": {"L": [{"S": "Zoë\u{1F600}"}, {"NULL": true}, {"BOOL": false}]},
        "big": {"N": "18446744073709551615"}, "small": {"N": "-3"}, "part": {"N": "1.5"},
    }});
    assert!(relay(&queues, vec![insert(1, event)]).await.is_empty());
    let body = &queues.bodies("game-ended")[0];
    assert_eq!(body["schema_version"], 2);
    let payload = json!({"who": ["Zoë\u{1F600}", null, false], "big": u64::MAX, "small": -3, "part": 1.5});
    assert_eq!(body["payload"], payload);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_makes_no_sense_is_put_aside_and_the_others_go_on() {
    let changed = |field: &str, value: Value| {
        let mut event = event(2);
        event["M"][field] = value;
        insert(2, event)
    };
    let mut no_image = game(2);
    no_image["dynamodb"].as_object_mut().unwrap().remove("NewImage");
    let cases = [
        (json!("text"), "the stream record has no dynamodb"),
        (no_image, "the stream record has no NewImage"),
        (insert(2, json!({"S": "nonsense"})), "field event_id of the event is missing or not text"),
        (insert(2, json!({"X": 1})), "the event does not convert to JSON"),
        (changed("event_id", json!({"N": "1"})), "field event_id of the event is missing or not text"),
        (changed("event_id", json!({"S": "1"})), "field event_id of the event is not an id"),
        (changed("event_type", json!({"S": "game_lost"})), "unknown event type \"game_lost\""),
        (changed("payload", json!({"B": "AAEC"})), "the event does not convert to JSON"),
    ];
    for (poison, reason) in cases {
        let queues = Queues::default();
        assert!(relay(&queues, vec![game(1), poison.clone(), game(3)]).await.is_empty());
        for consumer in CONSUMERS {
            assert_eq!(queues.events(consumer), [1, 3], "{reason}");
        }
        let rejected = queues.bodies("relay-rejected");
        assert_eq!(rejected.len(), 1, "{reason}");
        assert_eq!(rejected[0]["record"], poison);
        assert!(rejected[0]["reason"].as_str().unwrap().contains(reason), "{}", rejected[0]["reason"]);
    }
}

/// Makes a game whose message has exactly `bytes` bytes with its attributes.
async fn game_of(bytes: usize) -> Value {
    let padded = |padding: usize| {
        let mut event = event(1);
        event["M"]["payload"]["M"]["padding"] = json!({"S": "x".repeat(padding)});
        insert(1, event)
    };
    let queues = Queues::default();
    relay(&queues, vec![padded(0)]).await;
    let frame = queues.taken.lock().unwrap()["game-ended"][0].bytes();
    padded(bytes - frame)
}

#[tokio::test(start_paused = true)]
async fn one_mebibyte_is_sent_and_a_byte_more_is_put_aside() {
    let queues = Queues::default();
    let fits = game_of(BATCH_BYTES_MAX).await;
    assert!(relay(&queues, vec![fits, game(2)]).await.is_empty());
    assert_eq!(queues.events("game-ended"), [1, 2]);

    let queues = Queues::default();
    let too_big = game_of(BATCH_BYTES_MAX + 1).await;
    assert!(relay(&queues, vec![too_big, game(2)]).await.is_empty());
    assert_eq!(queues.events("game-ended"), [2]);
    let rejected = &queues.bodies("relay-rejected")[0];
    assert!(rejected["reason"].as_str().unwrap().contains("1048577 bytes"), "{}", rejected["reason"]);
    assert_eq!(rejected["keys"]["pk"]["S"], "GAME#game-1");
}

#[tokio::test(start_paused = true)]
async fn big_messages_share_a_batch_up_to_one_mebibyte() {
    let queues = Queues::default();
    let half = game_of(BATCH_BYTES_MAX / 2).await;
    assert!(relay(&queues, vec![half.clone(), half.clone(), half]).await.is_empty());
    let mut batches = queues.batches.lock().unwrap().clone();
    batches.sort_unstable();
    assert_eq!(batches, [[1; CONSUMERS.len()], [2; CONSUMERS.len()]].concat());
}

#[tokio::test(start_paused = true)]
async fn the_lowest_position_that_was_not_sent_is_held() {
    let forever = usize::MAX;
    let queues = Queues::refusing(&[
        ("game-ended", "game-15", forever, Fault::Passing),
        ("game-ended-statistics", "game-12", forever, Fault::Passing),
    ]);
    assert_eq!(relay(&queues, (1..=30).map(game).collect()).await, ["12"]);
    for consumer in CONSUMERS {
        let sent = queues.events(consumer);
        assert!(numbers(1..=11).iter().all(|number| sent.contains(number)), "{consumer}: {sent:?}");
    }
    for consumer in ["game-ended", "game-ended-statistics"] {
        let sent = queues.events(consumer);
        assert!(!sent.contains(&25), "nothing is sent behind a held batch: {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_holds_nothing() {
    let queues = Queues::refusing(&[("game-ended", "game-2", 2, Fault::Passing)]);
    assert!(relay(&queues, (1..=3).map(game).collect()).await.is_empty());
    assert_eq!(queues.events("game-ended"), [1, 3, 2]);
    assert_eq!(queues.events("game-ended-statistics"), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn what_one_queue_never_takes_is_put_aside_and_reaches_the_other() {
    let queues =
        Queues::refusing(&[("game-ended", "game-2", 1, Fault::Message), ("game-ended", "game-3", 1, Fault::Queue)]);
    assert!(relay(&queues, (1..=4).map(game).collect()).await.is_empty());
    assert_eq!(queues.events("game-ended"), [1, 4]);
    assert_eq!(queues.events("game-ended-statistics"), [1, 2, 3, 4]);
    let rejected = queues.bodies("relay-rejected");
    let records: Vec<&Value> = rejected.iter().map(|body| &body["record"]).collect();
    assert_eq!(records, [&game(2), &game(3)]);
    assert_eq!(rejected[0]["reason"], "queue game-ended: told so");
}

#[tokio::test(start_paused = true)]
async fn mixed_failures_of_one_batch_are_told_apart() {
    let queues = Queues::refusing(&[
        ("game-ended", "game-1\"", 1, Fault::Message),
        ("game-ended", "game-2", usize::MAX, Fault::Passing),
        ("game-ended", "game-3", 1, Fault::Message),
    ]);
    assert_eq!(relay(&queues, (1..=4).map(game).collect()).await, ["2"]);
    assert_eq!(queues.events("game-ended"), [4]);
    // The third comes again with the second; only the first is settled.
    let rejected = queues.bodies("relay-rejected");
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0]["record"], game(1));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_one_queue_never_takes_still_waits_for_the_other() {
    let refusals = [("game-ended", Fault::Message), ("game-ended-statistics", Fault::Passing)];
    for faults in [refusals, [(refusals[0].0, refusals[1].1), (refusals[1].0, refusals[0].1)]] {
        let queues = Queues::refusing(&faults.map(|(queue, fault)| (queue, "game-2", usize::MAX, fault)));
        assert_eq!(relay(&queues, (1..=3).map(game).collect()).await, ["2"], "{faults:?}");
        assert!(queues.bodies("relay-rejected").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_queue_that_fails_holds_the_position() {
    for fault in [Fault::Passing, Fault::Queue, Fault::Message] {
        let queues = Queues::refusing(&[("relay-rejected", "", usize::MAX, fault)]);
        let records = vec![game(1), insert(2, json!({"S": "nonsense"})), game(3)];
        assert_eq!(relay(&queues, records).await, ["2"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_comes_twice_is_sent_twice_and_never_lost() {
    let queues = Queues::default();
    assert!(relay(&queues, vec![game(1), game(2), game(1)]).await.is_empty());
    assert_eq!(queues.events("game-ended"), [1, 2, 1]);

    let queues = Queues::refusing(&[("game-ended", "game-1", usize::MAX, Fault::Passing)]);
    assert_eq!(relay(&queues, vec![game(1), game(2), game(1)]).await, ["1"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_time_is_too_short_for_is_held() {
    let queues = Queues::default();
    let batch = json!({"Records": [insert(1, json!({"S": "nonsense"})), game(2)]});
    let response = relay_to(&queues).handle(&batch, Instant::now()).await.unwrap();
    assert_eq!(response.batch_item_failures[0].item_identifier, "1");
    assert!(queues.taken.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_foreign_shape_is_an_error() {
    let queues = Queues::default();
    let foreign =
        [json!({}), json!([]), json!(null), json!({"Records": {}}), json!({"records": []}), json!({"Records": null})];
    for batch in foreign {
        let answer = relay_to(&queues).handle(&batch, later()).await;
        assert!(matches!(answer, Err(RelayError::Foreign(_))), "{batch}: {answer:?}");
    }
    assert!(relay(&queues, vec![]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_held_record_without_a_position_brings_the_batch_again() {
    let queues = Queues::refusing(&[("relay-rejected", "", usize::MAX, Fault::Passing)]);
    let batch = json!({"Records": [game(1), "text"]});
    let answer = relay_to(&queues).handle(&batch, later()).await;
    assert!(matches!(answer, Err(RelayError::NoPosition { index: 1 })), "{answer:?}");
}
