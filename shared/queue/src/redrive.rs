//! The two policies about dead letters: where a queue sends them, and from which queues one takes them.

use serde_json::{Map, Value, json};

use crate::attributes::names::{REDRIVE_ALLOW_POLICY, REDRIVE_POLICY};
use crate::error::Error;
use crate::limits::{MAX_RECEIVE_COUNT, REDRIVE_SOURCES_MAX};
use crate::name::{QueueName, queue_of_arn};

const TARGET: &str = "deadLetterTargetArn";
const COUNT: &str = "maxReceiveCount";
const PERMISSION: &str = "redrivePermission";
const SOURCES: &str = "sourceQueueArns";

/// When a message goes to which dead letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedrivePolicy {
    /// The dead letter queue's ARN as it was given.
    pub dead_letter_target_arn: String,
    /// The queue that the ARN names.
    pub dead_letter_queue: QueueName,
    /// Receives after which the message is moved instead of being delivered again.
    pub max_receive_count: u32,
}

impl RedrivePolicy {
    /// Parses the JSON of a `RedrivePolicy` attribute.
    ///
    /// # Errors
    /// [`Error::InvalidAttributeValue`] that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| refused(REDRIVE_POLICY, text, reason);
        let object = object(text, &[TARGET, COUNT]).map_err(refuse)?;
        let arn = object.get(TARGET).and_then(Value::as_str).ok_or_else(|| refuse(format!("{TARGET} is missing")))?;
        let queue = queue_of_arn(arn).ok_or_else(|| refuse(format!("{TARGET} is not the ARN of a queue")))?;
        let count = object.get(COUNT).ok_or_else(|| refuse(format!("{COUNT} is missing")))?;
        // Templates and command lines write the number in either form, and SQS takes both.
        let max_receive_count = count
            .as_u64()
            .or_else(|| count.as_str().and_then(|digits| digits.parse().ok()))
            .filter(|number| MAX_RECEIVE_COUNT.contains(number))
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| refuse(format!("{COUNT} must be an integer from 1 to {}", MAX_RECEIVE_COUNT.end())))?;
        Ok(Self { dead_letter_target_arn: arn.to_owned(), dead_letter_queue: queue, max_receive_count })
    }

    /// Returns the policy as JSON.
    pub fn to_json(&self) -> String {
        json!({TARGET: self.dead_letter_target_arn, COUNT: self.max_receive_count}).to_string()
    }
}

/// Which queues can have a queue as their dead letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedriveAllowPolicy {
    /// Every queue of the account.
    AllowAll,
    /// No queue.
    DenyAll,
    /// The queues of these ARNs.
    ByQueue(Vec<String>),
}

impl RedriveAllowPolicy {
    /// Parses the JSON of a `RedriveAllowPolicy` attribute.
    ///
    /// # Errors
    /// [`Error::InvalidAttributeValue`] that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| refused(REDRIVE_ALLOW_POLICY, text, reason);
        let object = object(text, &[PERMISSION, SOURCES]).map_err(refuse)?;
        let permission = object.get(PERMISSION).and_then(Value::as_str);
        match (permission, object.get(SOURCES)) {
            (Some("allowAll"), None) => Ok(Self::AllowAll),
            (Some("denyAll"), None) => Ok(Self::DenyAll),
            (Some("byQueue"), Some(sources)) => {
                let arns = arns(sources).ok_or_else(|| {
                    refuse(format!("{SOURCES} must be a list of 1 to {REDRIVE_SOURCES_MAX} ARNs of queues"))
                })?;
                Ok(Self::ByQueue(arns))
            }
            (_, _) => Err(refuse(format!(
                "{PERMISSION} must be allowAll or denyAll without {SOURCES}, or byQueue with {SOURCES}"
            ))),
        }
    }

    /// Returns the policy as JSON.
    pub fn to_json(&self) -> String {
        match self {
            Self::AllowAll => json!({PERMISSION: "allowAll"}),
            Self::DenyAll => json!({PERMISSION: "denyAll"}),
            Self::ByQueue(arns) => json!({PERMISSION: "byQueue", SOURCES: arns}),
        }
        .to_string()
    }

    /// Tells whether a queue can have the policy's owner as its dead letter queue.
    pub(crate) fn allows(&self, source: &QueueName) -> bool {
        match self {
            Self::AllowAll => true,
            Self::DenyAll => false,
            Self::ByQueue(arns) => arns.iter().any(|arn| queue_of_arn(arn).as_ref() == Some(source)),
        }
    }
}

