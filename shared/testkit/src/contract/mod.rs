//! What every ledger keeps, case by case. The cases run against the in-memory ledger and against DynamoDB, so that what is
//! proved on the one holds for the other.

mod checks;
mod counters;
mod limits;
mod ranges;
mod refusals;
mod rows;

use std::collections::BTreeSet;

use consumer::{Attempt, Busy, CommitError, Cost, Draft, Ledger, Plan, Refusal, Scope};
use domain::{Attributes, Check, Content, Deltas, Guard, Key, Need, Row, Spread, Write};
use events::{Consumer, EventId};
use serde_json::{Value, json};

use crate::Fault;
use crate::sample::{event_id, now};

pub use checks::*;
pub use counters::*;
pub use limits::*;
pub use ranges::*;
pub use refusals::*;
pub use rows::*;

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
            a_range_holds_the_rows_behind_its_start_in_their_order,
            a_range_ends_at_its_limit,
            a_range_is_read_page_by_page,
            a_range_of_nothing_is_empty,
            a_removed_row_is_part_of_its_range,
            an_unreadable_range_is_no_empty_one,
            unprocessed_keys_are_read_after_all,
            an_unreadable_ledger_says_so,
            spread_targets_go_to_their_shard,
            merged_decisions_are_one_write_with_the_strictest_guard,
        }
    };
}

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
    let (state, _) =
        subject.ledger().fetch(&BTreeSet::from([Need::Key(key.clone())])).await.expect("the ledger is readable");
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
