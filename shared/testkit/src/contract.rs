//! What every ledger keeps, case by case. The cases run against the in-memory ledger and against DynamoDB, so that what is
//! proved on the one holds for the other.

use std::collections::BTreeSet;

use consumer::{Attempt, Busy, CommitError, Cost, Draft, FetchError, Ledger, Plan, PlanError, Refusal, Scope};
use domain::{Attributes, Check, Content, Deltas, Guard, Key, Row, Spread, State, Write};
use events::{Consumer, EventId, Timestamp};
use serde_json::{Value, json};

use crate::Fault;
use crate::sample::{event_id, now};

/// A ledger under test, and a way to let its next calls go wrong.
pub trait Subject {
    /// The ledger's type.
    type Ledger: Ledger;

    /// Returns the ledger.
    fn ledger(&self) -> &Self::Ledger;

    /// Lets one of the next calls go wrong.
    fn inject(&self, fault: Fault);
}

/// Calls a macro with the names of all cases.
#[macro_export]
macro_rules! for_each_contract_case {
    ($callback:ident) => {
        $callback! {
            an_absent_row_is_version_0,
            a_row_comes_back_as_it_was_written,
            a_newer_source_version_replaces,
            an_equal_or_older_source_version_is_refused,
            unchanged_replaces_the_version_that_was_read,
            unchanged_is_refused_after_a_second_writer,
            unchanged_0_is_refused_where_a_row_stands,
            a_removed_row_is_a_version_like_any_other,
            a_late_event_does_not_recreate_a_removed_row,
            a_row_with_a_source_version_is_not_replaced_without_one,
            a_null_is_no_attribute,
            create_is_refused_where_something_stands,
            a_delta_alone_gets_a_claim,
            a_claim_is_taken_once,
            a_claim_holds_after_its_expiry,
            claims_of_two_consumers_do_not_meet,
            a_claim_and_its_deltas_stand_or_fall_together,
            a_row_and_its_deltas_stand_or_fall_together,
            a_counter_and_a_row_under_one_key_are_two_plans,
            a_check_that_holds_lets_the_write_pass,
            a_check_that_no_longer_holds_refuses,
            a_check_of_absence_refuses_a_row,
            a_hundred_items_are_one_transaction,
            an_item_of_400_kb_is_written,
            four_megabytes_are_one_transaction,
            every_refused_condition_is_named,
            a_conflict_beside_conditions_hides_none_of_them,
            a_lost_answer_of_a_transaction_is_its_own_success,
            a_token_that_meets_another_plan_proves_nothing,
            a_lost_answer_of_a_lone_write_is_its_own_success,
            a_lost_answer_of_a_newer_write_is_its_own_success,
            someone_elses_write_is_no_own_success,
            a_throttled_request_has_no_effect_and_may_be_sent_again,
            a_conflicting_request_has_no_effect_and_may_be_sent_again,
            unprocessed_keys_are_read_after_all,
            an_unreadable_ledger_says_so,
            spread_targets_go_to_their_shard,
            merged_decisions_are_one_write_with_the_strictest_guard,
        }
    };
}

// ---- rows and their guards

/// A key under which there has never been anything is a row too.
pub async fn an_absent_row_is_version_0(subject: &impl Subject) {
    assert_eq!(row(subject, &key("a")).await, Row::default());
}

/// Every kind of value survives.
pub async fn a_row_comes_back_as_it_was_written(subject: &impl Subject) {
    let data = attributes(
        json!({"text": "ä\u{10348}\"", "number": -7, "truth": true, "list": [1, "x"], "map": {"k": {}}, "empty": ""}),
    );
    for key in [key("a"), Key::record("a", "s")] {
        let write = Write::Create { key: key.clone(), attributes: data.clone() };
        commit(subject, plan(vec![write])).await.expect("the key is free");
        assert_eq!(row(subject, &key).await, Row { version: 1, attributes: Some(data.clone()) });
    }
}

/// A higher source version wins, and the version goes up by one each time.
pub async fn a_newer_source_version_replaces(subject: &impl Subject) {
    for (source_version, version) in [(3, 1), (4, 2), (9, 3)] {
        commit(subject, plan(vec![newer("a", source_version, source_version)])).await.expect("it is newer");
        assert_eq!(row(subject, &key("a")).await, numbered(version, source_version));
    }
}

