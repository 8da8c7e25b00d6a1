//! Every stored and sent shape, byte for byte. A golden file that has to change is a new schema version.

mod metrics;
mod operations;
mod orders;

use std::collections::BTreeMap;
use std::path::Path;

use consumer::{Draft, Scope};
use domain::activity::{ActivePlayers, EventCounts};
use domain::fan_out::FanOut;
use domain::follows::Follow;
use domain::graph::FollowGraph;
use domain::inbox::Inbox;
use domain::leaderboard::{Leaderboard, PlayerOnBoards};
use domain::players::{Player, PlayerRating, Restriction};
use domain::posts::{Post, PostCounts};
use domain::reactions::{Reaction, ReactionCounts};
use domain::statistics::Statistics;
use domain::{Decider, Decision, Key, Need, Row, State};
use events::{
    CanarySent, Consumer, Event, EventType, FanOutAdvanced, FollowEnded, FollowStarted, NotificationCause,
    NotificationId, NotificationRequested, Payload, PlayerRegistered, PlayerReinstated, PlayerRenamed,
    PlayerRestricted, PostDeleted, PostId, PostPublished, Rating, ReactionAdded, ReactionKind, ReactionRemoved,
    TimeControl,
};
use serde_json::{Value, json};
use testkit::sample::{self, game_ended, now, player_id, player_record};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/wire/golden");

/// Compares text with a golden file. `UPDATE_GOLDEN=1 cargo test -p tests --test wire` writes the files anew.
fn check(name: &str, actual: &str) {
    let path = Path::new(GOLDEN).join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, golden, "{} differs", path.display());
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn event() -> Event {
    game_ended(7, (1, 1512, 1204), (2, 1488, 31))
}

/// The state in which nothing is there that the boards need.
fn absent_rows() -> State {
    absent(Leaderboard.needs(&event()))
}

/// The state in which nothing is there of these needs.
fn absent(needs: Vec<Need>) -> State {
    let key = |need| match need {
        Need::Key(key) => key,
        Need::Range(range) => panic!("a range: {range}"),
    };
    needs.into_iter().map(|need| (key(need), Row::default())).collect()
}

/// The writes of a decision as the plan that is committed.
fn plan(consumer: Consumer, decision: Decision) -> String {
    let Decision::Apply { writes, checks } = decision else { panic!("nothing to write: {decision:?}") };
    let scope = Scope { consumer, event_id: event().event_id, now: now() };
    let plan = Draft::new(scope, writes, checks).expect("a plan").seal(0, 2);
    format!("{plan:#?}\n")
}

#[test]
fn game_ended_version_1() {
    let sent = event().encode();
    check("game_ended.v1.json", &format!("{sent}\n"));
    let golden = std::fs::read(Path::new(GOLDEN).join("game_ended.v1.json")).unwrap();
    assert_eq!(Event::decode(&golden).unwrap(), event());
}

/// An event's golden file is what it is sent as, and is read as the event.
fn check_event(payload: Payload) {
    let event_type = payload.event_type();
    let event = sample::event(7, "aggregate", 3, payload);
    let name = format!("{event_type}.v{}.json", event_type.schema_version());
    check(&name, &format!("{}\n", event.encode()));
    let golden = std::fs::read(Path::new(GOLDEN).join(name)).unwrap();
    assert_eq!(Event::decode(&golden).unwrap(), event);
}

#[test]
fn events_of_players() {
    let (player_id, username) = (player_id(1), sample::username(1));
    check_event(Payload::PlayerRegistered(PlayerRegistered { player_id: player_id.clone(), username }));
    let username = "\u{c6}nn".parse().unwrap();
    check_event(Payload::PlayerRenamed(PlayerRenamed { player_id: player_id.clone(), username }));
    let reason = "spam".parse().unwrap();
    check_event(Payload::PlayerRestricted(PlayerRestricted { player_id: player_id.clone(), reason }));
    check_event(Payload::PlayerReinstated(PlayerReinstated { player_id }));
}

#[test]
fn events_of_posts() {
    let (post_id, author_id): (PostId, _) = ("post-1".parse().unwrap(), player_id(1));
    let payload = PostPublished { post_id: post_id.clone(), author_id: author_id.clone() };
    check_event(Payload::PostPublished(payload));
    check_event(Payload::PostDeleted(PostDeleted { post_id, author_id }));
}

