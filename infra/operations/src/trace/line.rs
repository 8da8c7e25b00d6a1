//! A line that a function has logged.

use events::Timestamp;
use serde_json::{Map, Value};

use super::written_at;

/// A line that a function has logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// Which function, without the stack's prefix.
    pub function: String,
    /// What it says.
    pub fields: Map<String, Value>,
}

impl Line {
    /// Reads a line of a function. What is no line of the functions' own telemetry says nothing.
    pub fn read(function: &str, text: &str) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
        Some(Self { at: written_at(&fields)?, function: function.to_owned(), fields })
    }

    /// Returns a field that is text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    /// Returns a field that is a number.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.fields.get(field)?.as_u64()
    }
}
