//! Texts that people write, as newtypes with a greatest length.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A text that is blank or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a text has 1 to {characters_max} characters, not all of them blank")]
pub struct InvalidText {
    characters_max: usize,
}

macro_rules! limited_text {
    ($(#[$doc:meta])* $name:ident, $characters_max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Characters of the text, at most.
            pub const CHARACTERS_MAX: usize = $characters_max;

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, InvalidText> {
                if text.trim().is_empty() || text.chars().count() > Self::CHARACTERS_MAX {
                    Err(InvalidText { characters_max: Self::CHARACTERS_MAX })
                } else {
                    Ok(Self(text.to_owned()))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, InvalidText> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

limited_text!(
    /// Why a player is restricted, in a moderator's words.
    RestrictionReason,
    500
);
limited_text!(
    /// What a post says.
    PostText,
    5_000
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_neither_blank_nor_too_long() {
        for good in ["spam", " two\nlines ", &"\u{e4}".repeat(500)] {
            assert!(good.parse::<RestrictionReason>().is_ok(), "{good}");
        }
        for bad in ["", " \n", &"x".repeat(501)] {
            let error = bad.parse::<RestrictionReason>().unwrap_err();
            assert_eq!(error.to_string(), "a text has 1 to 500 characters, not all of them blank");
        }
    }
}
