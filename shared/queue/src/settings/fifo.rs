//! The settable attributes that only FIFO queues have.

use crate::attributes::names;
use crate::error::Error;

/// Settings of a FIFO queue beside those that every queue has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FifoSettings {
    /// Whether the SHA-256 of a message's body stands in for an absent deduplication id.
    pub content_based_deduplication: bool,
    /// Where a deduplication id is looked for.
    pub deduplication_scope: DeduplicationScope,
    /// What the quota of calls is counted for: kept and returned, without effect.
    pub throughput_limit: FifoThroughputLimit,
}

/// Where a deduplication id is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeduplicationScope {
    /// In the whole queue.
    #[default]
    Queue,
    /// In the message group, as high throughput asks for.
    MessageGroup,
}

/// What the quota of calls is counted for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FifoThroughputLimit {
    /// The whole queue.
    #[default]
    PerQueue,
    /// Each message group: high throughput.
    PerMessageGroupId,
}

impl FifoSettings {
    /// Checks what the attributes say together.
    ///
    /// # Errors
    /// [`Error::InvalidAttributeValue`] for a quota of each group with deduplication in the whole queue.
    pub(super) fn check(self) -> Result<(), Error> {
        match (self.throughput_limit, self.deduplication_scope) {
            (FifoThroughputLimit::PerMessageGroupId, DeduplicationScope::Queue) => Err(refused(
                names::FIFO_THROUGHPUT_LIMIT,
                self.throughput_limit.as_str(),
                "It is allowed only with DeduplicationScope messageGroup",
            )),
            (FifoThroughputLimit::PerMessageGroupId, DeduplicationScope::MessageGroup)
            | (FifoThroughputLimit::PerQueue, DeduplicationScope::Queue | DeduplicationScope::MessageGroup) => Ok(()),
        }
    }

    /// Returns the attributes by name.
    pub(super) fn to_attributes(self) -> [(String, String); 4] {
        [
            (names::FIFO_QUEUE, "true"),
            (names::CONTENT_BASED_DEDUPLICATION, if self.content_based_deduplication { "true" } else { "false" }),
            (names::DEDUPLICATION_SCOPE, self.deduplication_scope.as_str()),
            (names::FIFO_THROUGHPUT_LIMIT, self.throughput_limit.as_str()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }
}

impl DeduplicationScope {
    /// Returns the value of the attribute.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::MessageGroup => "messageGroup",
        }
    }
}

impl FifoThroughputLimit {
    /// Returns the value of the attribute.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerQueue => "perQueue",
            Self::PerMessageGroupId => "perMessageGroupId",
        }
    }
}

/// Sets an attribute that only FIFO queues have; `settings` are those of the queue, if it is one.
///
/// # Errors
/// [`Error::InvalidAttributeName`] for any other attribute, and on a standard queue; [`Error::InvalidAttributeValue`].
pub(super) fn apply(settings: Option<&mut FifoSettings>, attribute: &str, value: &str) -> Result<(), Error> {
    let Some(settings) = settings else {
        return Err(Error::InvalidAttributeName { attribute: attribute.to_owned() });
    };
    match attribute {
        names::FIFO_QUEUE if value == "true" => {}
        names::FIFO_QUEUE => return Err(refused(attribute, value, "Modifying queue type is not supported")),
        names::CONTENT_BASED_DEDUPLICATION => {
            settings.content_based_deduplication =
                one_of(attribute, value, [true, false], |whether| if whether { "true" } else { "false" })?;
        }
        names::DEDUPLICATION_SCOPE => {
            let scopes = [DeduplicationScope::Queue, DeduplicationScope::MessageGroup];
            settings.deduplication_scope = one_of(attribute, value, scopes, DeduplicationScope::as_str)?;
        }
        names::FIFO_THROUGHPUT_LIMIT => {
            let limits = [FifoThroughputLimit::PerQueue, FifoThroughputLimit::PerMessageGroupId];
            settings.throughput_limit = one_of(attribute, value, limits, FifoThroughputLimit::as_str)?;
        }
        _ => return Err(Error::InvalidAttributeName { attribute: attribute.to_owned() }),
    }
    Ok(())
}

fn one_of<T: Copy>(
    attribute: &str,
    value: &str,
    choices: [T; 2],
    text: impl Fn(T) -> &'static str,
) -> Result<T, Error> {
    let chosen = choices.into_iter().find(|choice| text(*choice) == value);
    chosen.ok_or_else(|| {
        let [first, second] = choices.map(text);
        refused(attribute, value, &format!("It must be {first} or {second}"))
    })
}

fn refused(attribute: &str, value: &str, reason: &str) -> Error {
    Error::InvalidAttributeValue { attribute: attribute.to_owned(), value: value.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::name::QueueKind;

    fn with(kind: QueueKind, pairs: &[(&str, &str)]) -> Result<Settings, Error> {
        let attributes = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::of_kind(kind).with(&attributes)
    }

    #[test]
    fn a_standard_queue_has_none_of_them() {
        for (attribute, value) in [
            (names::FIFO_QUEUE, "true"),
            (names::FIFO_QUEUE, "false"),
            (names::CONTENT_BASED_DEDUPLICATION, "true"),
            (names::DEDUPLICATION_SCOPE, "queue"),
            (names::FIFO_THROUGHPUT_LIMIT, "perQueue"),
        ] {
            let refused = with(QueueKind::Standard, &[(attribute, value)]);
            assert_eq!(refused, Err(Error::InvalidAttributeName { attribute: attribute.to_owned() }));
        }
    }

    #[test]
    fn attributes_read_back_make_the_same_settings() {
        let high_throughput = [
            (names::CONTENT_BASED_DEDUPLICATION, "true"),
            (names::DEDUPLICATION_SCOPE, "messageGroup"),
            (names::FIFO_QUEUE, "true"),
            (names::FIFO_THROUGHPUT_LIMIT, "perMessageGroupId"),
        ];
        for pairs in [&[][..], &high_throughput] {
            let settings = with(QueueKind::Fifo, pairs).unwrap();
            let written = settings.to_attributes();
            assert!(pairs.iter().all(|(name, value)| written[*name] == *value), "{written:?}");
            assert_eq!(Settings::of_kind(QueueKind::Fifo).with(&written), Ok(settings));
        }
    }

    #[test]
    fn a_new_queue_deduplicates_by_given_ids_in_the_whole_queue() {
        let written = Settings::of_kind(QueueKind::Fifo).to_attributes();
        for (attribute, value) in [
            (names::FIFO_QUEUE, "true"),
            (names::CONTENT_BASED_DEDUPLICATION, "false"),
            (names::DEDUPLICATION_SCOPE, "queue"),
            (names::FIFO_THROUGHPUT_LIMIT, "perQueue"),
        ] {
            assert_eq!(written[attribute], value);
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_attribute() {
        for (attribute, value) in [
            (names::FIFO_QUEUE, "false"),
            (names::CONTENT_BASED_DEDUPLICATION, "yes"),
            (names::DEDUPLICATION_SCOPE, "group"),
            (names::FIFO_THROUGHPUT_LIMIT, ""),
            // Only together with deduplication in the group.
            (names::FIFO_THROUGHPUT_LIMIT, "perMessageGroupId"),
        ] {
            let refused = with(QueueKind::Fifo, &[(attribute, value)]);
            assert!(
                matches!(&refused, Err(Error::InvalidAttributeValue { attribute: named, .. }) if named == attribute),
                "{refused:?}"
            );
        }
    }
}
