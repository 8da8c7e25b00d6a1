//! Which consumers get which event. This is the one list: the relay sends by it, and the templates are checked against
//! it. A type without a consumer cannot be written down, since [`Consumers`] has no empty value.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Queue for what the relay can never send, without the stack's prefix.
pub const RELAY_REJECTED_QUEUE: &str = "relay-rejected";

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// A rated game has ended.
    GameEnded,
    /// There is a new player.
    PlayerRegistered,
    /// A player goes by another name.
    PlayerRenamed,
    /// A player is hidden.
    PlayerRestricted,
    /// A player is hidden no more.
    PlayerReinstated,
    /// A player has published a post.
    PostPublished,
    /// A post is gone for good.
    PostDeleted,
    /// A player reacts to a post.
    ReactionAdded,
    /// A player reacts to a post no more.
    ReactionRemoved,
    /// A player follows another one.
    FollowStarted,
    /// A player follows another one no more.
    FollowEnded,
    /// One range of a post's audience has a page less to go.
    FanOutAdvanced,
    /// Somebody is to be told of something.
    NotificationRequested,
    /// An order has been placed.
    OrderPlaced,
    /// An order has been paid, in full or in part.
    OrderPaid,
    /// An order has been handed to the carrier.
    OrderShipped,
    /// An order has been handed to the customer.
    OrderDelivered,
    /// An order has been given up.
    OrderCancelled,
    /// What was paid for an order has been paid back.
    OrderRefunded,
    /// A canary is under way: it shows that the path from a record to every consumer is whole, and changes nothing.
    CanarySent,
}

impl EventType {
    /// All kinds of events.
    pub const ALL: [Self; 20] = [
        Self::GameEnded,
        Self::PlayerRegistered,
        Self::PlayerRenamed,
        Self::PlayerRestricted,
        Self::PlayerReinstated,
        Self::PostPublished,
        Self::PostDeleted,
        Self::ReactionAdded,
        Self::ReactionRemoved,
        Self::FollowStarted,
        Self::FollowEnded,
        Self::FanOutAdvanced,
        Self::NotificationRequested,
        Self::OrderPlaced,
        Self::OrderPaid,
        Self::OrderShipped,
        Self::OrderDelivered,
        Self::OrderCancelled,
        Self::OrderRefunded,
        Self::CanarySent,
    ];

    /// Returns the consumers that get events of this type.
    pub const fn consumers(self) -> Consumers {
        /// What a player does.
        const DONE: &[Consumer] = &[Consumer::Activity, Consumer::ActivePlayers];
        /// What others are told of besides.
        const TOLD: &[Consumer] = &[Consumer::FanOut, Consumer::Activity, Consumer::ActivePlayers];
        /// No queue without a canary.
        const EVERYBODY: &[Consumer; Consumer::ALL.len()] = &Consumer::ALL;
        match self {
            Self::GameEnded => Consumers {
                first: Consumer::GameEnded,
                others: &[Consumer::GameEndedStatistics, Consumer::Activity, Consumer::ActivePlayers],
            },
            Self::PlayerRegistered | Self::PlayerRenamed => Consumers { first: Consumer::PlayerChanged, others: DONE },
            Self::PlayerRestricted | Self::PlayerReinstated => {
                Consumers { first: Consumer::PlayerChanged, others: &[Consumer::Activity] }
            }
            Self::PostPublished => Consumers { first: Consumer::PostChanged, others: TOLD },
            Self::PostDeleted => Consumers { first: Consumer::PostChanged, others: DONE },
            Self::ReactionAdded => Consumers { first: Consumer::ReactionChanged, others: TOLD },
            Self::ReactionRemoved => Consumers { first: Consumer::ReactionChanged, others: DONE },
            Self::FollowStarted => Consumers { first: Consumer::FollowChanged, others: TOLD },
            Self::FollowEnded => Consumers { first: Consumer::FollowChanged, others: DONE },
            Self::FanOutAdvanced => Consumers { first: Consumer::FanOut, others: &[] },
            Self::NotificationRequested => Consumers { first: Consumer::NotificationRequested, others: &[] },
            Self::OrderPlaced => Consumers { first: Consumer::OrderChanged, others: DONE },
            Self::OrderPaid
            | Self::OrderShipped
            | Self::OrderDelivered
            | Self::OrderCancelled
            | Self::OrderRefunded => Consumers { first: Consumer::OrderChanged, others: &[Consumer::Activity] },
            Self::CanarySent => {
                let [first, others @ ..] = EVERYBODY;
                Consumers { first: *first, others }
            }
        }
    }

