//! Rows and the guards under which they are replaced.

use consumer::Refusal;
use domain::{Attributes, Content, Guard, Key, Row, Write};
use serde_json::json;

use super::{Subject, attributes, commit, key, newer, numbered, plan, refusals, row, unchanged};

/// A key under which there has never been anything is a row too.
pub async fn an_absent_row_is_version_0(subject: &impl Subject) {
    assert_eq!(row(subject, &key("a")).await, Row::default());
}

/// Every kind of value survives.
pub async fn a_row_comes_back_as_it_was_written(subject: &impl Subject) {
    let data = attributes(
        json!({"text": "ä\u{10348}\"", "number": -7, "truth": true, "list": [1, "x"], "map": {"k": {}}, "empty": ""}),
    );
    for key in [key("a"), Key::record("a", "s"), Key::ledger("a", "s")] {
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