fn arns(sources: &Value) -> Option<Vec<String>> {
    let list = sources.as_array()?;
    if list.is_empty() || list.len() > REDRIVE_SOURCES_MAX {
        return None;
    }
    list.iter().map(|arn| arn.as_str().filter(|arn| queue_of_arn(arn).is_some()).map(str::to_owned)).collect()
}

fn object(text: &str, keys: &[&str]) -> Result<Map<String, Value>, String> {
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("It is not a JSON object: {error}"))?;
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(unknown) => Err(format!("{unknown} is not one of its keys")),
        None => Ok(object),
    }
}

fn refused(attribute: &str, value: &str, reason: String) -> Error {
    Error::InvalidAttributeValue { attribute: attribute.to_owned(), value: value.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:sqs:us-east-1:000000000000:dead";

    #[test]
    fn a_redrive_policy_is_read_with_its_count_as_number_or_text() {
        for count in ["20", "\"20\""] {
            let policy = RedrivePolicy::parse(&format!(r#"{{"{TARGET}":"{ARN}","{COUNT}":{count}}}"#)).unwrap();
            assert_eq!((policy.dead_letter_queue.as_str(), policy.max_receive_count), ("dead", 20));
            assert_eq!(RedrivePolicy::parse(&policy.to_json()), Ok(policy));
        }
    }

    #[test]
    fn a_wrong_redrive_policy_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let message = RedrivePolicy::parse(text).unwrap_err().to_string();
            assert!(message.contains(REDRIVE_POLICY) && message.contains(expected), "{message}");
        };
        check("", "not a JSON object");
        check("[]", "not a JSON object");
        check("{}", "deadLetterTargetArn is missing");
        check(r#"{"deadLetterTargetArn":"dead","maxReceiveCount":1}"#, "not the ARN");
        check(&format!(r#"{{"{TARGET}":"{ARN}"}}"#), "maxReceiveCount is missing");
        for count in ["0", "1001", "-1", "1.5", "\"x\"", "null"] {
            check(&format!(r#"{{"{TARGET}":"{ARN}","{COUNT}":{count}}}"#), "integer from 1 to 1000");
        }
        check(&format!(r#"{{"{TARGET}":"{ARN}","{COUNT}":1,"max":2}}"#), "max is not one of its keys");
    }

    #[test]
    fn an_allow_policy_names_who_may_send_dead_letters() {
        let check = |text: &str, expected: bool| {
            let policy = RedriveAllowPolicy::parse(text).unwrap();
            assert_eq!(policy.allows(&QueueName::parse("dead").unwrap()), expected, "{text}");
            assert_eq!(RedriveAllowPolicy::parse(&policy.to_json()), Ok(policy));
        };
        check(r#"{"redrivePermission":"allowAll"}"#, true);
        check(r#"{"redrivePermission":"denyAll"}"#, false);
        check(&format!(r#"{{"redrivePermission":"byQueue","sourceQueueArns":["{ARN}"]}}"#), true);
        check(&format!(r#"{{"redrivePermission":"byQueue","sourceQueueArns":["{ARN}s"]}}"#), false);
    }

    #[test]
    fn a_wrong_allow_policy_is_refused() {
        for text in [
            "{}",
            r#"{"redrivePermission":"some"}"#,
            r#"{"redrivePermission":"byQueue"}"#,
            r#"{"redrivePermission":"byQueue","sourceQueueArns":[]}"#,
            r#"{"redrivePermission":"byQueue","sourceQueueArns":["x"]}"#,
            r#"{"redrivePermission":"denyAll","sourceQueueArns":[]}"#,
        ] {
            assert!(RedriveAllowPolicy::parse(text).is_err(), "{text}");
        }
    }
}
