//! Metrics in CloudWatch's embedded metric format: a line of the log says what is to be counted, and CloudWatch counts it. No
//! call is made, and none can fail. [`Metric`] lists what is measured; who adds it up is elsewhere.

mod declaration;
mod document;

use std::io::{self, Write};

use consumer::Tally;
use events::{Consumer, Timestamp};

pub use declaration::{Dimension, Metric, Unit};
pub use document::VALUES_MAX;

use declaration::{API, RELAY};
use document::{Document, Values};

/// Writes metrics, one JSON object a line.
pub struct Metrics {
    namespace: String,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// With what was asked for.
    Success,
    /// The caller has to change something.
    ClientError,
    /// The fault is here.
    ServerError,
}

impl Metrics {
    /// Writes to standard output, which Lambda puts into the function's log.
    pub fn to_stdout(namespace: impl Into<String>) -> Self {
        // A log that takes no more lines is no reason to stop: the silence is noticed where the metrics are read.
        Self::new(namespace, |line| drop(writeln!(io::stdout(), "{line}")))
    }

    /// Hands every line, without its end, to `write`.
    pub fn new(namespace: impl Into<String>, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { namespace: namespace.into(), write: Box::new(write) }
    }

    /// Writes what a consumer's batch came to, which ended at `now`.
    ///
    /// Counts of zero are left out, for a metric costs money in every hour in which it has data; but for `Processed`, whose
    /// zero says that somebody tried. Lags beyond the first hundred go into lines of their own: a line holds no more.
    pub fn batch(&self, consumer: Consumer, tally: &Tally, now: Timestamp) {
        let counts = [
            (Metric::Applied, tally.applied),
            (Metric::Duplicate, tally.duplicate),
            (Metric::Stale, tally.stale),
            (Metric::Ignored, tally.ignored),
            (Metric::Waiting, tally.waiting),
            (Metric::Unresolved, tally.unresolved),
            (Metric::Rejected, tally.rejected),
            (Metric::Retried, tally.retried),
            (Metric::LedgerCalls, tally.cost.calls.into()),
            (Metric::CanaryArrived, tally.canaries),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let mut values = vec![
            (Metric::BatchRecords, Values::Count(tally.records)),
            (Metric::Processed, Values::Count(tally.processed())),
        ];
        values.extend(counts.map(|(metric, count)| (metric, Values::Count(count))));
        let write_units = tally.cost.write_units + tally.cost.index_write_units;
        values.extend((write_units > 0.0).then_some((Metric::WriteUnits, Values::Amount(write_units))));
        let mut lags = tally.lags_ms.chunks(VALUES_MAX);
        let mut canary_lags = tally.canary_lags_ms.chunks(VALUES_MAX);
        values.extend(lags.next().map(|first| (Metric::LagMs, Values::Each(first))));
        values.extend(canary_lags.next().map(|first| (Metric::CanaryLagMs, Values::Each(first))));
        self.line(consumer.as_str(), &values, now);
        let further = lags.map(|lags| (Metric::LagMs, lags)).chain(canary_lags.map(|lags| (Metric::CanaryLagMs, lags)));
        for (metric, lags) in further {
            self.line(consumer.as_str(), &[(metric, Values::Each(lags))], now);
        }
    }

    /// Writes how many events, other than canaries, the relay has sent to a consumer's queue. Of these it has processed none:
    /// written down, that makes a comparison of the two possible even if the consumer has never said a word.
    pub fn published(&self, consumer: Consumer, events: u64, now: Timestamp) {
        if events > 0 {
            let values = [(Metric::Published, Values::Count(events)), (Metric::Processed, Values::Count(0))];
            self.line(consumer.as_str(), &values, now);
        }
    }

    /// Writes how many records the relay has put aside, and how many hold up the stream.
    pub fn relayed(&self, rejected: u64, held: u64, now: Timestamp) {
        let counts = [(Metric::RelayRejected, rejected), (Metric::RelayHeld, held)];
        let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        if !counts.is_empty() {
            let values: Vec<_> = counts.into_iter().map(|(metric, count)| (metric, Values::Count(count))).collect();
            self.line(RELAY, &values, now);
        }
    }

    /// Writes how a request was answered, and in how many milliseconds.
    pub fn request(&self, answer: Answer, latency_ms: u64, now: Timestamp) {
        let metric = match answer {
            Answer::Success => Metric::Success,
            Answer::ClientError => Metric::ClientError,
            Answer::ServerError => Metric::ServerError,
        };
        self.line(API, &[(metric, Values::Count(1)), (Metric::LatencyMs, Values::Count(latency_ms))], now);
    }

    fn line(&self, subject: &str, values: &[(Metric, Values<'_>)], now: Timestamp) {
        let document = Document { namespace: &self.namespace, subject, values, now };
        // What consists of numbers and known names always serializes.
        if let Ok(line) = serde_json::to_string(&document) {
            (self.write)(&line);
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Metrics").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    fn lines(measure: impl FnOnce(&Metrics)) -> Vec<Value> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        measure(&Metrics::new("stack", move |line| written.lock().unwrap().push(serde_json::from_str(line).unwrap())));
        lines.lock().unwrap().clone()
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_796_061_600_000)
    }

    fn directive(line: &Value) -> &Value {
        &line["_aws"]["CloudWatchMetrics"][0]
    }

    /// CloudWatch takes a metric from a line only if the line declares it and has its value and its dimension's.
    fn check(line: &Value) {
        let declared = directive(line)["Metrics"].as_array().unwrap();
        assert!(!declared.is_empty() && declared.len() <= 100, "{line}");
        for metric in declared {
            let value = &line[metric["Name"].as_str().unwrap()];
            assert!(value.is_number() || value.as_array().is_some_and(|values| values.len() <= 100), "{line}");
        }
        let dimension = directive(line)["Dimensions"][0][0].as_str().unwrap();
        assert!(line[dimension].is_string(), "{line}");
        assert_eq!(line["_aws"]["Timestamp"], now().as_millis());
    }

    #[test]
    fn no_line_holds_more_values_than_it_may_and_none_is_lost() {
        for records in [0, 1, 100, 101, 1_234] {
            let tally = Tally { lags_ms: (0..records).collect(), ..Tally::default() };
            let lines = lines(|metrics| metrics.batch(Consumer::Activity, &tally, now()));
            lines.iter().for_each(check);
            let lags = lines.iter().filter_map(|line| line["LagMs"].as_array()).flatten();
            assert_eq!(lags.map(|lag| lag.as_u64().unwrap()).collect::<Vec<_>>(), tally.lags_ms);
            assert_eq!(lines.iter().filter(|line| line.get("BatchRecords").is_some()).count(), 1);
        }
    }

    #[test]
    fn what_did_not_happen_is_not_measured_but_that_nothing_was_processed_is() {
        let tally = Tally { records: 1, retried: 1, ..Tally::default() };
        let lines = lines(|metrics| {
            metrics.batch(Consumer::Activity, &tally, now());
            metrics.published(Consumer::Activity, 0, now());
            metrics.relayed(0, 0, now());
        });
        assert_eq!(lines.len(), 1);
        check(&lines[0]);
        assert_eq!((&lines[0]["Processed"], &lines[0]["Retried"]), (&0.into(), &1.into()));
        assert_eq!(lines[0].get("Applied"), None);
    }

    #[test]
    fn the_relay_and_the_consumer_measure_under_the_same_name() {
        let lines = lines(|metrics| {
            metrics.batch(Consumer::OrderChanged, &Tally::default(), now());
            metrics.published(Consumer::OrderChanged, 3, now());
        });
        lines.iter().for_each(check);
        assert_eq!(directive(&lines[0])["Dimensions"], directive(&lines[1])["Dimensions"]);
        assert_eq!((&lines[0]["Consumer"], &lines[1]["Consumer"]), (&"order-changed".into(), &"order-changed".into()));
    }

    #[test]
    fn a_request_counts_once_under_its_answer() {
        for (answer, name) in
            [(Answer::Success, "Success"), (Answer::ClientError, "ClientError"), (Answer::ServerError, "ServerError")]
        {
            let lines = lines(|metrics| metrics.request(answer, 12, now()));
            check(&lines[0]);
            assert_eq!((&lines[0][name], &lines[0]["LatencyMs"], lines.len()), (&1.into(), &12.into(), 1));
            assert_eq!(directive(&lines[0])["Metrics"].as_array().unwrap().len(), 2);
        }
    }
}
