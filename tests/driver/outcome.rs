//! How a record ends: reported failures, visibility, deadlines, panics.

use std::time::Duration;

use consumer::{Clock, Driver, Outcome, Visibility, VisibilityChange, VisibilityError};
use domain::Decision;
use events::{Consumer, Event};
use testkit::sample::{game_ended, now};
use testkit::{ManualEnvironment, MemoryLedger};

use crate::support::{add, apply, blind, counting, deadline, deliveries, driver, handle, names, outcomes, stored};

fn game(number: u32) -> Event {
    game_ended(number, (1, 1500, 1), (2, 1500, 1))
}

/// Decides by the number of the game.
fn by_number(decide: impl Fn(u32) -> Decision + Send + Sync) -> impl domain::Decider {
    blind(move |event: &Event| decide(event.aggregate_id[5..].parse().unwrap()))
}

#[tokio::test]
async fn only_what_is_not_done_is_reported() {
    let driver = driver(by_number(|number| match number {
        1 => Decision::Stale,
        2 => Decision::Ignore("deleted".to_owned()),
        3 => Decision::Reject("never".to_owned()),
        _ => apply(vec![add("count", 1)]),
    }));
    let report = driver.handle(&deliveries(&[game(1), game(2), game(3), game(4)]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["stale", "ignored", "rejected", "applied"]);
    assert_eq!(report.failures().map(|id| id.as_str()).collect::<Vec<_>>(), ["message-2"]);
}

#[tokio::test]
async fn a_batch_of_failures_is_reported_whole() {
    let driver = driver(blind(|_| Decision::Reject("never".to_owned())));
    let report = driver.handle(&deliveries(&[game(1), game(2), game(3)]), deadline()).await;
    assert_eq!(report.failures().count(), 3);
}

#[tokio::test]
async fn an_empty_batch_has_no_outcomes() {
    let report = driver(counting()).handle(&[], deadline()).await;
    assert_eq!(report.records, []);
}

#[tokio::test]
async fn a_rejected_record_becomes_visible_at_once() {
    let driver = driver(blind(|_| Decision::Reject("never".to_owned())));
    handle(&driver, &[game(1)]).await;
    let change = VisibilityChange { receipt_handle: "receipt-0".to_owned(), timeout: Duration::ZERO };
    assert_eq!(driver.visibility.take(), [change]);
}

#[tokio::test]
async fn a_retried_record_is_hidden_longer_each_time_up_to_a_quarter_of_an_hour() {
    let driver = driver(blind(|_| -> Decision { panic!("not today") }));
    for (receive_count, limit) in [(1, 2), (4, 16), (9, 512), (10, 900), (20, 900), (u32::MAX, 900)] {
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            let mut batch = deliveries(&[game(1)]);
            batch[0].receive_count = receive_count;
            driver.handle(&batch, driver.environment.now() + Duration::from_secs(60)).await;
            let timeout = driver.visibility.take()[0].timeout;
            assert!(timeout <= Duration::from_secs(limit), "{receive_count}: {timeout:?}");
            longest = longest.max(timeout);
        }
        assert!(longest >= Duration::from_secs(limit) / 2, "{receive_count}: {longest:?}");
    }
}

#[tokio::test]
async fn a_done_record_and_one_without_a_receipt_handle_keep_their_visibility() {
    let driver = driver(by_number(|number| match number {
        1 => apply(vec![add("count", 1)]),
        _ => Decision::Reject("never".to_owned()),
    }));
    let mut batch = deliveries(&[game(1), game(2)]);
    batch[1].receipt_handle = None;
    let report = driver.handle(&batch, deadline()).await;
    assert_eq!(report.failures().count(), 1);
    assert_eq!(driver.visibility.take(), []);
}

