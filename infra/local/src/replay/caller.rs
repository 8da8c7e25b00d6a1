//! Who sends the requests of a scenario, and what their tokens are good for.

/// Who sends requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Caller {
    /// A player, for itself.
    Player(String),
    /// Tells what became of games.
    GameServer,
    /// Restricts and reinstates players.
    Moderator,
    /// Sends parcels and looks after gaps.
    Operator,
}

impl Caller {
    /// Returns whom the token is for.
    pub(super) fn subject(&self) -> &str {
        match self {
            Self::Player(player_id) => player_id,
            Self::GameServer => "game-server",
            Self::Moderator => "moderator",
            Self::Operator => "operator",
        }
    }

    /// Returns what the token is good for besides.
    pub(super) fn scope(&self) -> Option<&'static str> {
        match self {
            Self::Player(_) => None,
            Self::GameServer => Some("games:write"),
            Self::Moderator => Some("moderate"),
            Self::Operator => Some("operate"),
        }
    }
}
