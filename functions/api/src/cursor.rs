//! Where a page of a leaderboard ends, in a text that clients hand back unread. It names the last row by what rows are
//! ordered by, so it holds even when that row has moved or gone.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use events::{PlayerId, Rating, TimeControl};
use serde::{Deserialize, Serialize};

/// Version of the text's content.
const VERSION: u8 = 1;
/// Characters of a text, at most; a genuine one is shorter.
const LENGTH_MAX: usize = 400;

/// A place between two rows of a leaderboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cursor {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "t")]
    time_control: TimeControl,
    /// Rating of the last row before the place.
    #[serde(rename = "r")]
    pub(crate) rating: Rating,
    /// Player of that row.
    #[serde(rename = "p")]
    pub(crate) player_id: PlayerId,
}

impl Cursor {
    /// Makes the cursor behind a row.
    pub(crate) fn behind(time_control: TimeControl, rating: Rating, player_id: PlayerId) -> Self {
        Self { version: VERSION, time_control, rating, player_id }
    }

    /// Writes the cursor as text.
    pub(crate) fn encode(&self) -> String {
        // Texts and small numbers always serialise; an empty text would be refused when it comes back.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads what [`Cursor::encode`] wrote for the same board.
    pub(crate) fn decode(text: &str, time_control: TimeControl) -> Result<Self, String> {
        let foreign = || "is not a cursor that a page of this leaderboard came with".to_owned();
        if text.len() > LENGTH_MAX {
            return Err(foreign());
        }
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
        let cursor: Self = serde_json::from_slice(&json).map_err(|_| foreign())?;
        let genuine = cursor.version == VERSION && cursor.time_control == time_control;
        if genuine { Ok(cursor) } else { Err(foreign()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor() -> Cursor {
        Cursor::behind(TimeControl::Blitz, Rating::try_from(1_500).unwrap(), "p-1".parse().unwrap())
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        assert_eq!(Cursor::decode(&cursor().encode(), TimeControl::Blitz), Ok(cursor()));
    }

    #[test]
    fn a_cursor_of_another_board_version_or_hand_is_refused() {
        assert!(Cursor::decode(&cursor().encode(), TimeControl::Rapid).is_err());
        let forged = [
            r#"{"v":2,"t":"blitz","r":1500,"p":"p-1"}"#,
            r#"{"v":1,"t":"blitz","r":4001,"p":"p-1"}"#,
            r#"{"v":1,"t":"blitz","r":1500,"p":"p#1"}"#,
            r#"{"v":1,"t":"blitz","r":1500,"p":"p-1","x":1}"#,
            r#"{"v":1}"#,
            "",
        ];
        for json in forged {
            assert!(Cursor::decode(&URL_SAFE_NO_PAD.encode(json), TimeControl::Blitz).is_err(), "{json}");
        }
        for text in ["", "%%%", "e30=", &"A".repeat(100_000)] {
            assert!(Cursor::decode(text, TimeControl::Blitz).is_err(), "{text}");
        }
    }
}
