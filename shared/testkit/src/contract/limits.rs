//! The largest plans: what a draft lets pass, the ledger takes.

use consumer::{Draft, PlanError};
use domain::Write;
use serde_json::json;

use super::{Subject, attributes, commit, key, numbered, plan, row, scope, unchanged};

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
