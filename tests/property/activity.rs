//! Days: every event is counted once by its type, every player once a day.

use std::collections::{BTreeMap, BTreeSet};

use domain::activity::{ActivePlayers, EventCounts};
use events::{Consumer, Event, Payload};
use proptest::prelude::*;
use testkit::MemoryLedger;

use crate::history::{Run, run};
use crate::{delivered, handle, numbers, whole_and_single};

/// Counters of a kind by day and name, shards added up.
fn counted(ledger: &MemoryLedger, sort: &str) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for (key, counters) in ledger.rows() {
        let Some(rest) = key.partition.strip_prefix("ACTIVITY#").filter(|_| key.sort == sort) else { continue };
        let day = rest.split('#').next().expect("a day").to_owned();
        for (name, number) in numbers(&counters) {
            *sums.entry((day.clone(), name.to_owned())).or_default() += number;
        }
    }
    sums
}

fn day(event: &Event) -> String {
    event.occurred_at.day().to_string()
}

fn events_by_day(run: &Run) -> BTreeMap<(String, String), i64> {
    let mut counts = BTreeMap::new();
    for event in &run.games {
        *counts.entry((day(event), event.payload.event_type().to_string())).or_default() += 1;
    }
    counts
}

fn players_by_day(run: &Run) -> BTreeMap<(String, String), i64> {
    let mut players = BTreeSet::new();
    for event in &run.games {
        let Payload::GameEnded(game) = &event.payload else { panic!("no game: {event:?}") };
        players.extend([&game.white, &game.black].map(|side| (day(event), side.player_id.clone())));
    }
    let mut counts = BTreeMap::new();
    for (day, _) in players {
        *counts.entry((day, "active_players".to_owned())).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_day_counts_every_event_once(run in run()) {
        let driver = delivered(Consumer::Activity, EventCounts, &run);
        prop_assert_eq!(counted(&driver.ledger, "EVENTS"), events_by_day(&run));
    }

    #[test]
    fn a_day_counts_every_player_once_and_once_more_changes_nothing(run in run()) {
        let driver = delivered(Consumer::ActivePlayers, ActivePlayers, &run);
        prop_assert_eq!(counted(&driver.ledger, "PLAYERS"), players_by_day(&run));
        let (before, commits) = (driver.ledger.rows(), driver.ledger.commits());
        handle(&driver, &run.games);
        prop_assert_eq!((driver.ledger.rows(), driver.ledger.commits()), (before, commits));
    }

    #[test]
    fn a_batch_decided_as_one_equals_its_records_one_by_one(run in run()) {
        let [whole, single] = whole_and_single(Consumer::Activity, EventCounts, &run);
        prop_assert_eq!(counted(&whole.ledger, "EVENTS"), counted(&single.ledger, "EVENTS"));

        let [whole, single] = whole_and_single(Consumer::ActivePlayers, ActivePlayers, &run);
        prop_assert_eq!(counted(&whole.ledger, "PLAYERS"), counted(&single.ledger, "PLAYERS"));
    }
}
