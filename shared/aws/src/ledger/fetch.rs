//! Consistent reads of many rows.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{KeysAndAttributes, ReturnConsumedCapacity};
use consumer::{Cost, FetchError};
use domain::{Key, Row, State, Table};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::items::{Item, TableNames, key_item, row};

/// Keys in a `BatchGetItem`, at most.
const KEYS_MAX: usize = 100;
/// Reads under way at the same time, at most.
const READS_AT_ONCE: usize = 8;
/// How often keys that were left unprocessed are asked for again.
const UNPROCESSED_RETRIES_MAX: u32 = 6;
/// Upper bound of the first wait before that; it doubles each time.
const UNPROCESSED_WAIT_MIN: Duration = Duration::from_millis(20);

pub(super) async fn fetch(
    client: &Client,
    tables: &TableNames,
    keys: &BTreeSet<Key>,
) -> Result<(State, Cost), FetchError> {
    let all: Vec<Key> = keys.iter().cloned().collect();
    let mut reads = Vec::new();
    for chunk in all.chunks(KEYS_MAX) {
        reads.push(read(client, tables, chunk));
    }
    let parts: Vec<(Vec<(Table, Item)>, Cost)> =
        stream::iter(reads).buffer_unordered(READS_AT_ONCE).try_collect().await?;
    // What is not there is a row too: absent, version 0.
    let mut state: State = keys.iter().map(|key| (key.clone(), Row::default())).collect();
    let mut cost = Cost::default();
    for (items, part_cost) in parts {
        cost += part_cost;
        for (table, item) in items {
            let key = item_key(table, &item);
            let (key, row) = row(table, item).map_err(|error| FetchError::NotARow { key, source: Box::new(error) })?;
            state.insert(key, row);
        }
    }
    Ok((state, cost))
}

async fn read(client: &Client, tables: &TableNames, keys: &[Key]) -> Result<(Vec<(Table, Item)>, Cost), FetchError> {
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
        for (name, found) in output.responses.unwrap_or_default() {
            let table = if name == tables.name(Table::Records) { Table::Records } else { Table::Views };
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
    Ok((items, cost))
}

fn request_items(tables: &TableNames, keys: &[Key]) -> Result<HashMap<String, KeysAndAttributes>, FetchError> {
    let mut wanted = HashMap::new();
    for table in [Table::Records, Table::Views] {
        let items: Vec<Item> = keys.iter().filter(|key| key.table == table).map(key_item).collect();
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
    Key { table, partition: part(crate::items::PARTITION_KEY), sort: part(crate::items::SORT_KEY) }
}
