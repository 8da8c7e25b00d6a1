//! Every notification was told outside or is not to be: no row is left over, what counts as delivered has arrived, nothing arrives
//! that is in no inbox, and nothing was sent that its sender had read not to be for the other's eyes.

use std::collections::BTreeSet;

use domain::Key;
use domain::inbox::{Delivery, InboxRow};

use super::super::core::Core;
use super::Broken;

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    if let Some(letter) = core.history.letters.forbidden.first() {
        let what = format!("letter {} was sent although somebody concerned was restricted", letter.notification_id);
        return Err(Broken { what, about: core.history.concerning(letter.recipient_id.as_str()) });
    }
    let mut told = BTreeSet::new();
    for (key, row) in rows(core) {
        let arrived = core.history.letters.arrived.contains_key(row.notification_id.as_str());
        match row.delivery {
            Delivery::Pending => return Err(broken(core, &key, "is still to be delivered")),
            Delivery::Delivered if !arrived => return Err(broken(core, &key, "counts as delivered and never arrived")),
            // One that arrived without an answer may be dropped when the truth has changed until the next try.
            Delivery::Delivered | Delivery::Suppressed => drop(told.insert(row.notification_id.to_string())),
        }
    }
    match core.history.letters.arrived.keys().find(|key| !told.contains(*key)) {
        Some(key) => Err(Broken { what: format!("letter {key} arrived and is in no inbox"), about: Vec::new() }),
        None => Ok(()),
    }
}

fn rows(core: &Core) -> Vec<(Key, InboxRow)> {
    let keys = core.ledger.rows().into_keys().filter(|key| key.partition.starts_with("INBOX#"));
    keys.filter_map(|key| Some((key.clone(), core.ledger.row(&key).decode::<InboxRow>(&key).ok()??))).collect()
}

fn broken(core: &Core, key: &Key, what: &str) -> Broken {
    Broken { what: format!("{key} {what}"), about: core.history.concerning(&key.to_string()) }
}
