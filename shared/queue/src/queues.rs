//! A set of queues: every call of the SQS API that is about queues, with its checks. The only public door to the state of
//! a queue; the calls that are about messages are in `queues::messages`.

mod messages;

use std::collections::BTreeMap;
use std::time::Duration;

pub use messages::Deletion;

use crate::attributes::names;
use crate::error::Error;
use crate::limits;
use crate::name::{QueueKind, QueueName, queue_arn};
use crate::redrive::RedrivePolicy;
use crate::settings::Settings;
use crate::state::{Counts, Queue, Totals};
use crate::time::Timestamp;

/// What a set of queues is built with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The region in the queues' ARNs.
    pub region: String,
    /// The account in the queues' ARNs.
    pub account: String,
    /// The seed of message ids and receipt handles.
    pub seed: u64,
    /// Which handles of a message have an effect.
    pub receipts: Receipts,
    /// Messages of one queue in flight at the same time, at most.
    pub in_flight_max: usize,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            account: "000000000000".to_owned(),
            seed: 0,
            receipts: Receipts::Any,
            in_flight_max: limits::IN_FLIGHT_MAX,
        }
    }
}

/// Which handles of a message that was received more than once have an effect on a standard queue. SQS promises it for the
/// last one alone ("the request will succeed, but the message might not be deleted"), so a consumer has to be right with
/// both. On a FIFO queue a handle has none once its visibility timeout has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipts {
    /// Every one, as SQS mostly does on standard queues.
    Any,
    /// The one of the last receive; an older one changes nothing.
    LatestOnly,
}

/// What a create did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// The queue is new.
    Created,
    /// It was there, with the same values of the given attributes.
    Existed,
}

/// A set of SQS queues. Time that goes backwards between two calls is taken as standing still.
#[derive(Debug)]
pub struct Queues {
    configuration: Configuration,
    random: fastrand::Rng,
    now: Timestamp,
    queues: BTreeMap<QueueName, Queue>,
}

impl Queues {
    /// Builds an empty set.
    pub fn new(configuration: Configuration) -> Self {
        let random = fastrand::Rng::with_seed(configuration.seed);
        Self { configuration, random, now: Timestamp::default(), queues: BTreeMap::new() }
    }

    /// Creates a queue, or does nothing if it exists with the same values of the given attributes.
    ///
    /// # Errors
    /// [`Error::QueueNameExists`] if it exists with another value; [`Error::NameOfOtherType`] if the name has the suffix of
    /// FIFO queues and `FifoQueue` is not `true`, or the other way round; what [`Settings::with`] refuses; a redrive policy
    /// whose queue does not exist, is of the other type, or does not take dead letters.
    pub fn create(
        &mut self,
        name: &QueueName,
        attributes: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Creation, Error> {
        let kind = kind_of(name, attributes)?;
        let now = self.at(now);
        if let Some(existing) = self.queues.get(name) {
            return same_attributes(name, existing.settings(), attributes).map(|()| Creation::Existed);
        }
        let settings = Settings::of_kind(kind).with(attributes)?;
        self.check_redrive(name, settings.redrive.as_ref())?;
        let queue = Queue::new(settings, self.random.u64(..), now);
        self.queues.insert(name.clone(), queue);
        Ok(Creation::Created)
    }

    /// Deletes a queue and every message in it.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn delete(&mut self, name: &QueueName) -> Result<(), Error> {
        self.queues.remove(name).map(|_| ()).ok_or_else(|| unknown(name))
    }

