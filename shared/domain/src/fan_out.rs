//! Who is to be told of what: the followers of a post's author, page by page; the author of a post that somebody reacts to; the
//! player whom somebody follows.
//!
//! The follow records are the truth about an audience. A post's audience is cut into ranges of them, each with a record that
//! says how far it has come. A page is one transaction: the notifications of its followers, and the record's next position
//! with the event that drives the next page. So a page that is handled twice is refused or stale, whoever followed or left
//! meanwhile, and no function is bigger for a bigger audience.

use events::{
    Consumer, Event, EventId, FanOutAdvanced, NotificationCause, Payload, PlayerId, PostId, PostPublished, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::{EVENT, attributes, foreign, published};
use crate::follows::Follow;
use crate::graph::{FOLLOWER_SPREAD, FOLLOWERS, followers_key};
use crate::notifications::request;
use crate::posts::Post;
use crate::{Content, Decider, Decision, Guard, Key, Need, Range, RowError, State, Table, Write};

/// Follow records of a page: with the range's own record, and room to spare, they fit one transaction.
pub const PAGE: usize = 96;
/// Followers from whom on an audience is cut into 16 ranges, and into 64.
const LARGE: [(i64, u16); 2] = [(100_000, 64), (2_000, 16)];
/// Values of the hash that a follower's position begins with.
const BUCKETS: u16 = 256;
/// Whose fan-outs these are.
const CONSUMER: Consumer = Consumer::FanOut;

/// The record of one range of a post's audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOutRange {
    /// Of which post.
    pub post_id: PostId,
    /// Whose followers are the audience.
    pub author_id: PlayerId,
    /// The event that they are told of.
    pub told: EventId,
    /// When that happened: those who follow since later are not told.
    pub published_at: Timestamp,
    /// Which range, from 0.
    pub range: u16,
    /// Position behind which the range goes on.
    pub after: String,
    /// Position before which it ends; none for the last range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// How many were asked to be told.
    pub recipients: u64,
    /// Whether there is more to do.
    pub progress: Progress,
}

/// Whether a range has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It has.
    Running,
    /// All of its followers were looked at.
    Done,
}

impl FanOutRange {
    /// Returns the key of a range's record.
    pub fn key(post_id: &PostId, range: u16) -> Key {
        Key::record(format!("FANOUT#{post_id}"), format!("RANGE#{range:03}"))
    }

    fn follows(&self) -> Range {
        let (table, partition) = (Table::Records, Follow::partition(&self.author_id));
        Range { table, partition, after: self.after.clone(), limit: PAGE }
    }

    fn holds(&self, key: &Key) -> bool {
        self.end.as_ref().is_none_or(|end| key.sort < *end)
    }

    fn advanced(&self, parent: &Event, version: u64) -> Event {
        let aggregate_id = format!("{}/{}", self.post_id, self.range);
        Event {
            event_id: parent.event_id.derived(CONSUMER, &aggregate_id),
            aggregate_id,
            version,
            occurred_at: self.published_at,
            trace_id: parent.trace_id,
            payload: Payload::FanOutAdvanced(FanOutAdvanced {
                post_id: self.post_id.clone(),
                author_id: self.author_id.clone(),
                range: self.range,
            }),
        }
    }
}

/// Decides who is to be told.
#[derive(Debug, Clone, Copy, Default)]
pub struct FanOut;

impl Decider for FanOut {
    fn needs(&self, event: &Event) -> Vec<Need> {
        if let Payload::PostPublished(post) = &event.payload {
            let counters = FOLLOWER_SPREAD.keys(&followers_key(&post.author_id));
            let keys = [Post::key(&post.post_id), FanOutRange::key(&post.post_id, 0)];
            return keys.into_iter().chain(counters).map(Need::Key).collect();
        }
        if let Payload::FanOutAdvanced(advanced) = &event.payload {
            let keys = [FanOutRange::key(&advanced.post_id, advanced.range), Post::key(&advanced.post_id)];
            return keys.map(Need::Key).to_vec();
        }
        let Payload::ReactionAdded(reaction) = &event.payload else { return Vec::new() };
        vec![Need::Key(Post::key(&reaction.post_id))]
    }

    fn further_needs(&self, event: &Event, state: &State) -> Result<Vec<Need>, RowError> {
        let Payload::FanOutAdvanced(advanced) = &event.payload else { return Ok(Vec::new()) };
        let range = current(event, advanced, state)?;
        Ok(range.map(|(_, range)| Need::Range(range.follows())).into_iter().collect())
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        if let Payload::PostPublished(post) = &event.payload {
            return begin(event, post, state);
        }
        if let Payload::FanOutAdvanced(advanced) = &event.payload {
            return page(event, advanced, state);
        }
        if let Payload::ReactionAdded(reaction) = &event.payload {
            let Some(post) = standing(&reaction.post_id, state)? else { return gone() };
            if post.author_id == reaction.player_id {
                return Ok(Decision::Ignore("nobody is told of their own reaction".to_owned()));
            }
            let (post_id, player_id) = (reaction.post_id.clone(), reaction.player_id.clone());
            return one(event, &post.author_id, NotificationCause::Reaction { post_id, player_id });
        }
        let Payload::FollowStarted(follow) = &event.payload else { return foreign(event) };
        one(event, &follow.followed_id, NotificationCause::Follow { follower_id: follow.follower_id.clone() })
    }
}

