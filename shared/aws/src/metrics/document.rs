//! One line in the embedded metric format
//! ([specification](https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html)).

use events::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::declaration::Metric;

/// Values of a metric in one line, at most.
pub const VALUES_MAX: usize = 100;

/// What a line says of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Values<'a> {
    /// One whole number.
    Count(u64),
    /// One number.
    Amount(f64),
    /// A sample each, at most [`VALUES_MAX`].
    Each(&'a [u64]),
}

/// A line about one subject: a consumer or a function, as the metrics' dimension says. All metrics of a line have the same
/// dimension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) namespace: &'a str,
    pub(super) subject: &'a str,
    pub(super) values: &'a [(Metric, Values<'a>)],
    pub(super) now: Timestamp,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("_aws", &self.metadata())?;
        // With level and time Lambda treats the line as any other of the log.
        line.serialize_entry("timestamp", &self.now)?;
        line.serialize_entry("level", "INFO")?;
        if let Some((metric, _)) = self.values.first() {
            line.serialize_entry(metric.dimension().as_str(), self.subject)?;
        }
        for (metric, values) in self.values {
            line.serialize_entry(metric.as_str(), values)?;
        }
        line.end()
    }
}

impl Document<'_> {
    fn metadata(&self) -> Metadata<'_> {
        let dimensions = self.values.first().map(|(metric, _)| metric.dimension().as_str());
        let metrics =
            self.values.iter().map(|(metric, _)| Declared { name: metric.as_str(), unit: metric.unit().as_str() });
        Metadata {
            timestamp: self.now.as_millis(),
            cloud_watch_metrics: [Directive {
                namespace: self.namespace,
                dimensions: [dimensions.into_iter().collect()],
                metrics: metrics.collect(),
            }],
        }
    }
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::Amount(amount) => amount.serialize(serializer),
            Self::Each(values) => values.serialize(serializer),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metadata<'a> {
    timestamp: i64,
    cloud_watch_metrics: [Directive<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Directive<'a> {
    namespace: &'a str,
    dimensions: [Vec<&'a str>; 1],
    metrics: Vec<Declared>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Declared {
    name: &'static str,
    unit: &'static str,
}
