//! The calls of all functions, and the file that lists those that are known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Permission;

/// A file of calls that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be read or written.
    #[error("cannot use the file of calls {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// It is not a list of calls.
    #[error("{} is not a list of calls", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

/// Resources by function and action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Record(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Record {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a list of calls.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let text = std::fs::read(path).map_err(|source| RecordError::File { path: path.to_owned(), source })?;
        serde_json::from_slice(&text).map_err(|source| RecordError::Content { path: path.to_owned(), source })
    }

    /// Adds this to what a file has, which need not be there yet.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written, or is not a list of calls.
    pub fn add_to(&self, path: &Path) -> Result<(), RecordError> {
        let mut all = if path.exists() { Self::read(path)? } else { Self::default() };
        for (function, action, resource) in self.calls() {
            all.insert(function, action, resource);
        }
        let failed = |source| RecordError::Content { path: path.to_owned(), source };
        let text = serde_json::to_string_pretty(&all).map_err(failed)?;
        std::fs::write(path, text + "\n").map_err(|source| RecordError::File { path: path.to_owned(), source })
    }

    /// Notes that a function has made a call.
    pub fn note(&mut self, function: &str, permission: &Permission) {
        self.insert(function, &permission.action, &permission.resource);
    }

    /// Returns the calls that another record does not have, a line each.
    pub fn not_in(&self, known: &Self) -> Vec<String> {
        let unknown = self.calls().filter(|(function, action, resource)| !known.has(function, action, resource));
        unknown.map(|(function, action, resource)| format!("{function}: {action} on {resource}")).collect()
    }

    /// Returns whether a function has made a call.
    pub fn has(&self, function: &str, action: &str, resource: &str) -> bool {
        self.0.get(function).and_then(|actions| actions.get(action)).is_some_and(|known| known.contains(resource))
    }

    fn calls(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().flat_map(|(function, actions)| {
            actions.iter().flat_map(move |(action, resources)| {
                resources.iter().map(move |resource| (function.as_str(), action.as_str(), resource.as_str()))
            })
        })
    }

    fn insert(&mut self, function: &str, action: &str, resource: &str) {
        let actions = self.0.entry(function.to_owned()).or_default();
        actions.entry(action.to_owned()).or_default().insert(resource.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(function: &str, action: &str) -> Record {
        let mut record = Record::default();
        record.note(function, &Permission { action: action.to_owned(), resource: "*".to_owned() });
        record
    }

    #[test]
    fn only_calls_that_are_not_known_are_listed() {
        let known = record("a", "dynamodb:GetItem");
        assert_eq!(known.not_in(&known), Vec::<String>::new());
        assert_eq!(record("b", "dynamodb:GetItem").not_in(&known), ["b: dynamodb:GetItem on *"]);
        assert_eq!(record("a", "dynamodb:PutItem").not_in(&known), ["a: dynamodb:PutItem on *"]);
    }

    #[test]
    fn a_file_keeps_what_it_has() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("calls.json");
        record("a", "dynamodb:GetItem").add_to(&path).unwrap();
        record("b", "dynamodb:PutItem").add_to(&path).unwrap();
        let read = Record::read(&path).unwrap();
        assert!(read.has("a", "dynamodb:GetItem", "*") && read.has("b", "dynamodb:PutItem", "*"));
        std::fs::write(&path, "[]").unwrap();
        assert!(matches!(Record::read(&path), Err(RecordError::Content { .. })));
    }
}
