//! An order as its events say: the snapshot and what follows on it, read consistently. The view is not asked; it comes later.

use domain::orders::{EventRecord, Order, Snapshot, StoredEventError};
use domain::{State, Table};
use events::{Disposition, OrderId};

use crate::Api;
use crate::problem::{Kind, Problem};
use crate::store::{Direction, Range, Sort};

/// Events of a page. An order that has a snapshot has fewer behind it.
const PAGE_EVENTS: usize = 500;

/// What the events of an order come to.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The order after the last event that can be folded.
    pub(super) order: Option<Order>,
    /// The first version that is missing or cannot be read, where there are later ones.
    pub(super) incomplete_from: Option<u64>,
}

impl History {
    /// Reads an order's events behind its snapshot, which is among the rows that were fetched.
    pub(super) async fn read(api: &Api, order_id: &OrderId, fetched: &State) -> Result<Self, Problem> {
        let snapshot = Snapshot::read(order_id, fetched.row(&Snapshot::key(order_id))?);
        let mut history = Self { order: snapshot, incomplete_from: None };
        loop {
            let events = history.next_page(api, order_id).await?;
            if events < PAGE_EVENTS || history.incomplete_from.is_some() {
                return Ok(history);
            }
        }
    }

    /// Returns the order, unless some of its history is missing: then nothing can be decided.
    pub(super) fn complete(self, order_id: &OrderId) -> Result<Option<Order>, Problem> {
        match self.incomplete_from {
            None => Ok(self.order),
            Some(version) => Err(incomplete(order_id, version)),
        }
    }

    async fn next_page(&mut self, api: &Api, order_id: &OrderId) -> Result<usize, Problem> {
        let mut next = self.order.as_ref().map_or(0, |order| order.version);
        let behind = EventRecord::behind(order_id, next, PAGE_EVENTS);
        let page = Range {
            table: Table::Records,
            index: None,
            partition: behind.partition,
            sort: if behind.after.is_empty() { Sort::All } else { Sort::Above(behind.after) },
            direction: Direction::Ascending,
            limit: Some(PAGE_EVENTS),
        };
        let items = api.store.query(&page).await?;
        let events = items.len();
        for item in items {
            next += 1;
            let (key, row) = aws::items::row(Table::Records, item).map_err(|error| Problem::internal(&error))?;
            let followed = match EventRecord::read(&key, &row) {
                Ok(record) => Order::follow(&mut self.order, order_id, &record.event).is_ok(),
                Err(error) => unreadable(&error)?,
            };
            if !followed {
                self.incomplete_from = Some(next);
                break;
            }
        }
        Ok(events)
    }
}

/// An event that newer code has written can be read once this code has been replaced; any other one is a gap.
pub(super) fn unreadable(error: &StoredEventError) -> Result<bool, Problem> {
    match error {
        StoredEventError::Undecodable { source, .. } if source.disposition() == Disposition::Retry => {
            Err(Problem::unavailable(aws::telemetry::chain(error)))
        }
        StoredEventError::Undecodable { .. }
        | StoredEventError::NotARecord { .. }
        | StoredEventError::Misplaced { .. } => Ok(false),
    }
}

/// The problem of an order whose history has a gap.
pub(super) fn incomplete(order_id: &OrderId, version: u64) -> Problem {
    let detail =
        format!("Event {version} of order {order_id} is missing or cannot be read. Somebody has to look into it.");
    Problem::new(Kind::OrderIncomplete, detail)
}

/// The problem of an order that nobody has placed.
pub(super) fn not_found(order_id: &OrderId) -> Problem {
    Problem::new(Kind::NotFound, format!("There is no order {order_id}."))
}
