//! What operations ask of the tables: scans, rows and ranges, and plans. Everything that may pass by itself is tried again here.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws::items::{EVENT, Item, PARTITION_KEY, REVISION, SORT_KEY, TableNames, key_item, number};
use aws::ledger::DynamoLedger;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{DisplayErrorContext, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use consumer::{Attempt, Clock, CommitError, Draft, FetchError, Ledger, PlanError, Scope};
use domain::{Key, Need, RowError, State, Table, Write};
use events::{Consumer, EventId, Timestamp};
use serde_json::Value;
use thiserror::Error;
use tokio::time::sleep;

use crate::dead_letters::Records;

/// How often a call is made while the tables are busy.
const CALLS_MAX: u32 = 7;
/// Upper bound of the wait before the second call; it doubles each time.
const WAIT_MIN: Duration = Duration::from_millis(50);

/// Why the tables could not be read or written.
#[derive(Debug, Error)]
pub enum TablesError {
    /// The table of records, or a row to be removed, did not answer.
    #[error("a table did not answer")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Rows could not be read.
    #[error("rows could not be read")]
    Fetch(#[source] FetchError),
    /// Rows could not be written.
    #[error("rows could not be written")]
    Write(#[source] CommitError),
    /// Rows cannot be written together.
    #[error("rows cannot be written")]
    Plan(#[source] PlanError),
    /// A row is not what this code makes.
    #[error("a row cannot be understood")]
    Row(#[from] RowError),
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It stands there.
    Done,
    /// Somebody else was faster: what it was decided on is no longer so.
    Refused,
}

/// A page of a scan: the sort-key-first records of partitions, how many records were looked at, and where it ended.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) partitions: Vec<String>,
    pub(crate) records: u64,
    pub(crate) end: Option<(String, String)>,
}

/// A page of a scan: the events of records, how many records were looked at, and where it ended.
#[derive(Debug)]
pub(crate) struct EventPage {
    pub(crate) events: Vec<Value>,
    pub(crate) records: u64,
    pub(crate) end: Option<(String, String)>,
}

/// The tables of a stack.
#[derive(Debug, Clone)]
pub struct Tables {
    scans: Client,
    writes: Client,
    names: TableNames,
    ledger: DynamoLedger,
}

impl Tables {
    /// Works on these tables: `scans` has to retry by itself, `writes` must not.
    pub fn new(scans: Client, writes: Client, names: TableNames) -> Self {
        let ledger = DynamoLedger::new(writes.clone(), names.clone());
        Self { scans, writes, names, ledger }
    }

    /// Returns about how many records there are: DynamoDB counts them every six hours.
    pub(crate) async fn records(&self) -> Result<u64, TablesError> {
        let described = self.scans.describe_table().table_name(self.names.name(Table::Records)).send().await;
        let described = described.map_err(|error| TablesError::Read(Box::new(error)))?;
        let count = described.table.and_then(|table| table.item_count).unwrap_or(0);
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Looks at some records and returns the partitions of those with this prefix and this sort key.
    pub(crate) async fn page(
        &self,
        (prefix, sort): (&str, &str),
        after: Option<&(String, String)>,
        limit: i32,
    ) -> Result<Page, TablesError> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let scan = self
            .scan(after, limit)
            .filter_expression("begins_with(#p, :p) AND #s = :s")
            .projection_expression("#p")
            .expression_attribute_names("#p", PARTITION_KEY)
            .expression_attribute_names("#s", SORT_KEY)
            .expression_attribute_values(":p", text(prefix))
            .expression_attribute_values(":s", text(sort));
        let page = scan.send().await.map_err(|error| TablesError::Read(Box::new(error)))?;
        let partitions = page.items().iter().filter_map(|item| part(item, PARTITION_KEY)).collect();
        let end = page.last_evaluated_key().and_then(end);
        Ok(Page { partitions, records: u64::try_from(page.scanned_count).unwrap_or(0), end })
    }

    /// Makes a consistent scan of the records behind a position.
    fn scan(&self, after: Option<&(String, String)>, limit: i32) -> ScanFluentBuilder {
        let scan = self.scans.scan().table_name(self.names.name(Table::Records));
        scan.consistent_read(true).limit(limit).set_exclusive_start_key(after.map(start))
    }

    /// Looks at some records and returns the events of those whose event was minted from the first moment on and before the
    /// second.
    pub(crate) async fn events(
        &self,
        (since, until): (Timestamp, Timestamp),
        after: Option<&(String, String)>,
        limit: i32,
    ) -> Result<EventPage, TablesError> {
        // Ids of version 7 are in the order of their moments, as text too.
        let first = |moment| AttributeValue::S(EventId::mint(moment, [0; 10]).to_string());
        let scan = self
            .scan(after, limit)
            .filter_expression("#event.#id >= :since AND #event.#id < :until")
            .projection_expression("#event")
            .expression_attribute_names("#event", EVENT)
            .expression_attribute_names("#id", "event_id")
            .expression_attribute_values(":since", first(since))
            .expression_attribute_values(":until", first(until));
        let page = scan.send().await.map_err(|error| TablesError::Read(Box::new(error)))?;
        let end = page.last_evaluated_key().and_then(end);
        let records = u64::try_from(page.scanned_count).unwrap_or(0);
        let events = page.items.unwrap_or_default().into_iter().filter_map(|mut item| item.remove(EVENT));
        let events: Result<Vec<Value>, _> = events.map(serde_dynamo::from_attribute_value).collect();
        Ok(EventPage { events: events.map_err(|error| TablesError::Read(Box::new(error)))?, records, end })
    }

    /// Reads rows and ranges consistently.
    pub(crate) async fn fetch(&self, needs: impl IntoIterator<Item = Need>) -> Result<State, TablesError> {
        let needs: BTreeSet<Need> = needs.into_iter().collect();
        let mut call = 0;
        loop {
            call += 1;
            match self.ledger.fetch(&needs).await {
                Ok((state, _)) => return Ok(state),
                Err(error @ FetchError::NotARow { .. }) => return Err(TablesError::Fetch(error)),
                Err(error @ FetchError::Unavailable(_)) if call == CALLS_MAX => return Err(TablesError::Fetch(error)),
                Err(FetchError::Unavailable(_)) => wait(call).await,
            }
        }
    }

    /// Carries out writes together, all or none.
    pub(crate) async fn write(&self, writes: Vec<Write>) -> Result<Written, TablesError> {
        let now = aws::system::System.now();
        // No write of a rebuild is an increment, so no claim is made and the id is never looked at.
        let scope = Scope { consumer: Consumer::OrderChanged, event_id: EventId::mint(now, [0; 10]), now };
        let draft = Draft::new(scope, writes, Vec::new()).map_err(TablesError::Plan)?;
        let request = self.ledger.prepare(&draft.seal(fastrand::u128(..), 0)).map_err(TablesError::Write)?;
        let mut attempt = Attempt::First;
        let mut call = 0;
        loop {
            call += 1;
            match self.ledger.commit(&request, attempt).await {
                Ok(_) => return Ok(Written::Done),
                Err(CommitError::Refused { .. }) => return Ok(Written::Refused),
                Err(error @ CommitError::Invalid { .. }) => return Err(TablesError::Write(error)),
                Err(error @ CommitError::Busy { .. }) if call == CALLS_MAX => return Err(TablesError::Write(error)),
                Err(CommitError::Busy { .. }) => {
                    wait(call).await;
                    attempt = Attempt::Again;
                }
            }
        }
    }

    /// Removes a derived row that is wrong, if it still has this revision. Its writers demand a higher source version, which
    /// the right row need not have.
    pub(crate) async fn remove(&self, key: &Key, revision: u64) -> Result<Written, TablesError> {
        let delete = self
            .writes
            .delete_item()
            .table_name(self.names.name(key.table))
            .set_key(Some(key_item(key)))
            .condition_expression("#r = :r")
            .expression_attribute_names("#r", REVISION)
            .expression_attribute_values(":r", number(revision));
        match delete.send().await {
            Ok(_) => Ok(Written::Done),
            Err(error) if is_refusal(&error) => Ok(Written::Refused),
            Err(error) => Err(TablesError::Read(format!("{}", DisplayErrorContext(error)).into())),
        }
    }
}

impl Records for Tables {
    async fn event(&self, key: &Key) -> Result<Option<Value>, Box<dyn std::error::Error + Send + Sync>> {
        let state = self.fetch([Need::Key(key.clone())]).await?;
        Ok(state.row(key)?.attributes.as_ref().and_then(|attributes| attributes.get(EVENT)).cloned())
    }
}

fn start((partition, sort): &(String, String)) -> Item {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    HashMap::from([(PARTITION_KEY.to_owned(), text(partition)), (SORT_KEY.to_owned(), text(sort))])
}

fn end(key: &Item) -> Option<(String, String)> {
    Some((part(key, PARTITION_KEY)?, part(key, SORT_KEY)?))
}

fn part(item: &Item, name: &str) -> Option<String> {
    item.get(name)?.as_s().ok().cloned()
}

fn is_refusal(error: &SdkError<DeleteItemError>) -> bool {
    matches!(error.as_service_error(), Some(DeleteItemError::ConditionalCheckFailedException(_)))
}

async fn wait(call: u32) {
    let limit = WAIT_MIN * 2_u32.pow(call);
    sleep(limit.mul_f64(fastrand::f64())).await;
}
