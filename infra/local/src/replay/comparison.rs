//! Compares what the stack shows with the fold: every row, rank, histogram cell and counter.

use std::collections::{BTreeMap, BTreeSet};

use dynoxide::Database;
use events::{PlayerId, TimeControl};
use serde_json::{Value, json};
use thiserror::Error;

use super::client::{Client, ClientError};
use super::differences::Differences;
use super::fold::{Cells, Fold, Results};

/// Rows of a page.
const PAGE: usize = 100;
/// Players of a board whose place is asked for one by one.
const PLACES: usize = 25;

/// Why nothing could be compared.
#[derive(Debug, Error)]
pub enum ComparisonError {
    /// The API cannot be asked.
    #[error("cannot read what the API shows")]
    Client(#[from] ClientError),
    /// The table of views cannot be read.
    #[error("cannot read table {table}")]
    Table {
        /// Which table.
        table: String,
        /// What the database says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An answer or an item is not what it should be.
    #[error("{what} is not as expected: {value}")]
    Shape {
        /// Which part.
        what: &'static str,
        /// What it is.
        value: String,
    },
}

/// What was compared, and where it differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Board rows, each with its rank.
    pub(super) rows: usize,
    /// Histogram cells and block totals.
    pub(super) cells: usize,
    /// Counters of players' results.
    pub(super) counters: usize,
    /// Places asked for one by one.
    pub(super) places: usize,
    /// Where they differ.
    pub(super) differences: Differences,
    /// The first rows of every board, as the API shows them.
    pub(super) tops: BTreeMap<TimeControl, Vec<Row>>,
}

/// A row of a board as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Shared by ties.
    pub(super) rank: i64,
    /// Who.
    pub(super) player_id: PlayerId,
    /// The player's name.
    pub(super) name: String,
    /// Points.
    pub(super) rating: i64,
    /// Games on this board.
    pub(super) games: i64,
}

impl Comparison {
    /// Notes a difference.
    pub(super) fn differ(&mut self, text: String) {
        self.differences.note(text);
    }

    pub(super) fn check<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: impl Fn() -> String,
        expected: &T,
        actual: &T,
    ) {
        self.differences.check(what, expected, actual);
    }
}

/// Compares everything.
///
/// # Errors
///
/// When the API or the table cannot be read.
pub(super) async fn compare(
    fold: &Fold,
    client: &Client,
    database: &Database,
    views: &str,
) -> Result<Comparison, ComparisonError> {
    let mut comparison = Comparison::default();
    for time_control in TimeControl::ALL {
        compare_board(fold, client, time_control, &mut comparison).await?;
    }
    let items = scan_items(database, views)?;
    compare_histograms(fold, &items, &mut comparison);
    compare_results(fold, &items, &mut comparison)?;
    Ok(comparison)
}

async fn compare_board(
    fold: &Fold,
    client: &Client,
    time_control: TimeControl,
    comparison: &mut Comparison,
) -> Result<(), ComparisonError> {
    let rows = board(client, time_control, comparison).await?;
    let expected = fold.board(time_control);
    let ranks = fold.ranks(time_control);
    let mut seen = BTreeSet::new();
    for row in &rows {
        if !seen.insert(row.player_id.clone()) {
            comparison.differ(format!("{time_control}: {} is listed twice", row.player_id));
        }
        match expected.get(&row.player_id) {
            None => comparison.differ(format!("{time_control}: {} should not be listed", row.player_id)),
            Some((rating, games)) => {
                let player_id = row.player_id.clone();
                let name = fold.name(&player_id);
                let should = Row { rank: ranks[rating], player_id, name, rating: *rating, games: *games };
                comparison.check(|| format!("{time_control} row"), &should, row);
            }
        }
    }
    for player in expected.keys().filter(|player| !seen.contains(*player)) {
        comparison.differ(format!("{time_control}: {player} is missing"));
    }
    let descending = rows.iter().is_sorted_by_key(|row| std::cmp::Reverse(row.rating));
    comparison.check(|| format!("{time_control} is in descending order"), &true, &descending);
    comparison.rows += rows.len();
    let hidden = fold.boards.get(&time_control).into_iter().flat_map(BTreeMap::keys);
    for player in hidden.filter(|player| fold.is_hidden(player)).take(PLACES) {
        let missing = client.is_missing(&format!("/leaderboards/{time_control}/players/{player}")).await?;
        comparison.check(|| format!("{time_control}: {player} has no place"), &true, &missing);
        comparison.places += 1;
    }
    let step = (rows.len() / PLACES).max(1);
    for (index, row) in rows.iter().enumerate().step_by(step) {
        compare_place(client, time_control, (index, row), &rows, comparison).await?;
    }
    comparison.tops.insert(time_control, rows.into_iter().take(3).collect());
    Ok(())
}

