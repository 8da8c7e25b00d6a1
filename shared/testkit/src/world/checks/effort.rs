//! Work is bounded: no write changes nothing, as a second one for the same event would, and no invocation sends requests without
//! end.

use super::super::core::Core;
use super::Broken;

/// Ledger calls for each record of a batch, at most: four rounds of a read with its repeats and a commit with its six, then
/// smaller transactions.
const CALLS_PER_RECORD_MAX: usize = 120;

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    if let Some(key) = core.history.idle.first() {
        return Err(Broken {
            what: format!("{key} was replaced by what it was"),
            about: core.history.concerning(&key.partition),
        });
    }
    for (records, calls) in &core.history.efforts {
        if *calls as usize > CALLS_PER_RECORD_MAX * records {
            let what = format!("{calls} ledger calls for a batch of {records} records");
            return Err(Broken { what, about: Vec::new() });
        }
    }
    Ok(())
}
