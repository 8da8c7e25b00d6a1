//! Queues with their event source mappings: messages in, batches out, dead letters aside.

use std::collections::BTreeMap;
use std::time::Duration;

use consumer::{BatchReport, Outcome};
use events::Timestamp;
use queue::{Delivery, MessageId, QueueName, ReceiptHandle, ReceiveRequest, SendRequest, attribute_names};

use super::core::{Core, event_time, queue_time};
use super::deciders::Role;
use super::hazards::Hazard;
use super::history::{Body, Fate, Story};
use super::sabotage::Slip;

/// As in the templates: six times the function's timeout and the batching window.
pub(super) const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(190);
/// As in the templates.
const DEAD_LETTER_RETENTION: Duration = Duration::from_secs(14 * 86_400);
/// Records of a batch, at most. Small, so that batches of all sizes occur.
const BATCH_MAX: usize = 8;
/// Invocations of one function at the same time, at most.
const CONCURRENCY_MAX: usize = 3;

/// A consumer's queue and its mapping.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) role: Role,
    queue: QueueName,
    dead_letters: QueueName,
    /// Invocations that the mapping waits for.
    running: usize,
    /// When the mapping looks into the queue next.
    poll_at: Option<Timestamp>,
}

/// A message in the hands of an invocation.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) message: MessageId,
    pub(super) receipt: ReceiptHandle,
}

