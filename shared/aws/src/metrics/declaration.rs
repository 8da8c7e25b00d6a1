//! The list of all metrics that the functions write, each with its unit and its dimension. Alarms are checked against it.

use std::fmt;

use events::Consumer;

/// The request path's function, without the stack's prefix.
pub(super) const API: &str = "api";
/// The relay's function, without the stack's prefix.
pub(super) const RELAY: &str = "outbox-relay";

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Events, other than canaries, that the relay has sent to a consumer's queue.
    Published,
    /// Records that came to an end in a consumer, other than canaries.
    Processed,
    /// Messages in a batch.
    BatchRecords,
    /// Records whose decision has been committed.
    Applied,
    /// Records whose decision had been committed before.
    Duplicate,
    /// Records behind newer state.
    Stale,
    /// Records with nothing to do.
    Ignored,
    /// Records that wait for something that is missing.
    Waiting,
    /// Records that have waited in vain.
    Unresolved,
    /// Records that can never succeed.
    Rejected,
    /// Records that go back to the queue.
    Retried,
    /// From what happened to its being applied.
    LagMs,
    /// Requests to DynamoDB.
    LedgerCalls,
    /// Write request units, of tables and indexes.
    WriteUnits,
    /// Canaries.
    CanaryArrived,
    /// From a canary's start to its arrival.
    CanaryLagMs,
    /// Records that can never be sent.
    RelayRejected,
    /// Records that hold the stream's position.
    RelayHeld,
    /// From a request to its answer.
    LatencyMs,
    /// Requests that got what they asked for.
    Success,
    /// Requests that the caller has to change.
    ClientError,
    /// Requests that failed here.
    ServerError,
}

/// What a metric's values are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// The consumer, whoever measures.
    Consumer,
    /// The function that measures.
    Function,
}

/// Whom a metric is measured of.
enum MeasuredOf {
    EachConsumer,
    Function(&'static str),
}

/// What a metric counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Things.
    Count,
    /// Thousandths of a second.
    Milliseconds,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 22] = [
        Self::Published,
        Self::Processed,
        Self::BatchRecords,
        Self::Applied,
        Self::Duplicate,
        Self::Stale,
        Self::Ignored,
        Self::Waiting,
        Self::Unresolved,
        Self::Rejected,
        Self::Retried,
        Self::LagMs,
        Self::LedgerCalls,
        Self::WriteUnits,
        Self::CanaryArrived,
        Self::CanaryLagMs,
        Self::RelayRejected,
        Self::RelayHeld,
        Self::LatencyMs,
        Self::Success,
        Self::ClientError,
        Self::ServerError,
    ];

    /// Returns the name under which CloudWatch has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "Published",
            Self::Processed => "Processed",
            Self::BatchRecords => "BatchRecords",
            Self::Applied => "Applied",
            Self::Duplicate => "Duplicate",
            Self::Stale => "Stale",
            Self::Ignored => "Ignored",
            Self::Waiting => "Waiting",
            Self::Unresolved => "Unresolved",
            Self::Rejected => "Rejected",
            Self::Retried => "Retried",
            Self::LagMs => "LagMs",
            Self::LedgerCalls => "LedgerCalls",
            Self::WriteUnits => "WriteUnits",
            Self::CanaryArrived => "CanaryArrived",
            Self::CanaryLagMs => "CanaryLagMs",
            Self::RelayRejected => "RelayRejected",
            Self::RelayHeld => "RelayHeld",
            Self::LatencyMs => "LatencyMs",
            Self::Success => "Success",
            Self::ClientError => "ClientError",
            Self::ServerError => "ServerError",
        }
    }

    /// Returns what its values are told apart by.
    pub const fn dimension(self) -> Dimension {
        match self.measured_of() {
            MeasuredOf::EachConsumer => Dimension::Consumer,
            MeasuredOf::Function(_) => Dimension::Function,
        }
    }

    /// Returns whom it is measured of: the values of its dimension.
    pub fn subjects(self) -> Vec<&'static str> {
        match self.measured_of() {
            MeasuredOf::EachConsumer => Consumer::ALL.map(Consumer::as_str).to_vec(),
            MeasuredOf::Function(function) => vec![function],
        }
    }

    const fn measured_of(self) -> MeasuredOf {
        match self {
            Self::Published
            | Self::Processed
            | Self::BatchRecords
            | Self::Applied
            | Self::Duplicate
            | Self::Stale
            | Self::Ignored
            | Self::Waiting
            | Self::Unresolved
            | Self::Rejected
            | Self::Retried
            | Self::LagMs
            | Self::LedgerCalls
            | Self::WriteUnits
            | Self::CanaryArrived
            | Self::CanaryLagMs => MeasuredOf::EachConsumer,
            Self::RelayRejected | Self::RelayHeld => MeasuredOf::Function(RELAY),
            Self::LatencyMs | Self::Success | Self::ClientError | Self::ServerError => MeasuredOf::Function(API),
        }
    }

    /// Returns what it counts in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::LagMs | Self::CanaryLagMs | Self::LatencyMs => Unit::Milliseconds,
            Self::Published
            | Self::Processed
            | Self::BatchRecords
            | Self::Applied
            | Self::Duplicate
            | Self::Stale
            | Self::Ignored
            | Self::Waiting
            | Self::Unresolved
            | Self::Rejected
            | Self::Retried
            | Self::LedgerCalls
            | Self::WriteUnits
            | Self::CanaryArrived
            | Self::RelayRejected
            | Self::RelayHeld
            | Self::Success
            | Self::ClientError
            | Self::ServerError => Unit::Count,
        }
    }
}

impl Dimension {
    /// Returns the name under which CloudWatch has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consumer => "Consumer",
            Self::Function => "Function",
        }
    }
}

impl Unit {
    /// Returns the name under which CloudWatch has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