/// Reads a board page by page to its end.
async fn board(
    client: &Client,
    time_control: TimeControl,
    comparison: &mut Comparison,
) -> Result<Vec<Row>, ComparisonError> {
    let mut rows = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page = client.get(&format!("/leaderboards/{time_control}?limit={PAGE}{after}")).await?;
        let listed = page["rows"].as_array().ok_or_else(|| shape("a page's rows", &page))?;
        for row in listed {
            rows.push(read_row(row)?);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => {
                let players = page["players"].as_u64().unwrap_or(0);
                comparison.check(|| format!("{time_control} players"), &(rows.len() as u64), &players);
                return Ok(rows);
            }
        }
    }
}

/// Asks for one player's place and compares it with the list.
async fn compare_place(
    client: &Client,
    time_control: TimeControl,
    (index, row): (usize, &Row),
    rows: &[Row],
    comparison: &mut Comparison,
) -> Result<(), ComparisonError> {
    let place = client.get(&format!("/leaderboards/{time_control}/players/{}", row.player_id)).await?;
    let what = || format!("{time_control} place of {}", row.player_id);
    comparison.check(what, row, &read_row(&place)?);
    comparison.check(what, &Some(rows.len() as u64), &place["players"].as_u64());
    let neighbours = |name: &'static str| -> Result<Vec<Row>, ComparisonError> {
        let listed = place[name].as_array().ok_or_else(|| shape(name, &place))?;
        listed.iter().map(read_row).collect()
    };
    comparison.check(what, &rows[index.saturating_sub(5)..index].to_vec(), &neighbours("above")?);
    comparison.check(what, &rows[index + 1..rows.len().min(index + 6)].to_vec(), &neighbours("below")?);
    comparison.places += 1;
    Ok(())
}

fn read_row(row: &Value) -> Result<Row, ComparisonError> {
    let number = |name: &str| row[name].as_i64().ok_or_else(|| shape("a board row", row));
    let player_id =
        row["player_id"].as_str().and_then(|id| id.parse().ok()).ok_or_else(|| shape("a board row", row))?;
    let name = row["username"].as_str().ok_or_else(|| shape("a board row", row))?.to_owned();
    Ok(Row { rank: number("rank")?, player_id, name, rating: number("rating")?, games: number("games")? })
}

/// An item of the table: keys and numbers.
pub(super) type Item = (String, String, BTreeMap<String, i64>);

fn compare_histograms(fold: &Fold, items: &[Item], comparison: &mut Comparison) {
    for time_control in TimeControl::ALL {
        let prefix = format!("HISTOGRAM#{time_control}#");
        let (mut cells, mut blocks) = (Cells::new(), Cells::new());
        for (_, _, numbers) in items.iter().filter(|(partition, _, _)| partition.starts_with(&prefix)) {
            for (name, number) in numbers {
                if let Some(rating) = name.strip_prefix('r').and_then(|rating| rating.parse().ok()) {
                    *cells.entry(rating).or_default() += number;
                } else if let Some(block) = name.strip_prefix('b').and_then(|block| block.parse().ok()) {
                    *blocks.entry(block).or_default() += number;
                }
            }
        }
        let expected = fold.histogram(time_control);
        let mut expected_blocks = Cells::new();
        for (rating, players) in &expected {
            *expected_blocks.entry(rating / 64).or_default() += players;
        }
        for (what, expected, actual) in [("rating", expected, cells), ("block", expected_blocks, blocks)] {
            let filled = expected.iter().chain(&actual).filter(|(_, players)| **players != 0);
            let keys: BTreeSet<i64> = filled.map(|(key, _)| *key).collect();
            comparison.cells += keys.len();
            for key in keys {
                let count = |cells: &Cells| cells.get(&key).copied().unwrap_or(0);
                let name = || format!("{time_control} histogram, {what} {key}");
                comparison.check(name, &count(&expected), &count(&actual));
            }
        }
    }
}

