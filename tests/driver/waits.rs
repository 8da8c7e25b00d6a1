//! Events that wait for something that is missing, and that have waited for long enough.

use std::time::Duration;

use consumer::{Outcome, VisibilityChange, WAIT};
use domain::{Decision, Guard, State, Versions};
use events::Event;
use testkit::Fault;
use testkit::sample::game_ended;

use crate::support::{
    Fake, add, blind, deadline, deliveries, driver, handle, names, need, outcomes, replace, row_number, stored,
};

fn game(number: u32) -> Event {
    game_ended(number, (1, 1500, 1), (2, 1500, 1))
}

/// Notes since when it waits, and gives up after thirty seconds.
fn patient() -> impl domain::Decider {
    Fake {
        needs: |_: &Event| vec![need("since"), need("listed")],
        decide: |_: &Event, state: &State| {
            let missing = Versions::run(3, 5);
            let now = state.now().as_millis() as u64;
            let (version, since) = row_number(state, "since");
            let (_, listed) = row_number(state, "listed");
            match (since, listed) {
                (_, Some(_)) => Decision::Ignore("it is on the list".to_owned()),
                (None, None) => {
                    let writes = vec![replace("since", now, Guard::Unchanged(version))];
                    Decision::Wait { missing, writes, checks: Vec::new() }
                }
                (Some(since), None) if now < since + 30_000 => {
                    Decision::Wait { missing, writes: Vec::new(), checks: Vec::new() }
                }
                (Some(_), None) => {
                    let writes = vec![replace("listed", now, Guard::Unchanged(0))];
                    Decision::Unresolved { missing, writes, checks: Vec::new() }
                }
            }
        },
    }
}

#[tokio::test]
async fn a_waiting_record_commits_its_note_and_comes_back_in_half_a_minute() {
    let driver = driver(patient());
    let report = driver.handle(&deliveries(&[game(1)]), deadline()).await;
    assert_eq!(outcomes(&report), [Outcome::Waiting("versions 3-5 are missing".to_owned())]);
    assert_eq!(report.failures().count(), 1);
    assert!(stored(&driver.ledger, "since").is_some());
    let change = VisibilityChange { receipt_handle: "receipt-0".to_owned(), timeout: WAIT };
    assert_eq!(driver.visibility.take(), [change]);
    assert_eq!(WAIT, Duration::from_secs(30));
}

#[tokio::test]
async fn a_record_that_has_waited_long_enough_is_listed_and_done() {
    let driver = driver(patient());
    handle(&driver, &[game(1)]).await;
    driver.environment.advance(Duration::from_millis(29_999));
    assert_eq!(names(&handle(&driver, &[game(1)]).await), ["waiting"]);
    driver.environment.advance(Duration::from_millis(1));
    driver.visibility.take();
    // The second record finds on the overlay what the first one lists.
    let outcomes = handle(&driver, &[game(1), game(2), game(1)]).await;
    assert_eq!(names(&outcomes), ["unresolved", "ignored", "duplicate"]);
    assert_eq!(driver.visibility.take(), []);
    assert!(stored(&driver.ledger, "listed").is_some());
}

#[tokio::test]
async fn a_note_that_is_not_committed_is_no_wait() {
    let driver = driver(patient());
    for _ in 0..8 {
        driver.ledger.inject(Fault::Throttled);
    }
    assert_eq!(names(&handle(&driver, &[game(1)]).await), ["retry"]);
    assert_eq!(stored(&driver.ledger, "since"), None);
    driver.ledger.inject(Fault::AnswerLost);
    assert_eq!(names(&handle(&driver, &[game(1)]).await), ["waiting"]);
}

#[tokio::test]
async fn a_wait_leaves_the_other_records_alone() {
    let driver = driver(blind(|event: &Event| match event.aggregate_id.as_str() {
        "game-00001" => Decision::Wait { missing: Versions::run(1, 1), writes: Vec::new(), checks: Vec::new() },
        "game-00002" => Decision::Unresolved { missing: Versions::run(1, 1), writes: Vec::new(), checks: Vec::new() },
        _ => crate::support::apply(vec![add("count", 1)]),
    }));
    let outcomes = handle(&driver, &[game(1), game(2), game(3)]).await;
    assert_eq!(names(&outcomes), ["waiting", "unresolved", "applied"]);
}
