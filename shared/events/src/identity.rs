//! Ids and names as newtypes. Each checks itself when it is made, so that code behind it need not.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

use crate::{Consumer, Timestamp};

/// Characters of an id, at most. Keeps every table key and log line short.
const ID_LENGTH_MAX: usize = 64;
/// Characters of a user name, at most.
const USERNAME_LENGTH_MAX: usize = 40;

/// A text that is not the id or name that it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidId {
    /// Not a UUID of version 7.
    #[error("{text:?} is not a UUID of version 7")]
    EventId {
        /// What was given.
        text: String,
    },
    /// Not a W3C trace id.
    #[error("{text:?} is not a trace id of 32 lower-case hexadecimal digits, not all zero")]
    TraceId {
        /// What was given.
        text: String,
    },
    /// Not the id of a player, a game or the like.
    #[error("{text:?} is not an id of 1 to {ID_LENGTH_MAX} letters, digits, '-' and '_'")]
    Id {
        /// What was given, cut to a printable length.
        text: String,
    },
    /// Not a user name.
    #[error(
        "a user name has 1 to {USERNAME_LENGTH_MAX} characters, none of them a control character or an outer space"
    )]
    Username,
}

/// The identity of one event: a UUIDv7, whose first 48 bits are the milliseconds of its making
/// ([RFC 9562, section 5.7](https://www.rfc-editor.org/rfc/rfc9562#section-5.7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventId(Uuid);

impl EventId {
    /// Mints an id from the current time and 80 random bits.
    pub fn mint(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Derives the id of an event that a consumer writes because of this one: the same for the same consumer and key every time,
    /// so that a repetition writes the same event. It keeps this id's moment.
    pub fn derived(self, consumer: Consumer, key: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [self.to_string().as_str(), consumer.as_str(), key] {
            hash.update(part);
            hash.update([0]);
        }
        let mut random = [0; 10];
        random.copy_from_slice(&hash.finalize()[..10]);
        Self::mint(self.minted_at(), random)
    }

    /// Returns the moment at which the id was minted.
    pub fn minted_at(self) -> Timestamp {
        let bytes = self.0.as_bytes();
        let millis = bytes[..6].iter().fold(0_i64, |sum, byte| (sum << 8) | i64::from(*byte));
        Timestamp::from_millis(millis)
    }
}

impl FromStr for EventId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match Uuid::try_parse(text) {
            Ok(uuid) if uuid.get_version_num() == 7 => Ok(Self(uuid)),
            Ok(_) | Err(_) => Err(InvalidId::EventId { text: shortened(text) }),
        }
    }
}

/// The W3C trace id that runs from the HTTP request to the last log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceId(u128);

impl TraceId {
    /// Mints an id from random bits.
    pub fn mint(random: u128) -> Self {
        Self(random.max(1))
    }

    /// Takes the trace id of a `traceparent` header
    /// ([W3C Trace Context, section 3.2](https://www.w3.org/TR/trace-context/#traceparent-header)).
    pub fn from_traceparent(header: &str) -> Option<Self> {
        header.split('-').nth(1)?.parse().ok()
    }

    /// Returns the `traceparent` header of a call within this trace. `span` is what the call is known by; 0 stands for 1, since
    /// no span is 0. The flag says that the trace is kept: every line of every log has its id.
    pub fn traceparent(self, span: u64) -> String {
        format!("00-{self}-{:016x}-01", span.max(1))
    }
}

impl FromStr for TraceId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let lower_hex = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(text, 16) {
            Ok(value) if lower_hex && value != 0 => Ok(Self(value)),
            Ok(_) | Err(_) => Err(InvalidId::TraceId { text: shortened(text) }),
        }
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Derives an id from an idempotency key, so that the same key names the same thing every time.
            pub fn derived(idempotency_key: &str) -> Self {
                let mut hash = Sha256::new();
                hash.update(stringify!($name));
                hash.update([0]);
                hash.update(idempotency_key);
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&hash.finalize()[..16]);
                Self(uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
                if (1..=ID_LENGTH_MAX).contains(&text.len()) && text.bytes().all(allowed) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId::Id { text: shortened(text) })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        string_serde!($name);
    };
}

