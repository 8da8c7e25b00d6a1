//! What a message may hold: characters, attributes and size, as SQS documents them for `SendMessage`.

use std::time::Duration;

use crate::digest::text_sha256;
use crate::error::Error;
use crate::limits;
use crate::message::{AttributeValue, MessageAttribute, SendRequest};
use crate::name::QueueKind;
use crate::settings::{FifoSettings, Settings};

impl SendRequest {
    /// Returns the size in bytes that SQS counts: the body, and the name, type and value of every attribute.
    pub fn bytes(&self) -> usize {
        let attribute = |(name, attribute): (&String, &MessageAttribute)| {
            name.len() + attribute.data_type.len() + value_bytes(&attribute.value)
        };
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }
}

/// Checks a message against the rules of SQS and its queue's settings, and returns the id that it is deduplicated by, if it is.
///
/// # Errors
/// The first rule that the message breaks.
pub(crate) fn check(request: &SendRequest, settings: &Settings) -> Result<Option<String>, Error> {
    if request.body.is_empty() {
        return Err(Error::MissingBody);
    }
    check_delay(request)?;
    check_id("MessageGroupId", request.group_id.as_deref(), limits::GROUP_ID_CHARACTERS_MAX)?;
    let deduplication_id = match &settings.fifo {
        Some(fifo) => Some(check_fifo(request, fifo)?),
        None => check_standard(request).map(|()| None)?,
    };
    check_attributes(request)?;
    check_characters(&request.body, || "the message body".to_owned())?;
    let (bytes, limit_bytes) = (request.bytes(), settings.message_bytes_max);
    if bytes > limit_bytes {
        return Err(Error::MessageTooLong { bytes, limit_bytes });
    }
    Ok(deduplication_id)
}

/// Checks the id of an attempt to receive.
///
/// # Errors
/// [`Error::NotForQueueType`]; [`Error::InvalidParameter`].
pub(crate) fn check_attempt(id: &str, kind: QueueKind) -> Result<(), Error> {
    const PARAMETER: &str = "ReceiveRequestAttemptId";
    match kind {
        QueueKind::Standard => Err(Error::NotForQueueType { parameter: PARAMETER, value: id.to_owned() }),
        QueueKind::Fifo => check_id(PARAMETER, Some(id), limits::DEDUPLICATION_ID_CHARACTERS_MAX),
    }
}

fn check_standard(request: &SendRequest) -> Result<(), Error> {
    match &request.deduplication_id {
        Some(id) => Err(Error::NotForQueueType { parameter: "MessageDeduplicationId", value: id.clone() }),
        None => Ok(()),
    }
}

/// Checks what a FIFO queue asks for, and returns the message's deduplication id: its own, or that of its content.
fn check_fifo(request: &SendRequest, settings: &FifoSettings) -> Result<String, Error> {
    // A delay of 0 says nothing that would not be so anyway, and SQS takes it.
    if let Some(delay) = request.delay.filter(|delay| !delay.is_zero()) {
        return Err(Error::NotForQueueType { parameter: "DelaySeconds", value: delay.as_secs().to_string() });
    }
    if request.group_id.is_none() {
        return Err(Error::MissingGroupId);
    }
    let given = request.deduplication_id.as_deref();
    check_id("MessageDeduplicationId", given, limits::DEDUPLICATION_ID_CHARACTERS_MAX)?;
    match given {
        Some(id) => Ok(id.to_owned()),
        None if settings.content_based_deduplication => Ok(text_sha256(&request.body)),
        None => Err(Error::MissingDeduplicationId),
    }
}

fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::Text(text) => text.len(),
        AttributeValue::Binary(bytes) => bytes.len(),
    }
}

fn check_delay(request: &SendRequest) -> Result<(), Error> {
    match request.delay {
        Some(delay) if delay > Duration::from_secs(*limits::DELAY_SECONDS.end()) => Err(Error::InvalidParameter {
            parameter: "DelaySeconds",
            value: delay.as_secs().to_string(),
            reason: format!("DelaySeconds must be >= 0 and <= {}", limits::DELAY_SECONDS.end()),
        }),
        Some(_) | None => Ok(()),
    }
}

fn check_id(parameter: &'static str, id: Option<&str>, characters_max: usize) -> Result<(), Error> {
    let Some(id) = id else { return Ok(()) };
    if (1..=characters_max).contains(&id.len()) && id.chars().all(|character| character.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        parameter,
        value: id.to_owned(),
        reason: format!(
            "{parameter} can only include alphanumeric and punctuation characters. 1 to {characters_max} in length"
        ),
    })
}

