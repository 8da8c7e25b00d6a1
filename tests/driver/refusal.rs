//! A refusal is read reason by reason, and after it no decision of its transaction survives.

use std::sync::Arc;

use consumer::Clock;
use domain::{Check, Decision, Guard, State, Write};
use events::Event;
use testkit::sample::{game_ended, now};
use testkit::{Fault, MemoryLedger};

use crate::support::{
    Fake, Once, TestDriver, add, apply, blind, counting, deadline, deliveries, driver, handle, key, names, need,
    numbered, outcomes, replace, row_number, sharing, stored,
};

fn game(number: u32) -> Event {
    game_ended(number, (1, 1500, 1), (2, 1500, 1))
}

#[tokio::test]
async fn a_row_that_is_created_again_is_not_shown_as_changed_to_those_that_follow() {
    // The first event creates a row; the second one goes on from the row of exactly that version.
    let decider = Fake {
        needs: |event: &Event| if event.version == 1 { Vec::new() } else { vec![need("a")] },
        decide: |event: &Event, state: &State| match event.version {
            1 => apply(vec![Write::Create { key: key("a"), attributes: numbered(1) }]),
            _ if row_number(state, "a") == (1, Some(1)) => apply(vec![replace("a", 2, Guard::Unchanged(1))]),
            _ => Decision::Stale,
        },
    };
    let driver = driver(decider);
    let (first, mut second) = (game(1), game(2));
    second.aggregate_id = first.aggregate_id.clone();
    second.version = 2;
    assert_eq!(names(&handle(&driver, std::slice::from_ref(&first)).await), ["applied"]);
    // Sent again after an answer that says nothing, a creation alone would take the row for its own work.
    driver.ledger.inject(Fault::Throttled);
    assert_eq!(names(&handle(&driver, &[first, second]).await), ["duplicate", "applied"]);
    assert_eq!(stored(&driver.ledger, "a"), Some(2));
}

#[tokio::test]
async fn an_existing_claim_makes_its_record_a_duplicate_and_no_other() {
    let driver = driver(counting());
    handle(&driver, &[game(1), game(2)]).await;
    assert_eq!(
        names(&handle(&driver, &[game(1), game(3), game(2), game(4)]).await),
        ["duplicate", "applied", "duplicate", "applied"]
    );
    assert_eq!(stored(&driver.ledger, "count"), Some(4));
}

#[tokio::test]
async fn creating_what_exists_is_a_duplicate() {
    let create = || Write::Create { key: key("notification"), attributes: numbered(1) };
    let driver = driver(blind(move |_| apply(vec![create(), add("count", 1)])));
    assert_eq!(names(&handle(&driver, &[game(1)]).await), ["applied"]);
    assert_eq!(names(&handle(&driver, &[game(1)]).await), ["duplicate"]);
    assert_eq!(stored(&driver.ledger, "count"), Some(1));
}

#[tokio::test]
async fn an_older_source_version_is_stale_even_unread() {
    let decider = || {
        blind(|event: &Event| {
            let number: u64 = event.aggregate_id[5..].parse().unwrap();
            apply(vec![replace("row", number, Guard::Newer(number)), replace(&event.aggregate_id, 1, Guard::Newer(1))])
        })
    };
    let driver = driver(decider());
    assert_eq!(names(&handle(&driver, &[game(5)]).await), ["applied"]);
    // The row that is not superseded is written all the same.
    assert_eq!(names(&handle(&driver, &[game(3)]).await), ["applied"]);
    assert_eq!((stored(&driver.ledger, "row"), stored(&driver.ledger, "game-00003")), (Some(5), Some(1)));
    assert_eq!(names(&handle(&driver, &[game(3)]).await), ["stale"]);
    let lone = TestDriver {
        ledger: MemoryLedger::default(),
        ..crate::support::driver(blind(|event: &Event| {
            let number: u64 = event.aggregate_id[5..].parse().unwrap();
            apply(vec![replace("row", number, Guard::Newer(number))])
        }))
    };
    assert_eq!(names(&handle(&lone, &[game(5)]).await), ["applied"]);
    assert_eq!(names(&handle(&lone, &[game(4)]).await), ["stale"]);
}