/// The same or a lower source version changes nothing.
pub async fn an_equal_or_older_source_version_is_refused(subject: &impl Subject) {
    commit(subject, plan(vec![newer("a", 5, 5)])).await.expect("there is no row");
    for source_version in [5, 4, 0] {
        let refused = commit(subject, plan(vec![newer("a", source_version, 1)])).await;
        assert_eq!(refusals(refused), [Refusal::Row(key("a"))]);
    }
    assert_eq!(row(subject, &key("a")).await, numbered(1, 5));
}

/// Optimistic concurrency: read, then write on what was read.
pub async fn unchanged_replaces_the_version_that_was_read(subject: &impl Subject) {
    for version in 0..3 {
        commit(subject, plan(vec![unchanged("a", version, version)])).await.expect("nobody else writes");
        assert_eq!(row(subject, &key("a")).await, numbered(version + 1, version));
    }
}

/// The second of two writers that read the same version is refused.
pub async fn unchanged_is_refused_after_a_second_writer(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("a", 0, 0)])).await.expect("there is no row");
    commit(subject, plan(vec![unchanged("a", 1, 10)])).await.expect("the first writer");
    let second = commit(subject, plan(vec![unchanged("a", 1, 20)])).await;
    assert_eq!(refusals(second), [Refusal::Row(key("a"))]);
    assert_eq!(row(subject, &key("a")).await, numbered(2, 10));
}

/// Version 0 is absence, not "any".
pub async fn unchanged_0_is_refused_where_a_row_stands(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("a", 0, 1)])).await.expect("there is no row");
    assert_eq!(refusals(commit(subject, plan(vec![unchanged("a", 0, 2)])).await), [Refusal::Row(key("a"))]);
}

/// A tombstone has a version, and a row can follow it.
pub async fn a_removed_row_is_a_version_like_any_other(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("a", 0, 1)])).await.expect("there is no row");
    let removal = Write::Replace { key: key("a"), content: Content::Tombstone, guard: Guard::Unchanged(1) };
    commit(subject, plan(vec![removal])).await.expect("nobody else writes");
    assert_eq!(row(subject, &key("a")).await, Row { version: 2, attributes: None });
    for version in [0, 1] {
        assert_eq!(refusals(commit(subject, plan(vec![unchanged("a", version, 9)])).await), [Refusal::Row(key("a"))]);
    }
    commit(subject, plan(vec![unchanged("a", 2, 3)])).await.expect("the tombstone was read");
    assert_eq!(row(subject, &key("a")).await, numbered(3, 3));
}

/// An event from before the removal comes late; one from after it re-creates the row.
pub async fn a_late_event_does_not_recreate_a_removed_row(subject: &impl Subject) {
    commit(subject, plan(vec![newer("a", 1, 1)])).await.expect("there is no row");
    let removal = Write::Replace { key: key("a"), content: Content::Tombstone, guard: Guard::Newer(5) };
    commit(subject, plan(vec![removal])).await.expect("the removal is newer");
    assert_eq!(refusals(commit(subject, plan(vec![newer("a", 4, 4)])).await), [Refusal::Row(key("a"))]);
    assert_eq!(row(subject, &key("a")).await, Row { version: 2, attributes: None });
    commit(subject, plan(vec![newer("a", 6, 6)])).await.expect("the re-creation is newer");
    assert_eq!(row(subject, &key("a")).await, numbered(3, 6));
}

/// Otherwise the source version would be lost, and an old event could win later.
pub async fn a_row_with_a_source_version_is_not_replaced_without_one(subject: &impl Subject) {
    commit(subject, plan(vec![newer("a", 5, 5)])).await.expect("there is no row");
    assert_eq!(refusals(commit(subject, plan(vec![unchanged("a", 1, 9)])).await), [Refusal::Row(key("a"))]);
}