fn check_attributes(request: &SendRequest) -> Result<(), Error> {
    if request.attributes.len() > limits::MESSAGE_ATTRIBUTES_MAX {
        return Err(Error::InvalidParameter {
            parameter: "MessageAttributes",
            value: request.attributes.len().to_string(),
            reason: format!("A message has at most {} attributes", limits::MESSAGE_ATTRIBUTES_MAX),
        });
    }
    for (name, attribute) in &request.attributes {
        let refuse =
            |reason: &str| Error::InvalidMessageAttribute { attribute: name.clone(), reason: reason.to_owned() };
        check_attribute_name(name).map_err(refuse)?;
        check_attribute_value(attribute).map_err(refuse)?;
        if let AttributeValue::Text(text) = &attribute.value {
            check_characters(text, || format!("the message attribute {name}"))?;
        }
    }
    Ok(())
}

fn check_attribute_name(name: &str) -> Result<(), &'static str> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > limits::MESSAGE_ATTRIBUTE_NAME_CHARACTERS_MAX {
        Err("Its name must have 1 to 256 characters")
    } else if !name.chars().all(allowed) {
        Err("Its name can have letters, digits, hyphens, underscores and periods")
    } else if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        Err("Its name can neither start or end with a period nor have two in a row")
    } else if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        Err("Its name can't start with AWS. or Amazon.")
    } else {
        Ok(())
    }
}

fn check_attribute_value(attribute: &MessageAttribute) -> Result<(), &'static str> {
    if attribute.data_type.len() > limits::MESSAGE_ATTRIBUTE_NAME_CHARACTERS_MAX {
        return Err("Its type must have 1 to 256 characters");
    }
    let kind = attribute.data_type.split_once('.').map_or(attribute.data_type.as_str(), |(kind, _label)| kind);
    let expected_bytes = value_bytes(&attribute.value);
    match (kind, &attribute.value) {
        ("String" | "Number" | "Binary", _) if expected_bytes == 0 => Err("Its value must not be empty"),
        ("Number", AttributeValue::Text(text)) if !text.parse::<f64>().is_ok_and(f64::is_finite) => {
            Err("Its value can't be cast to a number")
        }
        ("String" | "Number", AttributeValue::Text(_)) | ("Binary", AttributeValue::Binary(_)) => Ok(()),
        ("String" | "Number", AttributeValue::Binary(_)) => Err("Its type asks for a StringValue"),
        ("Binary", AttributeValue::Text(_)) => Err("Its type asks for a BinaryValue"),
        (_, AttributeValue::Text(_) | AttributeValue::Binary(_)) => {
            Err("Its type must be String, Number or Binary, with an optional label after a period")
        }
    }
}

