//! Sets of an aggregate's versions, kept as runs: a gap may be long, and is one entry all the same.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Versions of an aggregate, written as a list of runs `[first, last]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u64)>")]
pub struct Versions(Vec<(u64, u64)>);

/// Runs that overlap, touch, run backwards or are out of order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{runs:?} are not ascending runs of versions with others between them")]
pub struct InvalidVersions {
    runs: Vec<(u64, u64)>,
}

impl Versions {
    /// Returns the versions from `first` to `last`; none if `last` is lower.
    pub fn run(first: u64, last: u64) -> Self {
        Self(if first <= last { vec![(first, last)] } else { Vec::new() })
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the runs, first and last version of each, ascending.
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Returns whether a version is among them.
    pub fn contains(&self, version: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&version))
    }

    /// Returns the last one.
    pub fn last(&self) -> Option<u64> {
        self.0.last().map(|(_, last)| *last)
    }

    /// Adds a run that lies behind all others; one without versions adds nothing.
    pub fn push_run(&mut self, first: u64, last: u64) {
        match self.0.last_mut() {
            _ if first > last => {}
            Some((_, end)) if *end + 1 >= first => *end = last.max(*end),
            Some(_) | None => self.0.push((first, last)),
        }
    }

    /// Returns those that are not among the others.
    pub fn without(&self, others: &Self) -> Self {
        let mut left = Self::default();
        for (first, last) in &self.0 {
            let mut next = *first;
            for (other_first, other_last) in others.0.iter().filter(|(_, other_last)| other_last >= first) {
                if next > *last || other_first > last {
                    break;
                }
                left.push_run(next, other_first.saturating_sub(1));
                next = next.max(other_last.saturating_add(1));
            }
            left.push_run(next, *last);
        }
        left
    }

    /// Returns whether some are among the others.
    pub fn meets(&self, others: &Self) -> bool {
        self.without(others) != *self
    }
}

impl TryFrom<Vec<(u64, u64)>> for Versions {
    type Error = InvalidVersions;

    fn try_from(runs: Vec<(u64, u64)>) -> Result<Self, InvalidVersions> {
        let forward = runs.iter().all(|(first, last)| first <= last);
        let apart = runs.windows(2).all(|pair| pair[0].1.checked_add(1).is_some_and(|next| next < pair[1].0));
        if forward && apart { Ok(Self(runs)) } else { Err(InvalidVersions { runs }) }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            if first == last {
                write!(formatter, "{separator}{first}")?;
            } else {
                write!(formatter, "{separator}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn versions(bits: u16) -> Versions {
        let mut versions = Versions::default();
        for version in (0..10).filter(|version| bits & (1 << version) != 0) {
            versions.push_run(version + 1, version + 1);
        }
        versions
    }

    fn set(versions: &Versions) -> BTreeSet<u64> {
        versions.runs().iter().flat_map(|(first, last)| *first..=*last).collect()
    }

    #[test]
    fn runs_behave_as_the_sets_that_they_are() {
        for one in (0..1_024).step_by(7) {
            for other in (0..1_024).step_by(5) {
                let (one, other) = (versions(one), versions(other));
                let left: BTreeSet<u64> = set(&one).difference(&set(&other)).copied().collect();
                assert_eq!(set(&one.without(&other)), left, "{one} without {other}");
                assert_eq!(one.meets(&other), !set(&one).is_disjoint(&set(&other)), "{one} and {other}");
                assert_eq!(Versions::try_from(one.without(&other).runs().to_vec()), Ok(one.without(&other)));
            }
        }
    }

    #[test]
    fn runs_are_written_shortly_and_read_strictly() {
        let mut some = Versions::run(3, 5);
        some.push_run(6, 6);
        some.push_run(9, 9);
        some.push_run(12, 11);
        assert_eq!(some.to_string(), "3-6, 9");
        assert_eq!(serde_json::to_string(&some).unwrap(), "[[3,6],[9,9]]");
        assert!(some.contains(6) && !some.contains(7));
        assert!(Versions::run(2, 1).is_empty());
        for bad in ["[[2,1]]", "[[1,2],[3,4]]", "[[4,5],[1,2]]", "[[1]]"] {
            assert!(serde_json::from_str::<Versions>(bad).is_err(), "{bad}");
        }
    }
}