    /// Deletes every message of a queue, those in flight included.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn purge(&mut self, name: &QueueName, now: Timestamp) -> Result<(), Error> {
        self.advanced(name, now)?.0.purge();
        Ok(())
    }

    /// Returns the names of all queues, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.keys()
    }

    /// Tells whether a queue exists.
    pub fn contains(&self, name: &QueueName) -> bool {
        self.queues.contains_key(name)
    }

    /// Returns the ARN of a queue of this set, which need not exist.
    pub fn arn(&self, name: &QueueName) -> String {
        queue_arn(&self.configuration.region, &self.configuration.account, name)
    }

    /// Returns the names of the queues whose dead letters go to a queue, in alphabetical order.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn dead_letter_sources(&self, name: &QueueName) -> Result<Vec<QueueName>, Error> {
        self.get(name)?;
        let sends_here =
            |queue: &Queue| queue.settings().redrive.as_ref().is_some_and(|policy| policy.dead_letter_queue == *name);
        Ok(self.queues.iter().filter(|(_, queue)| sends_here(queue)).map(|(source, _)| source.clone()).collect())
    }

    /// Returns a queue's settings.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn settings(&self, name: &QueueName) -> Result<&Settings, Error> {
        self.get(name).map(Queue::settings)
    }

    /// Returns all attributes of a queue that have a value, by name.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn attributes(&mut self, name: &QueueName, now: Timestamp) -> Result<BTreeMap<String, String>, Error> {
        let arn = self.arn(name);
        let (queue, _) = self.advanced(name, now)?;
        let counts = queue.counts();
        let mut attributes = queue.settings().to_attributes();
        for (attribute, value) in [
            (names::APPROXIMATE_NUMBER_OF_MESSAGES, counts.visible.to_string()),
            (names::APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE, counts.in_flight.to_string()),
            (names::APPROXIMATE_NUMBER_OF_MESSAGES_DELAYED, counts.delayed.to_string()),
            (names::CREATED_TIMESTAMP, queue.created_at.as_secs().to_string()),
            (names::LAST_MODIFIED_TIMESTAMP, queue.modified_at.as_secs().to_string()),
            (names::QUEUE_ARN, arn),
        ] {
            attributes.insert(attribute.to_owned(), value);
        }
        Ok(attributes)
    }

    /// Sets attributes of a queue: all of them, or none if one is refused.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`]; what [`Settings::with`] refuses; a redrive policy whose queue does not exist, is of the
    /// other type, or does not take dead letters.
    pub fn set_attributes(
        &mut self,
        name: &QueueName,
        attributes: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let before = self.get(name)?.settings();
        let settings = before.with(attributes)?;
        // A policy that stays as it is need not be allowed again.
        self.check_redrive(name, settings.redrive.as_ref().filter(|_| settings.redrive != before.redrive))?;
        let (queue, now) = self.advanced(name, now)?;
        queue.configure(settings, now);
        Ok(())
    }

    /// Returns a queue's tags.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn tags(&self, name: &QueueName) -> Result<&BTreeMap<String, String>, Error> {
        self.get(name).map(|queue| &queue.tags)
    }

    /// Adds tags to a queue, in place of those with the same keys.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn tag(&mut self, name: &QueueName, tags: BTreeMap<String, String>) -> Result<(), Error> {
        self.get_mut(name)?.tags.extend(tags);
        Ok(())
    }

    /// Removes the tags of the given keys from a queue.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn untag(&mut self, name: &QueueName, keys: &[String]) -> Result<(), Error> {
        self.get_mut(name)?.tags.retain(|key, _| !keys.contains(key));
        Ok(())
    }

    /// Counts a queue's messages.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn counts(&mut self, name: &QueueName, now: Timestamp) -> Result<Counts, Error> {
        Ok(self.advanced(name, now)?.0.counts())
    }

    /// Returns what happened in a queue since it was created.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn totals(&mut self, name: &QueueName, now: Timestamp) -> Result<Totals, Error> {
        Ok(self.advanced(name, now)?.0.totals)
    }

    /// Returns how long the oldest message has been in a queue, in any state; in a dead letter queue that counts from its
    /// move, as the metric `ApproximateAgeOfOldestMessage` does.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn oldest_age(&mut self, name: &QueueName, now: Timestamp) -> Result<Option<Duration>, Error> {
        let (queue, now) = self.advanced(name, now)?;
        Ok(queue.oldest_arrival().map(|arrived_at| now.since(arrived_at)))
    }

    /// Returns the moment at which a receive can take something if no call comes in between: now, later, or `None` for
    /// never. At the limit of messages in flight it is when the first of them comes back. Of a FIFO queue it may be a moment
    /// too early, at which something becomes visible or expires, and another message still holds the group back; never one
    /// too late.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn next_wake(&mut self, name: &QueueName, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let limit = self.configuration.in_flight_max;
        let (queue, now) = self.advanced(name, now)?;
        let receivable = queue.is_receivable() && queue.counts().in_flight < limit;
        Ok(if receivable { Some(now) } else { queue.next_change() })
    }

    fn check_redrive(&self, name: &QueueName, policy: Option<&RedrivePolicy>) -> Result<(), Error> {
        let Some(policy) = policy else { return Ok(()) };
        let refuse = |reason: &str| Error::InvalidParameter {
            parameter: names::REDRIVE_POLICY,
            value: policy.to_json(),
            reason: reason.to_owned(),
        };
        let target =
            self.queues.get(&policy.dead_letter_queue).ok_or_else(|| refuse("Dead letter target does not exist"))?;
        if target.settings().kind() != name.kind() {
            return Err(refuse("Dead-letter queue must be same type of queue as the source"));
        }
        let allowed = target.settings().redrive_allow.as_ref().is_none_or(|allow| allow.allows(name));
        if allowed {
            Ok(())
        } else {
            Err(refuse("The dead letter target's RedriveAllowPolicy does not allow this queue"))
        }
    }

    fn at(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    fn advanced(&mut self, name: &QueueName, now: Timestamp) -> Result<(&mut Queue, Timestamp), Error> {
        let now = self.at(now);
        let queue = self.get_mut(name)?;
        queue.advance(now);
        Ok((queue, now))
    }

    fn get(&self, name: &QueueName) -> Result<&Queue, Error> {
        self.queues.get(name).ok_or_else(|| unknown(name))
    }

    fn get_mut(&mut self, name: &QueueName) -> Result<&mut Queue, Error> {
        self.queues.get_mut(name).ok_or_else(|| unknown(name))
    }
}

fn same_attributes(name: &QueueName, existing: &Settings, given: &BTreeMap<String, String>) -> Result<(), Error> {
    let settings = existing.with(given)?;
    if settings == *existing {
        return Ok(());
    }
    let (before, after) = (existing.to_attributes(), settings.to_attributes());
    let differs = given.keys().find(|attribute| before.get(*attribute) != after.get(*attribute));
    let attribute = differs.cloned().unwrap_or_default();
    Err(Error::QueueNameExists { queue: name.to_string(), attribute })
}

/// Returns the kind of a new queue, which its name and its attributes have to agree on.
fn kind_of(name: &QueueName, attributes: &BTreeMap<String, String>) -> Result<QueueKind, Error> {
    let declared = attributes.get(names::FIFO_QUEUE).is_some_and(|value| value == "true");
    match (name.kind(), declared) {
        (QueueKind::Standard, false) => Ok(QueueKind::Standard),
        (QueueKind::Fifo, true) => Ok(QueueKind::Fifo),
        (QueueKind::Standard, true) | (QueueKind::Fifo, false) => {
            Err(Error::NameOfOtherType { queue: name.to_string() })
        }
    }
}

fn unknown(name: &QueueName) -> Error {
    Error::QueueDoesNotExist { queue: name.to_string() }
}
