//! What happens to reactions: added, removed. The aggregate is one player's reaction to one post.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{PlayerId, PostId};

/// Payload of `reaction_added`, schema version 1: a player reacts to a post, or in another way than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionAdded {
    /// To which post.
    pub post_id: PostId,
    /// Who.
    pub player_id: PlayerId,
    /// In which way.
    pub kind: ReactionKind,
}

/// Payload of `reaction_removed`, schema version 1: a player reacts to a post no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionRemoved {
    /// To which post.
    pub post_id: PostId,
    /// Who.
    pub player_id: PlayerId,
}

/// A way to react to a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactionKind {
    /// Liking it.
    Like,
    /// Loving it.
    Love,
    /// Laughing about it.
    Laugh,
    /// Applauding.
    Applause,
    /// Being sad about it.
    Sad,
}

impl ReactionKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Like, Self::Love, Self::Laugh, Self::Applause, Self::Sad];

    /// Returns the kind as the wire and the tables write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Like => "like",
            Self::Love => "love",
            Self::Laugh => "laugh",
            Self::Applause => "applause",
            Self::Sad => "sad",
        }
    }
}

/// A text that is no kind of reaction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not one of like, love, laugh, applause, sad")]
pub struct UnknownReactionKind {
    text: String,
}

impl FromStr for ReactionKind {
    type Err = UnknownReactionKind;

    fn from_str(text: &str) -> Result<Self, UnknownReactionKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownReactionKind { text: text.chars().take(64).collect() })
    }
}

impl fmt::Display for ReactionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in ReactionKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("Like".parse::<ReactionKind>().is_err());
    }
}
