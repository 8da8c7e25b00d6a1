//! Orders of the shop: event sourced. The events are the truth; an order is their fold, and views, snapshots and the list of
//! gaps are derived from it.

mod lifecycle;
mod order;

mod store;

mod command;

mod gap;
mod snapshot;
mod view;

mod wake_up;

pub use command::{CommandDecision, OrderCommand, OrderRequest, Refusal, decide, same_request};
pub use gap::{GAPS, Gap, Wait};
pub use lifecycle::{OrderAction, OrderStatus, Provided, TRANSITIONS, Transition, steps, transition_table};
pub use order::{HistoryError, Illegal, Order};
pub use snapshot::{SNAPSHOT_EVERY, Snapshot};
pub use store::{CommandRecord, EventRecord, StoredEventError, event_sort_key, partition};
pub use view::{OrderLine, view_writes};
pub use wake_up::{FOLD_MAX, OrderViews, PATIENCE};
