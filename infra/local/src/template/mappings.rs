//! Event source mappings: the `SQS` and `DynamoDB` events of a function, and `AWS::Lambda::EventSourceMapping`.

use std::time::Duration;

use super::error::{Place, TemplateError};
use super::fields::{Fields, Property};
use super::findings::Findings;
use super::reader::Resource;
use super::{ignored, names};
use crate::model::{Bisect, Failures, QueueMapping, StreamMapping};

const DEFAULT_QUEUE_BATCH_SIZE: usize = 10;
const DEFAULT_STREAM_BATCH_SIZE: usize = 100;
/// Records in an invocation, at most, for queues and streams alike.
const BATCH_SIZE_MAX: usize = 10_000;
/// Batch size of a queue above which Lambda asks for a window.
const BATCH_SIZE_WITHOUT_WINDOW_MAX: usize = 10;
const WINDOW: &str = "MaximumBatchingWindowInSeconds";
const WINDOW_SECONDS_MAX: u64 = 300;
const RETRY_ATTEMPTS_MAX: i64 = 10_000;

/// Where a mapping stands and what it calls.
struct Target {
    /// Physical name of the function.
    function: String,
    /// Where the function is named.
    place: Place,
}

/// Reads an `SQS` event of a function.
///
/// # Errors
/// Values that Lambda does not take.
pub(super) fn read_queue_event(
    function: &str,
    place: Place,
    mut properties: Fields<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let queue = properties.require("Queue")?;
    read_queue_mapping(Target { function: function.to_owned(), place }, &queue, properties, findings)
}

/// Reads a `DynamoDB` event of a function.
///
/// # Errors
/// Values that Lambda does not take.
pub(super) fn read_stream_event(
    function: &str,
    place: Place,
    mut properties: Fields<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let stream = properties.require("Stream")?;
    read_stream_mapping(Target { function: function.to_owned(), place }, &stream, properties, findings)
}

/// Reads an event source mapping that is a resource of its own.
///
/// # Errors
/// Values that Lambda does not take.
pub(super) fn read_mapping(resource: &Resource<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let mut properties = resource.properties()?;
    let source = properties.require("EventSourceArn")?;
    let function = properties.require("FunctionName")?;
    let target = Target { function: names::function_of(function.text()?).to_owned(), place: function.place.clone() };
    match source.text()?.split(':').nth(2) {
        Some("sqs") => read_queue_mapping(target, &source, properties, findings),
        Some("dynamodb") => read_stream_mapping(target, &source, properties, findings),
        _ => {
            findings.unsupported(source.place);
            Ok(())
        }
    }
}

fn read_queue_mapping(
    target: Target,
    queue: &Property<'_>,
    mut properties: Fields<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let name = names::queue_of(queue.text()?);
    let window = queue_window(name, &mut properties)?;
    let batch_size = properties.take("BatchSize")?;
    if let Some(batch_size) = &batch_size
        && batch_size.number(1..=BATCH_SIZE_MAX)? > BATCH_SIZE_WITHOUT_WINDOW_MAX
        && window.is_zero()
    {
        return Err(batch_size.invalid("a batch size without a MaximumBatchingWindowInSeconds, which is at most 10"));
    }
    let batch_size = batch_size.map(|property| property.number(1..=BATCH_SIZE_MAX)).transpose()?;
    let maximum_concurrency = match properties.take("ScalingConfig")? {
        Some(scaling) => {
            let mut scaling = scaling.fields()?;
            let maximum = scaling.number("MaximumConcurrency", 2..=1_000)?;
            findings.left_over(scaling, &[]);
            maximum
        }
        None => None,
    };
    let mapping = QueueMapping {
        queue: name.to_owned(),
        function: target.function,
        batch_size: batch_size.unwrap_or(DEFAULT_QUEUE_BATCH_SIZE),
        batching_window: window,
        maximum_concurrency,
        failures: failures(&mut properties)?,
    };
    if properties.boolean("Enabled")?.unwrap_or(true) {
        findings.queue_mapping(queue.place.clone(), target.place, mapping);
    }
    findings.left_over(properties, ignored::MAPPING);
    Ok(())
}

fn read_stream_mapping(
    target: Target,
    stream: &Property<'_>,
    mut properties: Fields<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let table = names::table_of(stream.text()?).ok_or_else(|| TemplateError::UnknownStream {
        place: stream.place.clone(),
        stream: stream.text().unwrap_or_default().to_owned(),
    })?;
    let position = properties.require("StartingPosition")?;
    if position.one_of(&["TRIM_HORIZON", "LATEST"])? == "LATEST" {
        // What the stream holds from before the mapping is read here in any case.
        findings.unsupported(position.place);
    }
    if let Some(age) = properties.take("MaximumRecordAgeInSeconds")?
        && age.number(-1..=604_800)? != -1
    {
        findings.unsupported(age.place);
    }
    let retries = properties.number("MaximumRetryAttempts", -1..=RETRY_ATTEMPTS_MAX)?;
    let bisect = match properties.boolean("BisectBatchOnFunctionError")? {
        Some(true) => Bisect::OnFunctionError,
        Some(false) | None => Bisect::Never,
    };
    let mapping = StreamMapping {
        table: table.to_owned(),
        function: target.function,
        batch_size: properties.number("BatchSize", 1..=BATCH_SIZE_MAX)?.unwrap_or(DEFAULT_STREAM_BATCH_SIZE),
        batching_window: window(&mut properties)?,
        bisect,
        // -1, which does not fit, is for as long as the stream keeps the records, and so is the default.
        maximum_retry_attempts: retries.and_then(|retries| u32::try_from(retries).ok()),
        parallelization_factor: properties.number("ParallelizationFactor", 1..=10)?.unwrap_or(1),
        failures: failures(&mut properties)?,
    };
    if properties.boolean("Enabled")?.unwrap_or(true) {
        findings.stream_mapping(stream.place.clone(), target.place, mapping);
    }
    findings.left_over(properties, ignored::MAPPING);
    Ok(())
}

/// Returns the window of a mapping from a queue, which Lambda refuses to open on a FIFO queue.
fn queue_window(queue: &str, properties: &mut Fields<'_>) -> Result<Duration, TemplateError> {
    let Some(window) = properties.take(WINDOW)? else {
        return Ok(Duration::ZERO);
    };
    let seconds = window.number(0..=WINDOW_SECONDS_MAX)?;
    if seconds > 0 && queue.ends_with(names::FIFO_SUFFIX) {
        return Err(window.invalid("a window of a FIFO queue, which has none"));
    }
    Ok(Duration::from_secs(seconds))
}

fn window(properties: &mut Fields<'_>) -> Result<Duration, TemplateError> {
    let seconds = properties.number(WINDOW, 0..=WINDOW_SECONDS_MAX)?;
    Ok(Duration::from_secs(seconds.unwrap_or(0)))
}

fn failures(properties: &mut Fields<'_>) -> Result<Failures, TemplateError> {
    let Some(types) = properties.take("FunctionResponseTypes")? else {
        return Ok(Failures::WholeBatch);
    };
    let mut failures = Failures::WholeBatch;
    for response in types.items()? {
        response.one_of(&["ReportBatchItemFailures"])?;
        failures = Failures::ReportBatchItemFailures;
    }
    Ok(failures)
}