impl Core {
    /// Makes a role's queue, its dead letter queue and its mapping.
    ///
    /// # Errors
    /// The queues cannot be made with these names and values.
    pub(super) fn add_lane(&mut self, role: Role, max_receive_count: u32) -> Result<(), queue::Error> {
        let queue = QueueName::parse(role.queue())?;
        let dead_letters = QueueName::parse(&format!("{queue}-dead-letters"))?;
        let now = queue_time(self.now);
        let retention = DEAD_LETTER_RETENTION.as_secs().to_string();
        let attributes = BTreeMap::from([(attribute_names::MESSAGE_RETENTION_PERIOD.to_owned(), retention)]);
        self.queues.create(&dead_letters, &attributes, now)?;
        let target = self.queues.arn(&dead_letters);
        let redrive = format!(r#"{{"deadLetterTargetArn":"{target}","maxReceiveCount":{max_receive_count}}}"#);
        let attributes = BTreeMap::from([
            (attribute_names::VISIBILITY_TIMEOUT.to_owned(), VISIBILITY_TIMEOUT.as_secs().to_string()),
            (attribute_names::REDRIVE_POLICY.to_owned(), redrive),
        ]);
        self.queues.create(&queue, &attributes, now)?;
        self.lanes.push(Lane { role, queue, dead_letters, running: 0, poll_at: None });
        Ok(())
    }

    /// Sends a message to a role's queue.
    pub(super) fn send(&mut self, role: Role, body: String, content: Body, delay: Duration) {
        let lane = role.lane();
        let delay = Duration::from_secs(delay.as_secs());
        let request = SendRequest { delay: Some(delay), ..SendRequest::from_body(body) };
        let Ok(message) = self.queues.send(&self.lanes[lane].queue, request, queue_time(self.now)) else { return };
        let story = Story { role, body: content, outcomes: Vec::new(), receives: 0, fate: Fate::Waiting };
        self.history.messages.insert(message.id, story);
        self.note(|core| format!("{} sent, visible in {delay:?}", core.story_name(message.id)));
        self.wake_mapping(lane, self.now + delay);
    }

    /// Lets a mapping look into its queue at a moment, unless it will before.
    pub(super) fn wake_mapping(&mut self, lane: usize, moment: Timestamp) {
        let moment = moment.max(self.now);
        if self.lanes[lane].poll_at.is_none_or(|planned| moment < planned) {
            self.lanes[lane].poll_at = Some(moment);
            self.at(moment, move |core| {
                if core.lanes[lane].poll_at == Some(moment) {
                    core.lanes[lane].poll_at = None;
                    core.poll(lane);
                }
            });
        }
    }

    /// Takes a batch and hands it to an instance.
    fn poll(&mut self, lane: usize) {
        if self.lanes[lane].running >= CONCURRENCY_MAX {
            return;
        }
        let timeout = self.strikes(Hazard::DeliveredTwice).then_some(Duration::ZERO);
        let request = ReceiveRequest { max: self.random.usize(1..=BATCH_MAX), visibility_timeout: timeout };
        let Ok(received) = self.queues.receive(&self.lanes[lane].queue, request, queue_time(self.now)) else { return };
        for message in received.dead_lettered.iter().flat_map(|dead| &dead.messages) {
            self.bury(*message);
        }
        let mut batch = received.deliveries;
        if batch.is_empty() {
            let wake = self.queues.next_wake(&self.lanes[lane].queue, queue_time(self.now));
            if let Ok(Some(moment)) = wake {
                self.wake_mapping(lane, event_time(moment));
            }
            return;
        }
        if self.strikes(Hazard::Shuffled) {
            self.random.shuffle(&mut batch);
        }
        for delivery in &batch {
            if let Some(story) = self.history.messages.get_mut(&delivery.message.id) {
                story.receives += 1;
            }
        }
        if self.slips(Slip::AcknowledgedOnReceipt) {
            for delivery in &batch {
                let held = Held { message: delivery.message.id, receipt: delivery.receipt.clone() };
                self.delete(lane, &held, None);
            }
        }
        self.lanes[lane].running += 1;
        self.start(lane, &batch);
        let pause = self.millis(0, 50);
        self.wake_mapping(lane, self.now + pause);
    }

    /// Takes an invocation's report, or learns that there is none.
    pub(super) fn ended(&mut self, lane: usize, held: &[Held], report: Option<&BatchReport>) {
        self.lanes[lane].running -= 1;
        let failures = report.map(|report| self.failures(report));
        if let (Some(report), Some(failures)) = (report, failures) {
            for (one, record) in held.iter().zip(&report.records) {
                if !failures.contains(&one.message.to_string()) && !self.slips(Slip::AcknowledgedOnReceipt) {
                    self.delete(lane, one, Some(record.outcome.clone()));
                }
            }
        }
        self.wake_mapping(lane, self.now);
    }

    /// Returns the message ids that the function's answer names.
    fn failures(&self, report: &BatchReport) -> Vec<String> {
        let failed = |outcome: &Outcome| {
            let forgotten = self.slips(Slip::RetryNotReported) && matches!(outcome, Outcome::Retry(_));
            !outcome.acknowledges() && !forgotten
        };
        if self.slips(Slip::NeighbourReported) {
            let neighbours = report.records.iter().cycle().skip(1);
            let pairs = report.records.iter().zip(neighbours);
            return pairs
                .filter(|(record, _)| failed(&record.outcome))
                .map(|(_, neighbour)| neighbour.message_id.to_string())
                .collect();
        }
        let records = report.records.iter().filter(|record| failed(&record.outcome));
        debug_assert!(self.slips(Slip::RetryNotReported) || records.clone().count() == report.failures().count());
        records.map(|record| record.message_id.to_string()).collect()
    }

    fn delete(&mut self, lane: usize, held: &Held, outcome: Option<Outcome>) {
        if self.strikes(Hazard::DeleteLost) {
            self.note(|core| format!("{} acknowledged, but not deleted", core.story_name(held.message)));
            return;
        }
        let deleted = self.queues.delete_message(&self.lanes[lane].queue, &held.receipt, queue_time(self.now));
        if deleted == Ok(queue::Deletion::Deleted) {
            self.note(|core| format!("{} acknowledged", core.story_name(held.message)));
            self.settle(held.message, Fate::Acknowledged(outcome));
        }
    }

    /// Changes a message's visibility; returns whether the queue did so.
    pub(super) fn change_visibility(&mut self, lane: usize, receipt: &ReceiptHandle, timeout: Duration) -> bool {
        let queue = &self.lanes[lane].queue;
        let changed = self.queues.change_visibility(queue, receipt, timeout, queue_time(self.now)).is_ok();
        if changed {
            self.wake_mapping(lane, self.now + timeout);
        }
        changed
    }

    /// Sends every dead letter back to its queue.
    pub(super) fn redrive(&mut self) {
        for lane in 0..self.lanes.len() {
            let dead_letters = self.lanes[lane].dead_letters.clone();
            let request = ReceiveRequest { max: usize::MAX, visibility_timeout: None };
            let Ok(received) = self.queues.receive(&dead_letters, request, queue_time(self.now)) else { continue };
            for Delivery { message, receipt, .. } in received.deliveries {
                let Some(story) = self.history.messages.get(&message.id) else { continue };
                let (role, content) = (story.role, story.body.clone());
                self.send(role, message.body.clone(), content, Duration::ZERO);
                if self.queues.delete_message(&dead_letters, &receipt, queue_time(self.now)).is_ok() {
                    self.settle(message.id, Fate::Redriven);
                }
            }
        }
    }

    /// Returns how many messages have expired, in queues and dead letter queues.
    pub(super) fn expired(&mut self) -> u64 {
        let now = queue_time(self.now);
        let names = self.lanes.iter().flat_map(|lane| [lane.queue.clone(), lane.dead_letters.clone()]);
        let names: Vec<QueueName> = names.collect();
        names.iter().filter_map(|name| self.queues.totals(name, now).ok()).map(|totals| totals.expired).sum()
    }

    /// Returns how many messages wait in the consumers' queues.
    pub(super) fn waiting(&mut self) -> usize {
        let now = queue_time(self.now);
        let names: Vec<QueueName> = self.lanes.iter().map(|lane| lane.queue.clone()).collect();
        names.iter().filter_map(|name| self.queues.counts(name, now).ok()).map(|counts| counts.total()).sum()
    }

    fn bury(&mut self, message: MessageId) {
        self.note(|core| format!("{} moved to the dead letter queue", core.story_name(message)));
        self.settle(message, Fate::DeadLettered);
    }

    fn settle(&mut self, message: MessageId, fate: Fate) {
        if let Some(story) = self.history.messages.get_mut(&message) {
            story.fate = fate;
        }
    }

    /// Returns what the trace calls a message: by its event, its queue and its id.
    pub(super) fn story_name(&self, message: MessageId) -> String {
        let Some(story) = self.history.messages.get(&message) else { return message.to_string() };
        format!("{} in {} ({message})", self.name(&story.body), story.role.queue())
    }

    fn name(&self, body: &Body) -> String {
        match body {
            Body::Event(event_id) => self.history.names(*event_id).concat(),
            Body::Poison(kind) => format!("poison ({kind})"),
        }
    }
}