/// A null leaves no attribute behind, in whichever way the row is written.
pub async fn a_null_is_no_attribute(subject: &impl Subject) {
    let with_null = attributes(json!({"n": 1, "gone": null}));
    let expected = Some(attributes(json!({"n": 1})));
    let first = attributes(json!({"n": 0, "gone": "still here"}));
    let replace = |name: &str, attributes: &Attributes, guard| Write::Replace {
        key: key(name),
        content: Content::Row(attributes.clone()),
        guard,
    };
    commit(subject, plan(vec![replace("newer", &first, Guard::Newer(1))])).await.expect("there is no row");
    commit(subject, plan(vec![replace("newer", &with_null, Guard::Newer(2))])).await.expect("it is newer");
    commit(subject, plan(vec![replace("unchanged", &first, Guard::Unchanged(0))])).await.expect("there is no row");
    commit(subject, plan(vec![replace("unchanged", &with_null, Guard::Unchanged(1))])).await.expect("it was read");
    let create = Write::Create { key: key("created"), attributes: with_null.clone() };
    commit(subject, plan(vec![create])).await.expect("the key is free");
    for name in ["newer", "unchanged", "created"] {
        assert_eq!(row(subject, &key(name)).await.attributes, expected, "{name}");
    }
}

/// A key that never comes back is written once, and not over a tombstone either.
pub async fn create_is_refused_where_something_stands(subject: &impl Subject) {
    let create = || Write::Create { key: key("a"), attributes: attributes(json!({"n": 1})) };
    commit(subject, plan(vec![create()])).await.expect("the key is free");
    assert_eq!(refusals(commit(subject, plan(vec![create()])).await), [Refusal::Row(key("a"))]);
    let removal = Write::Replace { key: key("a"), content: Content::Tombstone, guard: Guard::Unchanged(1) };
    commit(subject, plan(vec![removal])).await.expect("nobody else writes");
    assert_eq!(refusals(commit(subject, plan(vec![create()])).await), [Refusal::Row(key("a"))]);
}

// ---- claims and counters

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
    assert_eq!(counter(subject, "c").await, 2);
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

// ---- checks

/// A check writes nothing: the version stays.
pub async fn a_check_that_holds_lets_the_write_pass(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("truth", 0, 1)])).await.expect("there is no row");
    let checks = vec![Check { key: key("truth"), version: 1 }, Check { key: key("nothing"), version: 0 }];
    commit(subject, checked(vec![unchanged("a", 0, 1)], checks)).await.expect("the checks hold");
    assert_eq!(row(subject, &key("truth")).await.version, 1);
    assert_eq!(row(subject, &key("nothing")).await, Row::default());
}

/// The effect commits only if the truth that it was decided on still holds.
pub async fn a_check_that_no_longer_holds_refuses(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("truth", 0, 1)])).await.expect("there is no row");
    commit(subject, plan(vec![unchanged("truth", 1, 2)])).await.expect("nobody else writes");
    let refused =
        commit(subject, checked(vec![unchanged("a", 0, 1)], vec![Check { key: key("truth"), version: 1 }])).await;
    assert_eq!(refusals(refused), [Refusal::Row(key("truth"))]);
    assert_eq!(row(subject, &key("a")).await, Row::default());
}

/// Version 0 in a check is absence.
pub async fn a_check_of_absence_refuses_a_row(subject: &impl Subject) {
    commit(subject, plan(vec![unchanged("truth", 0, 1)])).await.expect("there is no row");
    let refused =
        commit(subject, checked(vec![unchanged("a", 0, 1)], vec![Check { key: key("truth"), version: 0 }])).await;
    assert_eq!(refusals(refused), [Refusal::Row(key("truth"))]);
}

// ---- limits

/// A hundred items pass, and a hundred and one are no plan.
pub async fn a_hundred_items_are_one_transaction(subject: &impl Subject) {
    let writes = |count: u64| (0..count).map(|n| unchanged(&format!("k{n:03}"), 0, n)).collect::<Vec<_>>();
    let too_many = Draft::new(scope(1), writes(101), Vec::new());
    assert_eq!(too_many.unwrap_err(), PlanError::TooManyItems { items: 101 });
    let hundred = plan(writes(100));
    commit(subject, hundred).await.expect("a hundred items are allowed");
    assert_eq!(row(subject, &key("k099")).await, numbered(1, 99));
    let mut full = Draft::new(scope(1), writes(100), Vec::new()).expect("a plan");
    let one_more = Draft::new(scope(2), vec![unchanged("other", 0, 1)], Vec::new()).expect("a plan");
    assert_eq!(full.absorb(one_more.clone()), Err(Box::new(one_more)));
    assert_eq!(full.items(), 100);
}

