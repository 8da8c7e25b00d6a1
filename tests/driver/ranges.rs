//! Deciding on ranges of rows, and on what rows say is needed besides.

use std::sync::Arc;

use domain::{Content, Decider, Decision, Guard, Key, Need, Range, RowError, State, Table, Write};
use events::Event;
use testkit::sample::game_ended;
use testkit::{Fault, MemoryLedger};

use crate::support::{
    Fake, Once, add, apply, deadline, deliveries, driver, handle, key, names, need, numbered, outcomes, replace,
    row_number, sharing, stored,
};

fn game(number: u32) -> Event {
    game_ended(number, (1, 1500, 1), (2, 1500, 1))
}

fn list(after: &str, limit: usize) -> Range {
    Range { table: Table::Views, partition: "LIST".to_owned(), after: after.to_owned(), limit }
}

fn entry(sort: &str) -> Key {
    Key::view("LIST", sort)
}

fn create(sort: &str) -> Write {
    Write::Create { key: entry(sort), attributes: numbered(1) }
}

fn sorts(state: &State, range: &Range) -> Vec<String> {
    state.range(range).unwrap().iter().map(|(key, _)| key.sort.clone()).collect()
}

/// Adds an entry for the event, and notes how many there were before.
fn counting_entries() -> impl Decider {
    Fake {
        needs: |_: &Event| vec![list("", 100).into()],
        decide: |event: &Event, state: &State| {
            let before = sorts(state, &list("", 100)).len() as u64;
            apply(vec![create(&event.aggregate_id), replace(&event.aggregate_id, before, Guard::Unchanged(0))])
        },
    }
}

#[tokio::test]
async fn a_record_sees_the_rows_that_the_batch_adds_to_its_range() {
    let driver = driver(counting_entries());
    driver.ledger.put(entry("a"), numbered(1));
    driver.ledger.inject(Fault::SmallPage);
    assert_eq!(names(&handle(&driver, &[game(1), game(2), game(3)]).await), ["applied"; 3]);
    for (name, before) in [("game-00001", 1), ("game-00002", 2), ("game-00003", 3)] {
        assert_eq!(stored(&driver.ledger, name), Some(before), "{name}");
    }
    assert_eq!(driver.ledger.commits(), 1, "who reads a range is in one transaction with who writes in it");
}

#[tokio::test]
async fn a_reader_of_a_range_is_not_acknowledged_before_what_it_saw_is_committed() {
    let driver = driver(Fake {
        needs: |_: &Event| vec![list("", 100).into()],
        decide: |event: &Event, state: &State| match sorts(state, &list("", 100)).len() {
            0 => apply(vec![create(&event.aggregate_id)]),
            _ => Decision::Stale,
        },
    });
    for _ in 0..8 {
        driver.ledger.inject(Fault::Throttled);
    }
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["retry", "retry"]);
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["applied", "stale"]);
}

#[tokio::test]
async fn what_lies_before_a_range_or_elsewhere_makes_no_group_with_its_reader() {
    let driver = driver(Fake {
        needs: |event: &Event| match event.aggregate_id.as_str() {
            "game-00001" => vec![list("m", 100).into()],
            _ => Vec::new(),
        },
        decide: |event: &Event, _: &State| match event.aggregate_id.as_str() {
            "game-00001" => Decision::Stale,
            _ => apply(vec![create("a")]),
        },
    });
    for _ in 0..8 {
        driver.ledger.inject(Fault::Throttled);
    }
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["stale", "retry"]);
}

#[tokio::test]
async fn a_row_written_by_source_version_in_a_range_is_shown_as_the_newer_one() {
    let range = || list("", 10);
    let driver = driver(Fake {
        needs: move |event: &Event| if event.aggregate_id == "game-00003" { vec![range().into()] } else { Vec::new() },
        decide: move |event: &Event, state: &State| {
            let newer = |n: u64| Write::Replace {
                key: entry("row"),
                content: Content::Row(numbered(n)),
                guard: Guard::Newer(n),
            };
            match event.aggregate_id.as_str() {
                "game-00001" => apply(vec![newer(6)]),
                "game-00002" => apply(vec![newer(5)]),
                _ => {
                    let (_, row) = state.range(&range()).unwrap()[0];
                    apply(vec![replace(
                        "seen",
                        row.attributes.as_ref().unwrap()["n"].as_u64().unwrap(),
                        Guard::Newer(1),
                    )])
                }
            }
        },
    });
    let outcomes = handle(&driver, &[game(1), game(2), game(3)]).await;
    assert!(outcomes.iter().all(|outcome| outcome.acknowledges()), "{outcomes:?}");
    assert_eq!(stored(&driver.ledger, "seen"), Some(6));
}

/// Sums up the list from where the row says that it has come, some entries a commit.
struct Summing<F> {
    limit: usize,
    meanwhile: F,
}

impl<F> Summing<F> {
    fn rest(&self, state: &State) -> Range {
        let at = row_number(state, "sum").1.unwrap_or(0);
        list(&format!("{at:03}"), self.limit)
    }
}

