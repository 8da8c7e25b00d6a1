//! Players' inboxes: what each is told, as long as it is still so when the notification is put there.
//!
//! The request says what happened then. Before anything is put into an inbox, what is true now is read again: whether the post is
//! there, and the follow still stands. The row commits only if that is unchanged. A restriction is no reason to leave a row
//! out, since it may end: whoever reads an inbox is not shown what the restricted did. But nothing is sent outside then.

use events::{Event, NotificationCause, NotificationId, NotificationRequested, Payload, PlayerId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::decision::{attributes, foreign};
use crate::follows::Follow;
use crate::players::{Player, Visibility};
use crate::posts::Post;
use crate::{Check, Content, Courier, Decider, Decision, End, Errand, Guard, Key, Need, RowError, State, Write};

/// A notification in an inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxRow {
    /// Which notification.
    pub notification_id: NotificationId,
    /// What it tells.
    pub cause: NotificationCause,
    /// When that happened.
    pub occurred_at: Timestamp,
    /// What became of telling it outside.
    pub delivery: Delivery,
}

/// What became of telling a notification outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It is to be sent.
    Pending,
    /// It was sent, and taken.
    Delivered,
    /// It was not sent and will not be: somebody concerned was restricted, or it was not so any more.
    Suppressed,
}

/// What is sent of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Which notification.
    pub notification_id: NotificationId,
    /// Who is to be told.
    pub recipient_id: PlayerId,
    /// Of what.
    pub cause: NotificationCause,
    /// When that happened.
    pub occurred_at: Timestamp,
}

impl InboxRow {
    /// Returns the partition of a player's inbox.
    pub fn partition(recipient_id: &PlayerId) -> String {
        format!("INBOX#{recipient_id}")
    }

    /// Returns the key of a notification's row: an inbox is in the order of time.
    pub fn key(recipient_id: &PlayerId, occurred_at: Timestamp, notification_id: &NotificationId) -> Key {
        Key::view(Self::partition(recipient_id), format!("{occurred_at}#{notification_id}"))
    }
}

/// Puts notifications into inboxes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inbox;

impl Decider for Inbox {
    fn needs(&self, event: &Event) -> Vec<Need> {
        let Payload::NotificationRequested(requested) = &event.payload else { return Vec::new() };
        let row = InboxRow::key(&requested.recipient_id, event.occurred_at, &requested.notification_id);
        let truth = Truth::of(requested);
        std::iter::once(row).chain(truth.keys()).map(Need::Key).collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Payload::NotificationRequested(requested) = &event.payload else { return foreign(event) };
        let key = InboxRow::key(&requested.recipient_id, event.occurred_at, &requested.notification_id);
        if let Some(row) = state.row(&key)?.decode::<InboxRow>(&key)? {
            return Ok(match row.delivery {
                Delivery::Pending => Decision::Ignore("in the inbox, and still to be delivered".to_owned()),
                Delivery::Delivered | Delivery::Suppressed => Decision::Ignore("in the inbox already".to_owned()),
            });
        }
        let truth = Truth::of(requested);
        if let Some(reason) = truth.obsolete(event.occurred_at, state)? {
            return Ok(Decision::Ignore(reason.to_owned()));
        }
        let row = InboxRow {
            notification_id: requested.notification_id.clone(),
            cause: requested.cause.clone(),
            occurred_at: event.occurred_at,
            delivery: match truth.visibility(state)? {
                Visibility::Visible => Delivery::Pending,
                Visibility::Hidden => Delivery::Suppressed,
            },
        };
        let content = Content::Row(attributes(&row, &key)?);
        let writes = vec![Write::Replace { key, content, guard: Guard::Unchanged(0) }];
        let mut checks = Vec::new();
        for key in truth.keys() {
            let version = state.row(&key)?.version;
            checks.push(Check { key, version });
        }
        Ok(Decision::Apply { writes, checks })
    }
}

impl Courier for Inbox {
    type Letter = Letter;