#[test]
fn events_of_reactions() {
    let (post_id, player_id): (PostId, _) = ("post-1".parse().unwrap(), player_id(1));
    let added = ReactionAdded { post_id: post_id.clone(), player_id: player_id.clone(), kind: ReactionKind::Applause };
    check_event(Payload::ReactionAdded(added));
    check_event(Payload::ReactionRemoved(ReactionRemoved { post_id, player_id }));
}

#[test]
fn events_of_follows() {
    let (follower_id, followed_id) = (player_id(1), player_id(2));
    let started = FollowStarted { follower_id: follower_id.clone(), followed_id: followed_id.clone() };
    check_event(Payload::FollowStarted(started));
    check_event(Payload::FollowEnded(FollowEnded { follower_id, followed_id }));
}

#[test]
fn events_of_notifications() {
    let (post_id, author_id, player): (PostId, _, _) = ("post-1".parse().unwrap(), player_id(1), player_id(2));
    let advanced = FanOutAdvanced { post_id: post_id.clone(), author_id: author_id.clone(), range: 3 };
    check_event(Payload::FanOutAdvanced(advanced));
    let cause = NotificationCause::Reaction { post_id, player_id: player };
    let notification_id = NotificationId::derived("n");
    let requested = NotificationRequested { notification_id, recipient_id: author_id, cause };
    check_event(Payload::NotificationRequested(requested));
}

#[test]
fn a_canary() {
    check_event(Payload::CanarySent(CanarySent {}));
}

#[test]
fn a_notification_that_is_asked_for_and_one_in_an_inbox() {
    let started = FollowStarted { follower_id: player_id(1), followed_id: player_id(2) };
    check("notification_requested.txt", &first(Consumer::FanOut, FanOut, Payload::FollowStarted(started)));
    let cause = NotificationCause::Follow { follower_id: player_id(1) };
    let notification_id = NotificationId::derived("n");
    let requested = NotificationRequested { notification_id, recipient_id: player_id(2), cause };
    let event = sample::event(7, "aggregate", 1, Payload::NotificationRequested(requested));
    let mut state = absent(Inbox.needs(&event));
    let follow = Follow { followed_id: player_id(2), follower_id: player_id(1), since: Some(now()) };
    let attributes = serde_json::to_value(&follow).unwrap().as_object().cloned();
    state.insert(Follow::key(&player_id(2), &player_id(1)), Row { version: 3, attributes });
    check("inbox_row.txt", &plan(Consumer::NotificationRequested, Inbox.decide(&event, &state).unwrap()));
}

#[test]
fn a_fan_out_that_begins() {
    let (post_id, author_id): (PostId, _) = ("post-1".parse().unwrap(), player_id(1));
    let published = PostPublished { post_id: post_id.clone(), author_id: author_id.clone() };
    let event = sample::event(7, "post-1", 1, Payload::PostPublished(published));
    let mut state = absent(FanOut.needs(&event));
    let text = Some("Hello".parse().unwrap());
    let post = Post { post_id: post_id.clone(), author_id, published_at: now(), text };
    let attributes = serde_json::to_value(&post).unwrap().as_object().cloned();
    state.insert(Post::key(&post_id), Row { version: 1, attributes });
    check("fan_out_begun.txt", &plan(Consumer::FanOut, FanOut.decide(&event, &state).unwrap()));
}

/// What a decider makes of an event whose needs are all absent.
fn first<D: Decider>(consumer: Consumer, decider: D, payload: Payload) -> String {
    let event = sample::event(7, "aggregate", 3, payload);
    let state = absent(decider.needs(&event));
    plan(consumer, decider.decide(&event, &state).unwrap())
}

#[test]
fn a_post_a_reaction_and_a_follow_that_are_counted() {
    let (post_id, player): (PostId, _) = ("post-1".parse().unwrap(), player_id(1));
    let published = PostPublished { post_id: post_id.clone(), author_id: player.clone() };
    check("post_counted.txt", &first(Consumer::PostChanged, PostCounts, Payload::PostPublished(published)));
    let added = ReactionAdded { post_id, player_id: player.clone(), kind: ReactionKind::Like };
    check("reaction_counted.txt", &first(Consumer::ReactionChanged, ReactionCounts, Payload::ReactionAdded(added)));
    let started = FollowStarted { follower_id: player, followed_id: player_id(2) };
    check("follow_counted.txt", &first(Consumer::FollowChanged, FollowGraph, Payload::FollowStarted(started)));
}

#[test]
fn a_day_s_counts_of_a_game() {
    let decision = EventCounts.decide(&event(), &State::default()).unwrap();
    check("day_events.txt", &plan(Consumer::Activity, decision));
    let state = absent(ActivePlayers.needs(&event()));
    check("day_players.txt", &plan(Consumer::ActivePlayers, ActivePlayers.decide(&event(), &state).unwrap()));
}

