//! What the request path asks of DynamoDB. Reads are repeated by the SDK; a write is not: whether it may be sent again is for
//! the command to decide.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::time::Duration;

use aws::config::{ApiConfig, CallTimeouts, Retries, warm_up};
use aws::items::{self, Item, ItemError, PARTITION_KEY, REVISION, SORT_KEY, TableNames, VERSION};
use aws::telemetry::chain;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::error::TransactionCanceledException;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, Put, TransactWriteItem};
use domain::{Attributes, Key, Row, State, Table};
use thiserror::Error;
use tokio::time::sleep;

/// Keys of a batch read, at most.
const BATCH_KEYS_MAX: usize = 100;
/// Rounds for the keys that a batch read leaves out.
const ROUNDS_MAX: u32 = 5;
/// Wait before the second round, at most. It doubles with each.
const ROUND_BACKOFF: Duration = Duration::from_millis(20);

/// Whether a failure may pass by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// Throttling, transport, or a fault of the service.
    Passing,
    /// Anything else.
    Lasting,
}

/// A request to DynamoDB that failed.
#[derive(Debug, Error)]
#[error("{operation} failed")]
pub struct StoreError {
    /// The operation.
    pub operation: &'static str,
    /// Whether it may succeed later.
    pub fault: StoreFault,
    /// What went wrong.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Commit {
    /// All is written.
    Done,
    /// A condition did not hold, or it is not known what happened: to be decided again on what stands there now.
    Again(String),
}

/// A record to write in the place of the one with version `before`; 0 is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replacement {
    pub(crate) key: Key,
    pub(crate) before: u64,
    pub(crate) attributes: Attributes,
}

/// Rows of one partition, in the order of their sort keys.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) table: Table,
    pub(crate) index: Option<Index>,
    pub(crate) partition: String,
    pub(crate) sort: Sort,
    pub(crate) direction: Direction,
    /// How many rows, at most.
    pub(crate) limit: Option<usize>,
}

/// An index with its key attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) partition_key: &'static str,
    pub(crate) sort_key: &'static str,
}

/// Which sort keys.
#[derive(Debug, Clone)]
pub(crate) enum Sort {
    All,
    Prefix(String),
    /// Both ends included.
    Between(String, String),
    Above(String),
    Below(String),
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// The tables, as the request path uses them.
#[derive(Debug, Clone)]
pub struct Store {
    /// The SDK retries.
    reads: Client,
    /// The command retries.
    writes: Client,
    tables: TableNames,
}

impl Store {
    /// Uses these clients: `reads` has to retry by itself, `writes` must not.
    pub fn new(reads: Client, writes: Client, tables: TableNames) -> Self {
        Self { reads, writes, tables }
    }

    /// Makes the clients that the settings describe.
    pub fn from_config(config: &ApiConfig) -> Self {
        let client = |retries| config.connection.dynamodb(retries, CallTimeouts::INTERACTIVE);
        Self::new(client(Retries::Sdk), client(Retries::Caller), config.tables.clone())
    }

    /// Opens the connection ahead of the first request.
    pub async fn warm_up(&self) {
        warm_up(&self.reads, self.tables.name(Table::Records)).await;
    }

    /// Reads rows consistently; one that is absent has version 0.
    pub(crate) async fn fetch(&self, keys: &[Key]) -> Result<State, StoreError> {
        let mut state: State = keys.iter().map(|key| (key.clone(), Row::default())).collect();
        for (table, item) in self.items(keys).await? {
            let (key, row) = items::row(table, item).map_err(not_a_row)?;
            state.insert(key, row);
        }
        Ok(state)
    }

    /// Reads items consistently, in no order; absent ones are left out.
    pub(crate) async fn items(&self, keys: &[Key]) -> Result<Vec<(Table, Item)>, StoreError> {
        let keys: Vec<&Key> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let mut items = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(BATCH_KEYS_MAX) {
            let mut left: HashMap<String, Vec<Item>> = HashMap::new();
            for key in chunk {
                left.entry(self.tables.name(key.table).to_owned()).or_default().push(items::key_item(key));
            }
            self.batch(left, &mut items).await?;
        }
        Ok(items)
    }

