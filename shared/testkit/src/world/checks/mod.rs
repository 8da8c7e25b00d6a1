//! What must be true of a world that has come to rest. Each check knows one promise, and compares with what the unique events
//! in their order come to.

mod activity;
mod boards;
mod claims;
mod counts;
mod effort;
mod graph;
mod histogram;
mod inbox;
mod letters;
mod medals;
mod messages;
mod orders;
mod presence;
mod statistics;

use super::core::Core;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// What is wrong.
    pub(super) what: String,
    /// By which names the trace knows what it is about.
    pub(super) about: Vec<String>,
}

/// A check with its name.
type Check = (&'static str, fn(&mut Core) -> Result<(), Broken>);

/// All checks.
const CHECKS: [Check; 14] = [
    ("messages", messages::check),
    ("boards", boards::check),
    ("histogram", histogram::check),
    ("statistics", statistics::check),
    ("counts", counts::check),
    ("graph", graph::check),
    ("activity", activity::check),
    ("orders", orders::check),
    ("inbox", inbox::check),
    ("letters", letters::check),
    ("presence", presence::check),
    ("medals", medals::check),
    ("claims", claims::check),
    ("effort", effort::check),
];

/// Runs all checks. Returns the name of the first one that fails, and what it found.
pub(super) fn run(core: &mut Core) -> Result<(), (&'static str, Broken)> {
    CHECKS.into_iter().try_for_each(|(name, check)| check(core).map_err(|broken| (name, broken)))
}

/// Compares two sets of values by name, and names the first difference.
fn compare<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    found: &std::collections::BTreeMap<K, V>,
    expected: &std::collections::BTreeMap<K, V>,
    about: impl Fn(&K) -> Vec<String>,
) -> Result<(), Broken> {
    let keys: std::collections::BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    for key in keys {
        let (found, expected) = (found.get(key), expected.get(key));
        if found != expected {
            let what = format!("{key:?} is {found:?} instead of {expected:?}");
            return Err(Broken { what, about: about(key) });
        }
    }
    Ok(())
}