/// Returns the post unless it was deleted, which is final.
fn standing(post_id: &PostId, state: &State) -> Result<Option<Post>, RowError> {
    let key = Post::key(post_id);
    Ok(state.row(&key)?.decode::<Post>(&key)?.filter(|post| post.text.is_some()))
}

fn gone() -> Result<Decision, RowError> {
    Ok(Decision::Ignore("the post was deleted".to_owned()))
}

fn one(event: &Event, recipient_id: &PlayerId, cause: NotificationCause) -> Result<Decision, RowError> {
    let write = request(CONSUMER, event, event.event_id, recipient_id, cause, event.occurred_at)?;
    Ok(Decision::Apply { writes: vec![write], checks: Vec::new() })
}

/// Creates the records of all ranges, each with the event that drives its first page.
fn begin(event: &Event, published_post: &PostPublished, state: &State) -> Result<Decision, RowError> {
    if state.row(&FanOutRange::key(&published_post.post_id, 0))?.version > 0 {
        return Ok(Decision::Ignore("the fan-out has begun before".to_owned()));
    }
    let Some(post) = standing(&published_post.post_id, state)? else { return gone() };
    let mut followers = 0;
    for key in FOLLOWER_SPREAD.keys(&followers_key(&post.author_id)) {
        let attributes = state.row(&key)?.attributes.as_ref();
        followers += attributes.and_then(|counters| counters.get(FOLLOWERS)).and_then(Value::as_i64).unwrap_or(0);
    }
    let ranges = LARGE.into_iter().find(|(least, _)| followers >= *least).map_or(1, |(_, ranges)| ranges);
    let width = BUCKETS / ranges;
    let mut writes = Vec::new();
    for range in 0..ranges {
        let record = FanOutRange {
            post_id: post.post_id.clone(),
            author_id: post.author_id.clone(),
            told: event.event_id,
            published_at: post.published_at,
            range,
            after: Follow::position(range * width),
            end: (range + 1 < ranges).then(|| Follow::position((range + 1) * width)),
            recipients: 0,
            progress: Progress::Running,
        };
        let key = FanOutRange::key(&post.post_id, range);
        let attributes = published(&record, &record.advanced(event, 1), &key)?;
        writes.push(Write::Create { key, attributes });
    }
    Ok(Decision::Apply { writes, checks: Vec::new() })
}

/// Returns the range as the event left it; `None` once it has come further.
fn current(event: &Event, advanced: &FanOutAdvanced, state: &State) -> Result<Option<(Key, FanOutRange)>, RowError> {
    let key = FanOutRange::key(&advanced.post_id, advanced.range);
    let row = state.row(&key)?;
    if row.version != event.version {
        return Ok(None);
    }
    Ok(row.decode::<FanOutRange>(&key)?.filter(|range| range.progress == Progress::Running).map(|range| (key, range)))
}

/// Asks for the notifications of one page, and moves the range on behind it.
fn page(event: &Event, advanced: &FanOutAdvanced, state: &State) -> Result<Decision, RowError> {
    let Some((key, mut range)) = current(event, advanced, state)? else { return Ok(Decision::Stale) };
    if standing(&advanced.post_id, state)?.is_none() {
        return gone();
    }
    let rows = state.range(&range.follows())?;
    let read = rows.len();
    let rows: Vec<_> = rows.into_iter().take_while(|(key, _)| range.holds(key)).collect();
    let is_last = read < PAGE || rows.len() < read;
    let last = rows.last().map(|(key, _)| key.sort.clone());
    let mut writes = Vec::new();
    for (follow_key, row) in rows {
        let Some(follow) = row.decode::<Follow>(follow_key)? else { continue };
        if follow.since.is_some_and(|since| since <= range.published_at) {
            let (post_id, author_id) = (range.post_id.clone(), range.author_id.clone());
            let cause = NotificationCause::Post { post_id, author_id };
            writes.push(request(CONSUMER, event, range.told, &follow.follower_id, cause, range.published_at)?);
        }
    }
    range.recipients += writes.len() as u64;
    range.after = last.unwrap_or(range.after);
    let row = state.row(&key)?;
    let version = row.version;
    let content = if is_last {
        range.progress = Progress::Done;
        let mut record = attributes(&range, &key)?;
        // Nothing follows: the record keeps its last event, so that its change publishes none.
        record.extend(
            row.attributes.iter().flatten().filter(|(name, _)| *name == EVENT).map(|(n, v)| (n.clone(), v.clone())),
        );
        record
    } else {
        published(&range, &range.advanced(event, version + 1), &key)?
    };
    writes.push(Write::Replace { key, content: Content::Row(content), guard: Guard::Unchanged(version) });
    Ok(Decision::Apply { writes, checks: Vec::new() })
}
