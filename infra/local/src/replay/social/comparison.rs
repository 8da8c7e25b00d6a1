//! Compares what the stack shows of people and posts with the fold.

use std::collections::{BTreeMap, BTreeSet};

use dynoxide::Database;
use events::PlayerId;
use serde_json::Value;

use super::super::client::Client;
use super::super::comparison::{Comparison, ComparisonError, Item, scan_items, scan_where, shape};
use super::fold::Fold;
use crate::receiver::Letter;

/// Players of a page.
const PAGE: usize = 40;
/// Players who are asked for one by one, at most.
const PLAYERS_MAX: usize = 400;
/// Players whose lists are read to their ends, at most.
const LISTS_MAX: usize = 25;
/// Posts that are asked for one by one, at most.
const POSTS_MAX: usize = 400;
/// Of those whom a player follows, how many are asked whom they follow; and of these, how many are looked at.
const FRIENDS: (usize, usize) = (50, 100);
/// Of whom they follow, how many are weighed; and how many are suggested.
const SUGGESTED: (usize, usize) = (100, 20);

/// How many things were compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) players: usize,
    pub(super) lists: usize,
    pub(super) posts: usize,
    pub(super) counters: usize,
    pub(super) notifications: usize,
    pub(super) letters: usize,
}

/// Compares everything.
///
/// # Errors
///
/// When the API or the table cannot be read.
pub(super) async fn compare(
    fold: &Fold,
    client: &Client,
    (database, views): (&Database, &str),
    letters: &BTreeMap<String, Letter>,
    comparison: &mut Comparison,
) -> Result<Compared, ComparisonError> {
    let mut compared = Compared::default();
    let players = by_followers(fold);
    for player in evenly(&players, PLAYERS_MAX) {
        compare_player(fold, client, player, comparison).await?;
        compared.players += 1;
    }
    for player in evenly(&players, LISTS_MAX) {
        compare_lists(fold, client, player, comparison).await?;
        compared.lists += 4;
        compared.notifications += compare_inbox(fold, client, player, comparison).await?;
    }
    let posts: Vec<_> = fold.posts.keys().collect();
    for post in evenly(&posts, POSTS_MAX) {
        let (author, deleted) = &fold.posts[*post];
        let path = format!("/posts/{post}");
        if *deleted || fold.is_hidden(author) {
            comparison.check(|| format!("{path} is hidden"), &true, &client.is_missing(&path).await?);
        } else {
            let shown = client.get(&path).await?;
            let expected: BTreeMap<String, i64> =
                fold.reactions_to(post).into_iter().map(|(kind, count)| (kind.to_string(), count)).collect();
            comparison.check(|| format!("reactions to {post}"), &expected, &numbers(&shown["reactions"]));
            let name = shown["author"]["username"].as_str().unwrap_or_default().to_owned();
            comparison.check(|| format!("author of {post}"), &fold.name(author), &name);
        }
        compared.posts += 1;
    }
    compared.letters = compare_letters(database, views, letters, comparison)?;
    compared.counters = compare_days(fold, client, &scan_items(database, views)?, comparison).await?;
    Ok(compared)
}

/// Returns all players, those with the most followers first.
fn by_followers(fold: &Fold) -> Vec<PlayerId> {
    let mut followers: BTreeMap<&PlayerId, usize> = BTreeMap::new();
    for ((_, followed), still) in &fold.follows {
        *followers.entry(followed).or_default() += usize::from(*still);
    }
    let mut players: Vec<PlayerId> = fold.profiles.keys().cloned().collect();
    players.sort_by_key(|player| std::cmp::Reverse(followers.get(player).copied().unwrap_or(0)));
    players
}

/// Takes the first and then every so many, `count` at most.
fn evenly<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(count).max(1))
}

async fn compare_player(
    fold: &Fold,
    client: &Client,
    player: &PlayerId,
    comparison: &mut Comparison,
) -> Result<(), ComparisonError> {
    let shown = client.get(&format!("/players/{player}")).await?;
    let number = |name: &str| shown[name].as_u64().ok_or_else(|| shape("a player", &shown));
    let expected = [fold.posts_of(player), fold.followers(player).len(), fold.following(player).len()];
    let actual = [number("posts")?, number("followers")?, number("following")?];
    comparison.check(|| format!("counts of {player}"), &expected.map(|count| count as u64), &actual);
    let name = shown["username"].as_str().unwrap_or_default().to_owned();
    comparison.check(|| format!("name of {player}"), &fold.name(player), &name);
    let hidden = shown.get("restriction").is_some();
    comparison.check(|| format!("restriction of {player}"), &fold.is_hidden(player), &hidden);
    Ok(())
}

