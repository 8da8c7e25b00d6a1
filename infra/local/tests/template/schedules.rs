//! Schedules: how often a function is invoked, and which rates there are not.

use std::time::Duration;

use local::model::Schedule;
use local::template::TemplateError;

use crate::support::{FUNCTION, read_text};

fn schedules(properties: &str) -> Result<Vec<Schedule>, TemplateError> {
    let event = format!("      Events:\n        Often: {{Type: Schedule, Properties: {{{properties}}}}}\n");
    read_text(&format!("Resources:{FUNCTION}{event}")).map(|model| model.schedules)
}

#[test]
fn a_rate_is_read_in_minutes_hours_and_days() {
    for (rate, seconds) in [
        ("1 minute", 60),
        ("5 minutes", 300),
        ("1 hour", 3_600),
        ("12 hours", 43_200),
        ("1 day", 86_400),
        ("7 days", 604_800),
    ] {
        let expected = Schedule { function: "worker".to_owned(), every: Duration::from_secs(seconds) };
        assert_eq!(schedules(&format!("Schedule: rate({rate})")).unwrap(), [expected], "{rate}");
    }
}

#[test]
fn a_schedule_that_is_switched_off_invokes_nobody() {
    assert_eq!(schedules("Schedule: rate(1 minute), Enabled: false").unwrap(), []);
}

#[test]
fn a_rate_that_eventbridge_refuses_is_an_error() {
    for rate in ["0 minutes", "1 minutes", "5 minute", "5 seconds", "-1 minutes", "five minutes", "5", ""] {
        let error = schedules(&format!("Schedule: rate({rate})")).unwrap_err().to_string();
        assert!(error.contains("Events.Often.Properties.Schedule") && error.contains("a rate"), "{error}");
    }
}