    /// Returns the type as the envelope writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GameEnded => "game_ended",
            Self::PlayerRegistered => "player_registered",
            Self::PlayerRenamed => "player_renamed",
            Self::PlayerRestricted => "player_restricted",
            Self::PlayerReinstated => "player_reinstated",
            Self::PostPublished => "post_published",
            Self::PostDeleted => "post_deleted",
            Self::ReactionAdded => "reaction_added",
            Self::ReactionRemoved => "reaction_removed",
            Self::FollowStarted => "follow_started",
            Self::FollowEnded => "follow_ended",
            Self::FanOutAdvanced => "fan_out_advanced",
            Self::NotificationRequested => "notification_requested",
            Self::OrderPlaced => "order_placed",
            Self::OrderPaid => "order_paid",
            Self::OrderShipped => "order_shipped",
            Self::OrderDelivered => "order_delivered",
            Self::OrderCancelled => "order_cancelled",
            Self::OrderRefunded => "order_refunded",
            Self::CanarySent => "canary_sent",
        }
    }

    /// Returns the newest schema version of the payload that this code knows.
    pub const fn schema_version(self) -> u32 {
        match self {
            Self::OrderPlaced => 2,
            Self::GameEnded
            | Self::PlayerRegistered
            | Self::PlayerRenamed
            | Self::PlayerRestricted
            | Self::PlayerReinstated
            | Self::PostPublished
            | Self::PostDeleted
            | Self::ReactionAdded
            | Self::ReactionRemoved
            | Self::FollowStarted
            | Self::FollowEnded
            | Self::FanOutAdvanced
            | Self::NotificationRequested
            | Self::OrderPaid
            | Self::OrderShipped
            | Self::OrderDelivered
            | Self::OrderCancelled
            | Self::OrderRefunded
            | Self::CanarySent => 1,
        }
    }

    /// Returns the kind of business object that the event is about.
    pub const fn aggregate_type(self) -> &'static str {
        match self {
            Self::GameEnded => "game",
            Self::PlayerRegistered | Self::PlayerRenamed | Self::PlayerRestricted | Self::PlayerReinstated => "player",
            Self::PostPublished | Self::PostDeleted => "post",
            Self::ReactionAdded | Self::ReactionRemoved => "reaction",
            Self::FollowStarted | Self::FollowEnded => "follow",
            Self::FanOutAdvanced => "fan_out",
            Self::NotificationRequested => "notification",
            Self::OrderPlaced
            | Self::OrderPaid
            | Self::OrderShipped
            | Self::OrderDelivered
            | Self::OrderCancelled
            | Self::OrderRefunded => "order",
            Self::CanarySent => "canary",
        }
    }
}

/// An event type that this code does not know.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown event type {text:?}")]
pub struct UnknownEventType {
    /// What was given.
    pub text: String,
}

impl FromStr for EventType {
    type Err = UnknownEventType;

    fn from_str(text: &str) -> Result<Self, UnknownEventType> {
        Self::ALL
            .into_iter()
            .find(|event_type| event_type.as_str() == text)
            .ok_or_else(|| UnknownEventType { text: text.chars().take(64).collect() })
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The consumers of an event type: one or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumers {
    first: Consumer,
    others: &'static [Consumer],
}

impl Consumers {
    /// Returns the consumers in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = Consumer> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

/// A consumer: one function with one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consumer {
    /// Keeps the leaderboards.
    GameEnded,
    /// Keeps players' results by time control and day.
    GameEndedStatistics,
    /// Keeps names and visibility on the leaderboards.
    PlayerChanged,
    /// Counts posts.
    PostChanged,
    /// Counts reactions.
    ReactionChanged,
    /// Keeps the graph of follows and its counts.
    FollowChanged,
    /// Counts events by type and day.
    Activity,
    /// Counts active players by day.
    ActivePlayers,
    /// Finds out who is to be told of what.
    FanOut,
    /// Puts notifications into inboxes.
    NotificationRequested,
    /// Keeps the views of orders.
    OrderChanged,
}

/// In which order a queue hands out its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOrder {
    /// In none.
    Standard,
    /// First in, first out within a message group: the events of one aggregate.
    FifoByAggregate,
}

impl Consumer {
    /// All consumers.
    pub const ALL: [Self; 11] = [
        Self::GameEnded,
        Self::GameEndedStatistics,
        Self::PlayerChanged,
        Self::PostChanged,
        Self::ReactionChanged,
        Self::FollowChanged,
        Self::Activity,
        Self::ActivePlayers,
        Self::FanOut,
        Self::NotificationRequested,
        Self::OrderChanged,
    ];

