//! FIFO message groups: what goes back takes the rest of its group with it, and nobody goes to the dead letters for another.

use std::time::Duration;

use consumer::{Delivery, HOLDS_MAX, WAIT};
use domain::{Decision, Guard, State, Versions};
use events::Event;
use testkit::Fault;
use testkit::sample::game_ended;

use crate::support::{
    Fake, TestDriver, add, apply, blind, deadline, delivery, driver, names, need, outcomes, replace, row_number, stored,
};

fn game(number: u32) -> Event {
    game_ended(number, (1, 1500, 1), (2, 1500, 1))
}

fn grouped(position: usize, group: &str, event: &Event) -> Delivery {
    Delivery { group: Some(group.to_owned()), ..delivery(position, event.encode()) }
}

/// A batch of games with their groups, in the order of the queue.
fn batch(games: &[(u32, &str)]) -> Vec<Delivery> {
    games.iter().enumerate().map(|(position, (number, group))| grouped(position, group, &game(*number))).collect()
}

/// Writes down the order of what is done, and fails for game 1.
fn failing(decision: fn() -> Decision) -> TestDriver<impl domain::Decider> {
    driver(Fake {
        needs: |event: &Event| vec![need(&event.aggregate_id), need("done")],
        decide: move |event: &Event, state: &State| {
            if event.aggregate_id == "game-00001" {
                return decision();
            }
            let (version, done) = row_number(state, "done");
            let number: u64 = event.aggregate_id[5..].parse().unwrap();
            apply(vec![replace("done", done.unwrap_or(0) * 10 + number, Guard::Unchanged(version))])
        },
    })
}

fn never() -> Decision {
    panic!("not today")
}