fn compare_results(fold: &Fold, items: &[Item], comparison: &mut Comparison) -> Result<(), ComparisonError> {
    let mut totals = BTreeMap::new();
    let mut days = BTreeMap::new();
    for (partition, sort, numbers) in items {
        let Some(player) = partition.strip_prefix("STATISTICS#") else {
            continue;
        };
        let unexpected =
            || ComparisonError::Shape { what: "a key of statistics", value: format!("{partition}/{sort}") };
        let player: PlayerId = player.parse().map_err(|_| unexpected())?;
        let counter = |name: &str| numbers.get(name).copied().unwrap_or(0);
        let results: Results = [counter("wins"), counter("draws"), counter("losses")];
        let mut parts = sort.split('#');
        let time_control = |text: Option<&str>| text.and_then(|text| text.parse::<TimeControl>().ok());
        match parts.next() {
            Some("TOTAL") => {
                let board = time_control(parts.next()).ok_or_else(unexpected)?;
                totals.insert((player, board), results);
            }
            Some("DAY") => {
                let day = parts.next().ok_or_else(unexpected)?.to_owned();
                let board = time_control(parts.next()).ok_or_else(unexpected)?;
                days.insert((player, board, day), results);
            }
            Some(_) | None => return Err(unexpected()),
        }
    }
    compare_maps("results", &fold.totals, &totals, comparison);
    compare_maps("results of a day", &fold.days, &days, comparison);
    Ok(())
}

fn compare_maps<K: Ord + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<K, Results>,
    actual: &BTreeMap<K, Results>,
    comparison: &mut Comparison,
) {
    let keys: BTreeSet<&K> = expected.keys().chain(actual.keys()).collect();
    comparison.counters += keys.len() * 3;
    for key in keys {
        comparison.check(|| format!("{what} {key:?}"), &expected.get(key), &actual.get(key));
    }
}

/// Reads a table to its end.
///
/// # Errors
///
/// When it cannot be read.
pub(super) fn scan(database: &Database, table: &str) -> Result<Vec<Value>, ComparisonError> {
    pages(database, table, &json!({"TableName": table, "ConsistentRead": true}))
}

/// Returns the items whose attribute is this text, as the table has them.
pub(super) fn scan_where(
    database: &Database,
    table: &str,
    (attribute, text): (&str, &str),
) -> Result<Vec<Value>, ComparisonError> {
    let request = json!({
        "TableName": table,
        "ConsistentRead": true,
        "FilterExpression": "#a = :t",
        "ExpressionAttributeNames": {"#a": attribute},
        "ExpressionAttributeValues": {":t": {"S": text}},
    });
    pages(database, table, &request)
}

fn pages(database: &Database, table: &str, request: &Value) -> Result<Vec<Value>, ComparisonError> {
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| ComparisonError::Table { table: table.to_owned(), source };
    let mut items = Vec::new();
    let mut request = request.clone();
    loop {
        let page = serde_json::from_value(request.clone()).map_err(|error| failed(Box::new(error)))?;
        let response = database.scan(page).map_err(|error| failed(Box::new(error)))?;
        let response = serde_json::to_value(response).map_err(|error| failed(Box::new(error)))?;
        items.extend(response["Items"].as_array().ok_or_else(|| shape("a scan", &response))?.iter().cloned());
        match response.get("LastEvaluatedKey") {
            Some(start) if !start.is_null() => request["ExclusiveStartKey"] = start.clone(),
            Some(_) | None => return Ok(items),
        }
    }
}

/// Reads a table to its end, keys and numbers.
///
/// # Errors
///
/// When it cannot be read.
pub(super) fn scan_items(database: &Database, table: &str) -> Result<Vec<Item>, ComparisonError> {
    Ok(scan(database, table)?.iter().map(read_item).collect())
}

fn read_item(item: &Value) -> Item {
    let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value["N"].as_str().and_then(|digits| digits.parse().ok());
    let numbers =
        item.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), number(value)?)));
    (text("pk"), text("sk"), numbers.collect())
}

pub(super) fn shape(what: &'static str, value: &Value) -> ComparisonError {
    ComparisonError::Shape { what, value: value.to_string() }
}
