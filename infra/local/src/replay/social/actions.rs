//! Generated actions of players and moderators: seeded, with the skew of a real platform. A few players are followed by a
//! third of all, half of all reactions go to one post, and people change their minds.

use std::collections::BTreeSet;

use events::{PlayerId, PostId, ReactionKind};
use fastrand::Rng;
use serde_json::{Value, json};

use super::super::caller::Caller;
use super::super::changes::{PlayerChange, player_changes};

/// One player in so many publishes a post.
const AUTHORS_ONE_IN: usize = 4;
/// Players whom a third of all follows go to.
const STARS: usize = 3;
/// One player in so many publishes a post after all follows, besides the stars.
const LAST_ONE_IN: usize = 10;
/// One post in so many is deleted in the end.
const DELETED_ONE_IN: usize = 5;
/// Of a hundred actions, how many are follows; as many are reactions.
const FOLLOWS_PERCENT: u32 = 50;
/// Of a hundred follows and reactions, how many take one back.
const BACK_PERCENT: u32 = 25;

/// What somebody does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::replay) enum Action {
    /// Publishes a post.
    Publish(PostId, PlayerId),
    /// Deletes it.
    Delete(PostId, PlayerId),
    /// Reacts to a post.
    React(PostId, PlayerId, ReactionKind),
    /// Takes a reaction back, whether or not there is one.
    Unreact(PostId, PlayerId),
    /// The first follows the second.
    Follow(PlayerId, PlayerId),
    /// The first follows the second no more, whether or not that was so.
    Unfollow(PlayerId, PlayerId),
    /// Changes a player.
    Change(PlayerChange),
}

impl Action {
    /// Returns method, path and body of the request.
    pub(super) fn command(&self) -> (&'static str, String, Option<Value>) {
        match self {
            Self::Publish(post, author) => {
                let body = json!({"author_id": author, "text": format!("What {author} says in {post}")});
                ("PUT", format!("/posts/{post}"), Some(body))
            }
            Self::Delete(post, _) => ("DELETE", format!("/posts/{post}"), None),
            Self::React(post, player, kind) => {
                ("PUT", format!("/posts/{post}/reactions/{player}"), Some(json!({"kind": kind})))
            }
            Self::Unreact(post, player) => ("DELETE", format!("/posts/{post}/reactions/{player}"), None),
            Self::Follow(follower, followed) => ("PUT", format!("/players/{follower}/follows/{followed}"), None),
            Self::Unfollow(follower, followed) => ("DELETE", format!("/players/{follower}/follows/{followed}"), None),
            Self::Change(change) => change.command(),
        }
    }

    /// Returns who sends the request.
    pub(super) fn caller(&self) -> Caller {
        match self {
            Self::Publish(_, player)
            | Self::Delete(_, player)
            | Self::React(_, player, _)
            | Self::Unreact(_, player)
            | Self::Follow(player, _)
            | Self::Unfollow(player, _) => Caller::Player(player.to_string()),
            Self::Change(change) => change.caller(),
        }
    }

    /// Returns what the action is about: actions on the same thing are sent one after the other.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::Publish(post, _) | Self::Delete(post, _) => format!("post {post}"),
            Self::React(post, player, _) | Self::Unreact(post, player) => format!("reaction {post} {player}"),
            Self::Follow(follower, followed) | Self::Unfollow(follower, followed) => {
                format!("follow {follower} {followed}")
            }
            Self::Change(change) => format!("player {}", change.player_id),
        }
    }
}

/// Everything that happens, in parts, each of which begins when the one before has been answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::replay) struct Script {
    /// Everybody.
    pub(super) players: Vec<PlayerId>,
    /// Posts are published.
    pub(super) posts: Vec<Action>,
    /// People follow and react, and moderators change players.
    pub(super) bustle: Vec<Action>,
    /// The stars, and some others, publish a post for their followers.
    pub(super) finale: Vec<Action>,
    /// Some of the first posts are deleted.
    pub(super) end: Vec<Action>,
}

