//! What is said: for people, or for programs as JSON, one object a line.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::progress::Bar;

/// Exit code of a command that was carried out, but left something over that was meant.
const LEFT_OVER: u8 = 3;
/// Exit code of a command that was interrupted. What it had begun is finished.
const INTERRUPTED: u8 = 130;

/// For whom it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How a command ended that could be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// Everything that was meant is done.
    Done,
    /// Something is left over, or was not found.
    LeftOver,
    /// Somebody wanted to stop.
    Interrupted,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Done => Self::SUCCESS,
            Ended::LeftOver => Self::from(LEFT_OVER),
            Ended::Interrupted => Self::from(INTERRUPTED),
        }
    }
}

/// Standard output, and a bar on standard error that makes way for it.
#[derive(Debug)]
pub struct Output {
    format: Format,
    /// The bar.
    pub bar: Bar,
}

impl Output {
    /// Says things in this format; what takes long consists of these pieces.
    pub fn new(format: Format, pieces: &str) -> Self {
        Self { format, bar: Bar::new(pieces) }
    }

    /// Says one thing.
    ///
    /// # Errors
    /// Nobody listens any more.
    pub fn say(&self, name: &str, item: &(impl Serialize + Display)) -> io::Result<()> {
        let text = match self.format {
            Format::Text => item.to_string(),
            Format::Json => json_line(name, item)?,
        };
        self.bar.suspend(|| writeln!(io::stdout().lock(), "{text}"))
    }
}

/// Returns a thing as a program reads it: an object whose only field is named after what it is.
///
/// # Errors
/// It does not convert.
pub fn json_line(name: &str, item: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(&std::collections::BTreeMap::from([(name, item)]))?)
}
