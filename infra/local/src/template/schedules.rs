//! The `Schedule` events of a function. Only rates: a clock's hours and days are nothing that a run on one machine waits for.

use std::time::Duration;

use super::error::TemplateError;
use super::fields::{Fields, Property};
use super::findings::Findings;
use super::ignored;
use crate::model::Schedule;

const MINUTE: u64 = 60;

/// Reads a `Schedule` event of a function.
///
/// # Errors
/// A rate that EventBridge does not take.
pub(super) fn read_schedule(
    function: &str,
    mut properties: Fields<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let schedule = properties.require("Schedule")?;
    let enabled = properties.boolean("Enabled")?.unwrap_or(true);
    findings.left_over(properties, ignored::SCHEDULE);
    if !schedule.text()?.starts_with("rate(") {
        findings.unsupported(schedule.place);
        return Ok(());
    }
    let every = rate(&schedule)?;
    if enabled {
        findings.schedule(Schedule { function: function.to_owned(), every });
    }
    Ok(())
}

/// Reads `rate(value unit)`; the unit of 1 is singular
/// ([rate expressions](https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html)).
fn rate(schedule: &Property<'_>) -> Result<Duration, TemplateError> {
    let invalid = || schedule.invalid("a rate, such as rate(1 minute) or rate(5 minutes)");
    let inner = schedule.text()?.strip_prefix("rate(").and_then(|rest| rest.strip_suffix(')'));
    let (value, unit) = inner.and_then(|inner| inner.split_once(' ')).ok_or_else(invalid)?;
    let value: u64 = value.parse().map_err(|_| invalid())?;
    let unit = match (value, unit) {
        (1, "minute") | (2.., "minutes") => MINUTE,
        (1, "hour") | (2.., "hours") => 60 * MINUTE,
        (1, "day") | (2.., "days") => 24 * 60 * MINUTE,
        _ => return Err(invalid()),
    };
    value.checked_mul(unit).map(Duration::from_secs).ok_or_else(invalid)
}