    fn errand(&self, event: &Event, state: &State) -> Result<Errand<Letter>, RowError> {
        let Payload::NotificationRequested(requested) = &event.payload else { return Ok(Errand::Nothing) };
        let key = InboxRow::key(&requested.recipient_id, event.occurred_at, &requested.notification_id);
        let row = state.row(&key)?.decode::<InboxRow>(&key)?;
        if row.is_none_or(|row| row.delivery != Delivery::Pending) {
            return Ok(Errand::Nothing);
        }
        let truth = Truth::of(requested);
        let is_so = truth.obsolete(event.occurred_at, state)?.is_none();
        if !is_so || truth.visibility(state)? == Visibility::Hidden {
            return Ok(Errand::Drop);
        }
        let letter = Letter {
            notification_id: requested.notification_id.clone(),
            recipient_id: requested.recipient_id.clone(),
            cause: requested.cause.clone(),
            occurred_at: event.occurred_at,
        };
        Ok(Errand::Send { key: requested.notification_id.to_string(), letter })
    }

    fn settle(&self, event: &Event, state: &State, end: End) -> Result<Decision, RowError> {
        let Payload::NotificationRequested(requested) = &event.payload else { return foreign(event) };
        let key = InboxRow::key(&requested.recipient_id, event.occurred_at, &requested.notification_id);
        let row = state.row(&key)?;
        let Some(before) = row.decode::<InboxRow>(&key)?.filter(|row| row.delivery == Delivery::Pending) else {
            return Ok(Decision::Ignore("settled before".to_owned()));
        };
        let delivery = match end {
            End::Delivered => Delivery::Delivered,
            End::Suppressed => Delivery::Suppressed,
        };
        let content = Content::Row(attributes(&InboxRow { delivery, ..before }, &key)?);
        let writes = vec![Write::Replace { key, content, guard: Guard::Unchanged(row.version) }];
        Ok(Decision::Apply { writes, checks: Vec::new() })
    }
}

/// The records that say whether a notification is still true, and whether it may be told.
struct Truth {
    players: [Key; 2],
    post: Option<Key>,
    follow: Option<Key>,
}

impl Truth {
    fn of(requested: &NotificationRequested) -> Self {
        let recipient = &requested.recipient_id;
        let follow = match &requested.cause {
            NotificationCause::Post { author_id, .. } => Some(Follow::key(author_id, recipient)),
            NotificationCause::Follow { follower_id } => Some(Follow::key(recipient, follower_id)),
            NotificationCause::Reaction { .. } => None,
        };
        Self {
            players: [Player::key(recipient), Player::key(requested.cause.actor())],
            post: requested.cause.post().map(Post::key),
            follow,
        }
    }

    fn keys(&self) -> Vec<Key> {
        self.players.iter().chain(&self.post).chain(&self.follow).cloned().collect()
    }

    /// Returns whether the two see one another: neither of them is restricted.
    fn visibility(&self, state: &State) -> Result<Visibility, RowError> {
        for key in &self.players {
            let player = state.row(key)?.decode::<Player>(key)?;
            if player.is_none_or(|player| player.visibility() == Visibility::Hidden) {
                return Ok(Visibility::Hidden);
            }
        }
        Ok(Visibility::Visible)
    }

    /// Returns why there is nothing to tell any more, if so: all of these are final.
    fn obsolete(&self, occurred_at: Timestamp, state: &State) -> Result<Option<&'static str>, RowError> {
        if let Some(key) = &self.post
            && state.row(key)?.decode::<Post>(key)?.is_none_or(|post| post.text.is_none())
        {
            return Ok(Some("the post was deleted"));
        }
        if let Some(key) = &self.follow {
            let since = state.row(key)?.decode::<Follow>(key)?.and_then(|follow| follow.since);
            // Who has left and follows again since is told of that, and not of what was before.
            if since.is_none_or(|since| since > occurred_at) {
                return Ok(Some("the follow has ended"));
            }
        }
        Ok(None)
    }
}
