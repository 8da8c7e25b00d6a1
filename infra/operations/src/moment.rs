//! Moments as an operator says them.

use std::time::Duration;

use events::Timestamp;

/// Reads a moment: as RFC 3339 writes it, or how long ago it was, such as `90s`, `30m`, `2h` or `3d`.
///
/// # Errors
/// It is neither.
pub fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let wrong =
        || format!("{text:?} is neither a moment such as 2026-11-30T18:00:00Z nor a time ago such as 30m, 2h or 3d");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let ago = number.checked_mul(seconds).and_then(|seconds| i64::try_from(seconds).ok()).ok_or_else(wrong)?;
    Ok(Timestamp::from_millis(now.as_millis().saturating_sub(ago.saturating_mul(1_000))))
}

/// Returns the moment of the operator's clock.
pub(crate) fn now() -> Timestamp {
    consumer::Clock::now(&aws::system::System)
}

/// Returns how long something may take, as far as a queue can be told: whole seconds, twelve hours at most.
pub(crate) fn at_most_hidden(duration: Duration) -> Duration {
    const HIDDEN_MAX: Duration = Duration::from_secs(43_200);
    Duration::from_secs(duration.as_secs()).min(HIDDEN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_said_as_it_stands_or_as_a_time_ago() {
        let now: Timestamp = "2026-11-30T18:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-30T17:00:00Z", "2026-11-30T17:00:00.000Z"),
            ("2026-11-30T19:00:00+01:00", "2026-11-30T18:00:00.000Z"),
            ("90s", "2026-11-30T17:58:30.000Z"),
            ("30m", "2026-11-30T17:30:00.000Z"),
            ("2h", "2026-11-30T16:00:00.000Z"),
            ("3d", "2026-11-27T18:00:00.000Z"),
        ] {
            assert_eq!(parse(text, now).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "h", "2", "2y", "-2h", "2 h", "yesterday", "99999999999999999999d", "2ä"] {
            assert!(parse(text, now).unwrap_err().contains("30m"), "{text}");
        }
    }
}
