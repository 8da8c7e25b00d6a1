//! What a function's response says about the records of its batch, by the rules of partial batch responses in Lambda's
//! developer guide. Acts on nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::Failures;

/// What a response says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every record was processed.
    Success,
    /// These records, and only these, were not processed.
    Partial(BTreeSet<String>),
    /// The response says that the batch failed, or makes no sense and therefore counts as that.
    WholeBatch(Malformed),
}

/// Why a response fails its whole batch.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("the response is not JSON")]
    NotJson,
    #[error("the response is not an object")]
    NotAnObject,
    #[error("batchItemFailures is not a list")]
    NotAList,
    #[error("batchItemFailures[{position}] has no itemIdentifier that is a string")]
    NoIdentifier { position: usize },
    #[error("batchItemFailures[{position}].itemIdentifier is empty")]
    EmptyIdentifier { position: usize },
    #[error("batchItemFailures[{position}].itemIdentifier names no record of the batch: {identifier}")]
    UnknownIdentifier { position: usize, identifier: String },
}

/// Reads a response. Without `ReportBatchItemFailures` any response is a success.
pub(super) fn read(response: &[u8], failures: Failures, is_in_batch: impl Fn(&str) -> bool) -> Verdict {
    match failures {
        Failures::WholeBatch => Verdict::Success,
        Failures::ReportBatchItemFailures => match failed_items(response, is_in_batch) {
            Ok(items) if items.is_empty() => Verdict::Success,
            Ok(items) => Verdict::Partial(items),
            Err(malformed) => Verdict::WholeBatch(malformed),
        },
    }
}

fn failed_items(response: &[u8], is_in_batch: impl Fn(&str) -> bool) -> Result<BTreeSet<String>, Malformed> {
    let response: Value = serde_json::from_slice(response).map_err(|_| Malformed::NotJson)?;
    if response.is_null() {
        return Ok(BTreeSet::new());
    }
    let response = response.as_object().ok_or(Malformed::NotAnObject)?;
    let failures = match response.get("batchItemFailures") {
        None | Some(Value::Null) => return Ok(BTreeSet::new()),
        Some(failures) => failures.as_array().ok_or(Malformed::NotAList)?,
    };
    let identifier = |(position, failure): (usize, &Value)| {
        let identifier = failure.get("itemIdentifier").and_then(Value::as_str);
        match identifier.ok_or(Malformed::NoIdentifier { position })? {
            "" => Err(Malformed::EmptyIdentifier { position }),
            identifier if is_in_batch(identifier) => Ok(identifier.to_owned()),
            identifier => Err(Malformed::UnknownIdentifier { position, identifier: identifier.to_owned() }),
        }
    };
    failures.iter().enumerate().map(identifier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(response: &str, expected: Verdict) {
        let is_in_batch = |identifier: &str| ["one", "two", "three"].contains(&identifier);
        let verdict = read(response.as_bytes(), Failures::ReportBatchItemFailures, is_in_batch);
        assert_eq!(verdict, expected, "{response}");
    }

    #[test]
    fn an_empty_null_or_absent_list_is_success() {
        check(r#"{"batchItemFailures":[]}"#, Verdict::Success);
        check(r#"{"batchItemFailures":null}"#, Verdict::Success);
        check(r#"{}"#, Verdict::Success);
        check(r#"{"other":1}"#, Verdict::Success);
        check("null", Verdict::Success);
    }

    #[test]
    fn named_records_fail_alone() {
        let failed = |items: &[&str]| Verdict::Partial(items.iter().map(|item| (*item).to_owned()).collect());

        check(r#"{"batchItemFailures":[{"itemIdentifier":"two"}]}"#, failed(&["two"]));
        check(
            r#"{"batchItemFailures":[{"itemIdentifier":"two"},{"itemIdentifier":"one"},{"itemIdentifier":"two"}]}"#,
            failed(&["one", "two"]),
        );
    }

    #[test]
    fn a_response_that_is_not_json_fails_the_whole_batch() {
        check("", Verdict::WholeBatch(Malformed::NotJson));
        check("ok", Verdict::WholeBatch(Malformed::NotJson));
        check(r#"{"batchItemFailures":["#, Verdict::WholeBatch(Malformed::NotJson));
    }

    #[test]
    fn a_response_of_another_shape_fails_the_whole_batch() {
        check(r#""ok""#, Verdict::WholeBatch(Malformed::NotAnObject));
        check("[]", Verdict::WholeBatch(Malformed::NotAnObject));
        check(r#"{"batchItemFailures":"one"}"#, Verdict::WholeBatch(Malformed::NotAList));
        check(r#"{"batchItemFailures":{"itemIdentifier":"one"}}"#, Verdict::WholeBatch(Malformed::NotAList));
    }

    #[test]
    fn a_null_or_misnamed_identifier_fails_the_whole_batch() {
        let malformed = || Verdict::WholeBatch(Malformed::NoIdentifier { position: 1 });

        check(r#"{"batchItemFailures":[{"itemIdentifier":"one"},{"itemIdentifier":null}]}"#, malformed());
        check(r#"{"batchItemFailures":[{"itemIdentifier":"one"},{"itemidentifier":"two"}]}"#, malformed());
        check(r#"{"batchItemFailures":[{"itemIdentifier":"one"},{"itemIdentifier":2}]}"#, malformed());
        check(r#"{"batchItemFailures":[{"itemIdentifier":"one"},"two"]}"#, malformed());
    }

    #[test]
    fn an_empty_identifier_fails_the_whole_batch() {
        check(
            r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#,
            Verdict::WholeBatch(Malformed::EmptyIdentifier { position: 0 }),
        );
    }

    #[test]
    fn an_identifier_that_is_not_in_the_batch_fails_the_whole_batch() {
        check(
            r#"{"batchItemFailures":[{"itemIdentifier":"one"},{"itemIdentifier":"four"}]}"#,
            Verdict::WholeBatch(Malformed::UnknownIdentifier { position: 1, identifier: "four".to_owned() }),
        );
    }

    #[test]
    fn without_the_declaration_no_response_is_read() {
        assert_eq!(read(b"nonsense", Failures::WholeBatch, |_| false), Verdict::Success);
    }
}
