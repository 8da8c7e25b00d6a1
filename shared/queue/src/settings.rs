//! A queue's settable attributes: read from names and values with the limits of SQS, and written back.

mod fifo;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::attributes::{names, number};
use crate::error::Error;
use crate::limits;
use crate::name::QueueKind;
use crate::redrive::{RedriveAllowPolicy, RedrivePolicy};

pub use fifo::{DeduplicationScope, FifoSettings, FifoThroughputLimit};

/// A queue's settable attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Time that a received message stays invisible.
    pub visibility_timeout: Duration,
    /// Time that a message is kept, from when it was first sent.
    pub retention: Duration,
    /// Time until a sent message becomes visible. On a FIFO queue a change also holds for the messages that still wait.
    pub delay: Duration,
    /// Time that a receive waits for a message.
    pub receive_wait: Duration,
    /// Size of a message in bytes, attributes included, at most.
    pub message_bytes_max: usize,
    /// Where messages go that were received too often.
    pub redrive: Option<RedrivePolicy>,
    /// Whose dead letters the queue takes; everyone's if absent.
    pub redrive_allow: Option<RedriveAllowPolicy>,
    /// What only a FIFO queue has; a standard queue has nothing here.
    pub fifo: Option<FifoSettings>,
    /// Attributes that are kept and returned without effect: access policy and encryption.
    pub without_effect: BTreeMap<String, String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            visibility_timeout: limits::VISIBILITY_TIMEOUT_DEFAULT,
            retention: limits::RETENTION_DEFAULT,
            delay: Duration::ZERO,
            receive_wait: Duration::ZERO,
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            redrive: None,
            redrive_allow: None,
            fifo: None,
            without_effect: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Returns the settings of a new queue of a kind.
    pub fn of_kind(kind: QueueKind) -> Self {
        let fifo = match kind {
            QueueKind::Standard => None,
            QueueKind::Fifo => Some(FifoSettings::default()),
        };
        Self { fifo, ..Self::default() }
    }

    /// Returns the kind of the queue.
    pub fn kind(&self) -> QueueKind {
        if self.fifo.is_some() { QueueKind::Fifo } else { QueueKind::Standard }
    }

    /// Returns the settings with the given attributes replaced; an empty value removes a policy or a key.
    ///
    /// # Errors
    /// [`Error::InvalidAttributeName`] or [`Error::InvalidAttributeValue`] for the first attribute that is wrong.
    pub fn with(&self, attributes: &BTreeMap<String, String>) -> Result<Self, Error> {
        let mut settings = self.clone();
        for (attribute, value) in attributes {
            settings.apply(attribute, value)?;
        }
        settings.fifo.map_or(Ok(()), FifoSettings::check)?;
        Ok(settings)
    }

    /// Returns the attributes by name, those without a value left out.
    pub fn to_attributes(&self) -> BTreeMap<String, String> {
        let mut attributes = self.without_effect.clone();
        attributes.extend(self.fifo.into_iter().flat_map(FifoSettings::to_attributes));
        let mut put = |name: &str, value: String| attributes.insert(name.to_owned(), value);
        put(names::VISIBILITY_TIMEOUT, self.visibility_timeout.as_secs().to_string());
        put(names::MESSAGE_RETENTION_PERIOD, self.retention.as_secs().to_string());
        put(names::DELAY_SECONDS, self.delay.as_secs().to_string());
        put(names::RECEIVE_MESSAGE_WAIT_TIME_SECONDS, self.receive_wait.as_secs().to_string());
        put(names::MAXIMUM_MESSAGE_SIZE, self.message_bytes_max.to_string());
        if let Some(policy) = &self.redrive {
            put(names::REDRIVE_POLICY, policy.to_json());
        }
        if let Some(policy) = &self.redrive_allow {
            put(names::REDRIVE_ALLOW_POLICY, policy.to_json());
        }
        attributes
    }

    fn apply(&mut self, attribute: &str, value: &str) -> Result<(), Error> {
        let seconds = |range: &RangeInclusive<u64>| number(attribute, value, range).map(Duration::from_secs);
        match attribute {
            names::VISIBILITY_TIMEOUT => self.visibility_timeout = seconds(&limits::VISIBILITY_TIMEOUT_SECONDS)?,
            names::MESSAGE_RETENTION_PERIOD => self.retention = seconds(&limits::RETENTION_SECONDS)?,
            names::DELAY_SECONDS => self.delay = seconds(&limits::DELAY_SECONDS)?,
            names::RECEIVE_MESSAGE_WAIT_TIME_SECONDS => self.receive_wait = seconds(&limits::RECEIVE_WAIT_SECONDS)?,
            names::MAXIMUM_MESSAGE_SIZE => self.message_bytes_max = message_bytes(attribute, value)?,
            names::REDRIVE_POLICY => self.redrive = unless_empty(value, RedrivePolicy::parse)?,
            names::REDRIVE_ALLOW_POLICY => self.redrive_allow = unless_empty(value, RedriveAllowPolicy::parse)?,
            names::POLICY
            | names::KMS_MASTER_KEY_ID
            | names::KMS_DATA_KEY_REUSE_PERIOD_SECONDS
            | names::SQS_MANAGED_SSE_ENABLED => self.keep(attribute, value),
            _ => fifo::apply(self.fifo.as_mut(), attribute, value)?,
        }
        Ok(())
    }

    fn keep(&mut self, attribute: &str, value: &str) {
        if value.is_empty() {
            self.without_effect.remove(attribute);
        } else {
            self.without_effect.insert(attribute.to_owned(), value.to_owned());
        }
    }
}

