//! Where what the stack shows differs from what it should show.

use std::fmt::{self, Debug, Write as _};

/// Differences that are told in words; further ones are only counted.
const TOLD_MAX: usize = 20;

/// Differences that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Differences {
    count: usize,
    told: Vec<String>,
}

impl Differences {
    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes a difference.
    pub(super) fn note(&mut self, text: String) {
        self.count += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(text);
        }
    }

    /// Notes a difference if there is one.
    pub(super) fn check<T: PartialEq + Debug>(&mut self, what: impl Fn() -> String, expected: &T, actual: &T) {
        if expected != actual {
            self.note(format!("{}: expected {expected:?}, found {actual:?}", what()));
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return formatter.write_str("no difference");
        }
        let mut text = format!("{} differences", self.count);
        for difference in &self.told {
            write!(text, "\n  {difference}")?;
        }
        formatter.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differences_are_told_and_all_are_counted() {
        let mut differences = Differences::default();
        assert_eq!((differences.is_empty(), differences.to_string().as_str()), (true, "no difference"));
        differences.check(|| "same".to_owned(), &1, &1);
        assert!(differences.is_empty());
        for number in 0..30 {
            differences.check(|| format!("number {number}"), &-1, &number);
        }
        let text = differences.to_string();
        assert!(text.starts_with("30 differences\n  number 0: expected -1, found 0\n"), "{text}");
        assert_eq!(text.lines().count(), 1 + TOLD_MAX);
    }
}