async fn compare_lists(
    fold: &Fold,
    client: &Client,
    player: &PlayerId,
    comparison: &mut Comparison,
) -> Result<(), ComparisonError> {
    let (followers, following) = (fold.followers(player), fold.following(player));
    let mutual: BTreeSet<PlayerId> = followers.intersection(&following).cloned().collect();
    for (list, expected) in [("followers", followers), ("following", following), ("mutual", mutual)] {
        let visible = expected.into_iter().filter(|other| !fold.is_hidden(other));
        let expected: Vec<(String, String)> = visible.map(|other| (other.to_string(), fold.name(&other))).collect();
        let listed = listed(client, player, list).await?;
        comparison.check(|| format!("{list} of {player}"), &expected, &listed);
    }
    let answer = client.of_player(player)?.get(&format!("/players/{player}/suggestions")).await?;
    let mut suggested = Vec::new();
    for other in answer["players"].as_array().ok_or_else(|| shape("suggestions", &answer))? {
        suggested.push((text(other, "player_id")?, other["shared"].as_u64().unwrap_or(0)));
    }
    comparison.check(|| format!("suggestions for {player}"), &suggestions(fold, player), &suggested);
    Ok(())
}

/// Reads a list page by page to its end.
async fn listed(client: &Client, player: &PlayerId, list: &str) -> Result<Vec<(String, String)>, ComparisonError> {
    let mut players = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("/players/{player}/{list}?limit={PAGE}{cursor}")).await?;
        for other in page["players"].as_array().ok_or_else(|| shape("a list's players", &page))? {
            players.push((text(other, "player_id")?, text(other, "username")?));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(players),
        }
    }
}

/// Compares inboxes with the letters that arrived: none is still to be sent, and each that counts as delivered has arrived.
fn compare_letters(
    database: &Database,
    views: &str,
    letters: &BTreeMap<String, Letter>,
    comparison: &mut Comparison,
) -> Result<usize, ComparisonError> {
    for (state, arrives) in [("pending", false), ("delivered", true)] {
        for item in scan_where(database, views, ("delivery", state))? {
            let notification = item["notification_id"]["S"].as_str().unwrap_or_default();
            if !arrives || !letters.contains_key(notification) {
                comparison.differ(format!("notification {notification} is {state}, and its letter has not arrived"));
            }
        }
    }
    Ok(letters.len())
}

/// What a notification tells: kind, actor and post.
type Told = (String, String, String);

/// Compares an inbox: what is so still was told exactly once for each time, what was taken back not more often.
async fn compare_inbox(
    fold: &Fold,
    client: &Client,
    player: &PlayerId,
    comparison: &mut Comparison,
) -> Result<usize, ComparisonError> {
    let client = client.of_player(player)?;
    let expected = inbox(fold, player);
    let mut told: BTreeMap<Told, usize> = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("/players/{player}/notifications?limit={PAGE}{cursor}")).await?;
        for row in page["notifications"].as_array().ok_or_else(|| shape("an inbox", &page))? {
            let post = row["post_id"].as_str().unwrap_or_default().to_owned();
            *told.entry((text(row, "kind")?, text(&row["actor"], "player_id")?, post)).or_default() += 1;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    for key in expected.keys().chain(told.keys()).collect::<BTreeSet<_>>() {
        let (least, most) = expected.get(key).copied().unwrap_or((0, 0));
        let times = told.get(key).copied().unwrap_or(0);
        if !(least..=most).contains(&times) {
            comparison.differ(format!("{player} was told {times} times of {key:?}, not {least} to {most} times"));
        }
    }
    Ok(told.values().sum())
}

