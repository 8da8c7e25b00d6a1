//! What IAM asks for a request: actions, each on a resource. A request with several items needs what each of them does.
//!
//! See <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html> and
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html>.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lambda::{ACCOUNT_ID, REGION};

/// A resource that the request does not name.
const ANY: &str = "*";
/// What a transaction's item may be, each with the action that it needs.
const TRANSACTION_ITEMS: [(&str, &str); 5] = [
    ("Put", "PutItem"),
    ("Update", "UpdateItem"),
    ("Delete", "DeleteItem"),
    ("ConditionCheck", "ConditionCheckItem"),
    ("Get", "GetItem"),
];

/// An action on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// Service and action, such as `dynamodb:PutItem`.
    pub action: String,
    /// ARN, or `*`.
    pub resource: String,
}

/// Returns what a request needs: `target` is its header `X-Amz-Target`. An operation that is not known needs itself, on
/// everything: whoever compares will not find it allowed.
pub fn permissions(target: &str, body: &Value) -> BTreeSet<Permission> {
    match target.split_once('.') {
        Some(("AmazonSQS", operation)) => sqs(operation, body),
        Some((service, operation)) if service.starts_with("DynamoDB_") => dynamodb(operation, body),
        Some(_) | None => BTreeSet::from([Permission { action: target.to_owned(), resource: ANY.to_owned() }]),
    }
}

fn dynamodb(operation: &str, body: &Value) -> BTreeSet<Permission> {
    let permission = |action: &str, resource| Permission { action: format!("dynamodb:{action}"), resource };
    match operation {
        "TransactWriteItems" | "TransactGetItems" => {
            let items = body["TransactItems"].as_array().into_iter().flatten();
            let actions = items.flat_map(|item| {
                TRANSACTION_ITEMS.iter().filter_map(|(kind, action)| Some((*action, item.get(kind)?)))
            });
            actions.map(|(action, item)| permission(action, table(item))).collect()
        }
        "BatchGetItem" | "BatchWriteItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            tables.map(|(name, _)| permission(operation, table_arn(name))).collect()
        }
        _ => BTreeSet::from([permission(operation, table(body))]),
    }
}

/// Returns the ARN of the table, or the index, that a request or an item of one names.
fn table(request: &Value) -> String {
    match (request["TableName"].as_str(), request["IndexName"].as_str()) {
        (Some(table), Some(index)) => format!("{}/index/{index}", table_arn(table)),
        (Some(table), None) => table_arn(table),
        (None, _) => ANY.to_owned(),
    }
}

fn table_arn(name: &str) -> String {
    format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{name}")
}

fn sqs(operation: &str, body: &Value) -> BTreeSet<Permission> {
    // The permission for a call covers its batches.
    let action = format!("sqs:{}", operation.strip_suffix("Batch").unwrap_or(operation));
    let queue = body["QueueUrl"].as_str().and_then(|url| url.rsplit('/').next());
    let resource = queue.map_or_else(|| ANY.to_owned(), |queue| format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{queue}"));
    BTreeSet::from([Permission { action, resource }])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(target: &str, body: &Value, expected: &[(&str, &str)]) {
        let found = permissions(target, body);
        let found: Vec<(&str, &str)> = found.iter().map(|it| (it.action.as_str(), it.resource.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_transaction_needs_what_its_items_need() {
        let body = json!({"TransactItems": [
            {"Put": {"TableName": "views"}},
            {"Put": {"TableName": "views"}},
            {"Update": {"TableName": "views"}},
            {"ConditionCheck": {"TableName": "records"}},
        ]});
        let views = "arn:aws:dynamodb:us-east-1:000000000000:table/views";
        let records = "arn:aws:dynamodb:us-east-1:000000000000:table/records";
        let expected =
            [("dynamodb:ConditionCheckItem", records), ("dynamodb:PutItem", views), ("dynamodb:UpdateItem", views)];
        check("DynamoDB_20120810.TransactWriteItems", &body, &expected);
    }

    #[test]
    fn a_query_on_an_index_needs_the_index() {
        let body = json!({"TableName": "views", "IndexName": "order"});
        let index = "arn:aws:dynamodb:us-east-1:000000000000:table/views/index/order";
        check("DynamoDB_20120810.Query", &body, &[("dynamodb:Query", index)]);
    }

    #[test]
    fn a_batch_needs_itself_on_each_table_and_is_no_action_of_a_queue() {
        let body = json!({"RequestItems": {"a": {}, "b": {}}});
        let arn = |name: &str| format!("arn:aws:dynamodb:us-east-1:000000000000:table/{name}");
        let expected = [("dynamodb:BatchGetItem", arn("a")), ("dynamodb:BatchGetItem", arn("b"))];
        let expected = expected.each_ref().map(|(action, resource)| (*action, resource.as_str()));
        check("DynamoDB_20120810.BatchGetItem", &body, &expected);
        let body = json!({"QueueUrl": "http://127.0.0.1:9324/000000000000/work"});
        let queue = "arn:aws:sqs:us-east-1:000000000000:work";
        check("AmazonSQS.SendMessageBatch", &body, &[("sqs:SendMessage", queue)]);
    }

    #[test]
    fn what_is_not_known_needs_itself_on_everything() {
        check("Other.Call", &json!({}), &[("Other.Call", "*")]);
        check("DynamoDB_20120810.ListTables", &json!({}), &[("dynamodb:ListTables", "*")]);
    }
}
