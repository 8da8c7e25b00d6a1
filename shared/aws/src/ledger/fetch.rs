//! Consistent reads of many rows, by key and by range.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnConsumedCapacity};
use consumer::{Cost, FetchError};
use domain::{Key, Need, Range, Row, State, Table};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::items::{Item, PARTITION_KEY, SORT_KEY, TableNames, key_item, row};

/// Keys in a `BatchGetItem`, at most.
const KEYS_MAX: usize = 100;
/// Reads under way at the same time, at most.
const READS_AT_ONCE: usize = 8;
/// How often keys that were left unprocessed are asked for again.
const UNPROCESSED_RETRIES_MAX: u32 = 6;
/// Upper bound of the first wait before that; it doubles each time.
const UNPROCESSED_WAIT_MIN: Duration = Duration::from_millis(20);

/// What one read has found.
struct Part {
    range: Option<Range>,
    items: Vec<(Table, Item)>,
    cost: Cost,
}

pub(super) async fn fetch(
    client: &Client,
    tables: &TableNames,
    needs: &BTreeSet<Need>,
) -> Result<(State, Cost), FetchError> {
    let keys: Vec<&Key> = needs.iter().filter_map(key_of).collect();
    let mut reads: Vec<BoxFuture<'_, Result<Part, FetchError>>> = Vec::new();
    for chunk in keys.chunks(KEYS_MAX) {
        reads.push(Box::pin(read_keys(client, tables, chunk)));
    }
    for range in needs.iter().filter_map(range_of) {
        reads.push(Box::pin(read_range(client, tables, range)));
    }
    let parts: Vec<Part> = stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
    // What is not there is a row too: absent, version 0.
    let mut state: State = keys.iter().map(|key| ((*key).clone(), Row::default())).collect();
    let mut cost = Cost::default();
    for part in parts {
        cost += part.cost;
        let rows = part.items.into_iter().map(|(table, item)| {
            let key = item_key(table, &item);
            row(table, item).map_err(|error| FetchError::NotARow { key, source: Box::new(error) })
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        match part.range {
            Some(range) => state.insert_range(range, rows),
            None => rows.into_iter().for_each(|(key, row)| state.insert(key, row)),
        }
    }
    Ok((state, cost))
}

fn key_of(need: &Need) -> Option<&Key> {
    match need {
        Need::Key(key) => Some(key),
        Need::Range(_) => None,
    }
}

fn range_of(need: &Need) -> Option<&Range> {
    match need {
        Need::Key(_) => None,
        Need::Range(range) => Some(range),
    }
}

async fn read_keys(client: &Client, tables: &TableNames, keys: &[&Key]) -> Result<Part, FetchError> {
    let mut wanted = request_items(tables, keys)?;
    let mut items = Vec::with_capacity(keys.len());
    let mut cost = Cost::default();
    for retries in 0.. {
        let output = client
            .batch_get_item()
            .set_request_items(Some(wanted))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| FetchError::Unavailable(Box::new(error)))?;
        cost.calls += 1;
        cost.read_units +=
            output.consumed_capacity().iter().filter_map(|capacity| capacity.capacity_units).sum::<f64>();
        let mut responses = output.responses.unwrap_or_default();
        for table in Table::ALL {
            let found = responses.remove(tables.name(table)).unwrap_or_default();
            items.extend(found.into_iter().map(|item| (table, item)));
        }
        wanted = output.unprocessed_keys.unwrap_or_default();
        if wanted.is_empty() {
            break;
        }
        if retries == UNPROCESSED_RETRIES_MAX {
            return Err(FetchError::Unavailable("keys were left unprocessed time and again".into()));
        }
        let limit = u64::try_from(UNPROCESSED_WAIT_MIN.as_millis()).unwrap_or(20) << retries;
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..=limit))).await;
    }
    Ok(Part { range: None, items, cost })
}

/// Reads page after page until the range's limit or the partition's end.
async fn read_range(client: &Client, tables: &TableNames, range: &Range) -> Result<Part, FetchError> {
    let mut items: Vec<Item> = Vec::new();
    let mut cost = Cost::default();
    let mut start = None;
    while items.len() < range.limit {
        let query = client
            .query()
            .table_name(tables.name(range.table))
            .consistent_read(true)
            .limit(i32::try_from(range.limit - items.len()).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .expression_attribute_names("#p", PARTITION_KEY)
            .expression_attribute_values(":p", AttributeValue::S(range.partition.clone()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        // A key may not be empty, not even to be compared with.
        let query = if range.after.is_empty() {
            query.key_condition_expression("#p = :p")
        } else {
            query
                .key_condition_expression("#p = :p AND #s > :s")
                .expression_attribute_names("#s", SORT_KEY)
                .expression_attribute_values(":s", AttributeValue::S(range.after.clone()))
        };
        let page = query.send().await.map_err(|error| FetchError::Unavailable(Box::new(error)))?;
        cost.calls += 1;
        cost.read_units += page.consumed_capacity.and_then(|capacity| capacity.capacity_units).unwrap_or(0.0);
        items.extend(page.items.unwrap_or_default());
        start = page.last_evaluated_key.filter(|key| !key.is_empty());
        if start.is_none() {
            break;
        }
    }
    let items = items.into_iter().map(|item| (range.table, item)).collect();
    Ok(Part { range: Some(range.clone()), items, cost })
}

fn request_items(tables: &TableNames, keys: &[&Key]) -> Result<HashMap<String, KeysAndAttributes>, FetchError> {
    let mut wanted = HashMap::new();
    for table in Table::ALL {
        let items: Vec<Item> = keys.iter().filter(|key| key.table == table).map(|key| key_item(key)).collect();
        if items.is_empty() {
            continue;
        }
        let request = KeysAndAttributes::builder()
            .set_keys(Some(items))
            .consistent_read(true)
            .build()
            .map_err(|error| FetchError::Unavailable(Box::new(error)))?;
        wanted.insert(tables.name(table).to_owned(), request);
    }
    Ok(wanted)
}

fn item_key(table: Table, item: &Item) -> Key {
    let part = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
    Key { table, partition: part(PARTITION_KEY), sort: part(SORT_KEY) }
}
