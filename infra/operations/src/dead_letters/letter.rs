//! A dead letter, and as much of why it is one as the message itself can tell.

use std::fmt;

use aws::telemetry::chain;
use consumer::CLAIM_AGE_MAX;
use events::{Disposition, Event, EventId, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::queues::Received;
use super::source::Source;

/// Characters of a reason that are shown.
const REASON_LENGTH_MAX: usize = 500;

/// A dead letter as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// Whose it is.
    pub consumer: Source,
    /// The message's id, by which the consumer's log knows it.
    pub message_id: String,
    /// The event's id, if the body or the message's attributes say it.
    pub event_id: Option<EventId>,
    /// The event's type, whether or not it is known.
    pub event_type: Option<String>,
    /// Which business object it is about.
    pub aggregate_id: Option<String>,
    /// The object's version.
    pub version: Option<u64>,
    /// The trace of the request.
    pub trace_id: Option<String>,
    /// When it happened.
    pub occurred_at: Option<Timestamp>,
    /// When it was sent: to its first queue, or, where queues are FIFO queues, to the dead letter queue.
    pub sent_at: Timestamp,
    /// How often it has been received.
    pub receives: u32,
    /// What the message itself says about why it is here.
    pub reason: Reason,
    /// What the consumer's log says last, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged_reason: Option<String>,
}

/// Why a message is a dead letter, as far as that shows without the tables and without the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "text", rename_all = "snake_case")]
pub enum Reason {
    /// The bytes are no event.
    Undecodable(String),
    /// The event was written by newer code than this; code that knows it will take it.
    NewerSchema(String),
    /// The event is for others.
    ForeignType(String),
    /// The event is older than claims are kept: it is refused where a claim is needed, and can be counted by nobody any more.
    TooOld(String),
    /// The relay could send it to no queue, or to one not.
    Unsendable(String),
    /// Nothing is wrong with the message: it could not be handled then. The log says why.
    NotInTheMessage,
}

impl Reason {
    /// Returns the reason's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Undecodable(_) => "undecodable",
            Self::NewerSchema(_) => "newer_schema",
            Self::ForeignType(_) => "foreign_type",
            Self::TooOld(_) => "too_old",
            Self::Unsendable(_) => "unsendable",
            Self::NotInTheMessage => "not_in_the_message",
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Undecodable(text)
            | Self::NewerSchema(text)
            | Self::ForeignType(text)
            | Self::TooOld(text)
            | Self::Unsendable(text) => text,
            Self::NotInTheMessage => "",
        }
    }
}

impl DeadLetter {
    /// Looks at a message of a source at this moment.
    pub fn read(source: Source, received: &Received, now: Timestamp) -> Self {
        let text = |name: &str| received.message.text(name).map(str::to_owned);
        let mut letter = Self {
            consumer: source,
            message_id: received.message_id.clone(),
            event_id: text("event_id").and_then(|id| id.parse().ok()),
            event_type: text("event_type"),
            aggregate_id: None,
            version: None,
            trace_id: text("trace_id"),
            occurred_at: None,
            sent_at: received.sent_at,
            receives: received.receives,
            reason: Reason::NotInTheMessage,
            logged_reason: None,
        };
        match source {
            Source::Consumer(consumer) => letter.reason = letter.read_event(consumer, received, now),
            Source::Relay => letter.read_rejected(received),
        }
        letter
    }

    /// Returns the texts in which a reason is looked for.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        [self.reason.kind(), self.reason.text()].into_iter().chain(self.logged_reason.as_deref())
    }

    fn read_event(&mut self, consumer: events::Consumer, received: &Received, now: Timestamp) -> Reason {
        let event = match Event::decode(received.message.body.as_bytes()) {
            Ok(event) => event,
            Err(error) => {
                let text = shortened(&chain(&error));
                return match error.disposition() {
                    Disposition::Retry => Reason::NewerSchema(text),
                    Disposition::Reject => Reason::Undecodable(text),
                };
            }
        };
        let event_type = event.payload.event_type();
        self.event_id = Some(event.event_id);
        self.event_type = Some(event_type.to_string());
        self.trace_id = Some(event.trace_id.to_string());
        self.occurred_at = Some(event.occurred_at);
        self.version = Some(event.version);
        self.aggregate_id = Some(event.aggregate_id);
        let minted_at = event.event_id.minted_at();
        if event_type.consumers().iter().all(|other| other != consumer) {
            Reason::ForeignType(format!("{event_type} is not for {consumer}"))
        } else if now.since(minted_at) > CLAIM_AGE_MAX {
            Reason::TooOld(format!("minted at {minted_at}, which is too long ago for a claim"))
        } else {
            Reason::NotInTheMessage
        }
    }

    /// Reads what the relay says of a record that it could not send.
    fn read_rejected(&mut self, received: &Received) {
        let body: Value = serde_json::from_str(&received.message.body).unwrap_or_default();
        let event = body.pointer("/record/dynamodb/NewImage/event/M");
        let field = |name: &str| {
            let of_event = event.and_then(|event| event.get(name)).and_then(|value| value.get("S"));
            of_event.or_else(|| body.get(name)).and_then(Value::as_str).map(str::to_owned)
        };
        self.event_id = field("event_id").and_then(|id| id.parse().ok());
        self.event_type = field("event_type");
        self.aggregate_id = field("aggregate_id");
        self.trace_id = field("trace_id");
        self.occurred_at = field("occurred_at").and_then(|moment| moment.parse().ok());
        let version = event.and_then(|event| event.pointer("/version/N")).and_then(Value::as_str);
        self.version = version.and_then(|version| version.parse().ok());
        self.reason = match body.get("reason").and_then(Value::as_str) {
            Some(reason) => Reason::Unsendable(shortened(reason)),
            None => Reason::Undecodable("the body is not what the relay says of a record".to_owned()),
        };
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            "" => formatter.write_str(self.kind()),
            text => write!(formatter, "{}: {text}", self.kind()),
        }
    }
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event_type = self.event_type.as_deref().unwrap_or("?");
        let event_id = self.event_id.map_or_else(|| format!("message {}", self.message_id), |id| id.to_string());
        write!(formatter, "{}  {:<22}  {event_type:<22}  {event_id}", self.sent_at, self.consumer.to_string())?;
        let about = self.aggregate_id.as_ref().zip(self.version);
        if let Some((aggregate_id, version)) = about {
            write!(formatter, "  {aggregate_id} version {version}")?;
        }
        write!(formatter, "  received {} times  {}", self.receives, self.reason)?;
        // The consumer has often seen the same as the message shows.
        match self.logged_reason.as_ref().filter(|logged| !self.reason.text().contains(logged.as_str())) {
            Some(reason) => write!(formatter, "; logged: {reason}"),
            None => Ok(()),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(REASON_LENGTH_MAX).collect()
}
