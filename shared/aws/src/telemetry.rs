//! Logs as JSON, one object a line, for CloudWatch and everything that reads it. The fields of an event and of the spans
//! around it stand side by side, so that every line about a record carries the record's identity.

use std::error::Error;
use std::fmt;
use std::io;

use consumer::Clock;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

use crate::system::System;

/// Variable with the level that a function's logging settings ask for. Lambda sets it.
pub const AWS_LAMBDA_LOG_LEVEL: &str = "AWS_LAMBDA_LOG_LEVEL";
/// Variable with levels by target, such as `info,aws_smithy_runtime=debug`, where the first is not set.
pub const RUST_LOG: &str = "RUST_LOG";

/// Sends everything at or above the level that the environment asks for to standard output. Later calls change nothing.
pub fn init(lookup: impl Fn(&str) -> Option<String>) {
    let chosen = levels(lookup);
    let wrong = chosen.as_ref().err().cloned();
    let subscriber = subscriber(chosen.unwrap_or_else(|_| default_levels()), io::stdout);
    if tracing::subscriber::set_global_default(subscriber).is_ok()
        && let Some((variable, value)) = wrong
    {
        tracing::warn!(variable, value, "not a log level; logging at INFO");
    }
}

/// Makes a subscriber that writes one JSON object a line.
pub fn subscriber<W>(levels: Targets, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().fmt_fields(JsonFields::new()).event_format(Line).with_writer(writer);
    tracing_subscriber::registry().with(levels).with(lines)
}

/// Returns the levels that the environment asks for: INFO if it does not ask.
///
/// # Errors
/// Variable and value, where the value is no level.
pub fn levels(lookup: impl Fn(&str) -> Option<String>) -> Result<Targets, (&'static str, String)> {
    let value_of = |name| lookup(name).filter(|value| !value.trim().is_empty());
    if let Some(value) = value_of(AWS_LAMBDA_LOG_LEVEL) {
        // Lambda knows one level that tracing does not.
        let level = if value.eq_ignore_ascii_case("fatal") { Ok(LevelFilter::ERROR) } else { value.parse() };
        return level.map(|level| Targets::new().with_default(level)).map_err(|_| (AWS_LAMBDA_LOG_LEVEL, value));
    }
    match value_of(RUST_LOG) {
        Some(value) => value.parse().map_err(|_| (RUST_LOG, value)),
        None => Ok(default_levels()),
    }
}

/// Returns an error and all its sources in one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors repeat their source's text in their own.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

fn default_levels() -> Targets {
    Targets::new().with_default(LevelFilter::INFO)
}

/// Writes an event as a line.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Map::new();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map_or("", |fields| fields.fields.as_str());
            // Fields that are not JSON would be a defect of the formatter above; the line is worth more than they are.
            line.append(&mut serde_json::from_str(fields).unwrap_or_default());
        }
        event.record(&mut Fields(&mut line));
        let metadata = event.metadata();
        line.insert("timestamp".to_owned(), System.now().to_string().into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("target".to_owned(), metadata.target().into());
        let text = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{text}")
    }
}

/// Collects an event's fields.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.insert(field, chain(value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use events::Timestamp;

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(levels: Targets, log: impl FnOnce()) -> Vec<Value> {
        let memory = Memory::default();
        let writer = memory.clone();
        tracing::subscriber::with_default(subscriber(levels, move || writer.clone()), log);
        let written = memory.0.lock().unwrap().clone();
        String::from_utf8(written).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_carries_the_fields_of_the_spans_around_it() {
        let lines = lines(default_levels(), || {
            let batch = tracing::info_span!("batch", request_id = "r-1").entered();
            let record = tracing::info_span!("record", event_id = %7, outcome = tracing::field::Empty).entered();
            record.record("outcome", "applied");
            tracing::info!(rows = 3_u64, late = true, "two\nlines");
            drop(record);
            drop(batch);
        });

        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!(line["request_id"], "r-1");
        assert_eq!(line["event_id"], "7");
        assert_eq!(line["outcome"], "applied");
        assert_eq!(line["rows"], 3);
        assert_eq!(line["late"], true);
        assert_eq!(line["message"], "two\nlines");
        assert_eq!(line["level"], "INFO");
        assert!(line["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok(), "{line}");
    }

    #[test]
    fn the_inner_field_wins_and_the_level_cannot_be_forged() {
        let lines = lines(default_levels(), || {
            let _outer = tracing::info_span!("outer", attempt = 1).entered();
            let _inner = tracing::info_span!("inner", attempt = 2).entered();
            tracing::warn!(level = "nothing", "text");
        });
        assert_eq!((&lines[0]["attempt"], &lines[0]["level"]), (&Value::from(2), &Value::from("WARN")));
    }

    #[test]
    fn errors_are_logged_with_their_causes() {
        let inner = io::Error::other("the disk is full");
        let outer = crate::items::ItemError::Attribute { attribute: "version", item: "a/b".to_owned() };
        let lines = lines(default_levels(), || {
            tracing::error!(inner = &inner as &(dyn Error + 'static), outer = chain(&outer), "failed");
        });
        assert_eq!(lines[0]["inner"], "the disk is full");
        assert_eq!(lines[0]["outer"], "attribute version of item a/b is missing or of the wrong type");
    }

    #[test]
    fn the_level_comes_from_the_environment() {
        let check = |variables: &[(&str, &str)], expected: usize| {
            let lookup = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
            let lines = lines(levels(lookup).unwrap(), || {
                tracing::debug!("a");
                tracing::info!("b");
                tracing::error!("c");
            });
            assert_eq!(lines.len(), expected, "{variables:?}");
        };
        check(&[], 2);
        check(&[(AWS_LAMBDA_LOG_LEVEL, "")], 2);
        check(&[(AWS_LAMBDA_LOG_LEVEL, "DEBUG")], 3);
        check(&[(AWS_LAMBDA_LOG_LEVEL, "FATAL")], 1);
        check(&[(AWS_LAMBDA_LOG_LEVEL, "ERROR"), (RUST_LOG, "trace")], 1);
        check(&[(RUST_LOG, "warn,aws::telemetry=debug")], 3);
        assert_eq!(levels(|_| Some("loud".to_owned())).unwrap_err(), (AWS_LAMBDA_LOG_LEVEL, "loud".to_owned()));
    }
}
