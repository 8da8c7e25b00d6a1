//! Compares inboxes and letters with who was to be told of what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use events::PostId;
use serde_json::Value;

use super::super::comparison::{ComparisonError, scan_where, shape};
use super::super::differences::Differences;
use super::{Cast, Stage};
use crate::stack::Stack;

/// Followers whose inboxes are read as the API shows them.
const INBOXES: usize = 25;
/// What can become of telling a notification outside.
const DELIVERIES: [&str; 3] = ["pending", "delivered", "suppressed"];

/// How much was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Compared {
    rows: usize,
    letters: usize,
    repeated: usize,
    inboxes: usize,
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, letters, repeated, inboxes } = self;
        write!(
            formatter,
            "{rows} inbox rows, {letters} letters ({repeated} came more than once), {inboxes} inboxes as shown"
        )
    }
}

/// Compares everything: each follower has each post in the inbox once; what counts as delivered has arrived, and nothing else
/// is left.
///
/// # Errors
///
/// When the API or the table cannot be read.
pub(super) async fn compare(stage: &Stage<'_>, differences: &mut Differences) -> Result<Compared, ComparisonError> {
    let letters = stage.stack.receiver().letters();
    let mut compared = Compared {
        letters: letters.len(),
        repeated: letters.values().filter(|letter| letter.times > 1).count(),
        ..Compared::default()
    };
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for delivery in DELIVERIES {
        for item in scan_where(stage.database(), &stage.views, ("delivery", delivery))? {
            compared.rows += 1;
            let notification = text(&item, "notification_id")?;
            let arrived = letters.contains_key(&notification);
            if delivery == "pending" || (delivery == "delivered" && !arrived) {
                differences.note(format!("notification {notification} is {delivery}, its letter arrived: {arrived}"));
            }
            if item["cause"]["M"]["kind"]["S"] == "post" {
                let post = item["cause"]["M"]["post_id"]["S"].as_str().unwrap_or_default().to_owned();
                if !told.entry(post.clone()).or_default().insert(text(&item, "pk")?) {
                    differences.note(format!("{} was told twice of post {post}", text(&item, "pk")?));
                }
            }
        }
    }
    let posts: BTreeSet<String> = (0..posts()).map(|post| Cast::post(post).to_string()).collect();
    differences.check(|| "posts that followers were told of".to_owned(), &posts, &told.keys().cloned().collect());
    let expected: BTreeSet<String> = stage.cast.followers.iter().map(|player| format!("INBOX#{player}")).collect();
    for (post, told) in &told {
        differences.check(|| format!("who was told of post {post}"), &expected.len(), &told.len());
        if let Some(other) = expected.symmetric_difference(told).next() {
            differences.note(format!("post {post}: {other} was told and should not have been, or the other way round"));
        }
    }
    compare_shown(stage, &posts, &mut compared, differences).await?;
    Ok(compared)
}

async fn compare_shown(
    stage: &Stage<'_>,
    posts: &BTreeSet<String>,
    compared: &mut Compared,
    differences: &mut Differences,
) -> Result<(), ComparisonError> {
    let client = stage.client()?;
    let followers = &stage.cast.followers;
    for follower in followers.iter().step_by(followers.len().div_ceil(INBOXES).max(1)) {
        let path = format!("/players/{follower}/notifications?limit=100");
        let shown = shown(&client.of_player(follower)?.get(&path).await?)?;
        differences.check(|| format!("posts in the inbox of {follower}"), posts, &shown);
        compared.inboxes += 1;
    }
    let post = Cast::post(Cast::ALONE);
    let answer = client.get(&format!("/posts/{post}")).await?;
    let counts = answer["reactions"].as_object().ok_or_else(|| shape("a post", &answer))?;
    let reactions: i64 = counts.values().filter_map(Value::as_i64).sum();
    differences.check(|| format!("reactions to post {post}"), &(followers.len() as i64), &reactions);
    Ok(())
}

fn shown(page: &Value) -> Result<BTreeSet<String>, ComparisonError> {
    let rows = page["notifications"].as_array().ok_or_else(|| shape("an inbox", page))?;
    let of_posts = rows.iter().filter(|row| row["kind"] == "post");
    let ids =
        of_posts.map(|row| row["post_id"].as_str().map(str::to_owned).ok_or_else(|| shape("a notification", row)));
    ids.collect()
}

/// Returns how many letters of a post have arrived.
pub(super) fn letters_of(stack: &Stack, post: &PostId) -> usize {
    let letters = stack.receiver().letters();
    let is_of = |content: &Value| content["cause"]["kind"] == "post" && content["cause"]["post_id"] == post.as_str();
    letters.values().filter(|letter| is_of(&letter.content)).count()
}

/// Returns how many posts the star publishes.
fn posts() -> usize {
    Cast::OUTAGES + super::outage::MODES.len()
}

fn text(item: &Value, name: &'static str) -> Result<String, ComparisonError> {
    item[name]["S"].as_str().map(str::to_owned).ok_or_else(|| shape(name, item))
}