    /// Returns the name of the function, without the stack's prefix.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GameEnded => "game-ended",
            Self::GameEndedStatistics => "game-ended-statistics",
            Self::PlayerChanged => "player-changed",
            Self::PostChanged => "post-changed",
            Self::ReactionChanged => "reaction-changed",
            Self::FollowChanged => "follow-changed",
            Self::Activity => "activity",
            Self::ActivePlayers => "active-players",
            Self::FanOut => "fan-out",
            Self::NotificationRequested => "notification-requested",
            Self::OrderChanged => "order-changed",
        }
    }

    /// Returns the name of its queue, without the stack's prefix. A FIFO queue's name has to end with `.fifo`.
    pub const fn queue_name(self) -> &'static str {
        match self {
            Self::GameEnded
            | Self::GameEndedStatistics
            | Self::PlayerChanged
            | Self::PostChanged
            | Self::ReactionChanged
            | Self::FollowChanged
            | Self::Activity
            | Self::ActivePlayers
            | Self::FanOut
            | Self::NotificationRequested => self.as_str(),
            Self::OrderChanged => "order-changed.fifo",
        }
    }

    /// Returns in which order its queue hands out messages.
    pub const fn queue_order(self) -> QueueOrder {
        match self {
            Self::GameEnded
            | Self::GameEndedStatistics
            | Self::PlayerChanged
            | Self::PostChanged
            | Self::ReactionChanged
            | Self::FollowChanged
            | Self::Activity
            | Self::ActivePlayers
            | Self::FanOut
            | Self::NotificationRequested => QueueOrder::Standard,
            Self::OrderChanged => QueueOrder::FifoByAggregate,
        }
    }

    /// Returns the types of the events that it writes itself. One that it gets as well comes back to it.
    pub const fn publishes(self) -> &'static [EventType] {
        match self {
            Self::FanOut => &[EventType::FanOutAdvanced, EventType::NotificationRequested],
            Self::GameEnded
            | Self::GameEndedStatistics
            | Self::PlayerChanged
            | Self::PostChanged
            | Self::ReactionChanged
            | Self::FollowChanged
            | Self::Activity
            | Self::ActivePlayers
            | Self::NotificationRequested
            | Self::OrderChanged => &[],
        }
    }

    /// Returns what it depends on outside the stack, which may be away for hours.
    pub const fn external(self) -> Option<&'static str> {
        match self {
            Self::NotificationRequested => Some("webhook"),
            Self::GameEnded
            | Self::GameEndedStatistics
            | Self::PlayerChanged
            | Self::PostChanged
            | Self::ReactionChanged
            | Self::FollowChanged
            | Self::Activity
            | Self::ActivePlayers
            | Self::FanOut
            | Self::OrderChanged => None,
        }
    }

    /// Returns what it keeps true, in a few words.
    pub const fn keeps(self) -> &'static str {
        match self {
            Self::GameEnded => "board rows, histogram",
            Self::GameEndedStatistics => "results by day, claim",
            Self::PlayerChanged => "names, visibility",
            Self::PostChanged => "posts, counts",
            Self::ReactionChanged => "reactions, counts",
            Self::FollowChanged => "both sides, counts",
            Self::Activity => "events by day, claim",
            Self::ActivePlayers => "players by day",
            Self::FanOut => "notifications, next position",
            Self::NotificationRequested => "inbox, delivery",
            Self::OrderChanged => "views, snapshot, gap",
        }
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_consumer_gets_some_event() {
        for consumer in Consumer::ALL {
            assert!(EventType::ALL.into_iter().any(|event_type| event_type.consumers().iter().any(|c| c == consumer)));
        }
    }

    #[test]
    fn a_canary_goes_to_every_consumer_once() {
        assert!(EventType::CanarySent.consumers().iter().eq(Consumer::ALL));
    }

    #[test]
    fn a_queue_has_the_ending_of_its_kind() {
        for consumer in Consumer::ALL {
            let fifo = consumer.queue_order() == QueueOrder::FifoByAggregate;
            assert_eq!(consumer.queue_name().ends_with(".fifo"), fifo, "{consumer}");
            assert_eq!(consumer.queue_name().trim_end_matches(".fifo"), consumer.as_str());
        }
    }

    #[test]
    fn an_event_type_is_read_as_it_is_written() {
        for event_type in EventType::ALL {
            assert_eq!(event_type.as_str().parse(), Ok(event_type));
        }
        assert!("GAME_ENDED".parse::<EventType>().is_err());
    }
}