#[tokio::test]
async fn two_source_versions_in_a_batch_end_at_the_newer_in_either_order() {
    for numbers in [[5, 6], [6, 5]] {
        let driver = driver(blind(move |event: &Event| {
            let position = usize::from(event.aggregate_id == "game-00002");
            apply(vec![
                replace("row", numbers[position], Guard::Newer(numbers[position])),
                replace("x", 1, Guard::Newer(1)),
            ])
        }));
        let outcomes = handle(&driver, &[game(1), game(2)]).await;
        assert!(outcomes.iter().all(|outcome| outcome.acknowledges()), "{outcomes:?}");
        assert_eq!(stored(&driver.ledger, "row"), Some(6));
    }
}

#[tokio::test]
async fn a_second_writer_makes_the_whole_transaction_decide_again() {
    let ledger = Arc::new(MemoryLedger::default());
    let (other, once) = (ledger.clone(), Once::new());
    let driver = sharing(
        &ledger,
        Fake {
            needs: |event: &Event| vec![need("sum"), need(&event.aggregate_id)],
            decide: move |event: &Event, state: &State| {
                let (version, sum) = row_number(state, "sum");
                // Between read and write someone else adds a hundred.
                if once.first() {
                    other.put(key("sum"), numbered(sum.unwrap_or(0) + 100));
                }
                let own = row_number(state, &event.aggregate_id);
                if own.1.is_some() {
                    return Decision::Ignore("counted".to_owned());
                }
                apply(vec![
                    replace("sum", sum.unwrap_or(0) + 1, Guard::Unchanged(version)),
                    replace(&event.aggregate_id, 1, Guard::Unchanged(own.0)),
                ])
            },
        },
    );
    let report = driver.handle(&deliveries(&[game(1), game(2), game(3)]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["applied", "applied", "applied"]);
    assert_eq!(stored(&ledger, "sum"), Some(103));
}

#[tokio::test]
async fn what_was_decided_on_a_refused_overlay_is_decided_again() {
    // The second record finds nothing to do on what the first one decided. Another writer's row refuses the first, and it
    // then has nothing to say; so the second must.
    let ledger = Arc::new(MemoryLedger::default());
    let (other, once) = (ledger.clone(), Once::new());
    let driver = sharing(
        &ledger,
        Fake {
            needs: |_: &Event| vec![need("row")],
            decide: move |event: &Event, state: &State| {
                let (version, number) = row_number(state, "row");
                if once.first() {
                    other.put(key("row"), numbered(50));
                }
                match (event.aggregate_id.as_str(), number) {
                    ("game-00001", None) => apply(vec![replace("row", 1, Guard::Unchanged(version))]),
                    ("game-00001", Some(_)) => Decision::Reject("the row is taken".to_owned()),
                    (_, Some(1)) => Decision::Ignore("already so".to_owned()),
                    (_, _) => apply(vec![replace("row", 2, Guard::Unchanged(version))]),
                }
            },
        },
    );
    let report = driver.handle(&deliveries(&[game(1), game(2)]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["rejected", "applied"]);
    assert_eq!(stored(&ledger, "row"), Some(2));
}

#[tokio::test]
async fn what_was_decided_on_an_uncommitted_overlay_is_not_acknowledged() {
    let driver = driver(Fake {
        needs: |_: &Event| vec![need("row")],
        decide: |_: &Event, state: &State| match row_number(state, "row") {
            (version, None) => apply(vec![replace("row", 1, Guard::Unchanged(version)), add("count", 1)]),
            (_, Some(_)) => Decision::Stale,
        },
    });
    for _ in 0..8 {
        driver.ledger.inject(Fault::Throttled);
    }
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["retry", "retry"]);
    assert_eq!(stored(&driver.ledger, "row"), None);
}

#[tokio::test]
async fn a_check_that_no_longer_holds_is_decided_on_again() {
    let ledger = Arc::new(MemoryLedger::default());
    ledger.put(key("player"), numbered(0));
    let (other, once) = (ledger.clone(), Once::new());
    let driver = sharing(
        &ledger,
        Fake {
            needs: |_: &Event| vec![need("player")],
            decide: move |_: &Event, state: &State| {
                let (version, restricted) = row_number(state, "player");
                if once.first() {
                    other.put(key("player"), numbered(1));
                }
                if restricted == Some(1) {
                    return Decision::Reject("restricted".to_owned());
                }
                let checks = vec![Check { key: key("player"), version }];
                Decision::Apply { writes: vec![replace("effect", 1, Guard::Unchanged(0))], checks }
            },
        },
    );
    let report = driver.handle(&deliveries(&[game(1)]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["rejected"]);
    assert_eq!(stored(&ledger, "effect"), None);
}

#[tokio::test]
async fn a_record_that_is_always_refused_costs_its_companions_nothing() {
    let driver = driver(blind(|event| {
        // The fifth record always claims to have read a version that nobody has written.
        let version = if event.aggregate_id == "game-00005" { 77 } else { 0 };
        apply(vec![replace(&event.aggregate_id, 1, Guard::Unchanged(version)), add("count", 1)])
    }));
    let events: Vec<Event> = (1..=9).map(game).collect();
    let outcomes = handle(&driver, &events).await;
    let mut expected = ["applied"; 9];
    expected[4] = "retry";
    assert_eq!(names(&outcomes), expected);
    assert_eq!(stored(&driver.ledger, "count"), Some(8));
}

#[tokio::test]
async fn an_invalid_record_is_isolated_and_rejected() {
    let driver =
        driver(blind(|event| apply(vec![replace(&event.aggregate_id, 1, Guard::Unchanged(0)), add("count", 1)])));
    driver.ledger.call_invalid(key("game-00005"));
    let events: Vec<Event> = (1..=9).map(game).collect();
    let outcomes = handle(&driver, &events).await;
    let mut expected = ["applied"; 9];
    expected[4] = "rejected";
    assert_eq!(names(&outcomes), expected);
    assert_eq!(stored(&driver.ledger, "count"), Some(8));
}

#[tokio::test]
async fn the_same_request_is_sent_again_when_the_ledger_is_busy() {
    for fault in [Fault::Throttled, Fault::Conflict, Fault::AnswerLost] {
        let driver = driver(counting());
        for _ in 0..3 {
            driver.ledger.inject(fault.clone());
        }
        assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["applied", "applied"], "{fault:?}");
        assert_eq!(stored(&driver.ledger, "count"), Some(2), "{fault:?}");
        assert_eq!(driver.ledger.commits(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_ledger_that_stays_busy_sends_the_records_back() {
    let driver = driver(counting());
    for _ in 0..7 {
        driver.ledger.inject(Fault::Conflict);
    }
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["retry", "retry"]);
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["applied", "applied"]);
    assert!(driver.environment.now() > now(), "waiting takes time");
}

#[tokio::test]
async fn a_fetch_that_fails_is_tried_again_and_then_sends_the_records_back() {
    let reading =
        || Fake { needs: |_: &Event| vec![need("row")], decide: |_: &Event, _: &State| apply(vec![add("count", 1)]) };
    for (failures, expected) in [(3, "applied"), (4, "retry")] {
        let driver = driver(reading());
        for _ in 0..failures {
            driver.ledger.inject(Fault::Unreadable);
        }
        assert_eq!(names(&handle(&driver, &[game(1)]).await), [expected]);
    }
}