/// Returns how often a player is told of what: at least and at most.
fn inbox(fold: &Fold, player: &PlayerId) -> BTreeMap<Told, (usize, usize)> {
    let mut expected = BTreeMap::new();
    let mut tell = |kind: &str, actor: &PlayerId, post: &str, times| {
        if !fold.is_hidden(actor) {
            expected.insert((kind.to_owned(), actor.to_string(), post.to_owned()), times);
        }
    };
    for ((follower, followed), starts) in &fold.starts {
        if followed == player {
            let still = fold.follows[&(follower.clone(), followed.clone())];
            tell("follow", follower, "", (usize::from(still), *starts));
        }
    }
    for ((post, reacting), adds) in &fold.adds {
        let (author, deleted) = &fold.posts[post];
        if author == player && reacting != player {
            tell("reaction", reacting, post.as_str(), (if *deleted { 0 } else { *adds }, *adds));
        }
    }
    for (post, audience) in &fold.audiences {
        let (author, deleted) = &fold.posts[post];
        if audience.contains(player) {
            tell("post", author, post.as_str(), (usize::from(!deleted), 1));
        }
    }
    expected
}

/// Returns whom a player may know, with how many of those followed follow them.
fn suggestions(fold: &Fold, player: &PlayerId) -> Vec<(String, u64)> {
    // Those are counted who are among the first in the order of ids, former ones included.
    let first = |player: &PlayerId, count: usize| -> Vec<PlayerId> {
        let pairs = fold.follows.iter().filter(|((follower, _), _)| follower == player).take(count);
        pairs.filter(|(_, still)| **still).map(|((_, followed), _)| followed.clone()).collect()
    };
    let mut shared: BTreeMap<PlayerId, u64> = BTreeMap::new();
    for friend in first(player, FRIENDS.0).into_iter().filter(|friend| !fold.is_hidden(friend)) {
        for other in first(&friend, FRIENDS.1).into_iter().filter(|other| other != player) {
            *shared.entry(other).or_default() += 1;
        }
    }
    let mut ranked: Vec<(PlayerId, u64)> = shared.into_iter().collect();
    ranked.sort_by_key(|(other, count)| (std::cmp::Reverse(*count), other.clone()));
    ranked.truncate(SUGGESTED.0);
    let following = fold.following(player);
    ranked.retain(|(other, _)| !following.contains(other) && !fold.is_hidden(other));
    ranked.truncate(SUGGESTED.1);
    ranked.into_iter().map(|(other, count)| (other.to_string(), count)).collect()
}

/// Compares the days' counters with all that happened. A run may go over midnight, so days are added up.
async fn compare_days(
    fold: &Fold,
    client: &Client,
    items: &[Item],
    comparison: &mut Comparison,
) -> Result<usize, ComparisonError> {
    let mut days: BTreeSet<String> = BTreeSet::new();
    let mut active: BTreeMap<String, i64> = BTreeMap::new();
    for (partition, _, _) in items {
        if let Some((day, _)) = partition.strip_prefix("ACTIVE#").and_then(|rest| rest.split_once('#')) {
            *active.entry(day.to_owned()).or_default() += 1;
            days.insert(day.to_owned());
        } else if let Some(rest) = partition.strip_prefix("ACTIVITY#") {
            days.insert(rest.split('#').next().unwrap_or_default().to_owned());
        }
    }
    let mut events: BTreeMap<String, i64> = BTreeMap::new();
    for day in &days {
        let shown = client.get(&format!("/statistics/days/{day}")).await?;
        for (name, count) in numbers(&shown["events"]) {
            *events.entry(name).or_default() += count;
        }
        let players = shown["active_players"].as_i64();
        comparison.check(|| format!("active players on {day}"), &active.get(day).copied(), &players);
    }
    let expected: BTreeMap<String, i64> =
        fold.events.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    comparison.check(|| "events by type".to_owned(), &expected, &events);
    // Everybody has registered, so everybody was active on some day.
    let everybody = fold.profiles.len();
    if let [day] = days.iter().collect::<Vec<_>>().as_slice() {
        comparison.check(|| format!("players of {day}"), &Some(everybody as i64), &active.get(*day).copied());
    }
    Ok(expected.len() + days.len())
}

fn numbers(object: &Value) -> BTreeMap<String, i64> {
    let pairs = object.as_object().into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_i64()?))).collect()
}

fn text(object: &Value, name: &'static str) -> Result<String, ComparisonError> {
    object[name].as_str().map(str::to_owned).ok_or_else(|| shape(name, object))
}
