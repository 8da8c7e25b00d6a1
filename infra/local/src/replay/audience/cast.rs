//! Who takes part, and what each does.

use events::{PlayerId, PostId, ReactionKind, Timestamp};
use serde_json::json;

use super::super::GENERATED_UNTIL_MS;
use super::super::caller::Caller;
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
        let body = |player: &PlayerId| Some(json!({"player_id": player, "username": player}));
        let command = |player: &PlayerId| {
            let path = "/players".to_owned();
            Command { caller: by(player), method: "POST", path, body: body(player) }
        };
        everybody.map(command).collect()
    }

    pub(super) fn follows(&self) -> Vec<Command> {
        let followed = &self.star;
        let path = |follower: &PlayerId| format!("/players/{follower}/follows/{followed}");
        self.followers.iter().map(|follower| Command::put(by(follower), path(follower), None)).collect()
    }

    pub(super) fn publication(&self, post: usize) -> Command {
        let body = json!({"author_id": self.star, "text": format!("Post {post}")});
        Command::put(by(&self.star), format!("/posts/{}", Self::post(post)), Some(body))
    }

    /// Returns a reaction of each follower to a post. With another `round` it is one of another kind.
    pub(super) fn reactions(&self, post: usize, round: usize) -> Vec<Command> {
        let kind = ReactionKind::ALL[round % ReactionKind::ALL.len()];
        let path = |follower: &PlayerId| format!("/posts/{}/reactions/{follower}", Self::post(post));
        let command = |follower: &PlayerId| Command::put(by(follower), path(follower), Some(json!({"kind": kind})));
        self.followers.iter().map(command).collect()
    }

    pub(super) fn restriction(&self) -> Command {
        let path = format!("/players/{}/restriction", self.star);
        Command::put(Caller::Moderator, path, Some(json!({"reason": "spam"})))
    }

    pub(super) fn reinstatement(&self) -> Command {
        let path = format!("/players/{}/restriction", self.star);
        Command { caller: Caller::Moderator, method: "DELETE", path, body: None }
    }

    /// Returns so many games between followers.
    pub(super) fn games(&self, count: u32) -> Vec<Game> {
        let players = u32::try_from(self.followers.len()).unwrap_or(u32::MAX);
        generated_games(players, count, Timestamp::from_millis(GENERATED_UNTIL_MS), self.seed)
    }
}

fn by(player_id: &PlayerId) -> Caller {
    Caller::Player(player_id.to_string())
}
