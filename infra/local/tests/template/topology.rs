//! The topology as it is shown: README's picture and table say what the code and the templates say, and so does the file that the
//! rules on the templates are checked with.

use std::path::Path;

use events::EventType;
use local::model::Model;
use local::topology::{ConsumerEntry, Topology, picture, table};

use crate::project::{project, root};

/// More types than this are described in README, not listed.
const TYPES_LISTED_MAX: usize = 8;
/// Whom README says canaries go to.
const EVERYONE: &str = "all of them";

fn file(path: &str) -> String {
    std::fs::read_to_string(root().join(Path::new(path))).unwrap()
}

fn model() -> Model {
    project(&[])
}

#[test]
fn the_file_for_the_rules_is_the_topology() {
    let expected = Topology::of_code().json() + "\n";
    let path = root().join("tests/sam/topology/topology.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let actual = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "cargo run -- topology --json > tests/sam/topology/topology.json writes it");
}

#[test]
fn the_picture_in_the_readme_is_the_topology() {
    let readme = file("README.md");
    let (_, behind) = readme.split_once("```mermaid\n").unwrap();
    let (picture_there, _) = behind.split_once("```").unwrap();

    assert_eq!(picture_there, picture(&Topology::of_code(), &model()), "cargo run -- topology prints it");
}

#[test]
fn the_table_in_the_readme_has_every_consumer_with_its_events_and_its_queue() {
    let readme = file("README.md");
    let rows = readme.lines().skip_while(|line| !line.starts_with("| event | consumer | queue |")).skip(2);
    let rows: Vec<Vec<&str>> =
        rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim).collect()).collect();
    let mut there: Vec<(Vec<String>, &str, String)> = rows
        .iter()
        .filter(|row| row[2] != EVERYONE)
        .map(|row| (code(row[1]), row[2], code(row[3]).join(" ")))
        .collect();
    there.sort();
    let mut expected: Vec<(Vec<String>, String, String)> =
        Topology::of_code().consumers.iter().map(expected_row).collect();
    expected.sort();
    let there: Vec<_> =
        there.into_iter().map(|(events, consumer, queue)| (events, consumer.to_owned(), queue)).collect();
    assert_eq!(there, expected);
}

fn expected_row(consumer: &ConsumerEntry) -> (Vec<String>, String, String) {
    let named = consumer.events.iter().filter(|event| **event != EventType::CanarySent.as_str());
    let mut events: Vec<String> = named.map(|event| (*event).to_owned()).collect();
    if events.len() > TYPES_LISTED_MAX {
        events.clear();
    }
    events.sort();
    (events, format!("`{}`", consumer.name), consumer.queue.to_owned())
}

/// Returns what stands between backticks in a cell, sorted.
fn code(cell: &str) -> Vec<String> {
    let mut names: Vec<String> = cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn the_table_has_the_numbers_of_the_template() {
    let table = table(&Topology::of_code(), &model());

    let line = |name: &str| table.lines().find(|line| line.contains(&format!("| `{name}` |"))).unwrap().to_owned();
    let boards = "| `game_ended` | `game-ended` | `game-ended` | board rows, histogram | 500 | 1 s | 2 | 20 |";
    assert_eq!(line("game-ended"), boards);
    assert!(line("notification-requested").ends_with("| 100 | 1 s | 2 | 100 |"), "{table}");
    assert!(
        line("order-changed").contains("| `order-changed.fifo` | views, snapshot, gap | 10 | 0 s | 20 | 20 |"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 2 + Topology::of_code().consumers.len());
}
