//! Work is bounded: an event is applied once at most, and no invocation sends requests without end.

use super::super::core::Core;
use super::super::deciders::Role;
use super::Broken;

/// Ledger calls for each record of a batch, at most: four rounds of a read with its repeats and a commit with its six, then
/// smaller transactions.
const CALLS_PER_RECORD_MAX: usize = 120;

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    for ((role, event_id), times) in &core.history.applied {
        let restated = matches!(role, Role::Presence);
        if *times > 1 && !restated {
            let what = format!("{event_id} was applied {times} times by {}", role.queue());
            return Err(Broken { what, about: core.history.names(*event_id) });
        }
    }
    for (records, calls) in &core.history.efforts {
        if *calls as usize > CALLS_PER_RECORD_MAX * records {
            let what = format!("{calls} ledger calls for a batch of {records} records");
            return Err(Broken { what, about: Vec::new() });
        }
    }
    Ok(())
}
