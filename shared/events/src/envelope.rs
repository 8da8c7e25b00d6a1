//! The envelope around every event, and how it becomes bytes and comes back.

use std::borrow::Cow;
use std::io;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::wrapping::unwrapped;
use crate::{
    CanarySent, EventId, EventType, FanOutAdvanced, FollowEnded, FollowStarted, GameEnded, NotificationRequested,
    OrderEvent, OrderPlacedVersion1, PlayerRegistered, PlayerReinstated, PlayerRenamed, PlayerRestricted, PostDeleted,
    PostPublished, ReactionAdded, ReactionRemoved, Timestamp, TraceId,
};

/// One thing that happened. A pointer to the truth, not the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The event's identity, the same in every delivery.
    pub event_id: EventId,
    /// Which business object it happened to.
    pub aggregate_id: String,
    /// The object's version after the event, from 1.
    pub version: u64,
    /// When it happened, in business time.
    pub occurred_at: Timestamp,
    /// The trace of the request that caused it.
    pub trace_id: TraceId,
    /// What happened.
    pub payload: Payload,
}

/// The event's own data, one variant a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Payload {
    /// A rated game has ended.
    GameEnded(GameEnded),
    /// There is a new player.
    PlayerRegistered(PlayerRegistered),
    /// A player goes by another name.
    PlayerRenamed(PlayerRenamed),
    /// A player is hidden.
    PlayerRestricted(PlayerRestricted),
    /// A player is hidden no more.
    PlayerReinstated(PlayerReinstated),
    /// A player has published a post.
    PostPublished(PostPublished),
    /// A post is gone for good.
    PostDeleted(PostDeleted),
    /// A player reacts to a post.
    ReactionAdded(ReactionAdded),
    /// A player reacts to a post no more.
    ReactionRemoved(ReactionRemoved),
    /// A player follows another one.
    FollowStarted(FollowStarted),
    /// A player follows another one no more.
    FollowEnded(FollowEnded),
    /// One range of a post's audience has a page less to go.
    FanOutAdvanced(FanOutAdvanced),
    /// Somebody is to be told of something.
    NotificationRequested(NotificationRequested),
    /// Something happened to an order.
    Order(OrderEvent),
    /// A canary is under way.
    CanarySent(CanarySent),
}

impl Payload {
    /// Returns the type of the event.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::GameEnded(_) => EventType::GameEnded,
            Self::PlayerRegistered(_) => EventType::PlayerRegistered,
            Self::PlayerRenamed(_) => EventType::PlayerRenamed,
            Self::PlayerRestricted(_) => EventType::PlayerRestricted,
            Self::PlayerReinstated(_) => EventType::PlayerReinstated,
            Self::PostPublished(_) => EventType::PostPublished,
            Self::PostDeleted(_) => EventType::PostDeleted,
            Self::ReactionAdded(_) => EventType::ReactionAdded,
            Self::ReactionRemoved(_) => EventType::ReactionRemoved,
            Self::FollowStarted(_) => EventType::FollowStarted,
            Self::FollowEnded(_) => EventType::FollowEnded,
            Self::FanOutAdvanced(_) => EventType::FanOutAdvanced,
            Self::NotificationRequested(_) => EventType::NotificationRequested,
            Self::Order(order) => order.event_type(),
            Self::CanarySent(_) => EventType::CanarySent,
        }
    }
}

/// What to do with bytes that did not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// They may decode later.
    Retry,
    /// They never will.
    Reject,
}

/// Why bytes are no event.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The body has no bytes.
    #[error("the body is empty")]
    Empty,
    /// The body is not text.
    #[error("the body is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// The body is not JSON, or a field is missing or of the wrong type.
    #[error("the body is not an event envelope")]
    NotAnEnvelope(#[source] serde_json::Error),
    /// The type is not one that this code knows.
    #[error("field event_type: {event_type:?} is not known")]
    UnknownEventType {
        /// What the envelope says.
        event_type: String,
    },
    /// The aggregate is not the one that such events are about.
    #[error("field aggregate_type: {aggregate_type:?} is not what {event_type} is about")]
    WrongAggregateType {
        /// The event's type.
        event_type: EventType,
        /// What the envelope says.
        aggregate_type: String,
    },
    /// The payload was written by newer code: a rollout is under way.
    #[error("field schema_version: {schema_version} of {event_type} is newer than this code")]
    NewerSchema {
        /// The event's type.
        event_type: EventType,
        /// What the envelope says.
        schema_version: u32,
    },
    /// No code ever wrote such a version.
    #[error("field {field}: versions start at 1")]
    VersionZero {
        /// Which field.
        field: &'static str,
    },
    /// The payload is not what its type and schema version say.
    #[error("field payload: not a {event_type} of schema version {schema_version}")]
    Payload {
        /// The event's type.
        event_type: EventType,
        /// The payload's schema version.
        schema_version: u32,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl DecodeError {
    /// Returns whether the same bytes can decode later.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::NewerSchema { .. } => Disposition::Retry,
            Self::Empty
            | Self::NotUtf8(_)
            | Self::NotAnEnvelope(_)
            | Self::UnknownEventType { .. }
            | Self::WrongAggregateType { .. }
            | Self::VersionZero { .. }
            | Self::Payload { .. } => Disposition::Reject,
        }
    }
}

impl Event {
    /// Reads an event from a queue message's body: raw, or as SNS or EventBridge wrap it.
    ///
    /// # Errors
    /// The body is no event that this code knows; [`DecodeError::disposition`] says whether that can change.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let text = std::str::from_utf8(body).map_err(DecodeError::NotUtf8)?;
        if text.trim().is_empty() {
            return Err(DecodeError::Empty);
        }
        let json = unwrapped(text).map_err(DecodeError::NotAnEnvelope)?;
        let wire: Wire<'_, Box<RawValue>> = serde_json::from_str(&json).map_err(DecodeError::NotAnEnvelope)?;
        wire.into_event()
    }

    /// Writes the event as JSON of ASCII characters alone.
    pub fn encode(&self) -> String {
        encode_ascii(self)
    }
}

