//! The rules that every batch request follows, and the answer with what became of each entry.

use std::collections::BTreeSet;

use queue::limits::{BATCH_ENTRIES_MAX, BATCH_ENTRY_ID_CHARACTERS_MAX};
use serde::Serialize;

use super::fault::Fault;

/// An entry of a batch request.
pub(super) trait Entry {
    /// Returns the id that the entry has in its request.
    fn id(&self) -> Option<&str>;
}

/// What became of a batch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Outcome<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    successful: Vec<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedEntry>,
}

/// An entry that was refused.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FailedEntry {
    id: String,
    sender_fault: bool,
    code: &'static str,
    message: String,
}

/// Success of an entry about which there is nothing to say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Done {
    pub(super) id: String,
}

impl<T> Outcome<T> {
    /// Collects the results of entries, each with its id.
    pub(super) fn collect(results: impl IntoIterator<Item = (String, Result<T, Fault>)>) -> Self {
        let mut outcome = Self { successful: Vec::new(), failed: Vec::new() };
        for (id, result) in results {
            match result {
                Ok(success) => outcome.successful.push(success),
                Err(fault) => {
                    let Fault { query: code, message, shape: _ } = fault;
                    outcome.failed.push(FailedEntry { id, sender_fault: true, code, message });
                }
            }
        }
        outcome
    }
}

/// Checks a batch as a whole and returns its entries with their ids: 1 to 10 of them, with distinct ids of letters,
/// digits, hyphens and underscores.
pub(super) fn entries<E: Entry>(entries: Option<Vec<E>>) -> Result<Vec<(String, E)>, Fault> {
    let entries = entries.unwrap_or_default();
    if entries.is_empty() {
        return Err(Fault::empty_batch());
    }
    if entries.len() > BATCH_ENTRIES_MAX {
        return Err(Fault::too_many_entries(entries.len()));
    }
    let mut seen = BTreeSet::new();
    let mut checked = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let id = entry.id().ok_or_else(|| Fault::missing(&format!("Entries.{}.Id", index + 1)))?.to_owned();
        if !is_valid(&id) {
            return Err(Fault::invalid_entry_id(&id));
        }
        if !seen.insert(id.clone()) {
            return Err(Fault::repeated_entry_id(&id));
        }
        checked.push((id, entry));
    }
    Ok(checked)
}

fn is_valid(id: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    (1..=BATCH_ENTRY_ID_CHARACTERS_MAX).contains(&id.len()) && id.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Entry for &str {
        fn id(&self) -> Option<&str> {
            Some(self)
        }
    }

    fn check(ids: Vec<&str>, expected: &str) {
        let shape = entries(Some(ids)).err().map_or("", |fault| fault.shape);
        assert_eq!(shape, expected);
    }

    #[test]
    fn a_batch_has_one_to_ten_entries() {
        let ids: Vec<String> = (0..11).map(|number| format!("id-{number}")).collect();
        let first = |count: usize| ids.iter().take(count).map(String::as_str).collect();
        check(first(0), "EmptyBatchRequest");
        check(first(1), "");
        check(first(10), "");
        check(first(11), "TooManyEntriesInBatchRequest");
        assert_eq!(entries::<&str>(None).err().map(|fault| fault.shape), Some("EmptyBatchRequest"));
    }

    #[test]
    fn entry_ids_are_distinct_and_made_of_letters_digits_hyphens_and_underscores() {
        check(vec!["a", "b", "a"], "BatchEntryIdsNotDistinct");
        check(vec!["A-z_9"], "");
        check(vec![&"x".repeat(80)], "");
        for id in ["", "a.b", "a b", "é", &"x".repeat(81)] {
            check(vec![id], "InvalidBatchEntryId");
        }
    }
}
