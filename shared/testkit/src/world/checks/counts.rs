//! Posts of a player, reactions to a post by kind, followers and followed players are a recount of the records.

use std::collections::BTreeMap;

use domain::Key;
use domain::follows::Follow;
use domain::graph::{FOLLOWERS, FOLLOWING, followers_key, following_key};
use domain::posts::{self, POSTS, Post};
use domain::reactions::{self, Reaction};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::core::Core;
use super::statistics::{Counter, counters};
use super::{Broken, compare};

/// Counters of a target by the target, whatever shards it has.
type Counts = BTreeMap<Counter, i64>;

pub(super) fn check(core: &mut Core) -> Result<(), Broken> {
    let found = summed(counters(core, "COUNTS#").into_iter().chain(counters(core, "REACTIONS#")));
    compare(&found, &expected(core), |(key, _)| core.history.concerning(&key.partition))
}

/// Sums the shards of spread counters.
pub(super) fn summed(shards: impl Iterator<Item = (Counter, i64)>) -> Counts {
    let mut sums = Counts::new();
    for ((key, name), count) in shards {
        // A shard's number is the last part of its partition.
        let target = match key.partition.rsplit_once('#') {
            Some((target, shard)) if shard.parse::<u8>().is_ok() => Key { partition: target.to_owned(), ..key },
            Some(_) | None => key,
        };
        *sums.entry((target, name)).or_default() += count;
    }
    sums.retain(|_, count| *count != 0);
    sums
}

fn expected(core: &Core) -> Counts {
    let mut counts = Counts::new();
    let mut count = |key: Key, name: &str| *counts.entry((key, name.to_owned())).or_default() += 1;
    for post in records::<Post>(core, "POST#").filter(|post| post.text.is_some()) {
        count(posts::count_key(&post.author_id), POSTS);
    }
    for reaction in records::<Reaction>(core, "REACTION#") {
        if let Some(kind) = reaction.kind {
            count(reactions::count_key(&reaction.post_id), kind.as_str());
        }
    }
    for follow in records::<Follow>(core, "FOLLOWED#").filter(|follow| follow.since.is_some()) {
        count(followers_key(&follow.followed_id), FOLLOWERS);
        count(following_key(&follow.follower_id), FOLLOWING);
    }
    counts
}

/// Returns the source records of a kind.
pub(super) fn records<R: DeserializeOwned>(core: &Core, prefix: &str) -> impl Iterator<Item = R> {
    let rows = core.ledger.rows().into_iter();
    let of_kind = rows.filter(move |(key, _)| key.table == domain::Table::Records && key.partition.starts_with(prefix));
    of_kind.filter_map(|(_, attributes)| serde_json::from_value(Value::Object(attributes)).ok())
}