#[test]
fn every_event_type_has_a_golden_file() {
    for event_type in EventType::ALL {
        let name = format!("{event_type}.v{}.json", event_type.schema_version());
        assert!(Path::new(GOLDEN).join(&name).is_file(), "{name} is missing");
    }
}

#[test]
fn a_board_row_that_is_hidden() {
    let payload = PlayerRestricted { player_id: player_id(1), reason: "spam".parse().unwrap() };
    let event = sample::event(7, player_id(1).as_str(), 4, Payload::PlayerRestricted(payload));
    let mut state = absent(PlayerOnBoards.needs(&event));
    let (key, mut record) = player_record(1);
    record.insert("restriction".to_owned(), json!({"reason": "spam", "since": now()}));
    state.insert(key, Row { version: 4, attributes: Some(record) });
    let key = domain::leaderboard::BoardRow::key(TimeControl::Blitz, &player_id(1));
    state.insert(key, Row { version: 8, attributes: row(1, 1_500, 1203).as_object().cloned() });
    check("board_row_hidden.txt", &plan(Consumer::PlayerChanged, PlayerOnBoards.decide(&event, &state).unwrap()));
}

/// A row of the blitz board.
fn row(number: u32, rating: u16, games: u64) -> Value {
    json!({
        "player_id": player_id(number), "username": "Old Name", "player_version": 1, "rating": rating, "games": games,
        "order_block": "BOARD#blitz#23", "order_rank": format!("{rating:04}#{}", player_id(number)),
    })
}

#[test]
fn a_board_row_that_is_created() {
    let mut state = absent_rows();
    for number in [1, 2] {
        let (key, attributes) = player_record(number);
        state.insert(key, Row { version: 3, attributes: Some(attributes) });
    }
    check("board_row_created.txt", &plan(Consumer::GameEnded, Leaderboard.decide(&event(), &state).unwrap()));
}

#[test]
fn a_board_row_that_moves_to_another_block() {
    let mut state = absent_rows();
    for (number, rating, games) in [(1, 1_500, 1203), (2, 1_500, 30)] {
        let key = domain::leaderboard::BoardRow::key(TimeControl::Blitz, &player_id(number));
        let attributes = row(number, rating, games).as_object().cloned();
        state.insert(key, Row { version: 8, attributes });
    }
    check("board_row_moved.txt", &plan(Consumer::GameEnded, Leaderboard.decide(&event(), &state).unwrap()));
}

#[test]
fn statistics_of_a_game() {
    let decision = Statistics.decide(&event(), &State::default()).unwrap();
    check("statistics.txt", &plan(Consumer::GameEndedStatistics, decision));
}

#[test]
fn source_records() {
    let (player_key, player) = player_record(1);
    let rating = PlayerRating {
        player_id: player_id(1),
        time_control: TimeControl::Blitz,
        rating: Rating::try_from(1_512).unwrap(),
        games: 1204,
    };
    let rating_key: Key = PlayerRating::key(&player_id(1), TimeControl::Blitz);
    let restricted = Player {
        player_id: player_id(2),
        username: "New Name".parse().unwrap(),
        registered_as: Some(sample::username(2)),
        restriction: Some(Restriction { reason: "spam".parse().unwrap(), since: now() }),
    };
    let post_id: PostId = "post-1".parse().unwrap();
    let text = Some("Hello".parse().unwrap());
    let post = Post { post_id: post_id.clone(), author_id: player_id(1), published_at: now(), text };
    let reaction = Reaction { post_id: post_id.clone(), player_id: player_id(2), kind: Some(ReactionKind::Love) };
    let follow = Follow { followed_id: player_id(1), follower_id: player_id(2), since: Some(now()) };
    let shapes = BTreeMap::from([
        (Post::key(&post_id).to_string(), serde_json::to_value(&post).unwrap()),
        (Reaction::key(&post_id, &player_id(2)).to_string(), serde_json::to_value(&reaction).unwrap()),
        (Follow::key(&player_id(1), &player_id(2)).to_string(), serde_json::to_value(&follow).unwrap()),
        (player_key.to_string(), Value::Object(player)),
        (Player::key(&player_id(2)).to_string(), serde_json::to_value(&restricted).unwrap()),
        (rating_key.to_string(), serde_json::to_value(&rating).unwrap()),
    ]);
    check("source_records.json", &pretty(&json!(shapes)));
}
