//! Where a page of a list of players ends, in a text that clients hand back unread. It names the last player who was looked
//! at, so it holds even when that player is in the list no more.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::graph::Direction;
use events::PlayerId;
use serde::{Deserialize, Serialize};

/// Version of the text's content.
const VERSION: u8 = 1;
/// Characters of a text, at most; a genuine one is shorter.
const LENGTH_MAX: usize = 400;

/// The lists around a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum List {
    /// Who follows the player.
    Followers,
    /// Whom the player follows.
    Following,
    /// Both.
    Mutual,
}

impl List {
    /// Returns the rows that the list is read from.
    pub(crate) fn direction(self) -> Direction {
        match self {
            Self::Followers => Direction::Followers,
            Self::Following | Self::Mutual => Direction::Following,
        }
    }
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListCursor {
    #[serde(rename = "v")]
    version: u8,
    #[serde(rename = "l")]
    list: List,
    #[serde(rename = "o")]
    player_id: PlayerId,
    /// The last player before the place.
    #[serde(rename = "p")]
    pub(crate) last: PlayerId,
}

impl ListCursor {
    /// Makes the cursor behind a player in the list of another one.
    pub(crate) fn behind(list: List, player_id: PlayerId, last: PlayerId) -> Self {
        Self { version: VERSION, list, player_id, last }
    }

    /// Writes the cursor as text.
    pub(crate) fn encode(&self) -> String {
        // Texts always serialise; an empty text would be refused when it comes back.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads what [`ListCursor::encode`] wrote for the same list.
    pub(crate) fn decode(text: &str, list: List, player_id: &PlayerId) -> Result<Self, String> {
        let foreign = || "is not a cursor that a page of this list came with".to_owned();
        if text.len() > LENGTH_MAX {
            return Err(foreign());
        }
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
        let cursor: Self = serde_json::from_slice(&json).map_err(|_| foreign())?;
        let genuine = cursor.version == VERSION && cursor.list == list && cursor.player_id == *player_id;
        if genuine { Ok(cursor) } else { Err(foreign()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(id: &str) -> PlayerId {
        id.parse().unwrap()
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_for_its_own_list_only() {
        let cursor = ListCursor::behind(List::Followers, player("ann"), player("bea"));
        let text = cursor.encode();
        assert_eq!(ListCursor::decode(&text, List::Followers, &player("ann")), Ok(cursor));
        assert!(ListCursor::decode(&text, List::Mutual, &player("ann")).is_err());
        assert!(ListCursor::decode(&text, List::Followers, &player("bea")).is_err());
    }

    #[test]
    fn what_no_page_came_with_is_refused() {
        let forged =
            [r#"{"v":2,"l":"mutual","o":"ann","p":"bea"}"#, r#"{"v":1,"l":"mutual","o":"ann","p":"b#"}"#, "{}"];
        for json in forged {
            let text = URL_SAFE_NO_PAD.encode(json);
            assert!(ListCursor::decode(&text, List::Mutual, &player("ann")).is_err(), "{json}");
        }
        for text in ["", "%%%", &"A".repeat(100_000)] {
            assert!(ListCursor::decode(text, List::Mutual, &player("ann")).is_err(), "{text}");
        }
    }
}