    /// Reads counters, each item's added to those of the others: the shards of a target, or targets with different names.
    pub(crate) async fn counts(&self, keys: &[Key]) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for (_, item) in self.items(keys).await? {
            for (name, value) in item {
                let number = value.as_n().ok().and_then(|digits| digits.parse::<i64>().ok());
                if let Some(number) = number.filter(|_| name != REVISION) {
                    *sums.entry(name).or_default() += number;
                }
            }
        }
        // A shard alone may be negative; the sum is not.
        Ok(sums.into_iter().map(|(name, sum)| (name, u64::try_from(sum).unwrap_or(0))).collect())
    }

    async fn batch(
        &self,
        mut left: HashMap<String, Vec<Item>>,
        items: &mut Vec<(Table, Item)>,
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "BatchGetItem";
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                sleep(full_jitter(ROUND_BACKOFF, round)).await;
            }
            let mut call = self.reads.batch_get_item();
            for (table, keys) in left {
                let keys = KeysAndAttributes::builder().consistent_read(true).set_keys(Some(keys)).build();
                call = call.request_items(table, keys.map_err(|error| lasting(OPERATION, error))?);
            }
            let mut answer = call.send().await.map_err(|error| failed(OPERATION, error))?;
            let mut tables = answer.responses.take().unwrap_or_default();
            for table in Table::ALL {
                let found = tables.remove(self.tables.name(table)).unwrap_or_default();
                items.extend(found.into_iter().map(|item| (table, item)));
            }
            left = answer
                .unprocessed_keys
                .unwrap_or_default()
                .into_iter()
                .map(|(table, keys)| (table, keys.keys))
                .collect();
            if left.is_empty() {
                return Ok(());
            }
        }
        let source = format!("keys were left out {ROUNDS_MAX} times").into();
        Err(StoreError { operation: OPERATION, fault: StoreFault::Passing, source })
    }

    /// Reads the rows of a range, page by page. The table itself is read consistently; an index cannot be.
    pub(crate) async fn query(&self, range: &Range) -> Result<Vec<Item>, StoreError> {
        const OPERATION: &str = "Query";
        let (partition_key, sort_key) =
            range.index.map_or((PARTITION_KEY, SORT_KEY), |index| (index.partition_key, index.sort_key));
        let (condition, values) = condition(&range.sort);
        let mut rows: Vec<Item> = Vec::new();
        let mut start = None;
        loop {
            let left = range.limit.map(|limit| limit.saturating_sub(rows.len()));
            let mut call = self
                .reads
                .query()
                .table_name(self.tables.name(range.table))
                .set_index_name(range.index.map(|index| index.name.to_owned()))
                .consistent_read(range.index.is_none())
                .scan_index_forward(range.direction == Direction::Ascending)
                .set_limit(left.and_then(|left| i32::try_from(left).ok()))
                .set_exclusive_start_key(start)
                .key_condition_expression(condition)
                .expression_attribute_names("#p", partition_key)
                .expression_attribute_values(":p", AttributeValue::S(range.partition.clone()));
            for (name, value) in &values {
                call = call.expression_attribute_values(*name, AttributeValue::S(value.clone()));
            }
            if !values.is_empty() {
                call = call.expression_attribute_names("#s", sort_key);
            }
            let page = call.send().await.map_err(|error| failed(OPERATION, error))?;
            rows.extend(page.items.unwrap_or_default());
            start = page.last_evaluated_key.filter(|key| !key.is_empty());
            let enough = range.limit.is_some_and(|limit| rows.len() >= limit);
            if start.is_none() || enough {
                return Ok(rows);
            }
        }
    }

    /// Writes one record under the condition that it still has the version that was read. Sent once: whether it is sent again
    /// is for the command to decide, which finds its own write where only the answer was lost.
    pub(crate) async fn put(&self, record: Replacement) -> Result<Commit, StoreError> {
        const OPERATION: &str = "PutItem";
        let put = self.conditional_put(record).map_err(|source| lasting_box(OPERATION, source))?;
        let call = self
            .writes
            .put_item()
            .table_name(put.table_name())
            .set_item(Some(put.item().clone()))
            .set_condition_expression(put.condition_expression().map(str::to_owned))
            .set_expression_attribute_names(put.expression_attribute_names().cloned())
            .set_expression_attribute_values(put.expression_attribute_values().cloned());
        let error = match call.send().await {
            Ok(_) => return Ok(Commit::Done),
            Err(error) => error,
        };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(_) | PutItemError::TransactionConflictException(_)) => {
                Ok(Commit::Again(chain(&error)))
            }
            Some(_) | None if fault(&error) == StoreFault::Passing => Ok(Commit::Again(chain(&error))),
            Some(_) | None => Err(failed(OPERATION, error)),
        }
    }

    /// Writes records in one transaction, each under the condition that it still has the version that was read. Sent once;
    /// `token` must be a new one for every transaction.
    pub(crate) async fn replace(&self, records: Vec<Replacement>, token: String) -> Result<Commit, StoreError> {
        const OPERATION: &str = "TransactWriteItems";
        let mut call = self.writes.transact_write_items().client_request_token(token);
        for record in records {
            let put = self.conditional_put(record).map_err(|source| lasting_box(OPERATION, source))?;
            call = call.transact_items(TransactWriteItem::builder().put(put).build());
        }
        let error = match call.send().await {
            Ok(_) => return Ok(Commit::Done),
            Err(error) => error,
        };
        match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
                refusal(canceled).map(Commit::Again).ok_or_else(|| failed(OPERATION, error))
            }
            Some(_) | None if fault(&error) == StoreFault::Passing => Ok(Commit::Again(chain(&error))),
            Some(_) | None => Err(failed(OPERATION, error)),
        }
    }

    fn conditional_put(&self, record: Replacement) -> Result<Put, Box<dyn Error + Send + Sync>> {
        let put = Put::builder().table_name(self.tables.name(record.key.table)).set_item(Some(items::item(
            &record.key,
            record.before + 1,
            record.attributes,
        )?));
        let put = match record.before {
            0 => put.condition_expression("attribute_not_exists(#p)").expression_attribute_names("#p", PARTITION_KEY),
            before => put
                .condition_expression("#v = :v")
                .expression_attribute_names("#v", VERSION)
                .expression_attribute_values(":v", items::number(before)),
        };
        Ok(put.build()?)
    }
}

