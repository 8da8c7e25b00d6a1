//! What is searched for in the logs, as CloudWatch Logs Insights asks for it and as a line is judged by hand. The queries by which
//! events and traces are found are saved by the stack, too: `infra/queries.yaml`.

use events::{EventId, Timestamp, TraceId};

use super::line::Line;

/// Lines that a search returns, at most: as many as Insights has for one query
/// ([quotas](https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html)).
pub const LINES_MAX: usize = 10_000;

/// The saved query for an event; who runs it puts an id in the place of `EVENT_ID`.
pub const SAVED_EVENT: &str = "fields @timestamp, @log, @message\n\
    | filter event_id = \"EVENT_ID\"\n\
    | sort @timestamp asc\n\
    | limit 10000\n";

/// The saved query for a trace; who runs it puts an id in the place of `TRACE_ID`.
pub const SAVED_TRACE: &str = "fields @timestamp, @log, @message\n\
    | filter trace_id = \"TRACE_ID\"\n\
    | sort @timestamp asc\n\
    | limit 10000\n";

/// The query for the lines in which a function says why it gave messages back.
const MESSAGES: &str = "fields @timestamp, @log, @message\n\
    | filter message_id in [MESSAGE_IDS] and ispresent(reason)\n\
    | sort @timestamp asc\n\
    | limit 10000\n";

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    /// Lines about an event.
    Event {
        /// Which event.
        event_id: EventId,
    },
    /// Lines about whatever a request has caused.
    Trace {
        /// Which trace.
        trace_id: TraceId,
        /// When it began, at the earliest.
        since: Timestamp,
    },
    /// Lines in which a function says why it gave messages back.
    Messages {
        /// Which function, without the stack's prefix.
        function: String,
        /// Which messages.
        message_ids: Vec<String>,
    },
}

impl Search {
    /// Returns the query.
    pub fn query(&self) -> String {
        match self {
            Self::Event { event_id } => SAVED_EVENT.replace("EVENT_ID", &event_id.to_string()),
            Self::Trace { trace_id, .. } => SAVED_TRACE.replace("TRACE_ID", &trace_id.to_string()),
            Self::Messages { message_ids, .. } => {
                // An id comes from the queue; what is no id would be a query of its own.
                let is_plain = |id: &&String| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                let ids: Vec<String> = message_ids.iter().filter(is_plain).map(|id| format!("\"{id}\"")).collect();
                MESSAGES.replace("MESSAGE_IDS", &ids.join(", "))
            }
        }
    }

    /// Returns whether a line is searched for.
    pub fn takes(&self, line: &Line) -> bool {
        match self {
            Self::Event { event_id } => line.text("event_id") == Some(&event_id.to_string()),
            Self::Trace { trace_id, .. } => line.text("trace_id") == Some(&trace_id.to_string()),
            Self::Messages { function, message_ids } => {
                let id = line.text("message_id");
                line.function == *function
                    && line.text("reason").is_some()
                    && id.is_some_and(|id| message_ids.iter().any(|other| other == id))
            }
        }
    }

    /// Returns the function that alone can have logged it; `None` if every one can.
    pub(super) fn function(&self) -> Option<&str> {
        match self {
            Self::Event { .. } | Self::Trace { .. } => None,
            Self::Messages { function, .. } => Some(function),
        }
    }

    /// Returns a moment before which no line can have been written; `None` if that is not known.
    pub(super) fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Event { event_id } => Some(event_id.minted_at()),
            Self::Trace { since, .. } => Some(*since),
            Self::Messages { .. } => None,
        }
    }

    /// Returns a text that every line has that is searched for, to pass over the others quickly.
    pub(super) fn trait_of_lines(&self) -> Option<String> {
        match self {
            Self::Event { event_id } => Some(event_id.to_string()),
            Self::Trace { trace_id, .. } => Some(trace_id.to_string()),
            Self::Messages { .. } => None,
        }
    }
}
