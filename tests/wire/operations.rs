//! What the operator's command line says as JSON: programs read it.

use std::time::Duration;

use domain::Versions;
use domain::orders::Gap;
use events::{Consumer, EventId};
use operations::dead_letters::{
    Attribute, AttributeValue, Counted, DeadLetter, Ending, Group, Message, Received, RedriveReport, Source, Summary,
};
use operations::gaps::OpenGap;
use operations::output::json_line;
use operations::rebuild::Report;
use operations::republish::RepublishReport;
use operations::show::Shown;
use operations::trace::{Life, Step, StepKind, Timeline};
use serde::Serialize;
use serde_json::{Value, json};
use testkit::sample::{event_id, game_ended, now, order_id};

use crate::{check, pretty};

fn check_line(name: &str, item: &impl Serialize) {
    let line: Value = serde_json::from_str(&json_line(name, item).unwrap()).unwrap();
    check(&format!("operations.{name}.json"), &pretty(&line));
}

fn received() -> Received {
    let event = game_ended(7, (1, 1512, 1204), (2, 1488, 31));
    let value = AttributeValue::Text(event.event_id.to_string());
    let attribute = Attribute { data_type: "String".to_owned(), value };
    Received {
        message_id: "6d0b4b1e-6b0e-4f0e-9d52-000000000007".to_owned(),
        receipt: "r".to_owned(),
        receives: 21,
        sent_at: now(),
        message: Message {
            body: event.encode(),
            attributes: [("event_id".to_owned(), attribute)].into(),
            group_id: None,
        },
    }
}

fn letter() -> DeadLetter {
    let long_after = now() + Duration::from_hours(30 * 24);
    let mut letter = DeadLetter::read(Source::Consumer(Consumer::GameEndedStatistics), &received(), long_after);
    letter.logged_reason = Some("too old for a claim".to_owned());
    letter
}

#[test]
fn dead_letters() {
    check_line("dead_letter", &letter());
    let shown = json_line("dead_letter", &Shown::new(&letter(), &received())).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    check("operations.dead_letter_shown.json", &pretty(&shown));
    let consumer = Source::Consumer(Consumer::GameEndedStatistics);
    let summary = Summary {
        queues: vec![Counted { consumer, messages: 3, seen: 3, selected: 2, ending: Ending::Complete }],
        groups: vec![Group {
            consumer,
            event_type: Some("game_ended".to_owned()),
            reason: letter().reason.kind().to_owned(),
            letters: 2,
        }],
    };
    check_line("dead_letters", &summary);
}

#[test]
fn what_a_redrive_and_a_republication_came_to() {
    let redrive = RedriveReport {
        consumer: Source::Relay,
        dry_run: false,
        before: 12,
        after: 3,
        seen: 12,
        selected: 10,
        sent: 9,
        left_twice: 0,
        failed: 1,
        failures: [("6d0b4b1e-6b0e-4f0e-9d52-000000000007".to_owned(), "queue activity: AccessDenied".to_owned())]
            .into(),
        ending: Ending::Complete,
    };
    check_line("redrive", &redrive);
    let republish = RepublishReport {
        dry_run: true,
        since: now(),
        until: now() + Duration::from_secs(3_600),
        records: 5_000,
        events: 700,
        messages: [("game-ended".to_owned(), 700), ("activity".to_owned(), 700)].into(),
        failed: 0,
        failures: [].into(),
        interrupted: false,
    };
    check_line("republish", &republish);
}

#[test]
fn gaps_and_what_a_rebuild_came_to() {
    let mut missing = Versions::run(2, 3);
    missing.push_run(7, 7);
    let gap = Gap {
        order_id: order_id(3),
        missing,
        unreadable: Versions::run(7, 7),
        since: now(),
        listed_at: now() + Duration::from_secs(30),
        listed_by: event_id(4, now()),
    };
    check_line("gap", &OpenGap(gap));
    check_line("rebuild", &Report { orders: 12, rewritten: 2, incomplete: vec![(order_id(3), 2)] });
}

#[test]
fn the_life_of_an_event() {
    let step = |millis, function: &str, kind, message: &str, fields: Value| Step {
        at: now() + Duration::from_millis(millis),
        function: function.to_owned(),
        kind,
        message: message.to_owned(),
        fields: serde_json::from_value(fields).unwrap(),
    };
    let timeline = |event_id: EventId, event_type: &str, steps, not_delivered_to: &[&str]| Timeline {
        event_id,
        event_type: Some(event_type.to_owned()),
        aggregate_id: Some("player-00001".to_owned()),
        version: Some(1),
        steps,
        not_delivered_to: not_delivered_to.iter().map(|consumer| (*consumer).to_owned()).collect(),
    };
    let own = event_id(7, now());
    let written =
        step(3, "api", StepKind::Record, "record written", json!({"record": "FOLLOWED#player-00002/FOLLOWER#1"}));
    let delivered = json!({"outcome": "applied", "receive_count": 1, "message_id": "m-1"});
    let delivered = step(40, "follow-changed", StepKind::Delivery, "record handled", delivered);
    let letter = step(80, "notification-requested", StepKind::Letter, "letter handled", json!({"letter": "delivered"}));
    let derived = own.derived(Consumer::FanOut, "n-1");
    let life = Life {
        trace_id: Some(events::TraceId::mint(7)),
        event: timeline(own, "follow_started", vec![written, delivered], &["activity"]),
        derived: vec![timeline(derived, "notification_requested", vec![letter], &[])],
        more: false,
    };
    check_line("trace", &life);
}