/// Returns a duration from zero to `base`, doubled with every attempt after the first.
pub(crate) fn full_jitter(base: Duration, attempt: u32) -> Duration {
    (base * 2_u32.saturating_pow(attempt.saturating_sub(1))).mul_f64(fastrand::f64())
}

fn condition(sort: &Sort) -> (&'static str, Vec<(&'static str, String)>) {
    match sort {
        Sort::All => ("#p = :p", vec![]),
        Sort::Prefix(prefix) => ("#p = :p AND begins_with(#s, :a)", vec![(":a", prefix.clone())]),
        Sort::Between(from, to) => ("#p = :p AND #s BETWEEN :a AND :b", vec![(":a", from.clone()), (":b", to.clone())]),
        Sort::Above(end) => ("#p = :p AND #s > :a", vec![(":a", end.clone())]),
        Sort::Below(end) => ("#p = :p AND #s < :a", vec![(":a", end.clone())]),
    }
}

/// Returns why a transaction was canceled, if it may be decided again; `None` if one of the reasons says that it cannot
/// succeed.
fn refusal(canceled: &TransactionCanceledException) -> Option<String> {
    const NO_REASON: &str = "None";
    const AGAIN: [&str; 4] =
        ["ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
    let codes: Vec<&str> = canceled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
    let again = codes.iter().all(|code| *code == NO_REASON || AGAIN.contains(code));
    again.then(|| format!("the transaction was canceled: {}", codes.join(", ")))
}

fn fault<E: ProvideErrorMetadata>(error: &SdkError<E>) -> StoreFault {
    /// Parts of the codes of a 4xx that blames nobody.
    const PASSING: [&str; 4] = ["Throttl", "LimitExceeded", "ThroughputExceeded", "TransactionInProgress"];
    if let SdkError::ServiceError(service) = error
        && service.raw().status().is_client_error()
    {
        let code = service.err().code().unwrap_or_default();
        return if PASSING.iter().any(|part| code.contains(part)) { StoreFault::Passing } else { StoreFault::Lasting };
    }
    if matches!(error, SdkError::ConstructionFailure(_)) { StoreFault::Lasting } else { StoreFault::Passing }
}

fn failed<E>(operation: &'static str, error: SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    StoreError { operation, fault: fault(&error), source: Box::new(error) }
}

fn lasting(operation: &'static str, error: impl Error + Send + Sync + 'static) -> StoreError {
    lasting_box(operation, Box::new(error))
}

fn lasting_box(operation: &'static str, source: Box<dyn Error + Send + Sync>) -> StoreError {
    StoreError { operation, fault: StoreFault::Lasting, source }
}

fn not_a_row(error: ItemError) -> StoreError {
    lasting("reading an item", error)
}