/// Writes JSON of ASCII characters alone: SQS refuses or replaces some of the others. For an event that is passed on as it
/// is, whatever its schema version; a value that is no JSON gives an empty text, which every reader rejects.
pub fn encode_ascii(value: &impl Serialize) -> String {
    let mut bytes = Vec::with_capacity(512);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, AsciiFormatter);
    if value.serialize(&mut serializer).is_err() {
        bytes.clear();
    }
    String::from_utf8(bytes).unwrap_or_default()
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event_type = self.payload.event_type();
        let wire = Wire {
            event_id: self.event_id,
            aggregate_type: Cow::Borrowed(event_type.aggregate_type()),
            aggregate_id: Cow::Borrowed(&self.aggregate_id),
            version: self.version,
            event_type: Cow::Borrowed(event_type.as_str()),
            schema_version: event_type.schema_version(),
            occurred_at: self.occurred_at,
            trace_id: self.trace_id,
            payload: &self.payload,
        };
        wire.serialize(serializer)
    }
}

/// The envelope as it is written.
#[derive(Serialize, Deserialize)]
struct Wire<'a, P> {
    event_id: EventId,
    aggregate_type: Cow<'a, str>,
    aggregate_id: Cow<'a, str>,
    version: u64,
    event_type: Cow<'a, str>,
    schema_version: u32,
    occurred_at: Timestamp,
    trace_id: TraceId,
    payload: P,
}

impl Wire<'_, Box<RawValue>> {
    fn into_event(self) -> Result<Event, DecodeError> {
        let event_type: EventType = self
            .event_type
            .parse()
            .map_err(|unknown: crate::UnknownEventType| DecodeError::UnknownEventType { event_type: unknown.text })?;
        if self.aggregate_type != event_type.aggregate_type() {
            let aggregate_type = self.aggregate_type.into_owned();
            return Err(DecodeError::WrongAggregateType { event_type, aggregate_type });
        }
        if self.version == 0 {
            return Err(DecodeError::VersionZero { field: "version" });
        }
        Ok(Event {
            event_id: self.event_id,
            aggregate_id: self.aggregate_id.into_owned(),
            version: self.version,
            occurred_at: self.occurred_at,
            trace_id: self.trace_id,
            payload: payload(event_type, self.schema_version, &self.payload)?,
        })
    }
}

/// Reads a payload of any schema version up to the newest known. Older versions are upcast here.
fn payload(event_type: EventType, schema_version: u32, raw: &RawValue) -> Result<Payload, DecodeError> {
    if schema_version > event_type.schema_version() {
        return Err(DecodeError::NewerSchema { event_type, schema_version });
    }
    if schema_version == 0 {
        return Err(DecodeError::VersionZero { field: "schema_version" });
    }
    let json = raw.get();
    let order = |event: Result<OrderEvent, serde_json::Error>| event.map(Payload::Order);
    let decoded = match event_type {
        EventType::GameEnded => serde_json::from_str(json).map(Payload::GameEnded),
        EventType::PlayerRegistered => serde_json::from_str(json).map(Payload::PlayerRegistered),
        EventType::PlayerRenamed => serde_json::from_str(json).map(Payload::PlayerRenamed),
        EventType::PlayerRestricted => serde_json::from_str(json).map(Payload::PlayerRestricted),
        EventType::PlayerReinstated => serde_json::from_str(json).map(Payload::PlayerReinstated),
        EventType::PostPublished => serde_json::from_str(json).map(Payload::PostPublished),
        EventType::PostDeleted => serde_json::from_str(json).map(Payload::PostDeleted),
        EventType::ReactionAdded => serde_json::from_str(json).map(Payload::ReactionAdded),
        EventType::ReactionRemoved => serde_json::from_str(json).map(Payload::ReactionRemoved),
        EventType::FollowStarted => serde_json::from_str(json).map(Payload::FollowStarted),
        EventType::FollowEnded => serde_json::from_str(json).map(Payload::FollowEnded),
        EventType::FanOutAdvanced => serde_json::from_str(json).map(Payload::FanOutAdvanced),
        EventType::NotificationRequested => serde_json::from_str(json).map(Payload::NotificationRequested),
        EventType::OrderPlaced if schema_version == 1 => {
            let old = serde_json::from_str::<OrderPlacedVersion1>(json);
            order(old.map(|old| OrderEvent::Placed(old.into())))
        }
        EventType::OrderPlaced => order(serde_json::from_str(json).map(OrderEvent::Placed)),
        EventType::OrderPaid => order(serde_json::from_str(json).map(OrderEvent::Paid)),
        EventType::OrderShipped => order(serde_json::from_str(json).map(OrderEvent::Shipped)),
        EventType::OrderDelivered => order(serde_json::from_str(json).map(OrderEvent::Delivered)),
        EventType::OrderCancelled => order(serde_json::from_str(json).map(OrderEvent::Cancelled)),
        EventType::OrderRefunded => order(serde_json::from_str(json).map(OrderEvent::Refunded)),
        EventType::CanarySent => serde_json::from_str(json).map(Payload::CanarySent),
    };
    decoded.map_err(|source| DecodeError::Payload { event_type, schema_version, source })
}

/// Writes every character beyond ASCII as `\uXXXX`.
struct AsciiFormatter;

impl Formatter for AsciiFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for character in fragment.chars() {
            if character.is_ascii() && character != '\u{7f}' {
                writer.write_all(&[character as u8])?;
            } else {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}
