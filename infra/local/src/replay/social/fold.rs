//! What a script comes to when it is folded in order: an account of its own, which shares no code with the consumers.

use std::collections::{BTreeMap, BTreeSet};

use events::{PlayerId, PostId, ReactionKind};

use super::super::changes::Step;
use super::super::fold::Profile;
use super::actions::{Action, Script};

/// Everything that the stack should show in the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Fold {
    /// By player: name and restriction.
    pub(super) profiles: BTreeMap<PlayerId, Profile>,
    /// By post: the author, and whether it was deleted.
    pub(super) posts: BTreeMap<PostId, (PlayerId, bool)>,
    /// By post and player.
    pub(super) reactions: BTreeMap<(PostId, PlayerId), Option<ReactionKind>>,
    /// By follower and followed: whether it is so still.
    pub(super) follows: BTreeMap<(PlayerId, PlayerId), bool>,
    /// By follower and followed: how often it began.
    pub(super) starts: BTreeMap<(PlayerId, PlayerId), usize>,
    /// By post and player: how often the player reacted, or in another way.
    pub(super) adds: BTreeMap<(PostId, PlayerId), usize>,
    /// By post: those who followed its author when it was published.
    pub(super) audiences: BTreeMap<PostId, BTreeSet<PlayerId>>,
    /// By type.
    pub(super) events: BTreeMap<&'static str, i64>,
}

impl Fold {
    /// Folds a script.
    pub(super) fn of(script: &Script) -> Self {
        let mut fold = Self::default();
        for player in &script.players {
            fold.profiles.insert(player.clone(), Profile::default());
            fold.happened("player_registered");
        }
        for action in script.posts.iter().chain(&script.bustle).chain(&script.finale).chain(&script.end) {
            fold.act(action);
        }
        fold
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Publish(post, author) => {
                self.audiences.insert(post.clone(), self.followers(author));
                self.posts.insert(post.clone(), (author.clone(), false));
                self.happened("post_published");
            }
            Action::Delete(post, _) => {
                if let Some((_, deleted)) = self.posts.get_mut(post) {
                    *deleted = true;
                    self.happened("post_deleted");
                }
            }
            Action::React(post, player, kind) => {
                let before = self.reactions.insert((post.clone(), player.clone()), Some(*kind)).flatten();
                if before != Some(*kind) {
                    *self.adds.entry((post.clone(), player.clone())).or_default() += 1;
                    self.happened("reaction_added");
                }
            }
            Action::Unreact(post, player) => {
                if self.reactions.insert((post.clone(), player.clone()), None).flatten().is_some() {
                    self.happened("reaction_removed");
                }
            }
            Action::Follow(follower, followed) => {
                if self.follows.insert((follower.clone(), followed.clone()), true) != Some(true) {
                    *self.starts.entry((follower.clone(), followed.clone())).or_default() += 1;
                    self.happened("follow_started");
                }
            }
            Action::Unfollow(follower, followed) => {
                if self.follows.insert((follower.clone(), followed.clone()), false) == Some(true) {
                    self.happened("follow_ended");
                }
            }
            Action::Change(change) => self.change(&change.player_id, &change.step),
        }
    }

    fn change(&mut self, player_id: &PlayerId, step: &Step) {
        let Some(profile) = self.profiles.get_mut(player_id) else { return };
        let before = profile.clone();
        match step {
            Step::Rename(name) => profile.name = Some(name.clone()),
            Step::Restrict => profile.hidden = true,
            Step::Reinstate => profile.hidden = false,
        }
        if *profile != before {
            self.happened(match step {
                Step::Rename(_) => "player_renamed",
                Step::Restrict => "player_restricted",
                Step::Reinstate => "player_reinstated",
            });
        }
    }

    fn happened(&mut self, event_type: &'static str) {
        *self.events.entry(event_type).or_default() += 1;
    }

    /// Returns the name that a player goes by.
    pub(super) fn name(&self, player: &PlayerId) -> String {
        let name = self.profiles.get(player).and_then(|profile| profile.name.clone());
        name.unwrap_or_else(|| player.to_string())
    }

    /// Returns whether nobody sees a player.
    pub(super) fn is_hidden(&self, player: &PlayerId) -> bool {
        self.profiles.get(player).is_some_and(|profile| profile.hidden)
    }

    /// Returns how many posts a player has.
    pub(super) fn posts_of(&self, player: &PlayerId) -> usize {
        self.posts.values().filter(|(author, deleted)| author == player && !deleted).count()
    }

    /// Returns who follows a player, hidden or not.
    pub(super) fn followers(&self, player: &PlayerId) -> BTreeSet<PlayerId> {
        let pairs = self.follows.iter().filter(|((_, followed), still)| **still && followed == player);
        pairs.map(|((follower, _), _)| follower.clone()).collect()
    }

    /// Returns whom a player follows, hidden or not.
    pub(super) fn following(&self, player: &PlayerId) -> BTreeSet<PlayerId> {
        let pairs = self.follows.iter().filter(|((follower, _), still)| **still && follower == player);
        pairs.map(|((_, followed), _)| followed.clone()).collect()
    }

    /// Returns a post's reactions by kind.
    pub(super) fn reactions_to(&self, post: &PostId) -> BTreeMap<ReactionKind, i64> {
        let mut counts = BTreeMap::new();
        for ((other, _), kind) in &self.reactions {
            if let Some(kind) = kind.filter(|_| other == post) {
                *counts.entry(kind).or_default() += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::changes::PlayerChange;
    use super::*;

    #[test]
    fn what_is_taken_back_does_not_count_and_what_changes_nothing_is_no_event() {
        let player = |id: &str| -> PlayerId { id.parse().unwrap() };
        let post: PostId = "p".parse().unwrap();
        let change = |step| Action::Change(PlayerChange { player_id: player("b"), step, after_games: 0 });
        let script = Script {
            players: vec![player("a"), player("b")],
            posts: vec![Action::Publish(post.clone(), player("a"))],
            bustle: vec![
                Action::Follow(player("b"), player("a")),
                Action::Follow(player("b"), player("a")),
                Action::Unfollow(player("a"), player("b")),
                Action::React(post.clone(), player("b"), ReactionKind::Like),
                Action::React(post.clone(), player("b"), ReactionKind::Love),
                Action::Unreact(post.clone(), player("a")),
                change(Step::Restrict),
                change(Step::Restrict),
            ],
            finale: vec![Action::Publish("q".parse().unwrap(), player("a"))],
            end: vec![Action::Delete(post.clone(), player("a"))],
        };
        let fold = Fold::of(&script);
        assert_eq!(fold.followers(&player("a")), BTreeSet::from([player("b")]));
        assert_eq!(fold.reactions_to(&post), BTreeMap::from([(ReactionKind::Love, 1)]));
        assert_eq!((fold.posts_of(&player("a")), fold.is_hidden(&player("b"))), (1, true));
        let last: PostId = "q".parse().unwrap();
        assert_eq!(fold.audiences[&last], BTreeSet::from([player("b")]));
        assert!(fold.audiences[&post].is_empty());
        assert_eq!(fold.starts[&(player("b"), player("a"))], 1);
        assert_eq!(fold.adds[&(post, player("b"))], 2);
        let expected = [
            ("follow_started", 1),
            ("player_registered", 2),
            ("player_restricted", 1),
            ("post_deleted", 1),
            ("post_published", 2),
            ("reaction_added", 2),
        ];
        assert_eq!(fold.events, BTreeMap::from(expected));
    }
}
