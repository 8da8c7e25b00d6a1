//! Making the views of orders anew from the event store, order by order, while the consumer goes on. What is right already
//! stays as it is; what the consumer changes meanwhile is looked at again.

use aws::items::TableNames;
use aws_sdk_dynamodb::Client;
use domain::orders::{
    EventRecord, FOLD_MAX, Gap, Order, OrderLine, SNAPSHOT_EVERY, Snapshot, Wait, event_sort_key, partition,
    view_writes,
};
use domain::{Attributes, Content, Guard, Key, Need, Row, RowError, State, Write};
use events::OrderId;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::checkpoint::Checkpoint;
use crate::tables::{Tables, TablesError, Written};

/// Records that are looked at between two checkpoints.
const PAGE_RECORDS: i32 = 1_000;
/// Orders that are looked at at the same time.
const ORDERS_AT_ONCE: usize = 8;
/// How often an order is looked at again because the consumer has changed it.
const TRIES_MAX: u32 = 20;

/// What a rebuild has done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Orders that were looked at.
    pub orders: u64,
    /// Those of them whose rows were not what their events say.
    pub rewritten: u64,
    /// Those that miss an event, with the first version that is missing or cannot be read.
    pub incomplete: Vec<(OrderId, u64)>,
}

/// Where a rebuild begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Behind the last checkpoint of an interrupted run.
    WhereItEnded,
    /// With the first record.
    Anew,
}

/// Who is told how a rebuild goes on.
pub trait Progress {
    /// There are about this many records.
    fn begin(&self, records: u64);

    /// This many records have been looked at, with this result.
    fn page(&self, records: u64, report: &Report);

    /// It is done.
    fn end(&self);
}

/// Why a rebuild ended early. Another run goes on behind the last page that was done.
#[derive(Debug, Error)]
pub enum RebuildError {
    /// The tables could not be read or written.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A row is not what this code makes.
    #[error("a row cannot be made")]
    Row(#[from] RowError),
    /// The consumer was faster each time.
    #[error("order {order_id} was changed by others {TRIES_MAX} times")]
    Overtaken {
        /// Which order.
        order_id: OrderId,
    },
    /// Another run has moved the checkpoint.
    #[error("another rebuild is under way")]
    UnderWay,
}

/// A rebuild of the views of orders.
#[derive(Debug, Clone)]
pub struct OrderRebuild {
    tables: Tables,
    page_records: i32,
}

impl OrderRebuild {
    /// Works on these tables: `scans` has to retry by itself, `writes` must not.
    pub fn new(scans: Client, writes: Client, names: TableNames) -> Self {
        Self { tables: Tables::new(scans, writes, names), page_records: PAGE_RECORDS }
    }

    /// Sets how many records are looked at between two checkpoints.
    pub fn page_records(mut self, page_records: i32) -> Self {
        self.page_records = page_records;
        self
    }

    /// Looks at every order once, and makes its rows what its events say.
    ///
    /// # Errors
    /// It ended early.
    pub async fn run(&self, begin: Begin, progress: &impl Progress) -> Result<Report, RebuildError> {
        const WHAT: &str = "orders";
        let key = Checkpoint::key(WHAT);
        let state = self.tables.fetch([Need::Key(key.clone())]).await?;
        let row = state.row(&key)?;
        let mut revision = row.version;
        let mut place = match begin {
            Begin::WhereItEnded => Checkpoint::read(&key, row),
            Begin::Anew => Checkpoint::default(),
        };
        progress.begin(self.tables.records().await?);
        loop {
            let first = (partition_prefix(), event_sort_key(1));
            let page = self.tables.page((&first.0, &first.1), place.after.as_ref(), self.page_records).await?;
            let orders: Vec<OrderId> = page.partitions.iter().filter_map(|found| order_of(found)).collect();
            self.page(orders, &mut place.report).await?;
            place.records += page.records;
            place.after = page.end;
            progress.page(place.records, &place.report);
            let done = place.after.is_none();
            let write = if done { Checkpoint::forget(&key, revision) } else { place.write(&key, revision)? };
            match self.tables.write(vec![write]).await? {
                Written::Done => revision += 1,
                Written::Refused => return Err(RebuildError::UnderWay),
            }
            if done {
                progress.end();
                return Ok(place.report);
            }
        }
    }

    async fn page(&self, orders: Vec<OrderId>, report: &mut Report) -> Result<(), RebuildError> {
        let results: Vec<(OrderId, Rebuilt)> = stream::iter(orders)
            .map(|order_id| async move { self.order(&order_id).await.map(|rebuilt| (order_id, rebuilt)) })
            .buffered(ORDERS_AT_ONCE)
            .try_collect()
            .await?;
        for (order_id, rebuilt) in results {
            report.orders += 1;
            report.rewritten += u64::from(rebuilt.rewritten);
            report.incomplete.extend(rebuilt.incomplete_from.map(|version| (order_id, version)));
        }
        Ok(())
    }

    /// Looks at one order until it is what its events say.
    async fn order(&self, order_id: &OrderId) -> Result<Rebuilt, RebuildError> {
        let mut rewritten = false;
        for _ in 0..TRIES_MAX {
            let rows = [Order::view_key(order_id), Snapshot::key(order_id), Wait::key(order_id), Gap::key(order_id)];
            let state = self.tables.fetch(rows.map(Need::Key)).await?;
            let kept = Snapshot::read(order_id, state.row(&Snapshot::key(order_id))?);
            let fold = self.fold(order_id, kept.map(|kept| kept.version)).await?;
            let repair = self.repair(order_id, &state, &fold).await?;
            let incomplete_from = fold.incomplete_from;
            if repair.is_empty() {
                return Ok(Rebuilt { rewritten, incomplete_from });
            }
            rewritten |= self.carry_out(repair).await? == Written::Done;
        }
        Err(RebuildError::Overtaken { order_id: order_id.clone() })
    }

