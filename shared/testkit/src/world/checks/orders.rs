//! Every order's view and its line in the player's list show all its events, folded in their order, and its snapshot is at most
//! a hundred events behind. What was missing was waited for, told of if it stayed away for longer, and is on no list any more.
//! No message of a group was done before one that held it.

use std::collections::BTreeMap;

use domain::orders::{GAPS, Gap, Order, OrderLine, SNAPSHOT_EVERY, Snapshot, Wait};
use domain::{Key, Table};
use serde_json::Value;

use super::super::core::Core;
use super::{Broken, compare};

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    if let Some(message) = core.history.overtaken.first() {
        let what = format!("{} was done before one that held it", core.story_name(*message));
        return Err(Broken { what, about: vec![message.to_string()] });
    }
    if let Some(message) = core.history.skipped.first() {
        let what = format!(
            "{} was acknowledged although versions were missing and nobody was told",
            core.story_name(*message)
        );
        return Err(Broken { what, about: vec![message.to_string()] });
    }
    let views = rows::<Order>(core, "ORDER#");
    let lines = rows::<OrderLine>(core, "ORDERS#");
    let orders: Vec<&Order> = core.shop.orders.values().collect();
    let about = |key: &Key| core.history.concerning(&key.to_string());
    let expected = orders.iter().map(|order| (Order::view_key(&order.order_id), Some((*order).clone()))).collect();
    compare(&views, &expected, about)?;
    let expected = orders.iter().map(|order| (OrderLine::key(order), Some(OrderLine::of(order)))).collect();
    compare(&lines, &expected, about)?;
    for order in orders {
        let broken = |what: String| Err(Broken { what, about: vec![order.order_id.to_string()] });
        let kept = Snapshot::read(&order.order_id, &core.ledger.row(&Snapshot::key(&order.order_id)));
        let behind = order.version - kept.map_or(0, |kept| kept.version);
        if behind >= SNAPSHOT_EVERY {
            return broken(format!("the snapshot of {} is {behind} events behind", order.order_id));
        }
        for key in [Wait::key(&order.order_id), Gap::key(&order.order_id)] {
            if core.ledger.row(&key).attributes.is_some() {
                return broken(format!("{key} is still there although nothing is missing"));
            }
        }
    }
    Ok(())
}

/// Returns the views of a kind; `None` for one that cannot be read.
fn rows<R: serde::de::DeserializeOwned>(core: &Core, prefix: &str) -> BTreeMap<Key, Option<R>> {
    let rows = core.ledger.rows().into_iter();
    let of_kind =
        rows.filter(|(key, _)| key.table == Table::Views && key.partition.starts_with(prefix) && key.partition != GAPS);
    of_kind.map(|(key, attributes)| (key, serde_json::from_value(Value::Object(attributes)).ok())).collect()
}
