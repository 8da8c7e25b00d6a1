//! Plans as DynamoDB requests. Built once a plan and sent again as they are.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Put, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use consumer::{Claim, Conditions, Operation, Plan, Refusal};
use domain::leaderboard::{ORDER_BLOCK, ORDER_RANK};
use domain::{Attributes, Content, Deltas, Key};
use thiserror::Error;

use crate::items::{
    EXPIRES_AT, Item, ItemError, PARTITION_KEY, REMOVED, SORT_KEY, SOURCE_VERSION, TableNames, item, key_item, number,
    version_attribute,
};

pub(super) const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;
pub(super) const CAPACITY: ReturnConsumedCapacity = ReturnConsumedCapacity::Indexes;

/// Attributes that put a row into an index. A tombstone has none of them.
const INDEX_ATTRIBUTES: [&str; 2] = [ORDER_BLOCK, ORDER_RANK];

/// A plan as DynamoDB takes it.
#[derive(Debug, Clone)]
pub enum Request {
    /// One row, written over whatever was read.
    Put {
        /// The write.
        put: Put,
        /// Which row.
        key: Key,
    },
    /// One row, laid over what nobody has read.
    Update {
        /// The write.
        update: Update,
        /// Which row.
        key: Key,
        /// The source version that the row gets.
        source_version: u64,
    },
    /// Several items, all or none.
    Transaction {
        /// The items.
        items: Vec<TransactWriteItem>,
        /// The idempotency token.
        token: String,
        /// What it means if the item at the same position is refused.
        refusals: Vec<Refusal>,
    },
}

