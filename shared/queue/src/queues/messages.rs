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
use crate::name::QueueName;
use crate::receipt::{Receipt, ReceiptHandle};
use crate::standard::{Arrival, Key, Queue, Taken, Unchangeable};
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
    /// Sends a message and returns it as the queue keeps it.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`], or the first rule of SQS that the message breaks.
    pub fn send(&mut self, name: &QueueName, request: SendRequest, now: Timestamp) -> Result<Arc<Message>, Error> {
        let id = MessageId::from_random(self.random.u128(..));
        let (queue, now) = self.advanced(name, now)?;
        content::check(&request, queue.settings.message_bytes_max)?;
        let message = Arc::new(Message {
            id,
            body_md5: text_md5(&request.body),
            body: request.body,
            attributes_md5: attributes_md5(&request.attributes),
            attributes: request.attributes,
            trace_header: request.trace_header,
            group_id: request.group_id,
            sent_at: now,
        });
        let arrival = Arrival {
            message: Arc::clone(&message),
            receive_count: 0,
            first_received_at: None,
            dead_letter_source: None,
        };
        let delay = request.delay.unwrap_or(queue.settings.delay);
        queue.insert(arrival, delay, now);
        queue.totals.sent += 1;
        Ok(message)
    }

    /// Receives visible messages, and moves those to the dead letter queue that were received as often as the redrive
    /// policy allows. Where that queue was deleted they are delivered again, so that nothing is lost.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`]; [`Error::OverLimit`] if as many messages are in flight as the queue allows;
    /// [`Error::InvalidParameter`] for a visibility timeout of more than 12 hours.
    pub fn receive(&mut self, name: &QueueName, request: ReceiveRequest, now: Timestamp) -> Result<Received, Error> {
        check_visibility_timeout(request.visibility_timeout)?;
        let redrive =
            self.get(name)?.settings.redrive.clone().filter(|policy| self.contains(&policy.dead_letter_queue));
        let limit = self.configuration.in_flight_max;
        let (queue, now) = self.advanced(name, now)?;
        let room = limit.saturating_sub(queue.counts().in_flight);
        if room == 0 {
            return Err(Error::OverLimit { queue: name.to_string(), limit });
        }
        let request = ReceiveRequest { max: request.max.min(room), ..request };
        let max_receive_count = redrive.as_ref().map(|policy| policy.max_receive_count);
        let (taken, dead) = queue.receive(request, max_receive_count, now);
        let mark = queue.mark;
        let deliveries = taken.into_iter().map(|taken| delivery(taken, mark)).collect();
        let dead_lettered = redrive
            .filter(|_| !dead.is_empty())
            .map(|policy| self.bury(name, policy.dead_letter_queue, dead, now))
            .transpose()?;
        Ok(Received { deliveries, dead_lettered })
    }

    /// Deletes a message, in flight or not.
    ///
    /// # Errors
    /// [`Error::QueueDoesNotExist`]; [`Error::ReceiptHandleIsInvalid`] if the queue did not give out the handle. That the
    /// message is gone already is no error.
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
    /// [`Error::QueueDoesNotExist`]; [`Error::ReceiptHandleIsInvalid`]; [`Error::MessageDoesNotExist`];
    /// [`Error::MessageNotInFlight`]; [`Error::VisibilityBeyondLimit`] if it would be in flight for more than 12 hours.
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
            queue.insert(arrival, Duration::ZERO, now);
            queue.totals.moved_in += 1;
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
    let older = queue.last_receive(receipt.key).is_some_and(|last| last != receipt.receive);
    let effect = if older && receipts == Receipts::LatestOnly { Effect::None } else { Effect::Full };
    Ok((receipt.key, effect))
}

fn delivery(taken: Taken, queue_mark: u64) -> Delivery {
    Delivery {
        receipt: Receipt { queue_mark, key: taken.key, receive: taken.receive }.handle(),
        message: taken.message,
        receive_count: taken.receive_count,
        first_received_at: taken.first_received_at,
        dead_letter_source: taken.dead_letter_source,
    }
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
