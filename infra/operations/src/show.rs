//! A dead letter with everything that it carries.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::dead_letters::{AttributeValue, DeadLetter, Received};

/// A dead letter with everything that it carries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// The letter.
    #[serde(flatten)]
    pub letter: DeadLetter,
    /// Its group, in a FIFO queue.
    pub group_id: Option<String>,
    /// The attributes that are text, by name.
    pub attributes: BTreeMap<String, String>,
    /// The body: as JSON if it is that, or else as text.
    pub body: Value,
}

impl Shown {
    /// Puts a letter and its message together.
    pub fn new(letter: &DeadLetter, received: &Received) -> Self {
        let message = &received.message;
        let text = |value: &AttributeValue| match value {
            AttributeValue::Text(text) => Some(text.clone()),
            AttributeValue::Binary(_) => None,
        };
        let attributes = message.attributes.iter();
        Self {
            letter: letter.clone(),
            group_id: message.group_id.clone(),
            attributes: attributes.filter_map(|(name, it)| Some((name.clone(), text(&it.value)?))).collect(),
            body: serde_json::from_str(&message.body).unwrap_or_else(|_| Value::String(message.body.clone())),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\nmessage {}", self.letter, self.letter.message_id)?;
        if let Some(group_id) = &self.group_id {
            write!(formatter, ", group {group_id}")?;
        }
        for (name, value) in &self.attributes {
            write!(formatter, "\n{name}: {value}")?;
        }
        match self.body.as_str() {
            Some(text) => write!(formatter, "\n{text}"),
            None => write!(formatter, "\n{:#}", self.body),
        }
    }
}
