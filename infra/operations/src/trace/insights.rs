//! The logs in CloudWatch, by Logs Insights: a query is started, and asked for until it is done.

use std::time::Duration;

use aws::telemetry::chain;
use aws_sdk_cloudwatchlogs::Client;
use aws_sdk_cloudwatchlogs::types::{QueryStatus, ResultField};
use tokio::time::{Instant, sleep};

use super::line::Line;
use super::search::{LINES_MAX, Search};
use super::{LogsError, function_names};
use crate::moment::now;

/// How often it is asked whether a query is done.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long a query may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Seconds by which the clocks of functions may differ from the one that minted an id.
const CLOCKS_DIFFER: i64 = 60;
/// Seconds for which dead letters are kept: what is searched without a moment is at most so old.
const LETTERS_KEPT: i64 = 14 * 86_400;

/// The logs of a stack in CloudWatch.
#[derive(Debug, Clone)]
pub struct Insights {
    client: Client,
    prefix: String,
    ask_every: Duration,
}

impl Insights {
    /// Searches the log groups of the functions whose names begin with the prefix and a hyphen.
    pub fn new(client: Client, prefix: impl Into<String>) -> Self {
        Self { client, prefix: prefix.into(), ask_every: ASK_EVERY }
    }

    /// Sets how often it is asked whether a query is done.
    pub fn ask_every(mut self, ask_every: Duration) -> Self {
        self.ask_every = ask_every;
        self
    }

    /// Returns the lines that are searched for.
    ///
    /// # Errors
    /// The query cannot be run, or takes too long.
    pub async fn lines(&self, search: &Search) -> Result<Vec<Line>, LogsError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| LogsError {
            place: format!("CloudWatch (log groups {})", self.group("*")),
            source,
        };
        let query_id = self.start(search).await.map_err(failed)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.client.get_query_results().query_id(&query_id).send().await;
            let answer = answer.map_err(|error| failed(chain(&error).into()))?;
            match answer.status().map(QueryStatus::as_str) {
                Some("Complete") => {
                    return Ok(answer.results().iter().filter_map(|fields| self.line(fields)).collect());
                }
                Some(status @ ("Failed" | "Cancelled" | "Timeout")) => {
                    return Err(failed(format!("the query ended as {status}").into()));
                }
                Some(_) | None => {}
            }
            if Instant::now() >= deadline {
                return Err(failed(format!("the query takes longer than {} s", PATIENCE.as_secs()).into()));
            }
            sleep(self.ask_every).await;
        }
    }

    async fn start(&self, search: &Search) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        let functions = function_names().filter(|name| search.function().is_none_or(|function| function == *name));
        let end = now().as_seconds() + CLOCKS_DIFFER;
        let start = search.since().map_or(end - LETTERS_KEPT, |since| since.as_seconds() - CLOCKS_DIFFER);
        let call = self
            .client
            .start_query()
            .set_log_group_names(Some(functions.map(|function| self.group(function)).collect()))
            .start_time(start)
            .end_time(end)
            .query_string(search.query())
            .limit(i32::try_from(LINES_MAX).unwrap_or(i32::MAX));
        let answer = call.send().await.map_err(|error| chain(&error))?;
        Ok(answer.query_id().ok_or("the answer has no query id")?.to_owned())
    }

    fn group(&self, function: &str) -> String {
        format!("/aws/lambda/{}-{function}", self.prefix)
    }

    /// Reads a result: the line as it was logged, and the log group that it is in, which begins with the account's id.
    fn line(&self, fields: &[ResultField]) -> Option<Line> {
        let field = |name| fields.iter().find(|field| field.field() == Some(name)).and_then(ResultField::value);
        let function = field("@log")?.split_once(&self.group(""))?.1;
        Line::read(function, field("@message")?)
    }
}
