//! Deltas and the claims that keep them from being added twice.

use consumer::{Draft, PlanError, Refusal, Scope};
use domain::{Deltas, Spread, Write};
use events::{Consumer, Timestamp};

use super::{
    Subject, add, commit, counter, counter_at, event, key, newer, plan, plan_of, refusals, scope, sealed, unchanged,
};
use crate::sample::{event_id, now};

/// No plan holds a delta that a redelivery would add again.
pub async fn a_delta_alone_gets_a_claim(subject: &impl Subject) {
    let plan = plan(vec![add("c", 1)]);
    assert_eq!(plan.claims().count(), 1);
    let beside_newer = Draft::new(scope(1), vec![newer("a", 1, 1), add("c", 1)], Vec::new());
    assert_eq!(beside_newer.unwrap_err(), PlanError::DeltaWithNewer { key: key("c") });
    let too_old = Scope { now: now() + consumer::CLAIM_AGE_MAX + std::time::Duration::from_millis(1), ..scope(1) };
    assert!(matches!(Draft::new(too_old, vec![add("c", 1)], Vec::new()), Err(PlanError::TooOld { .. })));
    let on_the_day = Scope { now: now() + consumer::CLAIM_AGE_MAX, ..scope(1) };
    assert!(Draft::new(on_the_day, vec![add("c", 1)], Vec::new()).is_ok());
    commit(subject, plan).await.expect("the claim is free");
    assert_eq!(counter(subject, "c").await, 1);
}

/// A redelivery collapses into a no-op.
pub async fn a_claim_is_taken_once(subject: &impl Subject) {
    commit(subject, plan_of(scope(1), vec![add("c", 1)])).await.expect("the claim is free");
    let again = commit(subject, plan_of(scope(1), vec![add("c", 1)])).await;
    assert_eq!(refusals(again), [Refusal::Claimed(event(1))]);
    commit(subject, plan_of(scope(2), vec![add("c", 1)])).await.expect("another event");
    assert_eq!(counter(subject, "c").await, 2);
}

/// A table forgets expired items days late, and until then they count.
pub async fn a_claim_holds_after_its_expiry(subject: &impl Subject) {
    let long_ago = Timestamp::from_millis(now().as_millis() - 40 * 86_400_000);
    let scope = Scope { consumer: Consumer::GameEnded, event_id: event_id(1, long_ago), now: long_ago };
    let expired = plan_of(scope, vec![add("c", 1)]);
    assert!(expired.claims().all(|claim| claim.expires_at < now()));
    commit(subject, expired.clone()).await.expect("the claim is free");
    let again = plan_of(scope, vec![add("c", 1)]);
    assert_eq!(refusals(commit(subject, again).await), [Refusal::Claimed(scope.event_id)]);
}

/// Each consumer applies an event once.
pub async fn claims_of_two_consumers_do_not_meet(subject: &impl Subject) {
    for consumer in Consumer::ALL {
        let plan = plan_of(Scope { consumer, ..scope(1) }, vec![add("c", 1)]);
        commit(subject, plan).await.expect("this consumer has not applied it");
    }
    assert_eq!(counter(subject, "c").await, Consumer::ALL.len() as i64);
}

/// A refused claim adds nothing anywhere.
pub async fn a_claim_and_its_deltas_stand_or_fall_together(subject: &impl Subject) {
    commit(subject, plan_of(scope(1), vec![add("c", 1), add("d", -2)])).await.expect("the claim is free");
    let again = commit(subject, plan_of(scope(1), vec![add("c", 1), add("d", -2), add("e", 4)])).await;
    assert_eq!(refusals(again), [Refusal::Claimed(event(1))]);
    assert_eq!((counter(subject, "c").await, counter(subject, "d").await, counter(subject, "e").await), (1, -2, 0));
}

/// A delta that is computed from a row commits only with that row.
pub async fn a_row_and_its_deltas_stand_or_fall_together(subject: &impl Subject) {
    let moved = |version| vec![unchanged("a", version, version), add("c", 1)];
    let first = plan(moved(0));
    assert_eq!(first.claims().count(), 0);
    commit(subject, first).await.expect("there is no row");
    assert_eq!(refusals(commit(subject, plan(moved(0))).await), [Refusal::Row(key("a"))]);
    assert_eq!(counter(subject, "c").await, 1);
    commit(subject, plan(moved(1))).await.expect("the row was read");
    assert_eq!(counter(subject, "c").await, 2);
}

/// Shards are items of their own.
pub async fn spread_targets_go_to_their_shard(subject: &impl Subject) {
    let spread = Spread::over(4);
    for (number, shard) in [(1, 0), (2, 3), (3, 7)] {
        let deltas = Deltas::from([("n".to_owned(), 1)]);
        let write = Write::Add { key: key("c"), deltas, spread };
        let draft = Draft::new(scope(number), vec![write], Vec::new()).expect("a plan");
        commit(subject, draft.seal(u128::from(number), shard)).await.expect("the claim is free");
    }
    let mut counts = Vec::new();
    for key in spread.keys(&key("c")) {
        counts.push(counter_at(subject, &key).await);
    }
    assert_eq!(counts, [1, 0, 0, 2]);
}

/// A counter where another decision of the batch has a row is another plan.
pub async fn a_counter_and_a_row_under_one_key_are_two_plans(subject: &impl Subject) {
    let row = Draft::new(scope(1), vec![unchanged("c", 0, 5)], Vec::new()).expect("a plan");
    let count = Draft::new(scope(2), vec![add("c", 1)], Vec::new()).expect("a plan");
    for (mut first, second) in [(row.clone(), count.clone()), (count.clone(), row.clone())] {
        assert_eq!(first.absorb(second.clone()), Err(Box::new(second)));
    }
    commit(subject, sealed(row)).await.expect("there is no row");
    commit(subject, sealed(count)).await.expect("the claim is free");
    assert_eq!(counter(subject, "c").await, 6);
}
