//! Parts of requests and answers that several operations share: reading JSON with the field's name in every error,
//! queue URLs, numbers, pages and message attributes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use queue::{AttributeValue, MessageAttribute, MessageAttributes, QueueName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Broker;
use super::fault::Fault;

/// An operation's answer: the JSON body.
pub(super) type Answer = Result<Vec<u8>, Fault>;

/// Most entries of a page, and how many come without being asked for.
const PAGE_ENTRIES_MAX: usize = 1_000;

/// The answer of an operation that has nothing to say.
#[derive(Debug, Serialize)]
pub(super) struct Empty {}

/// A message attribute in JSON.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct WireAttribute {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
    #[serde(default)]
    data_type: String,
}

/// Message attributes in JSON, by name.
pub(super) type WireAttributes = BTreeMap<String, WireAttribute>;

/// One page of names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) names: Vec<QueueName>,
    pub(super) next_token: Option<String>,
}

/// Reads a request; an empty body is an empty object.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    let body = if body.is_empty() { b"{}" } else { body };
    let mut json = serde_json::Deserializer::from_slice(body);
    let request = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| Fault::not_json(&error.path().to_string(), error.inner()))?;
    json.end().map_err(|error| Fault::not_json("the end", &error))?;
    Ok(request)
}

/// Writes an answer.
pub(super) fn write<T: Serialize>(answer: &T) -> Answer {
    serde_json::to_vec(answer).map_err(|error| Fault::not_json("the answer", &error))
}

/// Returns a parameter that has to be there.
pub(super) fn required<T>(value: Option<T>, parameter: &str) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::missing(parameter))
}

/// Returns the queue that a URL's last path segment names, whatever host and account it has.
pub(super) fn queue_of(broker: &Broker, queue_url: Option<String>) -> Result<QueueName, Fault> {
    let queue_url = required(queue_url, "QueueUrl")?;
    let name = queue_url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    broker.queue(name).map_err(Fault::from)
}

/// Returns an optional number of seconds that has to be in a range.
pub(super) fn seconds(
    value: Option<i64>,
    parameter: &str,
    range: &RangeInclusive<u64>,
) -> Result<Option<Duration>, Fault> {
    Ok(number(value, parameter, range)?.map(Duration::from_secs))
}

/// Returns an optional number that has to be in a range.
pub(super) fn number(value: Option<i64>, parameter: &str, range: &RangeInclusive<u64>) -> Result<Option<u64>, Fault> {
    let Some(value) = value else { return Ok(None) };
    let inside = u64::try_from(value).ok().filter(|number| range.contains(number));
    let reason = || format!("Must be between {} and {}, if provided", range.start(), range.end());
    inside.map(Some).ok_or_else(|| Fault::invalid(parameter, value, &reason()))
}

/// Cuts a page out of names in alphabetical order; its token is the last name before the next page.
pub(super) fn page(
    names: impl Iterator<Item = QueueName>,
    max_results: Option<i64>,
    next_token: Option<&str>,
) -> Result<Page, Fault> {
    let most = number(max_results, "MaxResults", &(1..=PAGE_ENTRIES_MAX as u64))?;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(PAGE_ENTRIES_MAX);
    let after = next_token.map(name_of_token).transpose()?;
    let mut names: Vec<QueueName> =
        names.filter(|name| after.as_ref().is_none_or(|after| name > after)).take(most + 1).collect();
    let more = names.len() > most;
    names.truncate(most);
    let next_token = names.last().filter(|_| more).map(|last| BASE64.encode(last.as_str()));
    Ok(Page { names, next_token })
}

/// Reads the message attributes of a request.
pub(super) fn attributes(wire: WireAttributes) -> Result<MessageAttributes, Fault> {
    wire.into_iter().map(|(name, attribute)| Ok((name.clone(), attribute.read(&name)?))).collect()
}

impl WireAttribute {
    /// Writes an attribute for an answer.
    pub(super) fn write(attribute: &MessageAttribute) -> Self {
        let (string_value, binary_value) = match &attribute.value {
            AttributeValue::Text(text) => (Some(text.clone()), None),
            AttributeValue::Binary(bytes) => (None, Some(BASE64.encode(bytes))),
        };
        Self { string_value, binary_value, data_type: attribute.data_type.clone() }
    }

    /// Reads an attribute of a request; `name` is for errors.
    pub(super) fn read(self, name: &str) -> Result<MessageAttribute, Fault> {
        let value = match (self.string_value, self.binary_value) {
            (Some(text), None) => AttributeValue::Text(text),
            (None, Some(encoded)) => AttributeValue::Binary(
                BASE64.decode(&encoded).map_err(|_| Fault::invalid(name, encoded, "BinaryValue is not base64"))?,
            ),
            (None, None) => {
                return Err(Fault::invalid(name, "(none)", "It must contain a StringValue or BinaryValue"));
            }
            (Some(_), Some(_)) => {
                return Err(Fault::invalid(name, "(two)", "It has both a StringValue and a BinaryValue"));
            }
        };
        Ok(MessageAttribute { data_type: self.data_type, value })
    }
}

fn name_of_token(token: &str) -> Result<QueueName, Fault> {
    let text = BASE64.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|name| QueueName::parse(&name).ok())
        .ok_or_else(|| Fault::invalid("NextToken", token, "It was not returned by this operation"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<QueueName> {
        texts.iter().map(|text| QueueName::parse(text).unwrap()).collect()
    }

    #[test]
    fn pages_cover_every_name_once() {
        let all = names(&["a", "b", "c", "d", "e"]);
        let (mut token, mut seen, mut pages) = (None::<String>, Vec::new(), 0);
        loop {
            let page = page(all.iter().cloned(), Some(2), token.as_deref()).unwrap();
            seen.extend(page.names);
            pages += 1;
            token = page.next_token;
            if token.is_none() {
                break;
            }
        }
        assert_eq!((seen, pages), (all, 3));
    }

    #[test]
    fn a_last_page_that_is_full_has_no_token() {
        let page = page(names(&["a", "b"]).into_iter(), Some(2), None).unwrap();
        assert_eq!((page.names.len(), page.next_token), (2, None));
    }

    #[test]
    fn a_page_of_wrong_size_or_token_is_refused_by_name() {
        for (most, token, parameter) in
            [(Some(0), None, "MaxResults"), (Some(1_001), None, "MaxResults"), (None, Some("!"), "NextToken")]
        {
            let fault = page(std::iter::empty(), most, token).unwrap_err();
            assert!(fault.message.contains(parameter), "{}", fault.message);
        }
    }

    #[test]
    fn a_wrong_type_is_answered_with_the_fields_path() {
        #[derive(Debug, Deserialize)]
        struct Request {
            #[serde(rename = "Entries")]
            _entries: Vec<WireAttribute>,
        }
        let fault = read::<Request>(br#"{"Entries":[{"DataType":1}]}"#).unwrap_err();
        assert!(fault.message.contains("Entries[0].DataType"), "{}", fault.message);
        assert!(read::<Request>(b"{\"Entries\":[]} x").is_err());
    }
}