fn check_characters(text: &str, field: impl Fn() -> String) -> Result<(), Error> {
    // #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF; a Rust string has no surrogates.
    let refused = |character: char| {
        (character < ' ' && !matches!(character, '\t' | '\n' | '\r')) || matches!(character, '\u{FFFE}' | '\u{FFFF}')
    };
    match text.char_indices().find(|(_, character)| refused(*character)) {
        Some((at, character)) => Err(Error::InvalidCharacter { field: field(), character: character.into(), at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn attribute(name: &str, data_type: &str, value: AttributeValue) -> SendRequest {
        let mut request = SendRequest::from_body("x");
        request.attributes.insert(name.to_owned(), MessageAttribute { data_type: data_type.to_owned(), value });
        request
    }

    fn text(value: &str) -> AttributeValue {
        AttributeValue::Text(value.to_owned())
    }

    fn up_to(message_bytes_max: usize) -> Settings {
        Settings { message_bytes_max, ..Settings::default() }
    }

    fn code(request: &SendRequest) -> Option<ErrorCode> {
        check(request, &Settings::default()).err().map(|error| error.code())
    }

    #[test]
    fn a_body_holds_the_characters_of_xml_and_no_others() {
        for body in ["\t\n\r ~", "\u{D7FF}\u{E000}\u{FFFD}\u{10000}\u{10FFFF}", "{\"a\":1}"] {
            assert_eq!(code(&SendRequest::from_body(body)), None, "{body:?}");
        }
        for body in ["a\0", "\u{8}", "\u{b}", "\u{1f}", "\u{FFFE}", "\u{FFFF}"] {
            assert_eq!(code(&SendRequest::from_body(body)), Some(ErrorCode::InvalidMessageContents), "{body:?}");
        }
        assert_eq!(
            check(&SendRequest::from_body("é\u{1}"), &up_to(9)),
            Err(Error::InvalidCharacter { field: "the message body".into(), character: 1, at: 2 })
        );
    }

    #[test]
    fn a_message_without_a_body_is_refused() {
        assert_eq!(code(&SendRequest::from_body("")), Some(ErrorCode::MissingParameter));
    }

    #[test]
    fn size_counts_body_and_attributes() {
        let mut request = attribute("name", "String", text("value"));
        assert_eq!(request.bytes(), 1 + 4 + 6 + 5);
        request.trace_header = Some("Root=1-5-a".into());
        assert_eq!((request.bytes(), check(&request, &up_to(16))), (16, Ok(None)));
        assert_eq!(check(&request, &up_to(15)), Err(Error::MessageTooLong { bytes: 16, limit_bytes: 15 }));
    }

    #[test]
    fn an_attribute_that_follows_the_rules_is_taken() {
        for (name, data_type, value) in [
            ("a", "String", text("x")),
            ("a.b-c_D9", "String.label", text("x")),
            ("awsome", "Number", text("-1.5e3")),
            ("n", "Number.int", text("12345678901234567890123456789012345678")),
            (&"n".repeat(256), "Binary.gif", AttributeValue::Binary(vec![0])),
        ] {
            assert_eq!(check(&attribute(name, data_type, value), &up_to(2_000)), Ok(None), "{name} {data_type}");
        }
    }

    #[test]
    fn an_attribute_that_breaks_a_rule_is_refused_by_its_name() {
        let binary = || AttributeValue::Binary(vec![1]);
        for (name, data_type, value) in [
            ("", "String", text("x")),
            (".a", "String", text("x")),
            ("a.", "String", text("x")),
            ("a..b", "String", text("x")),
            ("a b", "String", text("x")),
            ("AWS.a", "String", text("x")),
            ("amazon.a", "String", text("x")),
            (&"n".repeat(257), "String", text("x")),
            ("a", "", text("x")),
            ("a", "string", text("x")),
            ("a", "Text", text("x")),
            ("a", &format!("String.{}", "l".repeat(256)), text("x")),
            ("a", "String", text("")),
            ("a", "String", binary()),
            ("a", "Number", text("one")),
            ("a", "Number", text("NaN")),
            ("a", "Number", binary()),
            ("a", "Binary", text("x")),
            ("a", "Binary", AttributeValue::Binary(vec![])),
        ] {
            let refused = check(&attribute(name, data_type, value), &up_to(2_000));
            assert!(
                matches!(&refused, Err(Error::InvalidMessageAttribute { attribute, .. }) if attribute == name),
                "{name:?} {data_type:?} {refused:?}"
            );
        }
    }

    #[test]
    fn an_attributes_text_has_the_characters_of_a_body() {
        assert_eq!(code(&attribute("a", "String", text("\0"))), Some(ErrorCode::InvalidMessageContents));
    }

    #[test]
    fn a_message_has_ten_attributes_at_most() {
        let mut request = SendRequest::from_body("x");
        for number in 0..11 {
            assert_eq!(code(&request), None, "{number}");
            let attribute = MessageAttribute { data_type: "String".into(), value: text("x") };
            request.attributes.insert(format!("a{number}"), attribute);
        }
        assert_eq!(code(&request), Some(ErrorCode::InvalidParameterValue));
    }

    #[test]
    fn a_delay_is_15_minutes_at_most() {
        let delayed =
            |seconds| SendRequest { delay: Some(Duration::from_secs(seconds)), ..SendRequest::from_body("x") };
        assert_eq!(code(&delayed(900)), None);
        assert_eq!(code(&delayed(901)), Some(ErrorCode::InvalidParameterValue));
    }

    #[test]
    fn a_group_id_has_128_printable_characters_at_most() {
        let grouped = |id: &str| SendRequest { group_id: Some(id.to_owned()), ..SendRequest::from_body("x") };
        assert_eq!(code(&grouped(&"~".repeat(128))), None);
        for id in ["", "a b", "é", &"a".repeat(129)] {
            assert_eq!(code(&grouped(id)), Some(ErrorCode::InvalidParameterValue), "{id:?}");
        }
    }
}
