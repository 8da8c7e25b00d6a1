//! Ranges of rows.

use std::collections::BTreeSet;

use consumer::{FetchError, Ledger};
use domain::{Attributes, Content, Guard, Key, Need, Range, Row, Table, Write};
use serde_json::json;

use super::{Subject, attributes, commit, plan};
use crate::Fault;

/// Rows of other partitions, and those at or before the start, are not part of it.
pub async fn a_range_holds_the_rows_behind_its_start_in_their_order(subject: &impl Subject) {
    for table in Table::ALL {
        for (partition, sort) in [("p", "05"), ("p", "10"), ("p", "01"), ("p", "03"), ("o", "07"), ("q", "02")] {
            put(subject, Key { table, partition: partition.to_owned(), sort: sort.to_owned() }, 0).await;
        }
        assert_eq!(sorts(subject, range(table, "", 10)).await, ["01", "03", "05", "10"]);
        assert_eq!(sorts(subject, range(table, "03", 10)).await, ["05", "10"]);
        assert_eq!(sorts(subject, range(table, "04", 10)).await, ["05", "10"]);
        assert_eq!(sorts(subject, range(table, "10", 10)).await, [""; 0]);
    }
}

/// It is the first rows that are read.
pub async fn a_range_ends_at_its_limit(subject: &impl Subject) {
    for sort in ["1", "2", "3"] {
        put(subject, Key::view("p", sort), 0).await;
    }
    for (limit, expected) in [(0, &[][..]), (1, &["1"][..]), (2, &["1", "2"][..]), (4, &["1", "2", "3"][..])] {
        assert_eq!(sorts(subject, range(Table::Views, "", limit)).await, expected, "{limit}");
    }
}

/// A page that ends early is not the range's end.
pub async fn a_range_is_read_page_by_page(subject: &impl Subject) {
    for sort in ["1", "2", "3", "4"] {
        put(subject, Key::record("p", sort), 0).await;
    }
    for (limit, expected) in [(3, &["1", "2", "3"][..]), (9, &["1", "2", "3", "4"][..])] {
        subject.inject(Fault::SmallPage);
        let wanted = range(Table::Records, "", limit);
        let (state, cost) = subject.ledger().fetch(&BTreeSet::from([wanted.clone().into()])).await.expect("readable");
        let sorts: Vec<&str> =
            state.range(&wanted).expect("was read").iter().map(|(key, _)| key.sort.as_str()).collect();
        assert_eq!(sorts, expected);
        assert_eq!(cost.calls, 2, "a second page had to be asked for");
        assert!(cost.read_units > 0.0);
    }
}

/// A partition without rows is no error.
pub async fn a_range_of_nothing_is_empty(subject: &impl Subject) {
    assert_eq!(sorts(subject, range(Table::Views, "", 10)).await, [""; 0]);
}

/// Its version is what the next writer has to replace.
pub async fn a_removed_row_is_part_of_its_range(subject: &impl Subject) {
    let key = Key::view("p", "1");
    put(subject, key.clone(), 0).await;
    let removal = Write::Replace { key: key.clone(), content: Content::Tombstone, guard: Guard::Unchanged(1) };
    commit(subject, plan(vec![removal])).await.expect("nobody else writes");
    let wanted = range(Table::Views, "", 10);
    let needs = BTreeSet::from([Need::Key(key.clone()), wanted.clone().into()]);
    let (state, _) = subject.ledger().fetch(&needs).await.expect("the ledger is readable");
    let removed = Row { version: 2, attributes: None };
    assert_eq!(state.range(&wanted).expect("was read"), [(&key, &removed)]);
    assert_eq!(state.row(&key).expect("was read"), &removed);
}

/// No answer is not "no rows".
pub async fn an_unreadable_range_is_no_empty_one(subject: &impl Subject) {
    subject.inject(Fault::Unreadable);
    let failed = subject.ledger().fetch(&BTreeSet::from([range(Table::Records, "", 1).into()])).await;
    assert!(matches!(failed, Err(FetchError::Unavailable(_))), "{failed:?}");
}

fn range(table: Table, after: &str, limit: usize) -> Range {
    Range { table, partition: "p".to_owned(), after: after.to_owned(), limit }
}

async fn put(subject: &impl Subject, key: Key, version: u64) {
    let row: Attributes = attributes(json!({"sort": key.sort}));
    let write = Write::Replace { key, content: Content::Row(row), guard: Guard::Unchanged(version) };
    commit(subject, plan(vec![write])).await.expect("nobody else writes");
}

async fn sorts(subject: &impl Subject, range: Range) -> Vec<String> {
    let needs = BTreeSet::from([range.clone().into()]);
    let (state, _) = subject.ledger().fetch(&needs).await.expect("the ledger is readable");
    let rows = state.range(&range).expect("it was read");
    rows.into_iter()
        .map(|(key, row)| {
            assert_eq!(row.attributes.as_ref().and_then(|row| row["sort"].as_str()), Some(key.sort.as_str()));
            key.sort.clone()
        })
        .collect()
}