impl Script {
    /// Writes a script for so many players and actions.
    pub(in crate::replay) fn generate(players: u32, actions: u32, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let players: Vec<PlayerId> =
            (0..players).map(|number| PlayerId::derived(&format!("social {seed} {number}"))).collect();
        let authors = (players.len() / AUTHORS_ONE_IN).max(1);
        let posts: Vec<(PostId, PlayerId)> = (0..authors)
            .map(|number| (PostId::derived(&format!("{seed} {number}")), players[rng.usize(..players.len())].clone()))
            .collect();
        let mut bustle: Vec<Action> = Vec::new();
        let (mut follows, mut reactions) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..actions {
            let back = rng.u32(..100) < BACK_PERCENT;
            if rng.u32(..100) < FOLLOWS_PERCENT {
                let pair = if back { some(&mut rng, &follows) } else { None };
                bustle.push(match pair {
                    Some((follower, followed)) => Action::Unfollow(follower, followed),
                    None => {
                        let (follower, followed) = pair_of(&mut rng, &players);
                        follows.insert((follower.clone(), followed.clone()));
                        Action::Follow(follower, followed)
                    }
                });
            } else {
                let reaction = if back { some(&mut rng, &reactions) } else { None };
                bustle.push(match reaction {
                    Some((post, player)) => Action::Unreact(post, player),
                    None => {
                        let (post, player) = (post_of(&mut rng, &posts), players[rng.usize(..players.len())].clone());
                        reactions.insert((post.clone(), player.clone()));
                        Action::React(post, player, ReactionKind::ALL[rng.usize(..ReactionKind::ALL.len())])
                    }
                });
            }
        }
        let bustle = mixed(bustle, player_changes(&players, actions as usize, seed));
        let deleted = posts.iter().step_by(DELETED_ONE_IN).skip(1);
        let end = deleted.map(|(post, author)| Action::Delete(post.clone(), author.clone())).collect();
        let posts = posts.into_iter().map(|(post, author)| Action::Publish(post, author)).collect();
        let lasts = players.iter().enumerate().filter(|(number, _)| *number < STARS || number % LAST_ONE_IN == 0);
        let last = |(number, player): (usize, &PlayerId)| {
            Action::Publish(PostId::derived(&format!("{seed} last {number}")), player.clone())
        };
        let finale = lasts.map(last).collect();
        Self { players, posts, bustle, finale, end }
    }
}

/// Puts changes of players between the actions after which they come.
fn mixed(actions: Vec<Action>, changes: Vec<PlayerChange>) -> Vec<Action> {
    let mut mixed = Vec::with_capacity(actions.len() + changes.len());
    let mut changes = changes.into_iter().peekable();
    for (number, action) in actions.into_iter().enumerate() {
        while let Some(change) = changes.next_if(|change| change.after_games <= number) {
            mixed.push(Action::Change(change));
        }
        mixed.push(action);
    }
    mixed.extend(changes.map(Action::Change));
    mixed
}

/// Draws one of the pairs that there have been.
fn some<A: Ord + Clone, B: Ord + Clone>(rng: &mut Rng, pairs: &BTreeSet<(A, B)>) -> Option<(A, B)> {
    let count = pairs.len();
    if count == 0 { None } else { pairs.iter().nth(rng.usize(..count)).cloned() }
}

fn pair_of(rng: &mut Rng, players: &[PlayerId]) -> (PlayerId, PlayerId) {
    let stars = STARS.min(players.len());
    let followed = if rng.u8(..3) == 0 { rng.usize(..stars) } else { rng.usize(..players.len()) };
    let mut follower = rng.usize(..players.len());
    if follower == followed {
        follower = (followed + 1) % players.len();
    }
    (players[follower].clone(), players[followed].clone())
}

/// Draws a post: the first one half of the time.
fn post_of(rng: &mut Rng, posts: &[(PostId, PlayerId)]) -> PostId {
    let number = if rng.bool() { 0 } else { rng.usize(..posts.len()) };
    posts[number].0.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_script() {
        assert_eq!(Script::generate(100, 500, 7), Script::generate(100, 500, 7));
        assert_ne!(Script::generate(100, 500, 7), Script::generate(100, 500, 8));
    }

    #[test]
    fn a_script_has_stars_a_hot_post_and_changes_of_mind() {
        let script = Script::generate(1_000, 5_000, 1);
        let stars: BTreeSet<&PlayerId> = script.players.iter().take(STARS).collect();
        let (mut to_stars, mut follows, mut hot, mut reactions, mut back, mut changes) = (0, 0, 0, 0, 0, 0);
        let Some(Action::Publish(hottest, _)) = script.posts.first() else { panic!("no post") };
        for action in &script.bustle {
            match action {
                Action::Follow(_, followed) => {
                    follows += 1;
                    to_stars += usize::from(stars.contains(followed));
                }
                Action::React(post, ..) => {
                    reactions += 1;
                    hot += usize::from(post == hottest);
                }
                Action::Unfollow(..) | Action::Unreact(..) => back += 1,
                Action::Change(_) => changes += 1,
                Action::Publish(..) | Action::Delete(..) => panic!("{action:?} is not part of the bustle"),
            }
        }
        assert!(to_stars * 10 > follows * 3 && hot * 10 > reactions * 4, "{to_stars}/{follows} {hot}/{reactions}");
        assert!(back > 1_000 && changes > 200, "{back} {changes}");
        assert!(
            !script.end.is_empty()
                && script.end.iter().all(|action| !matches!(action, Action::Delete(post, _) if post == hottest))
        );
    }

    #[test]
    fn two_players_are_enough() {
        let script = Script::generate(2, 50, 1);
        assert!(script.bustle.iter().all(|action| !matches!(action, Action::Follow(one, other) if one == other)));
    }
}