#[tokio::test]
async fn a_failure_returns_the_rest_of_its_group_and_other_groups_go_on() {
    let driver = failing(never);
    let report = driver.handle(&batch(&[(2, "a"), (1, "a"), (3, "b"), (4, "a"), (5, "b")]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["applied", "retry", "applied", "retry", "applied"]);
    let reason = report.records[3].outcome.reason().unwrap();
    assert_eq!(reason, "behind message message-1 of its group");
    assert_eq!(stored(&driver.ledger, "done"), Some(235));
    let changes = driver.visibility.take();
    assert_eq!(changes.len(), 2);
    assert_eq!(changes[0].timeout, changes[1].timeout, "the group comes back as one");
}

#[tokio::test]
async fn a_wait_returns_the_rest_of_its_group_for_as_long() {
    let driver = failing(|| Decision::Wait {
        missing: Versions::run(1, 1),
        writes: vec![replace("note", 1, Guard::Unchanged(0))],
        checks: Vec::new(),
    });
    let report = driver.handle(&batch(&[(1, "a"), (4, "a"), (3, "b")]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["waiting", "retry", "applied"]);
    assert_eq!(stored(&driver.ledger, "note"), Some(1));
    let timeouts: Vec<Duration> = driver.visibility.take().into_iter().map(|change| change.timeout).collect();
    assert_eq!(timeouts, [WAIT, WAIT]);
}

#[tokio::test]
async fn a_group_is_decided_in_the_order_of_its_queue() {
    let driver = failing(never);
    let report = driver.handle(&batch(&[(4, "a"), (2, "a"), (3, "a")]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["applied"; 3]);
    assert_eq!(stored(&driver.ledger, "done"), Some(423));
    assert_eq!(driver.ledger.commits(), 1);
}

#[tokio::test]
async fn a_record_that_is_not_committed_lets_no_later_one_of_its_group_pass() {
    // They write different rows, and the ledger takes one of them only.
    let driver = driver(blind(|event: &Event| apply(vec![replace(&event.aggregate_id, 1, Guard::Newer(1))])));
    for _ in 0..7 {
        driver.ledger.inject(Fault::Throttled);
    }
    let report = driver.handle(&batch(&[(2, "a"), (3, "a")]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["retry", "retry"]);
    assert_eq!(driver.ledger.rows().len(), 0);
}

#[tokio::test]
async fn a_rejected_record_holds_nobody() {
    let driver = failing(|| Decision::Reject("never".to_owned()));
    let mut deliveries = batch(&[(1, "a"), (2, "a"), (3, "a")]);
    deliveries[1].body = b"no event".to_vec();
    let report = driver.handle(&deliveries, deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["rejected", "rejected", "applied"]);
    let timeouts: Vec<Duration> = driver.visibility.take().into_iter().map(|change| change.timeout).collect();
    assert_eq!(timeouts, [Duration::ZERO, Duration::ZERO]);
}

#[tokio::test]
async fn a_body_of_a_newer_schema_holds_its_group_as_any_failure_does() {
    let driver = driver(crate::support::counting());
    let mut deliveries = batch(&[(1, "a"), (2, "a"), (3, "b")]);
    deliveries[0].body = game(1).encode().replace("\"schema_version\":1", "\"schema_version\":99").into_bytes();
    let report = driver.handle(&deliveries, deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["retry", "retry", "applied"]);
}

/// A queue with `maxReceiveCount` 20 that hands out a group from its head, ten messages a receive. Returns what is done and
/// what ends as a dead letter, each with the number of its receives.
async fn delivered<D: domain::Decider>(
    driver: &TestDriver<D>,
    arrivals: &[(u32, u32)],
) -> (Vec<(u32, u32)>, Vec<(u32, u32)>) {
    const RECEIVES_MAX: u32 = 20;
    let (mut queue, mut done, mut dead): (Vec<(u32, u32)>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..200 {
        queue.extend(arrivals.iter().filter(|(_, arrives)| *arrives == round).map(|(number, _)| (*number, 0)));
        dead.extend(queue.extract_if(.., |(_, receives)| *receives == RECEIVES_MAX));
        let received = queue.len().min(10);
        queue[..received].iter_mut().for_each(|(_, receives)| *receives += 1);
        let batch = queue[..received].iter().enumerate().map(|(position, (number, receives))| Delivery {
            receive_count: *receives,
            ..grouped(position, "a", &game(*number))
        });
        let report = driver.handle(&batch.collect::<Vec<_>>(), deadline()).await;
        let mut outcomes = outcomes(&report).into_iter();
        done.extend(queue.extract_if(..received, |_| outcomes.next().unwrap().acknowledges()));
    }
    assert_eq!(queue, []);
    (done, dead)
}

#[tokio::test]
async fn healthy_records_never_become_dead_letters_because_of_a_poisonous_one() {
    let poisonous = [1, 5, 9];
    let decider = || {
        blind(move |event: &Event| {
            let number: u32 = event.aggregate_id[5..].parse().unwrap();
            assert!(!poisonous.contains(&number), "game {number} is cursed");
            apply(vec![add("count", 1)])
        })
    };
    // All at once; one by one; a second poison that comes late, in front of healthy ones.
    let at_once: Vec<(u32, u32)> = (1..=16).map(|number| (number, 0)).collect();
    let one_by_one: Vec<(u32, u32)> = (1..=16).map(|number| (number, number)).collect();
    let late: Vec<(u32, u32)> = (1..=16).map(|number| (number, if number < 5 { 0 } else { 9 })).collect();
    for arrivals in [at_once, one_by_one, late] {
        let driver = driver(decider());
        let (done, dead) = delivered(&driver, &arrivals).await;
        assert_eq!(dead.iter().map(|(number, _)| *number).collect::<Vec<_>>(), poisonous, "{arrivals:?}");
        assert_eq!(done.len(), 13, "{arrivals:?}");
        assert!(done.iter().all(|(_, receives)| *receives <= HOLDS_MAX), "{done:?}");
        assert_eq!(stored(&driver.ledger, "count"), Some(13));
    }
}
