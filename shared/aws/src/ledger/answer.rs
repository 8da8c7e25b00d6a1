//! What DynamoDB's answers mean for a plan.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ConsumedCapacity;
use consumer::{Attempt, Busy, CommitError, Cost, Refusal};
use domain::Key;

use crate::items::{Item, SOURCE_VERSION, number};

const CONDITION: &str = "ConditionalCheckFailed";
const CONFLICT: &str = "TransactionConflict";
const THROTTLED: [&str; 2] = ["ThrottlingError", "ProvisionedThroughputExceeded"];
const INVALID: [&str; 2] = ["ValidationError", "ItemCollectionSizeLimitExceeded"];

/// Returns what a successful call spent.
pub(super) fn cost(capacity: &[ConsumedCapacity]) -> Cost {
    let tables = capacity.iter().filter_map(|entry| entry.table()?.capacity_units).sum();
    let indexes = capacity.iter().filter_map(|entry| entry.global_secondary_indexes()).flat_map(HashMap::values);
    let index_write_units = indexes.filter_map(|index| index.capacity_units).sum();
    Cost { calls: 1, read_units: 0.0, write_units: tables, index_write_units }
}

fn refused(refusals: Vec<Refusal>) -> CommitError {
    CommitError::Refused { refusals, cost: Cost { calls: 1, ..Cost::default() } }
}

/// A put that was refused when it was sent again, and finds the very item that it writes, has been carried out.
pub(super) fn put_error(
    error: SdkError<PutItemError>,
    key: &Key,
    item: &Item,
    attempt: Attempt,
) -> Result<Cost, CommitError> {
    if let Some(PutItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() {
        let own = attempt == Attempt::Again && failed.item() == Some(item);
        return own_success(own, key);
    }
    Err(other(error))
}

/// The same for an update: it has been carried out if the row has its source version.
pub(super) fn update_error(
    error: SdkError<UpdateItemError>,
    key: &Key,
    source_version: u64,
    attempt: Attempt,
) -> Result<Cost, CommitError> {
    if let Some(UpdateItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() {
        let standing = failed.item().and_then(|item| item.get(SOURCE_VERSION));
        let own = attempt == Attempt::Again && standing == Some(&number(source_version));
        return own_success(own, key);
    }
    Err(other(error))
}

fn own_success(own: bool, key: &Key) -> Result<Cost, CommitError> {
    if own { Ok(Cost { calls: 1, ..Cost::default() }) } else { Err(refused(vec![Refusal::Row(key.clone())])) }
}

/// Reads a cancelled transaction reason by reason.
pub(super) fn transaction_error(error: SdkError<TransactWriteItemsError>, refusals: &[Refusal]) -> CommitError {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
            let reasons = cancelled.cancellation_reasons();
            let codes: Vec<&str> = reasons.iter().map(|reason| reason.code().unwrap_or_default()).collect();
            let conditions: Vec<Refusal> = codes
                .iter()
                .zip(refusals)
                .filter(|(code, _)| **code == CONDITION)
                .map(|(_, refusal)| refusal.clone())
                .collect();
            // A condition that did not hold makes the decision void, whatever else went wrong beside it.
            if !conditions.is_empty() {
                return refused(conditions);
            }
            if let Some(invalid) = reasons.iter().find(|reason| INVALID.contains(&reason.code().unwrap_or_default())) {
                return CommitError::Invalid { reason: invalid.message().unwrap_or_default().to_owned() };
            }
            let busy = if codes.contains(&CONFLICT) {
                Busy::Conflict
            } else if codes.iter().any(|code| THROTTLED.contains(code)) {
                Busy::Throttled
            } else {
                Busy::NoAnswer
            };
            CommitError::Busy { busy, source: Some(Box::new(error)) }
        }
        // The token was used for something else: nothing is known of this plan.
        Some(TransactWriteItemsError::IdempotentParameterMismatchException(_)) => refused(Vec::new()),
        Some(_) | None => other(error),
    }
}

/// Everything that is no matter of conditions. What cannot be told to be final is tried again.
fn other<E>(error: SdkError<E>) -> CommitError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let busy = match error.as_service_error().and_then(ProvideErrorMetadata::code) {
        Some("ValidationException") => {
            let message = error.as_service_error().and_then(ProvideErrorMetadata::message).unwrap_or_default();
            return CommitError::Invalid { reason: message.to_owned() };
        }
        Some("TransactionConflictException") => Busy::Conflict,
        Some("ThrottlingException" | "ProvisionedThroughputExceededException" | "RequestLimitExceeded") => {
            Busy::Throttled
        }
        Some(_) | None => Busy::NoAnswer,
    };
    CommitError::Busy { busy, source: Some(Box::new(error)) }
}
