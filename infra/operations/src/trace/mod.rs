//! The life of an event, from the lines that the functions log: on AWS by CloudWatch Logs Insights, of a local stack from its
//! folder. Nothing is kept about events beside their logs.

mod folder;
mod insights;
mod line;
mod search;
mod timeline;

use std::collections::BTreeMap;
use std::error::Error;

use events::{Consumer, EventId, Timestamp, TraceId};
use serde_json::Value;
use thiserror::Error;

pub use folder::Folder;
pub(crate) use folder::default_folder;
pub use insights::Insights;
pub use line::Line;
pub use search::{LINES_MAX, SAVED_EVENT, SAVED_TRACE, Search};
pub use timeline::{Life, Step, StepKind, Timeline};

/// Where the functions' logs are.
#[derive(Debug)]
pub enum Logs {
    /// In a local stack's folder.
    Folder(Folder),
    /// In CloudWatch.
    Insights(Insights),
}

/// Logs that cannot be searched.
#[derive(Debug, Error)]
#[error("{place} cannot be searched")]
pub struct LogsError {
    /// Which logs.
    pub place: String,
    /// Why not.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Returns the names of all functions, without the stack's prefix.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    ["api", "canary", "outbox-relay"].into_iter().chain(Consumer::ALL.into_iter().map(Consumer::as_str))
}

impl Logs {
    /// Returns the lines that are searched for, oldest first, at most [`LINES_MAX`].
    ///
    /// # Errors
    /// The logs do not answer.
    pub async fn lines(&self, search: &Search) -> Result<Vec<Line>, LogsError> {
        let mut lines = match self {
            Self::Folder(folder) => folder.lines(search)?,
            Self::Insights(insights) => insights.lines(search).await?,
        };
        lines.retain(|line| search.takes(line));
        lines.sort_by_key(|line| line.at);
        Ok(lines)
    }

    /// Returns why a function last gave messages back, by message id, for those about which it says so.
    ///
    /// # Errors
    /// The logs do not answer.
    pub async fn reasons(&self, function: &str, message_ids: &[&str]) -> Result<BTreeMap<String, String>, LogsError> {
        let message_ids = message_ids.iter().map(|id| (*id).to_owned()).collect();
        let lines = self.lines(&Search::Messages { function: function.to_owned(), message_ids }).await?;
        let reason = |line: &Line| Some((line.text("message_id")?.to_owned(), line.text("reason")?.to_owned()));
        Ok(lines.iter().filter_map(reason).collect())
    }

    /// Returns the life of an event; `None` if no line names it.
    ///
    /// # Errors
    /// The logs do not answer.
    pub async fn life(&self, event_id: EventId) -> Result<Option<Life>, LogsError> {
        let own = self.lines(&Search::Event { event_id }).await?;
        let trace_id: Option<TraceId> = own.iter().find_map(|line| line.text("trace_id")?.parse().ok());
        let all = match trace_id {
            Some(trace_id) => self.lines(&Search::Trace { trace_id, since: event_id.minted_at() }).await?,
            None => Vec::new(),
        };
        Ok(Life::of(event_id, trace_id, &own, &all))
    }
}

/// Returns the moment that a line says it was written at.
fn written_at(fields: &serde_json::Map<String, Value>) -> Option<Timestamp> {
    fields.get("timestamp")?.as_str()?.parse().ok()
}
