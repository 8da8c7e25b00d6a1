//! A redrive: nothing is lost wherever it ends, and nothing is moved that was not meant.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use events::{Consumer, OrderEvent, OrderPaid};
use operations::dead_letters::{Ending, Mode, Redrive, Selection, Source};
use operations::progress::Unwatched;
use operations::stop::Stop;
use queue::SendRequest;
use testkit::sample::{game_ended, order_event};
use tokio::time::Instant;

use crate::world::{Event, Table, World, plan, redrive};

const STANDARD: Source = Source::Consumer(Consumer::GameEnded);
const FIFO: Source = Source::Consumer(Consumer::OrderChanged);
/// Long after everything that was received is visible again.
const LATER: Duration = Duration::from_secs(3_600);

/// A world with dead letters, and the bodies of those that a redrive of games is about and of the others.
struct Scene {
    world: World,
    source: Source,
    selection: Selection,
    meant: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Scene {
    fn dead_letters(&self) -> String {
        self.source.queue_name()
    }

    fn queue(&self) -> &'static str {
        match self.source {
            Source::Consumer(consumer) => consumer.queue_name(),
            Source::Relay => unreachable!("a scene is about a consumer"),
        }
    }

    /// 23 games, and 14 letters that cannot be read in between.
    fn standard() -> Self {
        let world = World::new(&["game-ended", "game-ended-dead-letters"]);
        let (mut meant, mut others) = (BTreeSet::new(), BTreeSet::new());
        for number in 0..37 {
            let game = game_ended(number, (1, 1512, 1204), (2, 1488, 31)).encode();
            let (bodies, body) =
                if number % 5 < 3 { (&mut meant, game) } else { (&mut others, format!("no event {number}")) };
            world.send("game-ended-dead-letters", SendRequest::from_body(body.clone()));
            bodies.insert(body);
        }
        let event_types = BTreeSet::from(["game_ended".to_owned()]);
        let selection = Selection { event_types, ..Selection::default() };
        Self { world, source: STANDARD, selection, meant, others }
    }

    /// 33 payments of three orders, which are all meant.
    fn fifo() -> Self {
        let world = World::new(&["order-changed.fifo", "order-changed-dead-letters.fifo"]);
        let mut meant = BTreeSet::new();
        for number in 0..33 {
            let paid = OrderEvent::Paid(OrderPaid { amount_cents: 1 });
            let event = order_event(number % 3, u64::from(number / 3 + 2), paid);
            let body = event.encode();
            let request = SendRequest {
                group_id: Some(event.aggregate_id.clone()),
                deduplication_id: Some(event.event_id.to_string()),
                ..SendRequest::from_body(body.clone())
            };
            // The queue knows the message's own deduplication id, as it does within five minutes.
            world.send("order-changed.fifo", request.clone());
            world.send("order-changed-dead-letters.fifo", request);
            meant.insert(body);
        }
        world.drain("order-changed.fifo");
        Self { world, source: FIFO, selection: Selection::default(), meant, others: BTreeSet::new() }
    }
}

/// Ends the world at every call of a redrive in turn, starts another redrive, and looks where the letters are.
async fn check_every_end(scene: fn() -> Scene, event: fn() -> Event) {
    for call in 0.. {
        let scene = scene();
        let (_wish, stop) = Stop::new();
        scene.world.at_call(call, event());
        let first = redrive(&scene.world, scene.source, &scene.selection, &stop).await;
        scene.world.later(LATER);
        let twice = redrive(&scene.world, scene.source, &scene.selection, &stop).await.unwrap();
        assert!(twice.is_done(), "call {call}: {twice}");

        let there = scene.world.drain(scene.queue());
        assert_eq!(there.iter().cloned().collect::<BTreeSet<_>>(), scene.meant, "call {call}");
        assert!(there.len() <= scene.meant.len() + 10, "call {call}: one batch can be there twice");
        let here = scene.world.drain(&scene.dead_letters());
        assert_eq!(here.len(), scene.others.len(), "call {call}");
        assert_eq!(here.into_iter().collect::<BTreeSet<_>>(), scene.others, "call {call}");
        if first.is_ok() {
            assert!(call > 8, "the redrive makes more calls than {call}");
            return;
        }
    }
}

#[tokio::test]
async fn nothing_is_lost_when_it_dies_before_any_call() {
    check_every_end(Scene::standard, || Event::DiesBefore).await;
    check_every_end(Scene::fifo, || Event::DiesBefore).await;
}

#[tokio::test]
async fn nothing_is_lost_when_it_dies_after_any_call() {
    check_every_end(Scene::standard, || Event::DiesAfter).await;
    check_every_end(Scene::fifo, || Event::DiesAfter).await;
}

