//! Lines about an event, put together to its life: request, record, relay, every delivery, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use events::{EventId, EventType, Timestamp, TraceId};
use serde::Serialize;
use serde_json::{Map, Value};

use super::line::Line;
use super::search::LINES_MAX;

/// Fields that are told once for the event, or by the step itself.
const TOLD: [&str; 9] =
    ["timestamp", "level", "target", "message", "event_id", "event_type", "aggregate_id", "version", "trace_id"];

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The record was written, and the event with it.
    Record,
    /// The request was answered.
    Request,
    /// The relay has sent it, or could not.
    Relay,
    /// A consumer got it, and this came of it.
    Delivery,
    /// A letter about it was sent, or could not be.
    Letter,
    /// Something else that was logged about it.
    Other,
}

/// One step of an event's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When it was logged.
    pub at: Timestamp,
    /// By which function, without the stack's prefix.
    pub function: String,
    /// What it tells.
    pub kind: StepKind,
    /// The line's text.
    pub message: String,
    /// Everything else that the line says.
    pub fields: Map<String, Value>,
}

/// What the logs say about one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// Which event.
    pub event_id: EventId,
    /// Its type.
    pub event_type: Option<String>,
    /// Which business object it is about.
    pub aggregate_id: Option<String>,
    /// The object's version.
    pub version: Option<u64>,
    /// What happened, oldest first.
    pub steps: Vec<Step>,
    /// Consumers of its type by which no delivery is logged.
    pub not_delivered_to: Vec<String>,
}

/// The life of an event, and what grew out of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Life {
    /// The trace of the request.
    pub trace_id: Option<TraceId>,
    /// The event itself.
    #[serde(flatten)]
    pub event: Timeline,
    /// Events that consumers wrote because of it, and because of those. Their ids have its moment, and they are of its trace.
    pub derived: Vec<Timeline>,
    /// Whether there are more lines than a search returns.
    pub more: bool,
}

impl Life {
    /// Puts the lines about an event and those of its trace together; `None` if no line is about it.
    pub(super) fn of(event_id: EventId, trace_id: Option<TraceId>, own: &[Line], all: &[Line]) -> Option<Self> {
        let mut by_event: BTreeMap<EventId, Vec<&Line>> = BTreeMap::new();
        for line in own {
            by_event.entry(event_id).or_default().push(line);
        }
        for line in all {
            let other: Option<EventId> = line.text("event_id").and_then(|id| id.parse().ok());
            let derived = other.filter(|other| *other != event_id && other.minted_at() == event_id.minted_at());
            if let Some(derived) = derived {
                by_event.entry(derived).or_default().push(line);
            }
        }
        let event = Timeline::of(event_id, &by_event.remove(&event_id)?);
        let derived = by_event.into_iter().map(|(event_id, lines)| Timeline::of(event_id, &lines));
        let mut derived: Vec<Timeline> = derived.collect();
        derived.sort_by_key(|timeline| timeline.steps.first().map(|step| step.at));
        Some(Self { trace_id, event, derived, more: own.len() >= LINES_MAX || all.len() >= LINES_MAX })
    }
}

impl Timeline {
    fn of(event_id: EventId, lines: &[&Line]) -> Self {
        let text = |field| lines.iter().find_map(|line| line.text(field)).map(str::to_owned);
        let event_type = text("event_type");
        let mut steps: Vec<Step> = lines.iter().map(|line| Step::of(line)).collect();
        steps.sort_by_key(|step| (step.at, step.kind));
        let delivered: BTreeSet<&str> =
            steps.iter().filter(|step| step.kind == StepKind::Delivery).map(|step| step.function.as_str()).collect();
        let known = event_type.as_deref().and_then(|event_type| event_type.parse::<EventType>().ok());
        let consumers = known.into_iter().flat_map(|event_type| event_type.consumers().iter());
        let missing = consumers.map(|consumer| consumer.to_string());
        let not_delivered_to = missing.filter(|consumer| !delivered.contains(consumer.as_str())).collect();
        let version = lines.iter().find_map(|line| line.number("version"));
        Self { event_id, event_type, aggregate_id: text("aggregate_id"), version, steps, not_delivered_to }
    }
}

impl Step {
    fn of(line: &Line) -> Self {
        let has = |field| line.fields.contains_key(field);
        let kind = if has("record") {
            StepKind::Record
        } else if has("status") {
            StepKind::Request
        } else if has("sequence_number") {
            StepKind::Relay
        } else if has("letter") || line.text("message") == Some("letter not sent") {
            StepKind::Letter
        } else if has("receive_count") {
            StepKind::Delivery
        } else {
            StepKind::Other
        };
        let fields = line.fields.iter().filter(|(name, _)| !TOLD.contains(&name.as_str()));
        Self {
            at: line.at,
            function: line.function.clone(),
            kind,
            message: line.text("message").unwrap_or_default().to_owned(),
            fields: fields.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    fn field(&self, name: &str) -> String {
        match self.fields.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "?".to_owned(),
        }
    }

    /// Returns what happened, in words.
    fn said(&self) -> String {
        let field = |name| self.field(name);
        let mut text = match self.kind {
            StepKind::Record => format!("{} written", field("record")),
            StepKind::Request => {
                format!(
                    "{} {} answered {} in {} ms",
                    field("method"),
                    field("route"),
                    field("status"),
                    field("latency_ms")
                )
            }
            StepKind::Relay if self.fields.contains_key("queues") => {
                format!("{} to {}", field("outcome"), field("queues"))
            }
            StepKind::Relay => field("outcome"),
            StepKind::Delivery => {
                format!("{} on receive {}, message {}", field("outcome"), field("receive_count"), field("message_id"))
            }
            StepKind::Letter if self.fields.contains_key("letter") => match self.fields.get("letter_key") {
                Some(_) => format!("letter {} {}", field("letter_key"), field("letter")),
                None => format!("letter {}", field("letter")),
            },
            StepKind::Letter | StepKind::Other => self.message.clone(),
        };
        for name in ["reason", "error"] {
            if self.fields.contains_key(name) {
                text.push_str(&format!(": {}", field(name)));
            }
        }
        text
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Record => "record",
            Self::Request => "request",
            Self::Relay => "relay",
            Self::Delivery => "delivery",
            Self::Letter => "letter",
            Self::Other => "",
        })
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.event_type.as_deref().unwrap_or("event"), self.event_id)?;
        if let Some(aggregate_id) = &self.aggregate_id {
            write!(formatter, " of {aggregate_id}")?;
        }
        if let Some(version) = self.version {
            write!(formatter, " version {version}")?;
        }
        for step in &self.steps {
            let (kind, function, said) = (step.kind.to_string(), &step.function, step.said());
            write!(formatter, "\n  {}  {kind:<8}  {function:<22}  {said}", step.at)?;
        }
        for consumer in &self.not_delivered_to {
            write!(formatter, "\n  {:<24}  delivery  {consumer:<22}  not logged", "")?;
        }
        Ok(())
    }
}

impl fmt::Display for Life {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(trace_id) = self.trace_id {
            writeln!(formatter, "trace {trace_id}")?;
        }
        self.event.fmt(formatter)?;
        for timeline in &self.derived {
            write!(formatter, "\n\nderived: {timeline}")?;
        }
        if self.more {
            write!(formatter, "\n\nmore than {LINES_MAX} lines were logged; the first of them are shown")?;
        }
        Ok(())
    }
}
