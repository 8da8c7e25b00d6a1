//! Refused conditions, lost answers, throttling and conflicts, read for what they are.

use std::collections::BTreeSet;

use consumer::{Attempt, Busy, Cost, Draft, FetchError, Ledger, Refusal};
use domain::{Check, Content, Guard, Need, Row, State, Write};
use serde_json::json;

use super::{
    Subject, add, attributes, busy, commit, counter, event, key, lost_and_sent_again, mixed_plan, newer, numbered,
    plan, plan_of, refusals, refused_once_then_sent_again, row, scope, unchanged,
};
use crate::Fault;

/// One refusal must not hide another: each settles or sends back its own record.
pub async fn every_refused_condition_is_named(subject: &impl Subject) {
    commit(subject, plan_of(scope(1), vec![add("c", 1)])).await.expect("the claim is free");
    commit(subject, plan(vec![unchanged("a", 0, 1)])).await.expect("there is no row");
    let (mixed, _) = mixed_plan();
    let mut named = refusals(commit(subject, mixed).await);
    named.sort();
    assert_eq!(named, [Refusal::Claimed(event(1)), Refusal::Row(key("a"))]);
    assert_eq!(row(subject, &key("b")).await, Row::default());
}

/// A conflict beside a failed condition is no reason to send the same decision again.
pub async fn a_conflict_beside_conditions_hides_none_of_them(subject: &impl Subject) {
    commit(subject, plan_of(scope(1), vec![add("c", 1)])).await.expect("the claim is free");
    commit(subject, plan(vec![unchanged("a", 0, 1)])).await.expect("there is no row");
    subject.inject(Fault::ConflictBesideConditions);
    let (mixed, refused) = mixed_plan();
    assert_eq!(refusals(commit(subject, mixed).await), refused);
}

/// The token tells the ledger that it has carried the plan out.
pub async fn a_lost_answer_of_a_transaction_is_its_own_success(subject: &impl Subject) {
    subject.inject(Fault::AnswerLost);
    let ledger = subject.ledger();
    let request = ledger.prepare(&plan(vec![add("c", 1)])).expect("a request");
    assert_eq!(busy(ledger.commit(&request, Attempt::First).await), Busy::NoAnswer);
    ledger.commit(&request, Attempt::Again).await.expect("it was carried out");
    ledger.commit(&request, Attempt::Again).await.expect("it was carried out");
    assert_eq!(counter(subject, "c").await, 1);
}

/// Whoever meets a used token must not take the other plan's success for its own.
pub async fn a_token_that_meets_another_plan_proves_nothing(subject: &impl Subject) {
    let sealed = |n| Draft::new(scope(n), vec![add("c", 1)], Vec::new()).expect("a plan").seal(5, 0);
    commit(subject, sealed(1)).await.expect("the token is new");
    assert_eq!(refusals(commit(subject, sealed(2)).await), []);
    assert_eq!(counter(subject, "c").await, 1);
}

/// A lone write has no token: it recognises its own row.
pub async fn a_lost_answer_of_a_lone_write_is_its_own_success(subject: &impl Subject) {
    let writes = [
        Write::Create { key: key("created"), attributes: attributes(json!({"n": 1})) },
        unchanged("replaced", 0, 1),
        Write::Replace { key: key("replaced"), content: Content::Tombstone, guard: Guard::Unchanged(1) },
    ];
    for write in writes {
        lost_and_sent_again(subject, write).await;
    }
}

/// The same for a write that nobody has read the row for.
pub async fn a_lost_answer_of_a_newer_write_is_its_own_success(subject: &impl Subject) {
    lost_and_sent_again(subject, newer("a", 3, 3)).await;
    assert_eq!(row(subject, &key("a")).await, numbered(1, 3));
}

/// Sent again, a write must not take another's row for its own.
pub async fn someone_elses_write_is_no_own_success(subject: &impl Subject) {
    let ledger = subject.ledger();
    let request = ledger.prepare(&plan(vec![unchanged("a", 0, 1)])).expect("a request");
    subject.inject(Fault::Throttled);
    assert_eq!(busy(ledger.commit(&request, Attempt::First).await), Busy::Throttled);
    commit(subject, plan(vec![unchanged("a", 0, 2)])).await.expect("someone else is faster");
    assert_eq!(refusals(ledger.commit(&request, Attempt::Again).await), [Refusal::Row(key("a"))]);
}

/// Throttling costs time and nothing else.
pub async fn a_throttled_request_has_no_effect_and_may_be_sent_again(subject: &impl Subject) {
    refused_once_then_sent_again(subject, Fault::Throttled, Busy::Throttled).await;
}

/// So does a conflict.
pub async fn a_conflicting_request_has_no_effect_and_may_be_sent_again(subject: &impl Subject) {
    refused_once_then_sent_again(subject, Fault::Conflict, Busy::Conflict).await;
}

/// A key that was left unprocessed is not an absent row.
pub async fn unprocessed_keys_are_read_after_all(subject: &impl Subject) {
    let names = ["a", "b", "c"];
    for name in names {
        commit(subject, plan(vec![unchanged(name, 0, 1)])).await.expect("there is no row");
    }
    subject.inject(Fault::Unprocessed);
    let keys: BTreeSet<Need> = names.iter().map(|name| Need::Key(key(name))).collect();
    let (state, cost) = subject.ledger().fetch(&keys).await.expect("the ledger is readable");
    assert!(names.iter().all(|name| state.row(&key(name)).is_ok_and(|row| row.version == 1)));
    assert!(cost.calls > 1, "the keys had to be asked for again");
}

/// No answer is not "no rows".
pub async fn an_unreadable_ledger_says_so(subject: &impl Subject) {
    subject.inject(Fault::Unreadable);
    let failed: Result<(State, Cost), FetchError> =
        subject.ledger().fetch(&BTreeSet::from([Need::Key(key("a"))])).await;
    assert!(matches!(failed, Err(FetchError::Unavailable(_))), "{failed:?}");
}

/// Two records of a batch that write one row are one write on the row as it was fetched.
pub async fn merged_decisions_are_one_write_with_the_strictest_guard(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("a", 0, 0)])).await.expect("there is no row");
    let draft = |number, version, n| {
        let writes = vec![unchanged("a", version, n), add("c", i64::try_from(n).unwrap_or(0))];
        let checks = vec![Check { key: key("truth"), version: 0 }];
        Draft::new(scope(number), writes, checks).expect("a plan")
    };
    let merged = || {
        let mut whole = draft(1, 1, 10);
        whole.absorb(draft(2, 2, 20)).expect("the second was decided on the first");
        whole
    };
    assert_eq!(merged().items(), 3);
    commit(subject, merged().seal(1, 0)).await.expect("nobody else writes");
    assert_eq!(row(subject, &key("a")).await, numbered(2, 20));
    assert_eq!(counter(subject, "c").await, 30);
    assert_eq!(refusals(commit(subject, merged().seal(2, 0)).await), [Refusal::Row(key("a"))]);
    assert_eq!(counter(subject, "c").await, 30);
}
