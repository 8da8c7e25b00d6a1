//! The calls that are about messages: send, receive, delete and change of visibility.

use std::sync::Arc;
use std::time::Duration;

use super::{Queues, Receipts};
use crate::attributes::names;
use crate::content;
use crate::digest::{attributes_md5, text_md5};
use crate::error::Error;
use crate::limits;
use crate::message::{DeadLettered, Delivery, Message, MessageId, ReceiveRequest, Received, SendRequest};
use crate::name::{QueueKind, QueueName};
use crate::receipt::{Receipt, ReceiptHandle};
use crate::state::{Arrival, Key, Queue, Standing, Taken, Unchangeable};
use crate::time::Timestamp;

/// What a delete did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The message is gone.
    Deleted,
    /// It was gone before, or the handle was too old to have an effect: a success for the caller either way.
    NothingToDelete,
}

impl Queues {
    /// Sends a message and returns it as the queue keeps it. A FIFO queue that knows the message's deduplication id keeps
    /// nothing: the answer then has the content that was sent, with the id and the sequence number of the first message.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`], or the first rule of SQS that the message breaks.
    pub fn send(&mut self, name: &QueueName, request: SendRequest, now: Timestamp) -> Result<Arc<Message>, Error> {
        let id = MessageId::from_random(self.random.u128(..));
        let (queue, now) = self.advanced(name, now)?;
        let deduplication_id = content::check(&request, queue.settings())?;
        let delay = match name.kind() {
            QueueKind::Standard => request.delay.unwrap_or(queue.settings().delay),
            QueueKind::Fifo => queue.settings().delay,
        };
        let message = Message {
            id,
            body_md5: text_md5(&request.body),
            body: request.body,
            attributes_md5: attributes_md5(&request.attributes),
            attributes: request.attributes,
            trace_header: request.trace_header,
            group_id: request.group_id,
            deduplication_id,
            sequence_number: queue.next_sequence_number(),
            sent_at: now,
        };
        if let Some((id, sequence_number)) = queue.original_of(&message) {
            queue.totals.deduplicated += 1;
            return Ok(Arc::new(Message { id, sequence_number: Some(sequence_number), ..message }));
        }
        queue.remember_sent(&message, now);
        let message = Arc::new(message);
        let arrival = Arrival {
            message: Arc::clone(&message),
            receive_count: 0,
            first_received_at: None,
            dead_letter_source: None,
        };
        queue.insert(arrival, delay, now);
        queue.totals.sent += 1;
        Ok(message)
    }

    /// Receives messages, and moves those to the dead letter queue that were received as often as the redrive policy allows.
    /// Where that queue was deleted they are delivered again, so that nothing is lost. A FIFO queue gives out as many messages
    /// of a group as possible, none of a group whose first message is hidden, and goes on with the group behind a message
    /// that it moves.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`]; [`Error::OverLimit`] if as many messages are in flight as a standard queue allows, while
    /// a FIFO queue just gives out none; [`Error::InvalidParameter`] for a visibility timeout of more than 12 hours.
    pub fn receive(&mut self, name: &QueueName, request: ReceiveRequest, now: Timestamp) -> Result<Received, Error> {
        check_visibility_timeout(request.visibility_timeout)?;
        let redrive =
            self.get(name)?.settings().redrive.clone().filter(|policy| self.contains(&policy.dead_letter_queue));
        let limit = self.configuration.in_flight_max;
        let (queue, now) = self.advanced(name, now)?;
        let room = limit.saturating_sub(queue.counts().in_flight);
        if room == 0 {
            return match name.kind() {
                QueueKind::Standard => Err(Error::OverLimit { queue: name.to_string(), limit }),
                QueueKind::Fifo => Ok(Received::default()),
            };
        }
        let request = ReceiveRequest { max: request.max.min(room), ..request };
        let max_receive_count = redrive.as_ref().map(|policy| policy.max_receive_count);
        let (taken, dead) = queue.receive(request, max_receive_count, now);
        let deliveries = deliveries(taken, queue.mark);
        let dead_lettered = redrive
            .filter(|_| !dead.is_empty())
            .map(|policy| self.bury(name, policy.dead_letter_queue, dead, now))
            .transpose()?;
        Ok(Received { deliveries, dead_lettered })
    }

    /// Receives like [`Queues::receive`] from a FIFO queue, in an attempt with an id (`ReceiveRequestAttemptId`). For 5 minutes
    /// the same attempt gets the same messages with the same handles, whose time in flight begins again, as long as none of
    /// them was deleted, became visible, or had its visibility changed.
    ///
    /// # Errors
    /// Those of [`Queues::receive`]; [`Error::NotForQueueType`] on a standard queue; [`Error::InvalidParameter`] for an id
    /// that has not 1 to 128 alphanumeric and punctuation characters.
    pub fn receive_attempt(
        &mut self,
        name: &QueueName,
        attempt: &str,
        request: ReceiveRequest,
        now: Timestamp,
    ) -> Result<Received, Error> {
        check_visibility_timeout(request.visibility_timeout)?;
        content::check_attempt(attempt, name.kind())?;
        let (queue, now) = self.advanced(name, now)?;
        if let Some(taken) = queue.repeat(attempt, request, now) {
            return Ok(Received { deliveries: deliveries(taken, queue.mark), dead_lettered: None });
        }
        let received = self.receive(name, request, now)?;
        let queue = self.get_mut(name)?;
        let receipts: Vec<_> =
            received.deliveries.iter().filter_map(|delivery| Receipt::read(&delivery.receipt)).collect();
        queue.note(attempt, receipts.iter().map(|receipt| (receipt.key, receipt.receive)), now);
        Ok(received)
    }

