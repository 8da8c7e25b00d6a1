//! A selection takes what it says and nothing else, whatever else lies in the queue.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use events::{Consumer, Event, EventId, Payload, PostDeleted};
use operations::dead_letters::{
    DeadLetter, Ending, List, Message, Reason, Received, Redrive, Selection, Source, Summary,
};
use operations::progress::Unwatched;
use operations::stop::Stop;
use operations::trace::{Folder, Logs};
use queue::SendRequest;
use serde_json::json;
use testkit::sample::{event, game_ended, player_id};

use crate::trace::log;
use crate::world::{Table, World, beginning, plan, redrive};

const SOURCE: Source = Source::Consumer(Consumer::GameEnded);

/// What a letter is made as.
#[derive(Debug, Clone)]
struct Made {
    body: String,
    event_id: Option<EventId>,
    event_type: Option<&'static str>,
    reason: &'static str,
    hour: u64,
}

fn game(number: u32) -> Event {
    game_ended(number, (1, 1512, 1204), (2, 1488, 31))
}

/// Letters of all kinds, one an hour.
fn letters() -> Vec<Made> {
    (0..24_u64)
        .map(|hour| {
            let number = u32::try_from(hour).unwrap();
            let deleted = PostDeleted { post_id: "post-1".parse().unwrap(), author_id: player_id(1) };
            let (event, reason) = match hour % 4 {
                0 => (game(number), "not_in_the_message"),
                1 => (event(number, "post-1", 3, Payload::PostDeleted(deleted)), "foreign_type"),
                2 => {
                    let old = EventId::mint(beginning(), [u8::try_from(hour).unwrap(); 10]).to_string();
                    let old = old.replacen(&old[..8], "0190f0c1", 1).parse().unwrap();
                    (Event { event_id: old, ..game(number) }, "too_old")
                }
                _ => {
                    let body = format!("no event {hour}");
                    return Made { body, event_id: None, event_type: None, reason: "undecodable", hour };
                }
            };
            let event_type = Some(event.payload.event_type().as_str());
            Made { body: event.encode(), event_id: Some(event.event_id), event_type, reason, hour }
        })
        .collect()
}

fn world(letters: &[Made]) -> World {
    let world = World::new(&["game-ended", "game-ended-dead-letters"]);
    for letter in letters {
        world.send("game-ended-dead-letters", SendRequest::from_body(letter.body.clone()));
        world.later(Duration::from_secs(3_600));
    }
    world
}

/// Redrives what is selected, and compares what came with what should.
async fn check(selection: Selection, expected: impl Fn(&Made) -> bool) {
    let letters = letters();
    let world = world(&letters);
    let report = redrive(&world, SOURCE, &selection, &Stop::new().1).await.unwrap();
    let expected: BTreeSet<String> =
        letters.iter().filter(|made| expected(made)).map(|made| made.body.clone()).collect();
    assert!(!expected.is_empty() && expected.len() < letters.len(), "the selection selects");
    let there = world.drain("game-ended");
    assert_eq!(there.iter().cloned().collect::<BTreeSet<_>>(), expected, "{selection:?}");
    assert_eq!((there.len(), report.sent), (expected.len(), expected.len() as u64), "{selection:?}");
    let here: BTreeSet<String> = world.drain("game-ended-dead-letters").into_iter().collect();
    assert_eq!(here.len(), letters.len() - expected.len(), "{selection:?}");
    assert!(here.is_disjoint(&expected), "{selection:?}");
}

#[tokio::test]
async fn by_each_property_and_by_all_of_them() {
    let at = |hour: u64| Some(beginning() + Duration::from_secs(3_600 * hour));
    let types = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let ids: BTreeSet<EventId> = letters().iter().filter_map(|made| made.event_id).step_by(5).collect();
    let all = Selection::default();
    check(Selection { event_ids: ids.clone(), ..all.clone() }, |made| {
        made.event_id.is_some_and(|event_id| ids.contains(&event_id))
    })
    .await;
    check(Selection { event_types: types(&["post_deleted"]), ..all.clone() }, |made| {
        made.event_type == Some("post_deleted")
    })
    .await;
    for reason in ["undecodable", "too_old", "foreign_type", "not_in_the_message"] {
        check(Selection { reason: Some(reason.to_owned()), ..all.clone() }, |made| made.reason == reason).await;
    }
    check(Selection { since: at(5), ..all.clone() }, |made| made.hour >= 5).await;
    check(Selection { until: at(5), ..all.clone() }, |made| made.hour < 5).await;
    let narrow = Selection {
        event_types: types(&["game_ended"]),
        since: at(4),
        until: at(13),
        reason: Some("too".to_owned()),
        ..all
    };
    check(narrow, |made| made.reason == "too_old" && (4..13).contains(&made.hour)).await;
}

