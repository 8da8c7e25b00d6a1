//! The wire contract: ids, envelope, one file per payload, and which consumer gets which event. No IO, no clock, no
//! randomness: whoever mints an id brings the time and the random bits.

mod identity;
mod text;
mod timestamp;

mod envelope;
mod wrapping;

mod follows;
mod game_ended;
mod notifications;
mod players;
mod posts;
mod reactions;
mod topology;

pub use envelope::{DecodeError, Disposition, Event, Payload, encode_ascii};
pub use follows::{FollowEnded, FollowStarted};
pub use game_ended::{GameEnded, GameResult, PlayerResult, Rating, TimeControl, UnknownTimeControl};
pub use identity::{EventId, GameId, InvalidId, NotificationId, PlayerId, PostId, TraceId, Username};
pub use notifications::{FanOutAdvanced, NotificationCause, NotificationRequested};
pub use players::{PlayerRegistered, PlayerReinstated, PlayerRenamed, PlayerRestricted};
pub use posts::{PostDeleted, PostPublished};
pub use reactions::{ReactionAdded, ReactionKind, ReactionRemoved, UnknownReactionKind};
pub use text::{InvalidText, PostText, RestrictionReason};
pub use timestamp::{Day, InvalidTimestamp, Timestamp};
pub use topology::{Consumer, Consumers, EventType, RELAY_REJECTED_QUEUE, UnknownEventType};
