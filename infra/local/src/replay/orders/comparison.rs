//! Compares what the stack shows of orders with the accounts: every order, view, list and event stream, and the list of gaps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dynoxide::Database;
use serde_json::{Value, json};

use super::super::caller::Caller;
use super::super::client::{Client, ClientError, Jobs, run_all};
use super::super::comparison::{ComparisonError, scan};
use super::super::differences::Differences;
use super::account::Account;

/// Fields by name.
type Fields = BTreeMap<&'static str, Value>;

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Compared {
    /// Orders as the API shows them.
    pub(super) orders: usize,
    /// Events in orders' streams.
    pub(super) events: usize,
    /// Orders in the table of views.
    pub(super) rows: usize,
    /// Lines of players' lists.
    pub(super) lines: usize,
}

/// Compares everything.
///
/// # Errors
///
/// When the API or the table cannot be read.
pub(super) async fn compare(
    accounts: &[Account],
    client: &Client,
    database: &Database,
    views: &str,
    differences: &mut Differences,
) -> Result<Compared, ComparisonError> {
    let mut compared = Compared::default();
    let shown = read_orders(accounts, client).await?;
    for (account, shown) in accounts.iter().zip(&shown) {
        check(&format!("order {}", account.order_id), &expected(account), Some(&shown.order), differences);
        let events: Vec<(u64, &str)> = (1..).zip(account.events.iter().copied()).collect();
        let told: Vec<(u64, &str)> = shown.events.iter().map(stored).collect();
        differences.check(|| format!("events of {}", account.order_id), &events, &told);
        compared.orders += 1;
        compared.events += told.len();
    }
    compare_rows(accounts, &scan(database, views)?, differences, &mut compared);
    compare_lists(accounts, client, differences, &mut compared).await?;
    let gaps = pages(&client.of(&Caller::Operator)?, "/operations/gaps", "gaps", "after").await?;
    differences.check(|| "list of gaps".to_owned(), &Vec::new(), &gaps);
    Ok(compared)
}

/// An order as the API shows it.
#[derive(Debug, Clone, Default)]
struct Shown {
    order: Value,
    events: Vec<Value>,
}

/// Reads every order and its events, several at once.
async fn read_orders(accounts: &[Account], client: &Client) -> Result<Vec<Shown>, ClientError> {
    let shown: Arc<Mutex<Vec<Shown>>> = Arc::new(Mutex::new(vec![Shown::default(); accounts.len()]));
    let read = |number: usize| {
        let (client, shown) = (client.clone(), shown.clone());
        let path = format!("/orders/{}", accounts[number].order_id);
        let player_id = accounts[number].player_id.clone();
        async move {
            let client = client.of_player(&player_id)?;
            let order = client.get(&path).await?;
            let events = pages(&client, &format!("{path}/events"), "events", "after").await?;
            shown.lock().unwrap_or_else(PoisonError::into_inner)[number] = Shown { order, events };
            Ok(())
        }
    };
    run_all(Jobs::independent(accounts.len()), 0, read).await?;
    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(shown)
}

/// Reads a list page by page to its end; `parameter` is the one that the next page is asked for with.
async fn pages(client: &Client, path: &str, list: &str, parameter: &str) -> Result<Vec<Value>, ClientError> {
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let page = client.get(&format!("{path}{next}")).await?;
        items.extend(page[list].as_array().into_iter().flatten().cloned());
        next = match &page[format!("next_{parameter}")] {
            Value::String(text) => format!("?{parameter}={text}"),
            Value::Number(number) => format!("?{parameter}={number}"),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Ok(items),
        };
    }
}

/// What an order should be shown as, but for what the account does not know.
fn expected(account: &Account) -> Fields {
    let items = account
        .items
        .iter()
        .map(|item| json!({"sku": item.sku, "quantity": item.quantity, "unit_price_cents": item.unit_price_cents}));
    BTreeMap::from([
        ("order_id", json!(account.order_id)),
        ("player_id", json!(account.player_id)),
        ("status", json!(account.status.map(super::account::Status::as_str))),
        ("version", json!(account.version())),
        ("currency", json!(account.currency)),
        ("items", items.collect()),
        ("total_cents", json!(account.total_cents())),
        ("paid_cents", json!(account.paid_cents)),
        ("refunded_cents", json!(account.refunded_cents)),
    ])
}

