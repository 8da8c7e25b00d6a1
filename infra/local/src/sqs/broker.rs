//! The broker: one set of queues that any number of tasks share, with the machine's clock and receives that wait. It
//! knows nothing of HTTP.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use queue::{
    Configuration, Counts, Creation, Delivery, Error, Message, QueueName, Queues, ReceiptHandle, ReceiveRequest,
    Received, SendRequest, Settings, Timestamp, Totals, attribute_names,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::clock::Clock;
use crate::model;

/// How long a receive waits at most; SQS itself stops at 20 seconds.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// A handle on the machine's queues; clones share them.
#[derive(Debug, Clone)]
pub struct Broker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queues: Queues,
    /// Each queue's bell wakes one waiting receive, which wakes the next when it ends: whoever is left always knows the
    /// moment to look again.
    bells: HashMap<QueueName, Arc<Notify>>,
}

impl Default for Broker {
    fn default() -> Self {
        Self::new(Configuration { seed: fastrand::u64(..), ..Configuration::default() })
    }
}

impl Broker {
    /// Builds a broker without queues.
    pub fn new(configuration: Configuration) -> Self {
        let state = State { queues: Queues::new(configuration), bells: HashMap::new() };
        Self { shared: Arc::new(Shared { clock: Clock::start(), state: Mutex::new(state) }) }
    }

    /// Creates a queue from its name and attributes as `CreateQueue` takes them.
    ///
    /// # Errors
    /// What [`QueueName::parse`] and [`Queues::create`] refuse.
    pub fn create_queue(&self, name: &str, attributes: &BTreeMap<String, String>) -> Result<QueueName, Error> {
        self.create_tagged(name, attributes, BTreeMap::new())
    }

    /// Creates the queues that a template declares, in any order: dead letter queues may come after their sources.
    ///
    /// # Errors
    /// What [`Broker::create_queue`] refuses, with the queue's name; queues before it exist then.
    pub fn create_declared(&self, declared: &[model::Queue]) -> Result<Vec<QueueName>, (String, Error)> {
        let named = |queue: &model::Queue| {
            let name = queue.name.clone();
            move |error| (name, error)
        };
        let mut names = Vec::with_capacity(declared.len());
        for queue in declared {
            let mut attributes = queue.attributes.clone();
            attributes.remove(attribute_names::REDRIVE_POLICY);
            names.push(self.create_queue(&queue.name, &attributes).map_err(named(queue))?);
        }
        for (queue, name) in declared.iter().zip(&names) {
            if let Some(policy) = queue.attributes.get(attribute_names::REDRIVE_POLICY) {
                let attributes = BTreeMap::from([(attribute_names::REDRIVE_POLICY.to_owned(), policy.clone())]);
                self.set_attributes(name, &attributes).map_err(named(queue))?;
            }
        }
        Ok(names)
    }