/// Why a plan is no request.
#[derive(Debug, Error)]
pub(super) enum RequestError {
    /// An item does not convert.
    #[error("an item cannot be written")]
    Item(#[from] ItemError),
    /// The SDK wants a member that is not there.
    #[error("a request cannot be built")]
    Build(#[from] BuildError),
}

pub(super) fn request(plan: &Plan, tables: &TableNames) -> Result<Request, RequestError> {
    if let Some((key, operation)) = plan.lone_write() {
        return match write(key, operation, tables)? {
            Written::Put(put) => Ok(Request::Put { put, key: key.clone() }),
            Written::Update(update, source_version) => Ok(Request::Update { update, key: key.clone(), source_version }),
            Written::Check(check) => {
                transaction(vec![(in_transaction(Written::Check(check)), Refusal::Row(key.clone()))], plan)
            }
        };
    }
    let mut items = Vec::with_capacity(plan.items());
    for claim in plan.claims() {
        let item = TransactWriteItem::builder().put(claim_put(claim, &tables.ledger)?).build();
        items.push((item, Refusal::Claimed(claim.event_id)));
    }
    for (key, operation) in plan.operations() {
        items.push((in_transaction(write(key, operation, tables)?), Refusal::Row(key.clone())));
    }
    transaction(items, plan)
}

fn transaction(items: Vec<(TransactWriteItem, Refusal)>, plan: &Plan) -> Result<Request, RequestError> {
    let (items, refusals) = items.into_iter().unzip();
    Ok(Request::Transaction { items, token: format!("{:032x}", plan.token()), refusals })
}

enum Written {
    Put(Put),
    /// With the source version that the row gets.
    Update(Update, u64),
    Check(ConditionCheck),
}

fn in_transaction(written: Written) -> TransactWriteItem {
    let item = TransactWriteItem::builder();
    match written {
        Written::Put(put) => item.put(put),
        Written::Update(update, _) => item.update(update),
        Written::Check(check) => item.condition_check(check),
    }
    .build()
}

fn write(key: &Key, operation: &Operation, tables: &TableNames) -> Result<Written, RequestError> {
    match operation {
        Operation::Create(attributes) => put(key, 1, attributes.clone(), None, tables),
        Operation::Replace { content, conditions: Conditions { unchanged: Some(version), newer } } => {
            put_over(key, *version, *newer, content, tables)
        }
        Operation::Replace { content, conditions: Conditions { unchanged: None, newer } } => {
            lay_over(key, newer.unwrap_or(0), content, tables)
        }
        Operation::Add(deltas) => add(key, deltas, tables),
        Operation::Check(version) => check(key, *version, tables),
    }
}

fn claim_put(claim: &Claim, ledger_table: &str) -> Result<Put, RequestError> {
    let partition = format!("CLAIM#{}#{}", claim.consumer, claim.event_id);
    let item = Item::from([
        (PARTITION_KEY.to_owned(), AttributeValue::S(partition)),
        (SORT_KEY.to_owned(), AttributeValue::S("CLAIM".to_owned())),
        (EXPIRES_AT.to_owned(), number(claim.expires_at.as_seconds())),
    ]);
    let mut expression = Expression::default();
    let absent = expression.absent(PARTITION_KEY);
    Ok(expression.into_put(ledger_table, item, &absent).build()?)
}

/// A row where there has never been one.
fn put(
    key: &Key,
    version: u64,
    attributes: Attributes,
    source_version: Option<u64>,
    tables: &TableNames,
) -> Result<Written, RequestError> {
    let mut expression = Expression::default();
    let absent = expression.absent(PARTITION_KEY);
    let item = row_item(key, version, &Content::Row(attributes), source_version)?;
    Ok(Written::Put(expression.into_put(tables.name(key.table), item, &absent).build()?))
}

/// A row in the place of the one that was read.
fn put_over(
    key: &Key,
    version: u64,
    newer: Option<u64>,
    content: &Content,
    tables: &TableNames,
) -> Result<Written, RequestError> {
    let mut expression = Expression::default();
    let unchanged = expression.version_is(key, version);
    let source = match newer {
        Some(source_version) => expression.older_than(source_version),
        None => expression.absent(SOURCE_VERSION),
    };
    let item = row_item(key, version + 1, content, newer)?;
    let condition = format!("{unchanged} AND {source}");
    Ok(Written::Put(expression.into_put(tables.name(key.table), item, &condition).build()?))
}

/// A row over one that nobody has read, provided that it is newer.
fn lay_over(key: &Key, source_version: u64, content: &Content, tables: &TableNames) -> Result<Written, RequestError> {
    let mut expression = Expression::default();
    let condition = expression.older_than(source_version);
    let (mut set, mut remove) = (Vec::new(), Vec::new());
    let version = expression.name(version_attribute(key.table));
    let (zero, one) = (expression.value(number(0)), expression.value(number(1)));
    set.push(format!("{version} = if_not_exists({version}, {zero}) + {one}"));
    set.push(expression.assignment(SOURCE_VERSION, number(source_version)));
    match content {
        Content::Row(attributes) => {
            remove.push(expression.name(REMOVED));
            for (name, value) in attributes {
                if value.is_null() {
                    remove.push(expression.name(name));
                } else {
                    let value = serde_dynamo::to_attribute_value(value)
                        .map_err(|source| ItemError::Conversion { item: key.to_string(), source })?;
                    set.push(expression.assignment(name, value));
                }
            }
        }
        Content::Tombstone => {
            set.push(expression.assignment(REMOVED, AttributeValue::Bool(true)));
            remove.extend(INDEX_ATTRIBUTES.map(|name| expression.name(name)));
        }
    }
    let mut update = format!("SET {}", set.join(", "));
    if !remove.is_empty() {
        update.push_str(&format!(" REMOVE {}", remove.join(", ")));
    }
    let update =
        expression.into_update(tables.name(key.table), key, &update).condition_expression(condition).build()?;
    Ok(Written::Update(update, source_version))
}

fn add(key: &Key, deltas: &Deltas, tables: &TableNames) -> Result<Written, RequestError> {
    let mut expression = Expression::default();
    let mut additions = Vec::with_capacity(deltas.len() + 1);
    let counters = deltas.iter().map(|(name, delta)| (name.as_str(), *delta));
    for (name, delta) in counters.chain([(version_attribute(key.table), 1)]) {
        additions.push(format!("{} {}", expression.name(name), expression.value(number(delta))));
    }
    let update = format!("ADD {}", additions.join(", "));
    Ok(Written::Update(expression.into_update(tables.name(key.table), key, &update).build()?, 0))
}

fn check(key: &Key, version: u64, tables: &TableNames) -> Result<Written, RequestError> {
    let mut expression = Expression::default();
    let condition = expression.version_is(key, version);
    let check = ConditionCheck::builder()
        .table_name(tables.name(key.table))
        .set_key(Some(key_item(key)))
        .condition_expression(condition)
        .set_expression_attribute_names(Some(expression.names))
        .set_expression_attribute_values(Some(expression.values).filter(|values| !values.is_empty()))
        .build()?;
    Ok(Written::Check(check))
}

fn row_item(key: &Key, version: u64, content: &Content, source_version: Option<u64>) -> Result<Item, ItemError> {
    let mut item = match content {
        Content::Row(attributes) => {
            let mut attributes = attributes.clone();
            attributes.retain(|_, value| !value.is_null());
            item(key, version, attributes)?
        }
        Content::Tombstone => {
            let mut item = item(key, version, Attributes::new())?;
            item.insert(REMOVED.to_owned(), AttributeValue::Bool(true));
            item
        }
    };
    if let Some(source_version) = source_version {
        item.insert(SOURCE_VERSION.to_owned(), number(source_version));
    }
    Ok(item)
}

/// Names and values of an expression, by placeholder.
#[derive(Default)]
struct Expression {
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Expression {
    fn name(&mut self, name: &str) -> String {
        let known = self.names.iter().find(|(_, known)| *known == name).map(|(placeholder, _)| placeholder.clone());
        known.unwrap_or_else(|| {
            let placeholder = format!("#n{}", self.names.len());
            self.names.insert(placeholder.clone(), name.to_owned());
            placeholder
        })
    }

    fn value(&mut self, value: AttributeValue) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    fn assignment(&mut self, name: &str, value: AttributeValue) -> String {
        format!("{} = {}", self.name(name), self.value(value))
    }

    fn absent(&mut self, name: &str) -> String {
        format!("attribute_not_exists({})", self.name(name))
    }

    fn version_is(&mut self, key: &Key, version: u64) -> String {
        if version == 0 {
            return self.absent(PARTITION_KEY);
        }
        format!("{} = {}", self.name(version_attribute(key.table)), self.value(number(version)))
    }

    fn older_than(&mut self, source_version: u64) -> String {
        let name = self.name(SOURCE_VERSION);
        format!("(attribute_not_exists({name}) OR {name} < {})", self.value(number(source_version)))
    }

    fn into_put(self, table: &str, item: Item, condition: &str) -> aws_sdk_dynamodb::types::builders::PutBuilder {
        Put::builder()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(self.names))
            .set_expression_attribute_values(Some(self.values).filter(|values| !values.is_empty()))
    }

    fn into_update(self, table: &str, key: &Key, update: &str) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        Update::builder()
            .table_name(table)
            .set_key(Some(key_item(key)))
            .update_expression(update)
            .set_expression_attribute_names(Some(self.names))
            .set_expression_attribute_values(Some(self.values).filter(|values| !values.is_empty()))
    }
}