    /// Deletes a message: on a standard queue in flight or not, on a FIFO queue in flight under this handle.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`]; [`Error::ReceiptHandleIsInvalid`] if the queue did not give out the handle;
    /// [`Error::ReceiptHandleExpired`] if it is a FIFO queue, and the handle's visibility timeout has passed. That the message
    /// is gone already is no error.
    pub fn delete_message(
        &mut self,
        name: &QueueName,
        receipt: &ReceiptHandle,
        now: Timestamp,
    ) -> Result<Deletion, Error> {
        let receipts = self.configuration.receipts;
        let (queue, _) = self.advanced(name, now)?;
        let (key, effect) = read_receipt(name, queue, receipt, receipts)?;
        let deleted = effect == Effect::Full && queue.delete(key);
        Ok(if deleted { Deletion::Deleted } else { Deletion::NothingToDelete })
    }

    /// Sets how long a message in flight stays so, from now on; 0 makes it visible at once.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`]; [`Error::ReceiptHandleIsInvalid`]; [`Error::ReceiptHandleExpired`] on a FIFO queue;
    /// [`Error::MessageDoesNotExist`]; [`Error::MessageNotInFlight`]; [`Error::VisibilityBeyondLimit`] if it would be in flight
    /// for more than 12 hours.
    pub fn change_visibility(
        &mut self,
        name: &QueueName,
        receipt: &ReceiptHandle,
        timeout: Duration,
        now: Timestamp,
    ) -> Result<(), Error> {
        check_visibility_timeout(Some(timeout))?;
        let receipts = self.configuration.receipts;
        let (queue, now) = self.advanced(name, now)?;
        let (key, effect) = read_receipt(name, queue, receipt, receipts)?;
        let changed = match effect {
            Effect::Full => queue.change_visibility(key, timeout, now),
            Effect::None => Err(Unchangeable::NotInFlight),
        };
        changed.map_err(|reason| match reason {
            Unchangeable::Missing => Error::MessageDoesNotExist { receipt: receipt.to_string() },
            Unchangeable::NotInFlight => Error::MessageNotInFlight { receipt: receipt.to_string() },
            Unchangeable::BeyondLimit => {
                Error::VisibilityBeyondLimit { asked: timeout, limit: limits::IN_FLIGHT_TIME_MAX }
            }
        })
    }

    fn bury(
        &mut self,
        source: &QueueName,
        target: QueueName,
        dead: Vec<Arrival>,
        now: Timestamp,
    ) -> Result<DeadLettered, Error> {
        let (queue, now) = self.advanced(&target, now)?;
        let messages = dead.iter().map(|arrival| arrival.message.id).collect();
        for arrival in dead {
            let arrival = Arrival { dead_letter_source: Some(source.clone()), ..arrival };
            queue.move_in(arrival, now);
        }
        Ok(DeadLettered { queue: target, messages })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Full,
    None,
}

fn read_receipt(
    name: &QueueName,
    queue: &Queue,
    handle: &ReceiptHandle,
    receipts: Receipts,
) -> Result<(Key, Effect), Error> {
    let receipt = Receipt::read(handle)
        .filter(|receipt| receipt.queue_mark == queue.mark && queue.knows(receipt.key))
        .ok_or_else(|| Error::ReceiptHandleIsInvalid { queue: name.to_string(), receipt: handle.to_string() })?;
    let effect = match (name.kind(), queue.standing(receipt.key, receipt.receive)) {
        (QueueKind::Fifo, Standing::Ended | Standing::Overtaken) => {
            return Err(Error::ReceiptHandleExpired { receipt: handle.to_string() });
        }
        (QueueKind::Standard, Standing::Overtaken) if receipts == Receipts::LatestOnly => Effect::None,
        (QueueKind::Standard, Standing::Ended | Standing::Overtaken)
        | (QueueKind::Standard | QueueKind::Fifo, Standing::Gone | Standing::InFlight) => Effect::Full,
    };
    Ok((receipt.key, effect))
}

fn deliveries(taken: Vec<Taken>, queue_mark: u64) -> Vec<Delivery> {
    let delivery = |taken: Taken| Delivery {
        receipt: Receipt { queue_mark, key: taken.key, receive: taken.receive }.handle(),
        message: taken.message,
        receive_count: taken.receive_count,
        first_received_at: taken.first_received_at,
        dead_letter_source: taken.dead_letter_source,
    };
    taken.into_iter().map(delivery).collect()
}

fn check_visibility_timeout(timeout: Option<Duration>) -> Result<(), Error> {
    let most = *limits::VISIBILITY_TIMEOUT_SECONDS.end();
    match timeout {
        Some(timeout) if timeout > Duration::from_secs(most) => Err(Error::InvalidParameter {
            parameter: names::VISIBILITY_TIMEOUT,
            value: timeout.as_secs().to_string(),
            reason: format!("VisibilityTimeout must be >= 0 and <= {most}"),
        }),
        Some(_) | None => Ok(()),
    }
}
