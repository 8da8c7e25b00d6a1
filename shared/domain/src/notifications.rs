//! Notifications as source records: asked for once for each event and recipient, and read by the recipient.

use events::{
    Consumer, Event, EventId, NotificationCause, NotificationId, NotificationRequested, Payload, PlayerId, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::decision::published;
use crate::{Key, RowError, Write};

/// The record of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// Which notification.
    pub notification_id: NotificationId,
    /// Who is to be told.
    pub recipient_id: PlayerId,
    /// Of what.
    pub cause: NotificationCause,
    /// When that happened.
    pub occurred_at: Timestamp,
    /// Since when the recipient has read it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

impl Notification {
    /// Returns the key of a notification's record.
    pub fn key(notification_id: &NotificationId) -> Key {
        Key::record(format!("NOTIFICATION#{notification_id}"), "NOTIFICATION")
    }
}

/// Asks for a notification of what an event tells. Made again for the same event and recipient it is the same to the byte.
pub(crate) fn request(
    consumer: Consumer,
    parent: &Event,
    told: EventId,
    recipient_id: &PlayerId,
    cause: NotificationCause,
    occurred_at: Timestamp,
) -> Result<Write, RowError> {
    let notification_id = NotificationId::derived(&format!("{told} {recipient_id}"));
    let payload = NotificationRequested {
        notification_id: notification_id.clone(),
        recipient_id: recipient_id.clone(),
        cause: cause.clone(),
    };
    let event = Event {
        event_id: parent.event_id.derived(consumer, notification_id.as_str()),
        aggregate_id: notification_id.to_string(),
        version: 1,
        occurred_at,
        trace_id: parent.trace_id,
        payload: Payload::NotificationRequested(payload),
    };
    let key = Notification::key(&notification_id);
    let record =
        Notification { notification_id, recipient_id: recipient_id.clone(), cause, occurred_at, read_at: None };
    let attributes = published(&record, &event, &key)?;
    Ok(Write::Create { key, attributes })
}