/// Wants to stop at every call in turn: what is begun is finished, and everything else can be received at once.
async fn check_every_stop(scene: fn() -> Scene) {
    for call in 0.. {
        let scene = scene();
        let (wish, stop) = Stop::new();
        scene.world.at_call(call, Event::Stops(wish));
        let report = redrive(&scene.world, scene.source, &scene.selection, &stop).await.unwrap();

        let all = scene.meant.len() + scene.others.len();
        let there = scene.world.drain(scene.queue());
        assert_eq!(there.len() as u64, report.sent, "call {call}");
        assert_eq!(scene.world.counts(&scene.dead_letters()), (all - there.len(), all - there.len()), "call {call}");
        let here = scene.world.drain(&scene.dead_letters());
        let both: BTreeSet<String> = there.into_iter().chain(here).collect();
        assert_eq!(both.len(), all, "call {call}: each is in one place");
        if report.ending == Ending::Complete {
            return;
        }
    }
}

#[tokio::test]
async fn who_stops_leaves_every_letter_in_one_place_and_visible() {
    check_every_stop(Scene::standard).await;
    check_every_stop(Scene::fifo).await;
}

#[tokio::test]
async fn the_order_of_a_group_stays_and_its_old_deduplication_ids_do_not_matter() {
    let scene = Scene::fifo();
    let report = redrive(&scene.world, FIFO, &scene.selection, &Stop::new().1).await.unwrap();
    assert_eq!((report.before, report.sent, report.after), (33, 33, 0));
    let versions: Vec<(String, u64)> = scene
        .world
        .drain("order-changed.fifo")
        .iter()
        .map(|body| events::Event::decode(body.as_bytes()).unwrap())
        .map(|event| (event.aggregate_id, event.version))
        .collect();
    for order in 0..3 {
        let order = format!("order-{order:05}");
        let own: Vec<u64> = versions.iter().filter(|(id, _)| *id == order).map(|(_, version)| *version).collect();
        assert_eq!(own, (2..13).collect::<Vec<_>>(), "{order}");
    }
}

#[tokio::test]
async fn a_dry_run_moves_nothing_and_gives_everything_back() {
    let scene = Scene::standard();
    let (records, (_wish, stop)) = (Table::default(), Stop::new());
    let dry_run = Redrive { mode: Mode::DryRun, ..plan(&scene.world, &scene.selection, &records, &stop) };
    let report = dry_run.run(STANDARD, &Unwatched).await.unwrap();
    assert_eq!((report.seen, report.selected, report.sent, report.after), (37, 23, 0, 37));
    assert!(report.is_done());
    assert_eq!(scene.world.counts("game-ended-dead-letters"), (37, 37));
    assert_eq!(scene.world.counts("game-ended"), (0, 0));
}

#[tokio::test]
async fn what_a_queue_does_not_take_stays_and_is_named() {
    let scene = Scene::standard();
    let big = game_ended(99, (1, 1512, 1204), (2, 1488, 31))
        .encode()
        .replace(r#""version":"#, &format!(r#"{:2000}"version":"#, ""));
    scene.world.send("game-ended-dead-letters", SendRequest::from_body(big.clone()));
    scene.world.set_attribute("game-ended", "MaximumMessageSize", "1024");
    let report = redrive(&scene.world, STANDARD, &scene.selection, &Stop::new().1).await.unwrap();
    assert_eq!((report.selected, report.sent, report.failed, report.after), (24, 23, 1, 15));
    assert!(!report.is_done());
    assert_eq!(report.failures.len(), 1, "{report}");
    assert!(scene.world.drain("game-ended-dead-letters").contains(&big));
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_kept() {
    let scene = Scene::standard();
    let started = Instant::now();
    let (records, (_wish, stop)) = (Table::default(), Stop::new());
    let slow = Redrive { rate: NonZeroU32::new(5), ..plan(&scene.world, &scene.selection, &records, &stop) };
    let report = slow.run(STANDARD, &Unwatched).await.unwrap();
    assert_eq!(report.sent, 23);
    // 23 messages have 22 pauses of 200 ms between them, of which those behind the last batch need not pass.
    let taken = started.elapsed();
    assert!((Duration::from_millis(3_600)..=Duration::from_millis(4_600)).contains(&taken), "{taken:?}");
}

#[tokio::test]
async fn letters_of_a_group_behind_those_that_stay_are_said_not_to_be_seen() {
    let scene = Scene::fifo();
    let nothing = Selection { reason: Some("no such reason".to_owned()), ..Selection::default() };
    let report = redrive(&scene.world, FIFO, &nothing, &Stop::new().1).await.unwrap();
    assert_eq!((report.selected, report.sent, report.after), (0, 0, 33));
    assert!(report.seen < 33, "a group shows no further messages while some of its are away");
    assert!(report.to_string().contains("behind others of their group"), "{report}");
    assert_eq!(scene.world.counts("order-changed-dead-letters.fifo").1, 33);
}

#[tokio::test]
async fn very_many_letters_go_through() {
    let world = World::new(&["game-ended", "game-ended-dead-letters"]);
    for number in 0..20_000 {
        world.send("game-ended-dead-letters", SendRequest::from_body(format!("letter {number}")));
    }
    let report = redrive(&world, STANDARD, &Selection::default(), &Stop::new().1).await.unwrap();
    assert_eq!((report.before, report.sent, report.after), (20_000, 20_000, 0));
    assert_eq!(world.counts("game-ended"), (20_000, 20_000));
}