macro_rules! string_serde {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

text_id!(
    /// The id of a player.
    PlayerId
);
text_id!(
    /// The id of a game.
    GameId
);
text_id!(
    /// The id of a post.
    PostId
);
text_id!(
    /// The id of an order.
    OrderId
);
text_id!(
    /// The id by which a caller knows a command.
    CommandId
);
text_id!(
    /// The number of an article.
    Sku
);
text_id!(
    /// By what a carrier finds a parcel.
    TrackingCode
);

text_id!(
    /// The id of a notification.
    NotificationId
);

impl PlayerId {
    /// Returns a number that spreads players evenly, whatever their ids look like: the first byte of the id's SHA-256.
    pub fn bucket(&self) -> u8 {
        Sha256::digest(&self.0)[0]
    }
}

/// The name that a player goes by. Unlike an id it may change and need not be unique.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Username(String);

impl Username {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Username {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let length_fits = (1..=USERNAME_LENGTH_MAX).contains(&text.chars().count());
        if length_fits && text.trim() == text && !text.chars().any(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId::Username)
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl fmt::Display for Username {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

string_serde!(EventId);
string_serde!(TraceId);
string_serde!(Username);

fn shortened(text: &str) -> String {
    text.chars().take(ID_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_keeps_its_moment() {
        let now = Timestamp::from_millis(1_796_000_000_123);
        let id = EventId::mint(now, [7; 10]);
        assert_eq!(id.minted_at(), now);
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn a_derived_event_id_is_the_same_every_time_and_keeps_the_moment() {
        let parent = EventId::mint(Timestamp::from_millis(1_796_000_000_123), [7; 10]);
        let derived = parent.derived(Consumer::FanOut, "p/1");
        assert_eq!(derived, parent.derived(Consumer::FanOut, "p/1"));
        assert_eq!((derived.minted_at(), derived.to_string().parse()), (parent.minted_at(), Ok(derived)));
        let others = [
            parent,
            parent.derived(Consumer::FanOut, "p/2"),
            parent.derived(Consumer::Activity, "p/1"),
            derived.derived(Consumer::FanOut, "p/1"),
        ];
        assert!(!others.contains(&derived));
    }

    #[test]
    fn an_event_id_of_another_version_is_refused() {
        let version_4 = "936da01f-9abd-4d9d-80c7-02af85c822a8";
        assert_eq!(version_4.parse::<EventId>(), Err(InvalidId::EventId { text: version_4.to_owned() }));
    }

    #[test]
    fn ids_take_only_short_plain_text() {
        for good in ["a", "player-a1cfca0b", "A_9", &"x".repeat(64)] {
            assert!(good.parse::<PlayerId>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a#b", "ä", "a/b", &"x".repeat(65)] {
            assert!(bad.parse::<PlayerId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_idempotency_key_names_one_thing_of_each_kind() {
        assert_eq!(GameId::derived("k"), GameId::derived("k"));
        assert_ne!(GameId::derived("k"), GameId::derived("l"));
        assert_ne!(GameId::derived("k").as_str(), PlayerId::derived("k").as_str());
        assert!(GameId::derived("k").as_str().parse::<GameId>().is_ok());
    }

    #[test]
    fn user_names_are_printable() {
        for good in ["Ann", "Ann Lee", "Ænn", &"x".repeat(40)] {
            assert!(good.parse::<Username>().is_ok(), "{good}");
        }
        for bad in ["", " Ann", "A\u{7}nn", &"x".repeat(41)] {
            assert!(bad.parse::<Username>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_traceparent_gives_its_trace_id() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let id = TraceId::from_traceparent(header).unwrap();
        assert_eq!(id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(id.traceparent(0x00f0_67aa_0ba9_02b7), header);
        assert_eq!(id.traceparent(0), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-01");
        assert_eq!(TraceId::from_traceparent("00-zz-1-01"), None);
        assert_eq!(TraceId::from_traceparent(&"0".repeat(32)), None);
    }
}