/// What a draft lets pass, the ledger takes; what is larger is no plan.
pub async fn an_item_of_400_kb_is_written(subject: &impl Subject) {
    let create =
        |bytes: usize| Write::Create { key: key("a"), attributes: attributes(json!({"t": "x".repeat(bytes)})) };
    let frame = consumer::item_bytes("TEST#a", "ROW", &attributes(json!({"t": ""})));
    let largest = consumer::ITEM_BYTES_MAX - frame;
    let too_large = Draft::new(scope(1), vec![create(largest + 1)], Vec::new());
    assert!(matches!(too_large, Err(PlanError::ItemTooLarge { .. })), "{too_large:?}");
    commit(subject, plan(vec![create(largest)])).await.expect("the item has 400 KB at most");
    assert_eq!(row(subject, &key("a")).await.version, 1);
}

/// What a draft lets pass, the ledger takes; what is larger is no plan.
pub async fn four_megabytes_are_one_transaction(subject: &impl Subject) {
    let create = |n: usize, bytes: usize| Write::Create {
        key: key(&format!("{n:02}")),
        attributes: attributes(json!({"t": "x".repeat(bytes)})),
    };
    let part = 380 * 1024;
    let frame = consumer::item_bytes("TEST#00", "ROW", &attributes(json!({"t": ""})));
    let rest = consumer::BYTES_MAX - 10 * (part + frame) - frame;
    let writes = |last| (0..10).map(|n| create(n, part)).chain([create(10, last)]).collect::<Vec<_>>();
    let too_large = Draft::new(scope(1), writes(rest + 1), Vec::new());
    assert!(matches!(too_large, Err(PlanError::TooManyBytes { .. })), "{too_large:?}");
    commit(subject, plan(writes(rest))).await.expect("the transaction has 4 MB at most");
    assert_eq!(row(subject, &key("10")).await.version, 1);
}

// ---- refusals and faults

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
    let keys: BTreeSet<Key> = names.iter().map(|name| key(name)).collect();
    let (state, cost) = subject.ledger().fetch(&keys).await.expect("the ledger is readable");
    assert!(names.iter().all(|name| state.row(&key(name)).is_ok_and(|row| row.version == 1)));
    assert!(cost.calls > 1, "the keys had to be asked for again");
}

