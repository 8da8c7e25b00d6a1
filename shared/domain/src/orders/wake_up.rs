//! The consumer of orders' events. A message is a wake-up: what it says is read from the event store, from where the view
//! has come to, and everything that follows without a gap is folded. Gaps are waited for, then listed; nothing is skipped.

use std::time::Duration;

use events::{Event, OrderId, Payload, Timestamp};

use super::gap::{Gap, Wait};
use super::order::Order;
use super::snapshot::Snapshot;
use super::store::EventRecord;
use super::view::view_writes;
use crate::decision::{attributes, foreign};
use crate::{Check, Content, Decider, Decision, Guard, Key, Need, Range, Row, RowError, State, Versions, Write};

/// Events that are folded in one commit, at most: so much is in memory for each message of a batch.
pub const FOLD_MAX: usize = 500;
/// How long missing events are waited for before they are listed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps the views of orders, their snapshots and the list of gaps.
#[derive(Debug, Clone, Copy, Default)]
pub struct OrderViews;

impl Decider for OrderViews {
    fn needs(&self, event: &Event) -> Vec<Need> {
        let Some(order_id) = order_of(event) else { return Vec::new() };
        [Order::view_key(&order_id), Snapshot::key(&order_id), Wait::key(&order_id), Gap::key(&order_id)]
            .map(Need::Key)
            .to_vec()
    }

    fn further_needs(&self, event: &Event, state: &State) -> Result<Vec<Need>, RowError> {
        let Some(order_id) = order_of(event) else { return Ok(Vec::new()) };
        let known = Known::read(&order_id, state)?;
        Ok(if known.is_done(event) { Vec::new() } else { vec![Need::Range(known.rest())] })
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Payload::Order(_) = &event.payload else { return foreign(event) };
        let Some(order_id) = order_of(event) else {
            return Ok(Decision::Reject(format!("{:?} is not the id of an order", event.aggregate_id)));
        };
        let known = Known::read(&order_id, state)?;
        if known.is_done(event) {
            return Ok(Decision::Stale);
        }
        let Ok(rows) = state.range(&known.rest()) else {
            // Another wake-up of the batch has brought the view further; the events behind that are yet to be read.
            return Ok(Decision::Continue { writes: Vec::new(), checks: Vec::new() });
        };
        let wanted = known.wanted(event);
        let fold = Fold::of(&known, wanted, &rows);
        let mut writes = known.advanced(fold.order.as_ref())?;
        if fold.missing.is_empty() {
            if fold.reach < wanted {
                return Ok(Decision::Continue { writes, checks: Vec::new() });
            }
            writes.extend(known.closed());
            return Ok(Decision::Apply { writes, checks: Vec::new() });
        }
        gap_decision(event, &known, fold, writes, state.now())
    }
}

fn order_of(event: &Event) -> Option<OrderId> {
    let Payload::Order(_) = &event.payload else { return None };
    event.aggregate_id.parse().ok()
}

/// What is known of an order before its events are read. Notes that cannot be read are as good as none: they are written
/// anew and never a reason to stop.
struct Known {
    order_id: OrderId,
    view_revision: u64,
    view: Option<Order>,
    snapshot: Option<Order>,
    wait: Note<Wait>,
    gap: Note<Gap>,
}

/// A row with what it says, if it can be read.
struct Note<T> {
    key: Key,
    row: Row,
    content: Option<T>,
}

impl<T: serde::de::DeserializeOwned + serde::Serialize + PartialEq> Note<T> {
    fn read(key: Key, state: &State) -> Result<Self, RowError> {
        let row = state.row(&key)?.clone();
        let content = row.decode(&key).ok().flatten();
        Ok(Self { key, row, content })
    }

    /// Returns the write that makes the row say this, or nothing at all; `None` if it does already.
    fn write(&self, content: Option<&T>) -> Result<Option<Write>, RowError> {
        let is_so = content == self.content.as_ref() && (content.is_some() || self.row.attributes.is_none());
        if is_so {
            return Ok(None);
        }
        let content = match content {
            Some(content) => Content::Row(attributes(content, &self.key)?),
            None => Content::Tombstone,
        };
        Ok(Some(Write::Replace { key: self.key.clone(), content, guard: Guard::Unchanged(self.row.version) }))
    }

    /// The same for no content, which cannot fail.
    fn removed(&self) -> Option<Write> {
        self.write(None).ok().flatten()
    }
}

impl Known {
    fn read(order_id: &OrderId, state: &State) -> Result<Self, RowError> {
        let view_key = Order::view_key(order_id);
        let view_row = state.row(&view_key)?;
        let view = view_row.decode::<Order>(&view_key).ok().flatten();
        Ok(Self {
            order_id: order_id.clone(),
            view_revision: view_row.version,
            view: view.filter(|view| view.order_id == *order_id),
            snapshot: Snapshot::read(order_id, state.row(&Snapshot::key(order_id))?),
            wait: Note::read(Wait::key(order_id), state)?,
            gap: Note::read(Gap::key(order_id), state)?,
        })
    }

