//! The message about a record whose event can never go out. It carries the whole stream record if that fits, and otherwise
//! what leads to it: the record itself stays in its table, where its keys find it.

use aws::publisher::{BATCH_BYTES_MAX, Message};
use events::encode_ascii;
use serde_json::{Value, json};

use crate::record::{event_field, sequence_number};

/// Characters of the reason, at most.
const REASON_LENGTH_MAX: usize = 2_000;
/// Characters of a record that fits in no other way, at most. Quoted and escaped they are 12 bytes each at worst.
const START_LENGTH_MAX: usize = 32_768;
/// Bytes of keys, at most; DynamoDB's own limits keep them below.
const KEYS_BYTES_MAX: usize = 65_536;

/// Makes the message about `record`: whole; without the old image; or, as the last resort, its keys, its position, its
/// event's id and the start of its text.
pub(crate) fn message(record: &Value, reason: &str) -> Message {
    let reason: String = reason.chars().take(REASON_LENGTH_MAX).collect();
    let whole = || json!({"reason": reason, "left_out": [], "record": record});
    let without_old_image = || {
        let mut record = record.clone();
        if let Some(Value::Object(change)) = record.get_mut("dynamodb") {
            change.remove("OldImage");
        }
        json!({"reason": reason, "left_out": ["dynamodb.OldImage"], "record": record})
    };
    let bodies: [&dyn Fn() -> Value; 2] = [&whole, &without_old_image];
    let messages = bodies.into_iter().map(|body| of_body(&body()));
    let mut fitting = messages.filter(|message| message.bytes() <= BATCH_BYTES_MAX);
    fitting.next().unwrap_or_else(|| of_body(&what_leads_there(record, &reason)))
}

fn of_body(body: &Value) -> Message {
    Message { body: encode_ascii(body), attributes: Vec::new(), fifo: None }
}

fn what_leads_there(record: &Value, reason: &str) -> Value {
    let keys = record.pointer("/dynamodb/Keys").filter(|keys| encode_ascii(keys).len() <= KEYS_BYTES_MAX);
    let short = |text: Option<&str>| text.map(|text| text.chars().take(REASON_LENGTH_MAX).collect::<String>());
    json!({
        "reason": reason,
        "left_out": ["record"],
        "keys": keys,
        "sequence_number": short(sequence_number(record)),
        "event_id": short(event_field(record, "event_id")),
        "event_type": short(event_field(record, "event_type")),
        "record_start": record.to_string().chars().take(START_LENGTH_MAX).collect::<String>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(old_bytes: usize, new_bytes: usize) -> Value {
        json!({
            "eventName": "MODIFY",
            "dynamodb": {
                "Keys": {"pk": {"S": "GAME#g"}, "sk": {"S": "GAME"}},
                "SequenceNumber": "7",
                "OldImage": {"data": {"S": "o".repeat(old_bytes)}},
                "NewImage": {"data": {"S": "ü".repeat(new_bytes)}, "event": {"M": {"event_id": {"S": "e-1"}}}},
            },
        })
    }

    fn body(record: &Value) -> Value {
        let message = message(record, "because");
        assert!(message.bytes() <= BATCH_BYTES_MAX, "{}", message.bytes());
        assert!(message.body.is_ascii());
        serde_json::from_str(&message.body).unwrap()
    }

    #[test]
    fn a_record_that_fits_is_carried_whole() {
        let record = record(1_000, 1_000);
        assert_eq!(body(&record), json!({"reason": "because", "left_out": [], "record": record}));
    }

    #[test]
    fn the_old_image_is_the_first_to_be_left_out() {
        let record = record(700_000, 100_000);
        let body = body(&record);
        assert_eq!(body["left_out"], json!(["dynamodb.OldImage"]));
        assert_eq!(body["record"]["dynamodb"]["OldImage"], Value::Null);
        assert_eq!(body["record"]["dynamodb"]["NewImage"], record["dynamodb"]["NewImage"]);
    }

    #[test]
    fn a_record_too_big_for_any_message_leaves_its_keys() {
        let body = body(&record(10, 200_000));
        assert_eq!(body["keys"], json!({"pk": {"S": "GAME#g"}, "sk": {"S": "GAME"}}));
        assert_eq!((&body["sequence_number"], &body["event_id"]), (&json!("7"), &json!("e-1")));
    }

    #[test]
    fn even_a_foreign_record_fits() {
        for foreign in [json!("\u{1}".repeat(2_000_000)), json!({"dynamodb": {"Keys": "k".repeat(2_000_000)}})] {
            assert_eq!(body(&foreign)["reason"], "because");
        }
        let reason = "r".repeat(1_000_000);
        assert!(message(&json!({}), &reason).bytes() < 3_000);
    }
}
