//! Moments in milliseconds and calendar days, both UTC, as the wire writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Milliseconds of 0000-01-01 and 9999-12-31: the years that RFC 3339 can write.
const MILLIS_MIN: i64 = -62_167_219_200_000;
const MILLIS_MAX: i64 = 253_402_300_799_999;

/// A text that is not a moment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a moment as RFC 3339 writes it, such as 2026-11-30T18:00:00Z")]
pub struct InvalidTimestamp {
    text: String,
}

/// A moment in milliseconds since 1970-01-01T00:00:00Z, written as RFC 3339 with milliseconds in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// Makes a moment from milliseconds since the epoch; beyond the years 0 to 9999 the nearest moment within.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(MILLIS_MIN, MILLIS_MAX))
    }

    /// Returns the milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, as time-to-live attributes count.
    pub fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Returns how long ago `earlier` was, zero if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// Returns the calendar day in UTC.
    pub fn day(self) -> Day {
        Day(self.0.div_euclid(86_400_000))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let invalid = || InvalidTimestamp { text: text.chars().take(64).collect() };
        let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| invalid())?;
        i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).map(Self).map_err(|_| invalid())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        let moment = moment(self.0).format(written).map_err(|_| fmt::Error)?;
        formatter.write_str(&moment)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.to_string()
    }
}

/// A calendar day in UTC, written `2026-11-30`. Its order is the calendar's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// Returns the day `days` earlier.
    pub fn minus(self, days: u16) -> Self {
        Self(self.0 - i64::from(days))
    }
}

impl FromStr for Day {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        match format!("{text}T00:00:00Z").parse::<Timestamp>() {
            Ok(moment) if text.len() == 10 => Ok(moment.day()),
            Ok(_) | Err(_) => Err(InvalidTimestamp { text: text.chars().take(64).collect() }),
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = moment(self.0.saturating_mul(86_400_000))
            .format(format_description!("[year]-[month]-[day]"))
            .map_err(|_| fmt::Error)?;
        formatter.write_str(&day)
    }
}

fn moment(millis: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis.clamp(MILLIS_MIN, MILLIS_MAX)) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_with_milliseconds() {
        let moment: Timestamp = "2026-11-30T20:00:00.1239+02:00".parse().unwrap();
        assert_eq!(moment.to_string(), "2026-11-30T18:00:00.123Z");
        assert_eq!(moment.day().to_string(), "2026-11-30");
    }

    #[test]
    fn no_number_of_milliseconds_is_unprintable() {
        for millis in [i64::MIN, MILLIS_MIN, -1, 0, MILLIS_MAX, i64::MAX] {
            let moment = Timestamp::from_millis(millis);
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
    }

    #[test]
    fn what_is_not_a_moment_is_refused() {
        for bad in ["", "now", "2026-11-30", "2026-13-01T00:00:00Z", "2026-11-30T18:00:00"] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn days_count_back_over_months() {
        let day: Day = "2026-03-01".parse().unwrap();
        assert_eq!(day.minus(1).to_string(), "2026-02-28");
    }
}
