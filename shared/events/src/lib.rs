//! The wire contract: ids, envelope, one file per payload, and which consumer gets which event. No IO, no clock, no
//! randomness: whoever mints an id brings the time and the random bits.

mod identity;
mod text;
mod timestamp;

mod envelope;
mod wrapping;

mod canary;
mod follows;
mod game_ended;
mod notifications;
mod order;
mod players;
mod posts;
mod reactions;
mod topology;

pub use canary::CanarySent;
pub use envelope::{DecodeError, Disposition, Event, Payload, encode_ascii};
pub use follows::{FollowEnded, FollowStarted};
pub use game_ended::{GameEnded, GameResult, PlayerResult, Rating, TimeControl, UnknownTimeControl};
pub use identity::{
    CommandId, EventId, GameId, InvalidId, NotificationId, OrderId, PlayerId, PostId, Sku, TraceId, TrackingCode,
    Username,
};
pub use notifications::{FanOutAdvanced, NotificationCause, NotificationRequested};
pub use order::{
    CancellationReason, Currency, OrderCancelled, OrderDelivered, OrderEvent, OrderItem, OrderPaid, OrderPlaced,
    OrderPlacedVersion1, OrderRefunded, OrderShipped, UnknownCancellationReason, UnknownCurrency,
};
pub use players::{PlayerRegistered, PlayerReinstated, PlayerRenamed, PlayerRestricted};
pub use posts::{PostDeleted, PostPublished};
pub use reactions::{ReactionAdded, ReactionKind, ReactionRemoved, UnknownReactionKind};
pub use text::{InvalidText, PostText, RestrictionReason};
pub use timestamp::{Day, InvalidTimestamp, Timestamp};
pub use topology::{Consumer, Consumers, EventType, QueueOrder, RELAY_REJECTED_QUEUE, UnknownEventType};