#[tokio::test]
async fn a_queue_that_does_not_change_visibility_changes_no_outcome() {
    struct Refusing;
    impl Visibility for Refusing {
        async fn change(&self, changes: Vec<VisibilityChange>) -> Result<(), VisibilityError> {
            Err(VisibilityError { failed: changes.len(), source: "no such queue".into() })
        }
    }
    let driver = Driver {
        consumer: Consumer::GameEnded,
        decider: blind(|_| Decision::Reject("never".to_owned())),
        ledger: MemoryLedger::default(),
        environment: ManualEnvironment::new(now(), 1),
        visibility: Refusing,
    };
    let report = driver.handle(&deliveries(&[game(1)]), deadline()).await;
    assert_eq!(report.records[0].outcome, Outcome::Rejected("never".to_owned()));
}

#[tokio::test]
async fn what_cannot_start_before_the_deadline_goes_back() {
    let driver = driver(counting());
    let report = driver.handle(&deliveries(&[game(1)]), now() + Duration::from_millis(900)).await;
    assert_eq!(names(&outcomes(&report)), ["retry"]);
    assert_eq!(driver.visibility.take().len(), 1, "also what was never started is hidden for a while");
}

#[tokio::test]
async fn a_deadline_half_way_keeps_what_was_committed() {
    let environment = std::sync::Arc::new(ManualEnvironment::new(now(), 1));
    struct Ticking(std::sync::Arc<ManualEnvironment>);
    impl consumer::Clock for Ticking {
        fn now(&self) -> events::Timestamp {
            self.0.now()
        }
        async fn sleep(&self, duration: Duration) {
            self.0.sleep(duration).await;
        }
    }
    impl consumer::Random for Ticking {
        fn bits(&self) -> u64 {
            self.0.bits()
        }
    }
    let clock = environment.clone();
    let driver = Driver {
        consumer: Consumer::GameEnded,
        // Each decision takes ten milliseconds: the second thousand does not begin.
        decider: blind(move |_| {
            clock.advance(Duration::from_millis(10));
            apply(vec![add("count", 1)])
        }),
        ledger: MemoryLedger::default(),
        environment: Ticking(environment),
        visibility: testkit::RecordedVisibility::default(),
    };
    let events: Vec<Event> = (1..=1_500).map(game).collect();
    let report = driver.handle(&deliveries(&events), now() + Duration::from_millis(10_900)).await;
    let applied = outcomes(&report).iter().filter(|outcome| **outcome == Outcome::Applied).count();
    assert_eq!((applied, report.failures().count()), (1_000, 500));
    assert_eq!(stored(&driver.ledger, "count"), Some(1_000));
}

#[tokio::test]
async fn one_records_panic_is_one_records_failure() {
    let driver = driver(by_number(|number| match number {
        2 => panic!("number {number} is cursed"),
        _ => apply(vec![add("count", 1)]),
    }));
    let outcomes = handle(&driver, &[game(1), game(2), game(3)]).await;
    assert_eq!(names(&outcomes), ["applied", "retry", "applied"]);
    assert!(outcomes[1].reason().unwrap().contains("number 2 is cursed"), "{outcomes:?}");
}

#[tokio::test]
async fn a_panic_in_needs_is_one_records_failure() {
    struct Panicking;
    impl domain::Decider for Panicking {
        fn needs(&self, _: &Event) -> Vec<domain::Need> {
            panic!("no needs")
        }
        fn decide(&self, _: &Event, _: &domain::State) -> Result<Decision, domain::RowError> {
            Ok(Decision::Stale)
        }
    }
    assert_eq!(names(&handle(&driver(Panicking), &[game(1)]).await), ["retry"]);
}

#[tokio::test]
async fn nothing_is_left_over_for_the_next_invocation() {
    let driver = driver(crate::support::Fake {
        needs: |_: &Event| vec![crate::support::need("row")],
        decide: |_: &Event, state: &domain::State| {
            let (version, number) = crate::support::row_number(state, "row");
            apply(vec![crate::support::replace("row", number.unwrap_or(0) + 1, domain::Guard::Unchanged(version))])
        },
    });
    handle(&driver, &[game(1), game(2)]).await;
    driver.ledger.put(crate::support::key("row"), crate::support::numbered(100));
    handle(&driver, &[game(3)]).await;
    assert_eq!(stored(&driver.ledger, "row"), Some(101));
}