    /// Folds an order's events from the first.
    async fn fold(&self, order_id: &OrderId, kept: Option<u64>) -> Result<Fold, RebuildError> {
        let mut fold = Fold::default();
        loop {
            let next = fold.order.as_ref().map_or(0, |order| order.version);
            let range = EventRecord::behind(order_id, next, FOLD_MAX);
            let state = self.tables.fetch([Need::Range(range.clone())]).await?;
            let rows = state.range(&range)?;
            for (key, row) in &rows {
                let read = EventRecord::read(key, row).ok();
                let followed =
                    read.is_some_and(|record| Order::follow(&mut fold.order, order_id, &record.event).is_ok());
                let version = fold.order.as_ref().map_or(0, |order| order.version);
                if !followed {
                    fold.incomplete_from = Some(version + 1);
                    return Ok(fold);
                }
                if Some(version) == kept {
                    fold.at_snapshot = fold.order.clone();
                }
            }
            if rows.len() < FOLD_MAX {
                return Ok(fold);
            }
        }
    }

    /// Returns what has to be done for an order's rows to be what its events say; nothing if they are.
    async fn repair(&self, order_id: &OrderId, state: &State, fold: &Fold) -> Result<Repair, RebuildError> {
        let mut repair = Repair::default();
        let Some(order) = &fold.order else { return Ok(repair) };
        let view = state.row(&Order::view_key(order_id))?;
        let line_key = OrderLine::key(order);
        let lines = self.tables.fetch([Need::Key(line_key.clone())]).await?;
        let line = lines.row(&line_key)?;
        let (view_is_right, line_is_right) = (says(view, order)?, says(line, &OrderLine::of(order))?);
        if !line_is_right && line.version > 0 {
            repair.removals.push((line_key, line.version));
        }
        let [view_write, line_write] = view_writes(order, view.version)?;
        repair.writes.extend(Some(view_write).filter(|_| !view_is_right));
        repair.writes.extend(Some(line_write).filter(|_| !line_is_right));
        let snapshot_key = Snapshot::key(order_id);
        let snapshot = state.row(&snapshot_key)?;
        let kept = Snapshot::read(order_id, snapshot);
        let is_right = kept.is_some() && kept == fold.at_snapshot;
        let behind = order.version - kept.filter(|_| is_right).map_or(0, |kept| kept.version);
        if !is_right && snapshot.attributes.is_some() {
            repair.removals.push((snapshot_key, snapshot.version));
        }
        if behind >= SNAPSHOT_EVERY {
            repair.writes.push(Snapshot::of(order)?);
        }
        if fold.incomplete_from.is_none() {
            let notes = [Wait::key(order_id), Gap::key(order_id)];
            repair.writes.extend(notes.iter().filter_map(|key| closing(key, state, order.version)));
        }
        Ok(repair)
    }

    async fn carry_out(&self, repair: Repair) -> Result<Written, RebuildError> {
        for (key, revision) in &repair.removals {
            if self.tables.remove(key, *revision).await? == Written::Refused {
                return Ok(Written::Refused);
            }
        }
        if repair.writes.is_empty() { Ok(Written::Done) } else { Ok(self.tables.write(repair.writes).await?) }
    }
}

/// What became of an order.
#[derive(Debug, Clone, Copy)]
struct Rebuilt {
    rewritten: bool,
    incomplete_from: Option<u64>,
}

/// What an order's events come to.
#[derive(Debug, Default)]
struct Fold {
    order: Option<Order>,
    /// The order at the version of the snapshot that is kept.
    at_snapshot: Option<Order>,
    incomplete_from: Option<u64>,
}

/// Wrong rows to be removed, by revision, and rows to be written.
#[derive(Debug, Default)]
struct Repair {
    removals: Vec<(Key, u64)>,
    writes: Vec<Write>,
}

impl Repair {
    fn is_empty(&self) -> bool {
        self.removals.is_empty() && self.writes.is_empty()
    }
}

fn partition_prefix() -> String {
    const ANY: &str = "x";
    ANY.parse().map(|any: OrderId| partition(&any).trim_end_matches(ANY).to_owned()).unwrap_or_default()
}

fn order_of(found: &str) -> Option<OrderId> {
    found.strip_prefix(&partition_prefix())?.parse().ok()
}

/// Whether a row says this, to the byte.
fn says<T: Serialize>(row: &Row, expected: &T) -> Result<bool, RebuildError> {
    let expected = serde_json::to_value(expected).and_then(serde_json::from_value::<Attributes>);
    Ok(expected.is_ok_and(|expected| row.attributes.as_ref() == Some(&expected)))
}

/// Returns the write that removes a note which nothing is missing for any more.
fn closing(key: &Key, state: &State, version: u64) -> Option<Write> {
    #[derive(Deserialize)]
    struct Note {
        missing: domain::Versions,
    }
    let row = state.row(key).ok()?;
    let note: Note = row.decode(key).ok()??;
    let settled = note.missing.last().is_none_or(|last| last <= version);
    let guard = Guard::Unchanged(row.version);
    settled.then(|| Write::Replace { key: key.clone(), content: Content::Tombstone, guard })
}
