//! Sizes of items as DynamoDB counts them.

use domain::Attributes;
use serde_json::Value;

/// Bytes that an item's keys, version and markers take beyond its attributes, at most.
const FRAME_BYTES: usize = 64;

/// Returns the size of an item with these keys and attributes in bytes, rounded up where DynamoDB's own count depends on
/// its storage ([Item sizes and formats](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html)).
pub fn item_bytes(partition: &str, sort: &str, attributes: &Attributes) -> usize {
    FRAME_BYTES + partition.len() + sort.len() + attributes_bytes(attributes)
}

fn attributes_bytes(attributes: &Attributes) -> usize {
    attributes.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 1,
        Value::Number(number) => number.to_string().len().div_ceil(2) + 2,
        Value::String(text) => text.len(),
        Value::Array(values) => 3 + values.iter().map(|value| 1 + value_bytes(value)).sum::<usize>(),
        Value::Object(attributes) => 3 + attributes.len() + attributes_bytes(attributes),
    }
}
