//! The ledger on DynamoDB: plans become one conditional write or one transaction. Retries are the driver's; the client
//! must have none of its own.

mod answer;
mod fetch;
mod request;

use std::collections::BTreeSet;

use aws_sdk_dynamodb::Client;
use consumer::{Attempt, CommitError, Cost, FetchError, Ledger, Plan};
use domain::{Need, State};

use crate::items::TableNames;
pub use request::Request;

/// Claims, rows and counters in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoLedger {
    client: Client,
    tables: TableNames,
}

impl DynamoLedger {
    /// Makes a ledger of a client without retries and the tables' physical names.
    pub fn new(client: Client, tables: TableNames) -> Self {
        Self { client, tables }
    }
}

impl Ledger for DynamoLedger {
    type Request = Request;

    async fn fetch(&self, needs: &BTreeSet<Need>) -> Result<(State, Cost), FetchError> {
        fetch::fetch(&self.client, &self.tables, needs).await
    }

    fn prepare(&self, plan: &Plan) -> Result<Request, CommitError> {
        request::request(plan, &self.tables).map_err(|error| CommitError::Invalid { reason: error.to_string() })
    }

    async fn commit(&self, request: &Request, attempt: Attempt) -> Result<Cost, CommitError> {
        match request {
            Request::Put { put, key } => {
                let sent = self
                    .client
                    .put_item()
                    .table_name(put.table_name())
                    .set_item(Some(put.item().clone()))
                    .set_condition_expression(put.condition_expression().map(str::to_owned))
                    .set_expression_attribute_names(put.expression_attribute_names().cloned())
                    .set_expression_attribute_values(put.expression_attribute_values().cloned())
                    .return_values_on_condition_check_failure(request::ALL_OLD)
                    .return_consumed_capacity(request::CAPACITY)
                    .send()
                    .await;
                match sent {
                    Ok(output) => Ok(answer::cost(output.consumed_capacity.as_slice())),
                    Err(error) => answer::put_error(error, key, put.item(), attempt),
                }
            }
            Request::Update { update, key, source_version } => {
                let sent = self
                    .client
                    .update_item()
                    .table_name(update.table_name())
                    .set_key(Some(update.key().clone()))
                    .update_expression(update.update_expression())
                    .set_condition_expression(update.condition_expression().map(str::to_owned))
                    .set_expression_attribute_names(update.expression_attribute_names().cloned())
                    .set_expression_attribute_values(update.expression_attribute_values().cloned())
                    .return_values_on_condition_check_failure(request::ALL_OLD)
                    .return_consumed_capacity(request::CAPACITY)
                    .send()
                    .await;
                match sent {
                    Ok(output) => Ok(answer::cost(output.consumed_capacity.as_slice())),
                    Err(error) => answer::update_error(error, key, *source_version, attempt),
                }
            }
            Request::Transaction { items, token, refusals } => {
                let sent = self
                    .client
                    .transact_write_items()
                    .set_transact_items(Some(items.clone()))
                    .client_request_token(token)
                    .return_consumed_capacity(request::CAPACITY)
                    .send()
                    .await;
                match sent {
                    Ok(output) => Ok(answer::cost(output.consumed_capacity())),
                    Err(error) => Err(answer::transaction_error(error, refusals)),
                }
            }
        }
    }
}