impl<F: Fn() + Send + Sync> Decider for Summing<F> {
    fn needs(&self, _: &Event) -> Vec<Need> {
        vec![need("sum")]
    }

    fn further_needs(&self, _: &Event, state: &State) -> Result<Vec<Need>, RowError> {
        Ok(vec![self.rest(state).into()])
    }

    fn decide(&self, _: &Event, state: &State) -> Result<Decision, RowError> {
        (self.meanwhile)();
        let (version, at) = row_number(state, "sum");
        let Ok(rows) = state.range(&self.rest(state)) else {
            // Another record of the batch has gone on: the rest is read in the next wave.
            return Ok(Decision::Continue { writes: Vec::new(), checks: Vec::new() });
        };
        let count = rows.len();
        let writes = vec![
            replace("sum", at.unwrap_or(0) + count as u64, Guard::Unchanged(version)),
            add("entries", i64::try_from(count).unwrap()),
        ];
        Ok(match count {
            0 => Decision::Stale,
            full if full == self.limit => Decision::Continue { writes, checks: Vec::new() },
            _ => Decision::Apply { writes, checks: Vec::new() },
        })
    }
}

fn listed(entries: u32) -> Arc<MemoryLedger> {
    let ledger = Arc::new(MemoryLedger::default());
    for number in 1..=entries {
        ledger.put(entry(&format!("{number:03}")), numbered(1));
    }
    ledger
}

#[tokio::test]
async fn an_event_that_is_too_much_for_one_commit_goes_on_until_it_is_done() {
    let ledger = listed(25);
    let driver = sharing(&ledger, Summing { limit: 10, meanwhile: || {} });
    let report = driver.handle(&deliveries(&[game(1), game(2)]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["applied", "stale"]);
    assert_eq!((stored(&ledger, "sum"), stored(&ledger, "entries")), (Some(25), Some(25)));
    assert_eq!(ledger.commits(), 3);
}

#[tokio::test]
async fn what_a_row_says_is_needed_is_read_anew_after_a_refusal() {
    let ledger = listed(25);
    let (other, once) = (ledger.clone(), Once::new());
    let meanwhile = move || {
        if once.first() {
            other.put(key("sum"), numbered(7));
        }
    };
    let driver = sharing(&ledger, Summing { limit: 100, meanwhile });
    let report = driver.handle(&deliveries(&[game(1)]), deadline()).await;
    assert_eq!(names(&outcomes(&report)), ["applied"]);
    assert_eq!((stored(&ledger, "sum"), stored(&ledger, "entries")), (Some(25), Some(18)));
}

#[tokio::test]
async fn an_event_that_has_nothing_to_go_on_from_goes_back() {
    let driver = driver(Fake {
        needs: |_: &Event| Vec::new(),
        decide: |_: &Event, _: &State| Decision::Continue { writes: Vec::new(), checks: Vec::new() },
    });
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["retry", "retry"]);
}

#[tokio::test]
async fn an_unreadable_range_sends_back_who_needs_it_and_no_other() {
    let driver = driver(Fake {
        needs: |event: &Event| if event.aggregate_id == "game-00001" { vec![list("", 5).into()] } else { Vec::new() },
        decide: |_: &Event, _: &State| apply(vec![add("count", 1)]),
    });
    for _ in 0..4 {
        driver.ledger.inject(Fault::Unreadable);
    }
    assert_eq!(names(&handle(&driver, &[game(1), game(2)]).await), ["retry", "applied"]);
}

#[tokio::test]
async fn a_panic_or_an_error_in_the_further_needs_is_one_records_failure() {
    struct Failing;
    impl Decider for Failing {
        fn needs(&self, _: &Event) -> Vec<Need> {
            Vec::new()
        }
        fn further_needs(&self, event: &Event, state: &State) -> Result<Vec<Need>, RowError> {
            match event.aggregate_id.as_str() {
                "game-00001" => panic!("no more needs"),
                "game-00002" => state.row(&key("undeclared")).map(|_| Vec::new()),
                _ => Ok(vec![need("row")]),
            }
        }
        fn decide(&self, _: &Event, state: &State) -> Result<Decision, RowError> {
            state.row(&key("row")).map(|_| apply(vec![add("count", 1)]))
        }
    }
    let outcomes = handle(&driver(Failing), &[game(1), game(2), game(3)]).await;
    assert_eq!(names(&outcomes), ["retry", "retry", "applied"]);
}

#[tokio::test]
async fn a_range_that_was_not_named_is_not_read_by_chance() {
    struct Careless;
    impl Decider for Careless {
        fn needs(&self, event: &Event) -> Vec<Need> {
            if event.aggregate_id == "game-00001" { vec![list("", 5).into()] } else { Vec::new() }
        }
        fn decide(&self, _: &Event, state: &State) -> Result<Decision, RowError> {
            state.range(&list("", 5)).map(|_| Decision::Stale)
        }
    }
    assert_eq!(names(&handle(&driver(Careless), &[game(1), game(2)]).await), ["stale", "retry"]);
}
