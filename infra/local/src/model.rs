//! What a template declares, after parameters, conditions and nested stacks are resolved: the contract between the
//! template reader, which fills it, and the parts of the stack, which are built from it. No behaviour.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything the local stack is built from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// DynamoDB tables.
    pub tables: Vec<Table>,
    /// SQS queues, dead letter queues among them.
    pub queues: Vec<Queue>,
    /// Lambda functions.
    pub functions: Vec<Function>,
    /// Event source mappings from queues.
    pub queue_mappings: Vec<QueueMapping>,
    /// Event source mappings from table streams.
    pub stream_mappings: Vec<StreamMapping>,
    /// Routes of the HTTP API.
    pub routes: Vec<Route>,
    /// What invokes functions again and again.
    pub schedules: Vec<Schedule>,
    /// Declared things that the local stack does not act on, in template order.
    pub unsupported: Vec<Unsupported>,
}

/// A DynamoDB table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Physical name.
    pub name: String,
    /// The `CreateTable` request as DynamoDB's JSON protocol takes it (key schema, attribute definitions, indexes,
    /// billing mode, stream specification).
    pub create_request: String,
    /// Attribute of `TimeToLiveSpecification`, where one is enabled.
    pub time_to_live_attribute: Option<String>,
}

/// An SQS queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Physical name.
    pub name: String,
    /// Attributes as `CreateQueue` takes them: `VisibilityTimeout`, `MessageRetentionPeriod`, `RedrivePolicy`, ...
    pub attributes: BTreeMap<String, String>,
}

/// A Lambda function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Physical name.
    pub name: String,
    /// Name of the cargo binary, from `BuildProperties.Binary` of its metadata.
    pub binary: String,
    /// Folder named by `CodeUri`, absolute.
    pub code: PathBuf,
    /// Environment variables as declared.
    pub environment: BTreeMap<String, String>,
    /// Time after which an invocation is stopped and its instance killed.
    pub timeout: Duration,
    /// Memory in MiB.
    pub memory_mib: u32,
}

/// An event source mapping from a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMapping {
    /// Physical name of the queue.
    pub queue: String,
    /// Physical name of the function.
    pub function: String,
    /// Records in an invocation, at most.
    pub batch_size: usize,
    /// How long records are gathered before an invocation.
    pub batching_window: Duration,
    /// Concurrent invocations, at most; `None` is Lambda's own limit.
    pub maximum_concurrency: Option<usize>,
    /// Whether `ReportBatchItemFailures` is declared.
    pub failures: Failures,
}

/// An event source mapping from a table's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMapping {
    /// Physical name of the table.
    pub table: String,
    /// Physical name of the function.
    pub function: String,
    /// Records in an invocation, at most.
    pub batch_size: usize,
    /// How long records are gathered before an invocation.
    pub batching_window: Duration,
    /// Whether a failed batch is split in two.
    pub bisect: Bisect,
    /// Retries of a batch before it is given up; `None` retries until the records expire.
    pub maximum_retry_attempts: Option<u32>,
    /// Concurrent batches of a shard.
    pub parallelization_factor: usize,
    /// Whether `ReportBatchItemFailures` is declared.
    pub failures: Failures,
}

/// How a function reports the records it could not process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    /// An error fails the whole batch; the response is not read.
    WholeBatch,
    /// `batchItemFailures` names the records.
    ReportBatchItemFailures,
}

/// What happens to a stream batch that failed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bisect {
    /// It is sent again as it is.
    Never,
    /// It is split in two.
    OnFunctionError,
}

/// A route of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// `GET`, `POST`, ... or `ANY`.
    pub method: String,
    /// Path with `{name}` and `{name+}` parts.
    pub path: String,
    /// Physical name of the function.
    pub function: String,
    /// Who may call it.
    pub access: Access,
}

/// Who may call a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Anybody; no token is looked at.
    Anyone,
    /// Whoever has a token that an authorizer accepts.
    Token {
        /// Which tokens.
        authorizer: JwtAuthorizer,
        /// Scopes of which the token has to have one; empty for a route that asks for none.
        scopes: Vec<String>,
    },
}

/// A JWT authorizer of an HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtAuthorizer {
    /// Header with the token, in lower case.
    pub header: String,
    /// Whose tokens are accepted.
    pub issuer: String,
    /// Those whom the tokens may be for; one of them has to be named.
    pub audiences: Vec<String>,
}

/// A schedule of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Physical name of the function.
    pub function: String,
    /// Time between two invocations.
    pub every: Duration,
}

/// A resource property that the local stack does not act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The template's file name.
    pub template: String,
    /// Logical id of the resource.
    pub resource: String,
    /// The property's path, or the resource's type where the whole resource is meant.
    pub property: String,
}
