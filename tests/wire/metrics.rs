//! The lines that CloudWatch takes metrics from, and the lists that the alarms in the templates are compared with.

use std::sync::{Arc, Mutex};

use aws::metrics::{Answer, Metric, Metrics, VALUES_MAX};
use consumer::{Cost, Tally};
use events::{Consumer, EventType, QueueOrder, RELAY_REJECTED_QUEUE};
use serde_json::{Value, json};
use testkit::sample::now;

use crate::{check, pretty};

/// The lines of everything that is measured, as they are written.
fn lines() -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&lines);
    let metrics = Metrics::new("players-engine", move |line: &str| written.lock().unwrap().push(line.to_owned()));
    let tally = Tally {
        records: 113,
        applied: 103,
        duplicate: 1,
        stale: 1,
        ignored: 1,
        waiting: 1,
        unresolved: 1,
        rejected: 1,
        retried: 2,
        canaries: 1,
        lags_ms: (0..103).collect(),
        canary_lags_ms: vec![840],
        cost: Cost { calls: 7, read_units: 12.5, write_units: 230.0, index_write_units: 4.0 },
    };
    metrics.batch(Consumer::OrderChanged, &tally, now());
    metrics.batch(Consumer::Activity, &Tally { records: 1, canaries: 1, ..Tally::default() }, now());
    metrics.published(Consumer::OrderChanged, 3, now());
    metrics.relayed(1, 2, now());
    metrics.request(Answer::Success, 12, now());
    metrics.request(Answer::ClientError, 3, now());
    metrics.request(Answer::ServerError, 1_000, now());
    lines.lock().unwrap().clone()
}

#[test]
fn lines_in_the_embedded_metric_format() {
    check("metric_lines.jsonl", &(lines().join("\n") + "\n"));
}

#[test]
fn every_metric_is_declared_as_it_is_written() {
    let lines: Vec<Value> = lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut written = std::collections::BTreeSet::new();
    for line in &lines {
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        for metric in directive["Metrics"].as_array().unwrap() {
            let name = metric["Name"].as_str().unwrap();
            let declared = Metric::ALL.into_iter().find(|metric| metric.as_str() == name).unwrap();
            let dimension = declared.dimension().as_str();
            assert_eq!(metric["Unit"], declared.unit().as_str(), "{name}");
            assert_eq!(directive["Dimensions"], json!([[dimension]]), "{name}");
            assert!(declared.subjects().contains(&line[dimension].as_str().unwrap()), "{name}: {line}");
            written.insert(declared);
        }
    }
    assert_eq!(written.into_iter().collect::<Vec<_>>(), Metric::ALL, "each is written, and in this order declared");
}

#[test]
fn metrics_that_alarms_can_be_about() {
    let declared = Metric::ALL.map(|metric| {
        let (name, unit, dimension) = (metric.as_str(), metric.unit().as_str(), metric.dimension().as_str());
        json!({"name": name, "unit": unit, "dimension": dimension, "of": metric.subjects()})
    });
    check("metrics.json", &pretty(&json!({"values_max": VALUES_MAX, "metrics": declared})));
}

#[test]
fn consumers_and_queues_that_alarms_have_to_be_about() {
    let consumers = Consumer::ALL.map(|consumer| {
        let order = match consumer.queue_order() {
            QueueOrder::Standard => "standard",
            QueueOrder::FifoByAggregate => "fifo by aggregate",
        };
        json!({"name": consumer.as_str(), "queue": consumer.queue_name(), "order": order})
    });
    let event_types = EventType::ALL.map(|event_type| {
        let consumers: Vec<&str> = event_type.consumers().iter().map(Consumer::as_str).collect();
        json!({"name": event_type.as_str(), "consumers": consumers})
    });
    let topology = json!({"consumers": consumers, "event_types": event_types, "rejected_queue": RELAY_REJECTED_QUEUE});
    check("topology.json", &pretty(&topology));
}