/// No answer is not "no rows".
pub async fn an_unreadable_ledger_says_so(subject: &impl Subject) {
    subject.inject(Fault::Unreadable);
    let failed: Result<(State, Cost), FetchError> = subject.ledger().fetch(&BTreeSet::from([key("a")])).await;
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

// ---- helpers

fn key(name: &str) -> Key {
    Key::view(format!("TEST#{name}"), "ROW")
}

fn event(number: u32) -> EventId {
    event_id(number, now())
}

fn scope(number: u32) -> Scope {
    Scope { consumer: Consumer::GameEnded, event_id: event(number), now: now() }
}

fn attributes(value: Value) -> Attributes {
    value.as_object().cloned().unwrap_or_default()
}

fn content(n: u64) -> Content {
    Content::Row(attributes(json!({"n": n})))
}

fn numbered(version: u64, n: u64) -> Row {
    Row { version, attributes: Some(attributes(json!({"n": n}))) }
}

fn newer(name: &str, source_version: u64, n: u64) -> Write {
    Write::Replace { key: key(name), content: content(n), guard: Guard::Newer(source_version) }
}

fn unchanged(name: &str, version: u64, n: u64) -> Write {
    Write::Replace { key: key(name), content: content(n), guard: Guard::Unchanged(version) }
}

fn add(name: &str, delta: i64) -> Write {
    Write::Add { key: key(name), deltas: Deltas::from([("n".to_owned(), delta)]), spread: Spread::NONE }
}

/// A plan with a token of its own, as a new decision has.
fn plan_of(scope: Scope, writes: Vec<Write>) -> Plan {
    sealed(Draft::new(scope, writes, Vec::new()).expect("a plan"))
}

fn plan(writes: Vec<Write>) -> Plan {
    plan_of(scope(99), writes)
}

fn checked(writes: Vec<Write>, checks: Vec<Check>) -> Plan {
    sealed(Draft::new(scope(99), writes, checks).expect("a plan"))
}

fn sealed(draft: Draft) -> Plan {
    use std::sync::atomic::{AtomicU64, Ordering};
    static TOKEN: AtomicU64 = AtomicU64::new(1_000);
    draft.seal(u128::from(TOKEN.fetch_add(1, Ordering::Relaxed)), 0)
}

/// Two records' decisions in one plan, of which the claim and the row at `a` will be refused.
fn mixed_plan() -> (Plan, [Refusal; 2]) {
    let mut draft = Draft::new(scope(1), vec![add("c", 1)], Vec::new()).expect("a plan");
    let rows = vec![unchanged("a", 0, 2), unchanged("b", 0, 2)];
    draft.absorb(Draft::new(scope(2), rows, Vec::new()).expect("a plan")).expect("they share nothing");
    (sealed(draft), [Refusal::Claimed(event(1)), Refusal::Row(key("a"))])
}

async fn commit(subject: &impl Subject, plan: Plan) -> Result<Cost, CommitError> {
    let request = subject.ledger().prepare(&plan)?;
    subject.ledger().commit(&request, Attempt::First).await
}

async fn lost_and_sent_again(subject: &impl Subject, write: Write) {
    subject.inject(Fault::AnswerLost);
    let ledger = subject.ledger();
    let request = ledger.prepare(&plan(vec![write])).expect("a request");
    assert_eq!(busy(ledger.commit(&request, Attempt::First).await), Busy::NoAnswer);
    ledger.commit(&request, Attempt::Again).await.expect("it was carried out");
    let redelivered = ledger.commit(&request, Attempt::First).await;
    assert_eq!(refusals(redelivered).len(), 1, "sent for the first time it finds someone's row");
}

async fn refused_once_then_sent_again(subject: &impl Subject, fault: Fault, expected: Busy) {
    for writes in [vec![unchanged("lone", 0, 1)], vec![unchanged("one", 0, 1), unchanged("other", 0, 1)]] {
        subject.inject(fault.clone());
        let ledger = subject.ledger();
        let request = ledger.prepare(&plan(writes.clone())).expect("a request");
        assert_eq!(busy(ledger.commit(&request, Attempt::First).await), expected);
        let Some(Write::Replace { key, .. }) = writes.first() else {
            return;
        };
        assert_eq!(row(subject, key).await, Row::default());
        ledger.commit(&request, Attempt::Again).await.expect("the ledger is free again");
        assert_eq!(row(subject, key).await.version, 1);
    }
}

async fn row(subject: &impl Subject, key: &Key) -> Row {
    let (state, _) = subject.ledger().fetch(&BTreeSet::from([key.clone()])).await.expect("the ledger is readable");
    state.row(key).expect("every key gets a row").clone()
}

async fn counter(subject: &impl Subject, name: &str) -> i64 {
    counter_at(subject, &key(name)).await
}

async fn counter_at(subject: &impl Subject, key: &Key) -> i64 {
    row(subject, key).await.attributes.and_then(|counters| counters.get("n").and_then(Value::as_i64)).unwrap_or(0)
}

fn refusals(result: Result<Cost, CommitError>) -> Vec<Refusal> {
    match result {
        Err(CommitError::Refused { refusals, .. }) => refusals,
        Err(other @ (CommitError::Busy { .. } | CommitError::Invalid { .. })) => panic!("not refused but {other:?}"),
        Ok(_) => panic!("not refused but carried out"),
    }
}

fn busy(result: Result<Cost, CommitError>) -> Busy {
    match result {
        Err(CommitError::Busy { busy, .. }) => busy,
        Err(other @ (CommitError::Refused { .. } | CommitError::Invalid { .. })) => panic!("not busy but {other:?}"),
        Ok(_) => panic!("not busy but carried out"),
    }
}