fn message_bytes(attribute: &str, value: &str) -> Result<usize, Error> {
    let range = limits::MAXIMUM_MESSAGE_SIZE_MIN as u64..=limits::MESSAGE_BYTES_MAX as u64;
    // The range's end is far below what a usize holds.
    number(attribute, value, &range).map(|bytes| usize::try_from(bytes).unwrap_or(limits::MESSAGE_BYTES_MAX))
}

fn unless_empty<T>(value: &str, parse: fn(&str) -> Result<T, Error>) -> Result<Option<T>, Error> {
    if value.is_empty() { Ok(None) } else { parse(value).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(attribute: &str, value: &str) -> Result<Settings, Error> {
        Settings::default().with(&BTreeMap::from([(attribute.to_owned(), value.to_owned())]))
    }

    #[test]
    fn every_numeric_attribute_has_the_limits_of_sqs() {
        for (attribute, least, most) in [
            (names::VISIBILITY_TIMEOUT, 0, 43_200),
            (names::MESSAGE_RETENTION_PERIOD, 60, 1_209_600),
            (names::DELAY_SECONDS, 0, 900),
            (names::RECEIVE_MESSAGE_WAIT_TIME_SECONDS, 0, 20),
            (names::MAXIMUM_MESSAGE_SIZE, 1_024, 1_048_576),
        ] {
            for value in [least, most] {
                let settings = one(attribute, &value.to_string()).unwrap();
                assert_eq!(settings.to_attributes()[attribute], value.to_string());
            }
            for value in [(least - 1).to_string(), (most + 1).to_string(), String::new(), "1.5".into(), "x".into()] {
                let error = one(attribute, &value).unwrap_err();
                assert!(matches!(&error, Error::InvalidAttributeValue { .. }), "{attribute} {value}");
                assert!(error.to_string().contains(attribute), "{error}");
            }
        }
    }

    #[test]
    fn an_unknown_attribute_is_refused_by_name() {
        for attribute in ["Visibility", "visibilitytimeout", "QueueArn", ""] {
            assert_eq!(one(attribute, "1"), Err(Error::InvalidAttributeName { attribute: attribute.to_owned() }));
        }
    }

    #[test]
    fn attributes_read_back_make_the_same_settings() {
        let arn = "arn:aws:sqs:us-east-1:000000000000:dead";
        let attributes = BTreeMap::from(
            [
                (names::VISIBILITY_TIMEOUT, "190".to_owned()),
                (names::REDRIVE_POLICY, format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":20}}"#)),
                (names::REDRIVE_ALLOW_POLICY, r#"{"redrivePermission":"denyAll"}"#.to_owned()),
                (names::SQS_MANAGED_SSE_ENABLED, "true".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let settings = Settings::default().with(&attributes).unwrap();
        let written = settings.to_attributes();
        assert!(attributes.iter().all(|(name, value)| written.get(name) == Some(value)), "{written:?}");
        assert_eq!(Settings::default().with(&written), Ok(settings));
    }

    #[test]
    fn an_empty_value_removes_a_policy_and_a_key() {
        let set = one(names::KMS_MASTER_KEY_ID, "alias/x").unwrap();
        let removed = set.with(&BTreeMap::from([
            (names::KMS_MASTER_KEY_ID.to_owned(), String::new()),
            (names::REDRIVE_POLICY.to_owned(), String::new()),
        ]));
        assert_eq!(removed, Ok(Settings::default()));
    }
}