    /// The version that the view shows; 0 if it shows nothing, or nothing that can be read.
    fn viewed(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.version)
    }

    /// Whether nothing is left to do for an event: the view has come to it, and nobody waits on its behalf. Where a wait is
    /// noted, every wake-up looks after it, since the one that began it may have seen what it came for.
    fn is_done(&self, event: &Event) -> bool {
        let listed_by = self.gap.content.as_ref().map(|gap| gap.listed_by);
        self.viewed() >= event.version && self.wait.content.is_none() && listed_by != Some(event.event_id)
    }

    /// The highest version that anybody has heard of.
    fn wanted(&self, event: &Event) -> u64 {
        let awaited = self.wait.content.as_ref().and_then(|wait| wait.missing.last());
        let listed = self.gap.content.as_ref().and_then(|gap| gap.missing.last());
        event.version.max(awaited.unwrap_or(0)).max(listed.unwrap_or(0))
    }

    /// What the fold begins with: the view, or without one the snapshot.
    fn base(&self) -> Option<&Order> {
        self.view.as_ref().or(self.snapshot.as_ref())
    }

    /// The events that are yet to be folded.
    fn rest(&self) -> Range {
        EventRecord::behind(&self.order_id, self.base().map_or(0, |base| base.version), FOLD_MAX)
    }

    /// The writes that bring view and snapshot to this order.
    fn advanced(&self, order: Option<&Order>) -> Result<Vec<Write>, RowError> {
        let Some(order) = order.filter(|order| self.view.as_ref() != Some(*order)) else { return Ok(Vec::new()) };
        let mut writes = view_writes(order, self.view_revision)?.to_vec();
        writes.extend(Snapshot::write(order, self.snapshot.as_ref())?);
        Ok(writes)
    }

    /// What a decision about a gap relies on when it does not write the view: that nobody has brought it further. Without it
    /// an instance that stood still would note a wait, or list a gap, that is over.
    fn unmoved(&self) -> Check {
        Check { key: Order::view_key(&self.order_id), version: self.view_revision }
    }

    /// The writes that end a wait and close the entry in the list.
    fn closed(&self) -> impl Iterator<Item = Write> {
        self.wait.removed().into_iter().chain(self.gap.removed())
    }
}

/// What the events that were read come to.
struct Fold {
    /// The order after the last event before the first gap.
    order: Option<Order>,
    /// The versions that cannot be folded: not there, or not readable.
    missing: Versions,
    /// Those of them that are there.
    unreadable: Versions,
    /// The highest version that was looked for.
    reach: u64,
}

impl Fold {
    fn of(known: &Known, wanted: u64, rows: &[(&Key, &Row)]) -> Self {
        let order = known.base().cloned();
        let reach = order.as_ref().map_or(0, |order| order.version);
        let mut fold = Self { order, missing: Versions::default(), unreadable: Versions::default(), reach };
        for (key, row) in rows {
            fold.take(&known.order_id, key, row);
        }
        // Behind a full range there may be more; behind the last event of a partition there is nothing.
        if rows.len() < FOLD_MAX && fold.reach < wanted {
            fold.missing.push_run(fold.reach + 1, wanted);
            fold.reach = wanted;
        }
        fold
    }

    fn take(&mut self, order_id: &OrderId, key: &Key, row: &Row) {
        let Some(version) = key.sort.parse::<u64>().ok().filter(|version| *version > self.reach) else { return };
        self.missing.push_run(self.reach + 1, version - 1);
        self.reach = version;
        let read = EventRecord::read(key, row).ok();
        let blocked = match read {
            None => true,
            // Whether it follows on what is missing cannot be told yet.
            Some(_) if !self.missing.is_empty() => false,
            Some(record) => Order::follow(&mut self.order, order_id, &record.event).is_err(),
        };
        if blocked {
            self.missing.push_run(version, version);
            self.unreadable.push_run(version, version);
        }
    }
}

/// Waits for what is missing and not on the list, or lists it once it has been waited for.
fn gap_decision(
    event: &Event,
    known: &Known,
    fold: Fold,
    mut writes: Vec<Write>,
    now: Timestamp,
) -> Result<Decision, RowError> {
    let Fold { missing, unreadable, .. } = fold;
    let advances = !writes.is_empty();
    let checks = |writes: &[Write]| if advances || writes.is_empty() { Vec::new() } else { vec![known.unmoved()] };
    let listed = known.gap.content.as_ref();
    let on_list = listed.map(|gap| gap.missing.clone()).unwrap_or_default();
    let awaited = missing.without(&on_list);
    // What has come meanwhile leaves the list.
    let still = on_list.without(&on_list.without(&missing));
    let shortened = listed.filter(|_| !still.is_empty()).map(|gap| Gap {
        missing: still.clone(),
        unreadable: unreadable.without(&unreadable.without(&still)),
        ..gap.clone()
    });
    if awaited.is_empty() {
        writes.extend(known.gap.write(shortened.as_ref())?);
        writes.extend(known.wait.removed());
        let by_itself = listed.is_some_and(|gap| gap.listed_by == event.event_id);
        return Ok(match (writes.is_empty(), by_itself) {
            // It has listed them and comes again: perhaps nobody has been told.
            (true, true) => Decision::Unresolved { missing, writes, checks: Vec::new() },
            (true, false) => Decision::Ignore(format!("versions {missing} are missing and on the list")),
            (false, _) => Decision::Apply { checks: checks(&writes), writes },
        });
    }
    let before = known.wait.content.as_ref().filter(|wait| wait.missing.meets(&awaited));
    let since = before.map_or(now, |wait| wait.since);
    if now.since(since) < PATIENCE {
        writes.extend(known.gap.write(shortened.as_ref())?);
        writes.extend(known.wait.write(Some(&Wait { missing: awaited.clone(), since }))?);
        return Ok(Decision::Wait { missing: awaited, checks: checks(&writes), writes });
    }
    let gap = Gap {
        order_id: known.order_id.clone(),
        missing: missing.clone(),
        unreadable,
        since: listed.map_or(since, |gap| gap.since),
        listed_at: now,
        listed_by: event.event_id,
    };
    writes.extend(known.gap.write(Some(&gap))?);
    writes.extend(known.wait.removed());
    Ok(Decision::Unresolved { missing, checks: checks(&writes), writes })
}
