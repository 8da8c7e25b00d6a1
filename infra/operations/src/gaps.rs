//! The list of orders that miss events, for somebody to look into.

use std::fmt;

use domain::orders::{GAPS, Gap};
use domain::{Need, Range, Table};
use serde::Serialize;

use crate::tables::{Tables, TablesError};

/// Rows that are read at once. Gaps that have closed leave tombstones between those that are open.
const PAGE_ROWS: usize = 500;

/// An order that misses events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OpenGap(pub Gap);

/// Returns a page of open gaps behind a place, and the place where it ended; `None` behind the last one.
///
/// # Errors
/// The views cannot be read.
pub async fn page(tables: &Tables, after: &str) -> Result<(Vec<OpenGap>, Option<String>), TablesError> {
    let (partition, after) = (GAPS.to_owned(), after.to_owned());
    let range = Range { table: Table::Views, partition, after, limit: PAGE_ROWS };
    let state = tables.fetch([Need::Range(range.clone())]).await?;
    let rows = state.range(&range)?;
    let mut gaps = Vec::new();
    for (key, row) in &rows {
        gaps.extend(row.decode::<Gap>(key)?.map(OpenGap));
    }
    let end = rows.last().filter(|_| rows.len() == PAGE_ROWS).map(|(key, _)| key.sort.clone());
    Ok((gaps, end))
}

impl fmt::Display for OpenGap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap { order_id, missing, unreadable, since, listed_at, listed_by } = &self.0;
        write!(formatter, "order {order_id}: versions {missing} are missing since {since}")?;
        if !unreadable.is_empty() {
            write!(formatter, ", {unreadable} of them are there and cannot be read")?;
        }
        write!(formatter, "; listed at {listed_at} for event {listed_by}")
    }
}