/// What a line of a list should be, but for what the account does not know.
fn expected_line(account: &Account) -> Fields {
    let mut line = expected(account);
    line.retain(|name, _| ["order_id", "status", "version", "currency", "total_cents"].contains(name));
    line
}

/// Notes each field of something that is not as expected.
fn check(what: &str, expected: &Fields, shown: Option<&Value>, differences: &mut Differences) {
    let Some(shown) = shown else {
        return differences.note(format!("{what} is missing"));
    };
    for (name, value) in expected {
        differences.check(|| format!("{name} of {what}"), value, &shown[name]);
    }
}

/// Returns a stored event's version and type.
fn stored(stored: &Value) -> (u64, &str) {
    (stored["version"].as_u64().unwrap_or(0), stored["event"]["event_type"].as_str().unwrap_or_default())
}

fn compare_rows(accounts: &[Account], items: &[Value], differences: &mut Differences, compared: &mut Compared) {
    let text = |item: &Value, name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    let rows: BTreeMap<String, &Value> = items
        .iter()
        .filter(|item| text(item, "sk") == "ORDER")
        .map(|item| (text(item, "pk").trim_start_matches("ORDER#").to_owned(), item))
        .collect();
    differences.check(|| "orders in the views".to_owned(), &accounts.len(), &rows.len());
    for account in accounts {
        let row = rows.get(&account.order_id).map(|row| plain(row));
        check(&format!("the view of {}", account.order_id), &expected(account), row.as_ref(), differences);
        compared.rows += usize::from(row.is_some());
    }
}

/// Returns an item of DynamoDB as plain JSON.
fn plain(item: &Value) -> Value {
    let object = item.as_object().into_iter().flatten();
    object.map(|(name, value)| (name.clone(), plain_value(value))).collect()
}

fn plain_value(value: &Value) -> Value {
    let Some((kind, value)) = value.as_object().and_then(|object| object.iter().next()) else {
        return Value::Null;
    };
    match (kind.as_str(), value) {
        ("N", Value::String(digits)) => digits.parse::<u64>().map_or(Value::Null, Value::from),
        ("L", Value::Array(items)) => items.iter().map(plain_value).collect(),
        ("M", object) => plain(object),
        ("NULL", _) => Value::Null,
        (_, value) => value.clone(),
    }
}

async fn compare_lists(
    accounts: &[Account],
    client: &Client,
    differences: &mut Differences,
    compared: &mut Compared,
) -> Result<(), ClientError> {
    let mut by_player: BTreeMap<&str, BTreeMap<&str, &Account>> = BTreeMap::new();
    for account in accounts {
        by_player.entry(&account.player_id).or_default().insert(&account.order_id, account);
    }
    for (player, orders) in by_player {
        let client = client.of_player(&player)?;
        let lines = pages(&client, &format!("/players/{player}/orders"), "orders", "cursor").await?;
        differences.check(|| format!("length of the list of {player}"), &orders.len(), &lines.len());
        let shown: BTreeMap<&str, &Value> =
            lines.iter().map(|line| (line["order_id"].as_str().unwrap_or_default(), line)).collect();
        for (order_id, account) in orders {
            let line = shown.get(order_id).copied();
            check(&format!("the line of {order_id}"), &expected_line(account), line, differences);
        }
        compared.lines += lines.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_differs_is_named() {
        let expected = Fields::from([("status", json!("paid")), ("version", json!(2))]);
        let mut differences = Differences::default();
        check("order o", &expected, Some(&json!({"status": "paid", "version": 2, "more": 1})), &mut differences);
        assert!(differences.is_empty());
        check("order o", &expected, Some(&json!({"status": "paid", "version": 3})), &mut differences);
        check("order p", &expected, None, &mut differences);
        let text = differences.to_string();
        let lines: Vec<&str> = text.lines().collect();
        let version = "  version of order o: expected Number(2), found Number(3)";
        assert_eq!(lines, ["2 differences", version, "  order p is missing"]);
    }

    #[test]
    fn an_item_is_read_as_the_json_that_it_was_made_of() {
        let item = json!({
            "pk": {"S": "ORDER#o"}, "version": {"N": "3"}, "tracking_code": {"NULL": true},
            "items": {"L": [{"M": {"sku": {"S": "board"}, "quantity": {"N": "2"}}}]},
        });
        let expected = json!({
            "pk": "ORDER#o", "version": 3, "tracking_code": null, "items": [{"sku": "board", "quantity": 2}],
        });
        assert_eq!(plain(&item), expected);
    }
}
