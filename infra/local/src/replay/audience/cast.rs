//! Who takes part, and what each does.

use events::{PlayerId, PostId, ReactionKind, Timestamp};
use serde_json::json;

use super::super::GENERATED_UNTIL_MS;
use super::super::game::Game;
use super::super::generated::{generated_games, player_id};
use super::Command;

/// Everybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cast {
    /// Whom all others follow.
    pub(super) star: PlayerId,
    /// All others.
    pub(super) followers: Vec<PlayerId>,
    seed: u64,
}

impl Cast {
    /// The post that is told while nothing else happens, and that all react to later.
    pub(super) const ALONE: usize = 0;
    /// The post that is told while commands come in.
    pub(super) const BESIDE: usize = 1;
    /// The first of the posts that are told in the parts with a failing webhook.
    pub(super) const OUTAGES: usize = 2;

    /// Returns a cast with so many followers.
    pub(super) fn of(followers: u32, seed: u64) -> Self {
        let followers = (0..followers).map(player_id).collect();
        Self { star: PlayerId::derived(&format!("star {seed}")), followers, seed }
    }

    /// Returns which post the star publishes as its number `post`.
    pub(super) fn post(post: usize) -> PostId {
        PostId::derived(&format!("audience {post}"))
    }

    pub(super) fn registrations(&self) -> Vec<Command> {
        let everybody = self.followers.iter().chain([&self.star]);
        let body = |player| Some(json!({"player_id": player, "username": player}));
        everybody.map(|player| Command { method: "POST", path: "/players".to_owned(), body: body(player) }).collect()
    }

    pub(super) fn follows(&self) -> Vec<Command> {
        let followed = &self.star;
        let path = |follower| format!("/players/{follower}/follows/{followed}");
        self.followers.iter().map(|follower| Command::put(path(follower), None)).collect()
    }

    pub(super) fn publication(&self, post: usize) -> Command {
        let body = json!({"author_id": self.star, "text": format!("Post {post}")});
        Command::put(format!("/posts/{}", Self::post(post)), Some(body))
    }

    /// Returns a reaction of each follower to a post. With another `round` it is one of another kind.
    pub(super) fn reactions(&self, post: usize, round: usize) -> Vec<Command> {
        let kind = ReactionKind::ALL[round % ReactionKind::ALL.len()];
        let path = |follower| format!("/posts/{}/reactions/{follower}", Self::post(post));
        let command = |follower| Command::put(path(follower), Some(json!({"kind": kind})));
        self.followers.iter().map(command).collect()
    }

    pub(super) fn restriction(&self) -> Command {
        Command::put(format!("/players/{}/restriction", self.star), Some(json!({"reason": "spam"})))
    }

    pub(super) fn reinstatement(&self) -> Command {
        Command { method: "DELETE", path: format!("/players/{}/restriction", self.star), body: None }
    }

    /// Returns so many games between followers.
    pub(super) fn games(&self, count: u32) -> Vec<Game> {
        let players = u32::try_from(self.followers.len()).unwrap_or(u32::MAX);
        generated_games(players, count, Timestamp::from_millis(GENERATED_UNTIL_MS), self.seed)
    }
}
