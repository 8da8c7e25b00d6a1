//! Rows that a decision relies on and does not write.

use consumer::Refusal;
use domain::{Check, Row};

use super::{Subject, checked, commit, key, plan, refusals, row, unchanged};

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