    /// Returns the queue of a name.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn queue(&self, name: &str) -> Result<QueueName, Error> {
        let unknown = || Error::QueueDoesNotExist { queue: name.to_owned() };
        let queue = QueueName::parse(name).map_err(|_| unknown())?;
        self.read(|queues, _| queues.contains(&queue)).then_some(queue).ok_or_else(unknown)
    }

    /// Returns the names of all queues, in alphabetical order.
    pub fn queues(&self) -> Vec<QueueName> {
        self.read(|queues, _| queues.names().cloned().collect())
    }

    /// Sends a message and returns it as the queue keeps it.
    ///
    /// # Errors
    /// What [`Queues::send`] refuses.
    pub fn send(&self, queue: &QueueName, request: SendRequest) -> Result<Arc<Message>, Error> {
        self.change(queue, |queues, now| queues.send(queue, request, now))
    }

    /// Sends messages one after another, in one turn, and returns what became of each.
    pub fn send_many(&self, queue: &QueueName, requests: Vec<SendRequest>) -> Vec<Result<Arc<Message>, Error>> {
        self.change(queue, |queues, now| requests.into_iter().map(|request| queues.send(queue, request, now)).collect())
    }

    /// Receives what can be received, any number up to `request.max`; if there is nothing, waits for the first message until
    /// `wait` has passed.
    ///
    /// # Errors
    /// What [`Queues::receive`] refuses. As on SQS, too many messages in flight are an error only without a wait.
    pub async fn receive(
        &self,
        queue: &QueueName,
        request: ReceiveRequest,
        wait: Duration,
    ) -> Result<Vec<Delivery>, Error> {
        self.receive_by(queue, wait, |queues, now| queues.receive(queue, request, now), request.max).await
    }

    /// Receives like [`Broker::receive`] from a FIFO queue, in an attempt that can be repeated.
    ///
    /// # Errors
    /// What [`Queues::receive_attempt`] refuses.
    pub async fn receive_attempt(
        &self,
        queue: &QueueName,
        attempt: &str,
        request: ReceiveRequest,
        wait: Duration,
    ) -> Result<Vec<Delivery>, Error> {
        let call = |queues: &mut Queues, now| queues.receive_attempt(queue, attempt, request, now);
        self.receive_by(queue, wait, call, request.max).await
    }

    /// Makes a call that receives until it returns something, or `wait` has passed.
    async fn receive_by(
        &self,
        queue: &QueueName,
        wait: Duration,
        call: impl Fn(&mut Queues, Timestamp) -> Result<Received, Error>,
        max: usize,
    ) -> Result<Vec<Delivery>, Error> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + wait.min(WAIT_MAX);
        let mut waiting: Option<Waiting> = None;
        loop {
            let (deliveries, wake_at) = self.take(queue, wait, &call)?;
            if !deliveries.is_empty() || Instant::now() >= deadline {
                return Ok(deliveries);
            }
            let Some(waiting) = &waiting else {
                // The bell is held first and the queue looked at again, so that nothing falls in between.
                waiting = Some(Waiting { bell: self.bell(queue)? });
                continue;
            };
            let until = wake_at.map_or(deadline, |at| deadline.min(self.shared.clock.instant(at)));
            tokio::select! {
                () = waiting.bell.notified() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Deletes messages and returns what became of each; one that is gone already counts as deleted.
    pub fn delete_many(&self, queue: &QueueName, receipts: &[ReceiptHandle]) -> Vec<Result<(), Error>> {
        self.change(queue, |queues, now| {
            receipts.iter().map(|receipt| queues.delete_message(queue, receipt, now).map(|_| ())).collect()
        })
    }

    /// Sets how long messages stay in flight from now on, and returns what became of each.
    pub fn change_visibility_many(
        &self,
        queue: &QueueName,
        changes: &[(ReceiptHandle, Duration)],
    ) -> Vec<Result<(), Error>> {
        self.change(queue, |queues, now| {
            changes.iter().map(|(receipt, timeout)| queues.change_visibility(queue, receipt, *timeout, now)).collect()
        })
    }

    /// Counts a queue's messages.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn counts(&self, queue: &QueueName) -> Result<Counts, Error> {
        self.read(|queues, now| queues.counts(queue, now))
    }

    /// Returns what happened in a queue since it was created.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn totals(&self, queue: &QueueName) -> Result<Totals, Error> {
        self.read(|queues, now| queues.totals(queue, now))
    }

    /// Returns how long a queue's oldest message has been there.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn oldest_age(&self, queue: &QueueName) -> Result<Option<Duration>, Error> {
        self.read(|queues, now| queues.oldest_age(queue, now))
    }

    /// Returns a queue's settings.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn settings(&self, queue: &QueueName) -> Result<Settings, Error> {
        self.read(|queues, _| queues.settings(queue).cloned())
    }

    /// Deletes every message of a queue.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn purge(&self, queue: &QueueName) -> Result<(), Error> {
        self.change(queue, |queues, now| queues.purge(queue, now))
    }

    /// Sets attributes of a queue.
    ///
    /// # Errors
    /// What [`Queues::set_attributes`] refuses.
    pub fn set_attributes(&self, queue: &QueueName, attributes: &BTreeMap<String, String>) -> Result<(), Error> {
        self.change(queue, |queues, now| queues.set_attributes(queue, attributes, now))
    }

    /// Deletes a queue with its messages; receives that wait for it end with an error.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`].
    pub fn delete_queue(&self, queue: &QueueName) -> Result<(), Error> {
        let mut state = self.lock();
        state.queues.delete(queue)?;
        if let Some(bell) = state.bells.remove(queue) {
            bell.notify_one();
        }
        Ok(())
    }

    /// Creates a queue that has tags from the start; one that exists keeps its own.
    pub(super) fn create_tagged(
        &self,
        name: &str,
        attributes: &BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
    ) -> Result<QueueName, Error> {
        let queue = QueueName::parse(name)?;
        let now = self.shared.clock.now();
        let mut state = self.lock();
        match state.queues.create(&queue, attributes, now)? {
            Creation::Created => state.queues.tag(&queue, tags)?,
            Creation::Existed => {}
        }
        state.bells.entry(queue.clone()).or_default();
        Ok(queue)
    }

    /// Runs a call that makes nothing visible.
    pub(super) fn read<T>(&self, call: impl FnOnce(&mut Queues, Timestamp) -> T) -> T {
        let now = self.shared.clock.now();
        call(&mut self.lock().queues, now)
    }

    /// Runs a call that may make something visible, now or later, and wakes a receive of the queue.
    fn change<T>(&self, queue: &QueueName, call: impl FnOnce(&mut Queues, Timestamp) -> T) -> T {
        let now = self.shared.clock.now();
        let mut state = self.lock();
        let answer = call(&mut state.queues, now);
        state.ring(queue);
        answer
    }

    /// Receives once, and returns with nothing but the moment at which to look again if there is nothing.
    fn take(
        &self,
        queue: &QueueName,
        wait: Duration,
        call: impl Fn(&mut Queues, Timestamp) -> Result<Received, Error>,
    ) -> Result<(Vec<Delivery>, Option<Timestamp>), Error> {
        let now = self.shared.clock.now();
        let mut state = self.lock();
        let deliveries = match call(&mut state.queues, now) {
            Ok(received) => {
                if let Some(dead_lettered) = received.dead_lettered {
                    state.ring(&dead_lettered.queue);
                }
                received.deliveries
            }
            Err(Error::OverLimit { .. }) if !wait.is_zero() => Vec::new(),
            Err(error) => return Err(error),
        };
        let wake_at = state.queues.next_wake(queue, now)?;
        Ok((deliveries, wake_at))
    }

    fn bell(&self, queue: &QueueName) -> Result<Arc<Notify>, Error> {
        let state = self.lock();
        state.bells.get(queue).cloned().ok_or_else(|| Error::QueueDoesNotExist { queue: queue.to_string() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another task cannot leave a queue half changed in a way that matters to this one.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ring(&self, queue: &QueueName) {
        if let Some(bell) = self.bells.get(queue) {
            bell.notify_one();
        }
    }
}

/// A receive that waits. However it ends (with messages, in time, or dropped), the next one is woken: this one may have
/// left messages behind, or been the only one to know of a moment to come.
struct Waiting {
    bell: Arc<Notify>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}
