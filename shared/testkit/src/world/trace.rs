//! What happened in a world, line by line, for people: kept only where someone will read it.

use events::Timestamp;

/// A trace, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Keeps every line.
    pub fn kept() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    /// Returns all lines.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }

    /// Returns the lines that name one of these.
    pub fn about(&self, names: &[String]) -> Vec<&str> {
        let concerns = |line: &&String| names.iter().any(|name| line.contains(name.as_str()));
        self.lines().iter().filter(concerns).map(String::as_str).collect()
    }

    pub(super) fn is_kept(&self) -> bool {
        self.lines.is_some()
    }

    pub(super) fn add(&mut self, now: Timestamp, line: &str) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now} {line}"));
        }
    }
}