/// Goes through the dead letters of games, and returns those that are meant.
async fn list(world: &World, logs: Option<&Logs>, selection: &Selection) -> (Vec<DeadLetter>, Summary) {
    let (_wish, stop) = Stop::new();
    let list = List { queues: world, logs, selection, stop: &stop, now: beginning() };
    let (mut shown, mut summary) = (Vec::new(), Summary::default());
    let show = |letter: &DeadLetter, _: &Received| {
        shown.push(letter.clone());
        ControlFlow::Continue(())
    };
    list.run(SOURCE, &mut summary, &Unwatched, show).await.unwrap();
    (shown, summary)
}

#[tokio::test]
async fn a_list_counts_what_it_shows_and_gives_everything_back() {
    let world = world(&letters());
    let event_types = BTreeSet::from(["game_ended".to_owned()]);
    let (shown, summary) = list(&world, None, &Selection { event_types, ..Selection::default() }).await;
    assert_eq!(shown.len(), 12);
    let groups: Vec<(&str, u64)> = summary.groups.iter().map(|group| (group.reason.as_str(), group.letters)).collect();
    assert_eq!(groups, [("not_in_the_message", 6), ("too_old", 6)]);
    let queue = &summary.queues[0];
    assert_eq!((queue.messages, queue.seen, queue.selected, queue.ending), (24, 24, 12, Ending::Complete));
    assert_eq!(world.counts("game-ended-dead-letters"), (24, 24));
}

#[tokio::test]
async fn who_has_seen_enough_gives_everything_back_too() {
    let world = world(&letters());
    let (selection, (_wish, stop), mut summary) = (Selection::default(), Stop::new(), Summary::default());
    let list = List { queues: &world, logs: None, selection: &selection, stop: &stop, now: beginning() };
    list.run(SOURCE, &mut summary, &Unwatched, |_, _| ControlFlow::Break(())).await.unwrap();
    assert_eq!((summary.queues[0].selected, summary.queues[0].ending), (1, Ending::Stopped));
    assert_eq!(world.counts("game-ended-dead-letters"), (24, 24));
}

#[tokio::test]
async fn a_reason_that_only_the_log_knows_selects_too() {
    let world = world(&letters());
    let (all, _) = list(&world, None, &Selection::default()).await;
    let busy = all.iter().find(|letter| letter.reason == Reason::NotInTheMessage).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let line = |reason| json!({"message": "record not handled", "message_id": busy.message_id, "reason": reason});
    let lines = [(1, line("the ledger is away")), (2, line("the ledger is busy"))];
    log(folder.path(), "game-ended", busy.event_id.unwrap(), &lines);
    let logs = Logs::Folder(Folder::new(folder.path(), "players-engine"));
    let selection = Selection { reason: Some("is busy".to_owned()), ..Selection::default() };
    let (shown, _) = list(&world, Some(&logs), &selection).await;
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (&shown[0].message_id, shown[0].logged_reason.as_deref()),
        (&busy.message_id, Some("the ledger is busy"))
    );

    let (records, (_wish, stop)) = (Table::default(), Stop::new());
    let redrive = Redrive { logs: Some(&logs), ..plan(&world, &selection, &records, &stop) };
    assert_eq!(redrive.run(SOURCE, &Unwatched).await.unwrap().sent, 1);
    let there = events::Event::decode(world.drain("game-ended")[0].as_bytes()).unwrap();
    assert_eq!(Some(there.event_id), busy.event_id);
}

/// Reads a body as a letter of this source.
fn read(source: Source, body: &str) -> DeadLetter {
    let message = Message { body: body.to_owned(), ..Message::default() };
    let (message_id, receipt) = ("m-1".to_owned(), "r".to_owned());
    let received = Received { message_id, receipt, receives: 21, sent_at: beginning(), message };
    DeadLetter::read(source, &received, beginning())
}

#[test]
fn a_reason_is_what_the_message_itself_shows() {
    let game = game(1).encode();
    assert_eq!(read(SOURCE, &game).reason, Reason::NotInTheMessage);
    let newer = game.replace(r#""schema_version":1"#, r#""schema_version":9"#);
    assert!(matches!(read(SOURCE, &newer).reason, Reason::NewerSchema(text) if text.contains('9')));
    let unknown = game.replace("game_ended", "game_over");
    assert!(matches!(read(SOURCE, &unknown).reason, Reason::Undecodable(text) if text.contains("game_over")));
    let foreign = read(Source::Consumer(Consumer::FanOut), &game);
    assert_eq!(foreign.reason, Reason::ForeignType("game_ended is not for fan-out".to_owned()));
    assert_eq!(foreign.event_type.as_deref(), Some("game_ended"));
}

#[test]
fn what_the_relay_says_is_read_and_what_it_does_not_say_is_not_made_up() {
    let body = r#"{"reason": "too big", "left_out": ["record"], "keys": null, "event_id": "0190f0c1-8e7a-7cc3-98c4-dc0c0c07398f",
                   "event_type": "game_ended", "record_start": ""}"#;
    let letter = read(Source::Relay, body);
    assert_eq!(letter.reason, Reason::Unsendable("too big".to_owned()));
    assert_eq!(letter.event_type.as_deref(), Some("game_ended"));
    assert!(letter.event_id.is_some());
    assert!(matches!(read(Source::Relay, "no JSON").reason, Reason::Undecodable(_)));
}
