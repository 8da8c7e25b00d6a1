//! Whoever followed an author before a post, and still does, was asked to be told of it, once; and every inbox holds what was asked
//! for and is still so. What was taken back may have been told before that.

use std::collections::BTreeSet;

use domain::Key;
use domain::fan_out::{FanOutRange, Progress};
use domain::follows::Follow;
use domain::inbox::InboxRow;
use domain::notifications::Notification;
use domain::posts::Post;
use events::{EventId, NotificationCause, NotificationId, Payload};

use super::super::core::Core;
use super::Broken;
use super::counts::records;

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let notifications: Vec<Notification> = records(core, "NOTIFICATION#").collect();
    let asked: BTreeSet<NotificationId> = notifications.iter().map(|one| one.notification_id.clone()).collect();
    audiences(core, &asked)?;
    let rows: BTreeSet<Key> =
        core.ledger.rows().into_keys().filter(|key| key.partition.starts_with("INBOX#")).collect();
    let mut expected = BTreeSet::new();
    for notification in &notifications {
        let key = InboxRow::key(&notification.recipient_id, notification.occurred_at, &notification.notification_id);
        if is_so(core, notification) && !rows.contains(&key) {
            return Err(broken(core, &key, "is missing"));
        }
        expected.insert(key);
    }
    match rows.difference(&expected).next() {
        Some(key) => Err(broken(core, key, "was never asked for")),
        None => Ok(()),
    }
}

/// Every range of every audience has come to its end, and has asked for everybody who followed before.
fn audiences(core: &Core, asked: &BTreeSet<NotificationId>) -> Result<(), Broken> {
    for post in records::<Post>(core, "POST#").filter(|post| post.text.is_some()) {
        for range in records::<FanOutRange>(core, &format!("FANOUT#{}", post.post_id)) {
            if range.progress != Progress::Done {
                return Err(broken(core, &FanOutRange::key(&range.post_id, range.range), "has not come to its end"));
            }
        }
        let Some(told) = published(core, &post) else { continue };
        for follow in records::<Follow>(core, &Follow::partition(&post.author_id)) {
            let before = follow.since.is_some_and(|since| since <= post.published_at);
            let notification = NotificationId::derived(&format!("{told} {}", follow.follower_id));
            // A partition's name may begin with another one's.
            if before && follow.followed_id == post.author_id && !asked.contains(&notification) {
                return Err(broken(core, &Notification::key(&notification), "was not asked for"));
            }
        }
    }
    Ok(())
}

/// Returns the event that published a post.
fn published(core: &Core, post: &Post) -> Option<EventId> {
    let mut events = core.history.events.iter();
    let event = events.find(|event| {
        let Payload::PostPublished(published) = &event.payload else { return false };
        published.post_id == post.post_id
    });
    event.map(|event| event.event_id)
}

/// Whether what a notification tells is still so.
fn is_so(core: &Core, notification: &Notification) -> bool {
    let post = notification.cause.post().map(Post::key);
    let stands = post.is_none_or(|key| {
        let post = core.ledger.row(&key).decode::<Post>(&key).ok().flatten();
        post.is_some_and(|post| post.text.is_some())
    });
    let recipient = &notification.recipient_id;
    let follow = match &notification.cause {
        NotificationCause::Post { author_id, .. } => Some(Follow::key(author_id, recipient)),
        NotificationCause::Follow { follower_id } => Some(Follow::key(recipient, follower_id)),
        NotificationCause::Reaction { .. } => None,
    };
    let follows = follow.is_none_or(|key| {
        let follow = core.ledger.row(&key).decode::<Follow>(&key).ok().flatten();
        follow.and_then(|follow| follow.since).is_some_and(|since| since <= notification.occurred_at)
    });
    stands && follows
}

fn broken(core: &Core, key: &Key, what: &str) -> Broken {
    Broken { what: format!("{key} {what}"), about: core.history.concerning(&key.to_string()) }
}
