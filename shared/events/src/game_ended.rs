//! `game_ended`: a rated game has ended, and both players have a new rating.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{PlayerId, Username};

/// Payload of `game_ended`, schema version 1. The aggregate is the game.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameEnded {
    /// Which leaderboard the game counts for.
    pub time_control: TimeControl,
    /// How it ended.
    pub result: GameResult,
    /// The player of the white side after the game.
    pub white: PlayerResult,
    /// The player of the black side after the game.
    pub black: PlayerResult,
}

/// One player after a game.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerResult {
    /// Who played.
    pub player_id: PlayerId,
    /// The player's name at that time.
    pub username: Username,
    /// The new rating.
    pub rating: Rating,
    /// How many rated games of this time control the player has ended, this one included. It orders a player's games.
    pub games: u64,
}

/// The pace of a game. Each has its own ratings and leaderboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeControl {
    /// Under 3 minutes a side.
    Bullet,
    /// 3 to 8 minutes a side.
    Blitz,
    /// 8 to 25 minutes a side.
    Rapid,
    /// 25 minutes a side or more.
    Classical,
    /// Days a move.
    Correspondence,
}

impl TimeControl {
    /// All time controls.
    pub const ALL: [Self; 5] = [Self::Bullet, Self::Blitz, Self::Rapid, Self::Classical, Self::Correspondence];

    /// Returns the time control as the wire and the tables write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bullet => "bullet",
            Self::Blitz => "blitz",
            Self::Rapid => "rapid",
            Self::Classical => "classical",
            Self::Correspondence => "correspondence",
        }
    }
}

/// A text that is no time control.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not one of bullet, blitz, rapid, classical, correspondence")]
pub struct UnknownTimeControl {
    text: String,
}

impl FromStr for TimeControl {
    type Err = UnknownTimeControl;

    fn from_str(text: &str) -> Result<Self, UnknownTimeControl> {
        Self::ALL
            .into_iter()
            .find(|time_control| time_control.as_str() == text)
            .ok_or_else(|| UnknownTimeControl { text: text.chars().take(64).collect() })
    }
}

impl fmt::Display for TimeControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How a game ended, in the notation of PGN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GameResult {
    /// White won.
    #[serde(rename = "1-0")]
    WhiteWins,
    /// Black won.
    #[serde(rename = "0-1")]
    BlackWins,
    /// Nobody won.
    #[serde(rename = "1/2-1/2")]
    Draw,
}

/// A rating, 0 to 4000 points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Rating(u16);

impl Rating {
    /// The highest rating.
    pub const MAX: Self = Self(4_000);

    /// Returns the points.
    pub const fn points(self) -> u16 {
        self.0
    }
}

/// A number that is no rating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{points} is not a rating from 0 to {}", Rating::MAX.0)]
pub struct InvalidRating {
    points: i64,
}

impl TryFrom<i64> for Rating {
    type Error = InvalidRating;

    fn try_from(points: i64) -> Result<Self, InvalidRating> {
        match u16::try_from(points) {
            Ok(small) if small <= Self::MAX.0 => Ok(Self(small)),
            Ok(_) | Err(_) => Err(InvalidRating { points }),
        }
    }
}

impl From<Rating> for i64 {
    fn from(rating: Rating) -> Self {
        Self::from(rating.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_end_at_4000() {
        for (points, good) in [(-1, false), (0, true), (4_000, true), (4_001, false), (i64::MAX, false)] {
            assert_eq!(Rating::try_from(points).is_ok(), good, "{points}");
        }
    }

    #[test]
    fn time_controls_are_read_as_they_are_written() {
        for time_control in TimeControl::ALL {
            let written = serde_json::to_string(&time_control).unwrap();
            assert_eq!(written, format!("\"{time_control}\""));
            assert_eq!(time_control.as_str().parse(), Ok(time_control));
        }
    }
}
