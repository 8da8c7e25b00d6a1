//! Queues on the state machine of SQS, with a clock of the test's own and an end of the world before or after any call.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use domain::Key;
use events::Timestamp;
use operations::dead_letters::{
    Attribute, AttributeValue, FifoPlace, Message, Mode, QueueError, Queues, Received, Records, Redrive, RedriveError,
    RedriveReport, Selection, Source,
};
use operations::progress::Unwatched;
use operations::stop::{Stop, Wish};
use queue::{Configuration, QueueName, ReceiveRequest, SendRequest};
use serde_json::Value;

/// What happens at a call.
pub(crate) enum Event {
    /// The program dies: neither this call nor any other has an effect.
    DiesBefore,
    /// The program dies: this call has an effect, and nobody hears of it.
    DiesAfter,
    /// Somebody wants to stop.
    Stops(Wish),
}

/// The queues.
pub(crate) struct World {
    state: Mutex<State>,
}

struct State {
    queues: queue::Queues,
    now: u64,
    calls: u32,
    event: Option<(u32, Event)>,
    dead: bool,
}

/// The moment at which a world begins: that of the samples.
pub(crate) fn beginning() -> Timestamp {
    testkit::sample::now()
}

impl World {
    /// Makes these queues.
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut queues = queue::Queues::new(Configuration { seed: 7, ..Configuration::default() });
        let now = u64::try_from(beginning().as_millis()).unwrap();
        for name in names {
            let fifo = name.ends_with(".fifo").then(|| ("FifoQueue".to_owned(), "true".to_owned()));
            let name = QueueName::parse(name).unwrap();
            queues.create(&name, &fifo.into_iter().collect(), queue::Timestamp::from_millis(now)).unwrap();
        }
        Self { state: Mutex::new(State { queues, now, calls: 0, event: None, dead: false }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Lets something happen at this call from now on, the first being 0.
    pub(crate) fn at_call(&self, call: u32, event: Event) {
        let mut state = self.state();
        state.calls = 0;
        state.event = Some((call, event));
    }

    /// Lets the program live again, and time pass.
    pub(crate) fn later(&self, time: Duration) {
        let mut state = self.state();
        (state.dead, state.event) = (false, None);
        state.now += u64::try_from(time.as_millis()).unwrap();
    }

    pub(crate) fn send(&self, queue: &str, request: SendRequest) {
        let mut state = self.state();
        let now = state.now();
        state.queues.send(&QueueName::parse(queue).unwrap(), request, now).unwrap();
    }

    pub(crate) fn set_attribute(&self, queue: &str, name: &str, value: &str) {
        let mut state = self.state();
        let now = state.now();
        let attributes = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        state.queues.set_attributes(&QueueName::parse(queue).unwrap(), &attributes, now).unwrap();
    }

    /// Returns the number of messages that can be received, and of all.
    pub(crate) fn counts(&self, queue: &str) -> (usize, usize) {
        let mut state = self.state();
        let now = state.now();
        let counts = state.queues.counts(&QueueName::parse(queue).unwrap(), now).unwrap();
        (counts.visible, counts.total())
    }

    /// Takes all messages of a queue, in order, and deletes them.
    pub(crate) fn drain(&self, queue: &str) -> Vec<String> {
        let mut state = self.state();
        let (now, name) = (state.now(), QueueName::parse(queue).unwrap());
        let mut bodies = Vec::new();
        loop {
            let request = ReceiveRequest { max: 1_000, visibility_timeout: None };
            let deliveries = state.queues.receive(&name, request, now).unwrap().deliveries;
            if deliveries.is_empty() {
                return bodies;
            }
            for delivery in deliveries {
                state.queues.delete_message(&name, &delivery.receipt, now).unwrap();
                bodies.push(delivery.message.body.clone());
            }
        }
    }

    /// Makes a call, unless the world ends before, and tells of it, unless the world ends after.
    fn call<T>(
        &self,
        queue: &str,
        call: impl FnOnce(&mut queue::Queues, &QueueName, queue::Timestamp) -> Result<T, queue::Error>,
    ) -> Result<T, QueueError> {
        let failed = |reason: String| QueueError { queue: queue.to_owned(), call: "a call", source: reason.into() };
        let mut state = self.state();
        let calls = state.calls;
        let event = state.event.take_if(|(at, _)| *at == calls);
        state.calls += 1;
        state.dead |= matches!(event, Some((_, Event::DiesBefore)));
        if state.dead {
            return Err(failed("dead".to_owned()));
        }
        let (now, name) = (state.now(), QueueName::parse(queue).unwrap());
        let result = call(&mut state.queues, &name, now).map_err(|error| failed(error.to_string()));
        match event {
            Some((_, Event::DiesAfter)) => {
                state.dead = true;
                Err(failed("dead".to_owned()))
            }
            Some((_, Event::Stops(wish))) => {
                wish.make();
                result
            }
            Some((_, Event::DiesBefore)) | None => result,
        }
    }
}

impl State {
    fn now(&self) -> queue::Timestamp {
        queue::Timestamp::from_millis(self.now)
    }
}

impl Queues for World {
    async fn count(&self, queue: &str) -> Result<u64, QueueError> {
        self.call(queue, |queues, name, now| queues.counts(name, now)).map(|counts| counts.total() as u64)
    }

    async fn receive(&self, queue: &str, hidden: Duration) -> Result<Vec<Received>, QueueError> {
        let request = ReceiveRequest { max: 10, visibility_timeout: Some(hidden) };
        let received = self.call(queue, |queues, name, now| queues.receive(name, request, now))?;
        Ok(received.deliveries.into_iter().map(of_delivery).collect())
    }

    async fn send(
        &self,
        queue: &str,
        messages: &[(&Message, Option<FifoPlace>)],
    ) -> Result<Vec<Result<(), String>>, QueueError> {
        assert!(messages.len() <= 10, "a batch has ten messages at most");
        let requests: Vec<SendRequest> =
            messages.iter().map(|(message, place)| request(message, place.as_ref())).collect();
        self.call(queue, |queues, name, now| {
            let send = |request| queues.send(name, request, now).map(|_| ()).map_err(|error| error.to_string());
            Ok(requests.into_iter().map(send).collect())
        })
    }

    async fn delete(&self, queue: &str, receipts: &[String]) -> Result<Vec<Result<(), String>>, QueueError> {
        self.call(queue, |queues, name, now| {
            let delete = |receipt: &String| {
                let deleted = queues.delete_message(name, &receipt.clone().into(), now);
                deleted.map(|_| ()).map_err(|error| error.to_string())
            };
            Ok(receipts.iter().map(delete).collect())
        })
    }

    async fn release(&self, queue: &str, receipts: &[String]) -> Result<(), QueueError> {
        self.call(queue, |queues, name, now| {
            receipts
                .iter()
                .try_for_each(|receipt| queues.change_visibility(name, &receipt.clone().into(), Duration::ZERO, now))
        })
    }
}

fn of_delivery(delivery: queue::Delivery) -> Received {
    let message = &delivery.message;
    let attribute = |(name, it): (&String, &queue::MessageAttribute)| {
        let value = match &it.value {
            queue::AttributeValue::Text(text) => AttributeValue::Text(text.clone()),
            queue::AttributeValue::Binary(bytes) => AttributeValue::Binary(bytes.clone()),
        };
        (name.clone(), Attribute { data_type: it.data_type.clone(), value })
    };
    Received {
        message_id: message.id.to_string(),
        receipt: delivery.receipt.as_str().to_owned(),
        receives: delivery.receive_count,
        sent_at: Timestamp::from_millis(i64::try_from(message.sent_at.as_millis()).unwrap()),
        message: Message {
            body: message.body.clone(),
            attributes: message.attributes.iter().map(attribute).collect(),
            group_id: message.group_id.clone(),
        },
    }
}

fn request(message: &Message, place: Option<&FifoPlace>) -> SendRequest {
    let attribute = |(name, it): (&String, &Attribute)| {
        let value = match &it.value {
            AttributeValue::Text(text) => queue::AttributeValue::Text(text.clone()),
            AttributeValue::Binary(bytes) => queue::AttributeValue::Binary(bytes.clone()),
        };
        (name.clone(), queue::MessageAttribute { data_type: it.data_type.clone(), value })
    };
    SendRequest {
        attributes: message.attributes.iter().map(attribute).collect(),
        group_id: place.map(|place| place.group_id.clone()),
        deduplication_id: place.map(|place| place.deduplication_id.clone()),
        ..SendRequest::from_body(message.body.clone())
    }
}

/// Records that have these events.
#[derive(Debug, Default)]
pub(crate) struct Table(pub(crate) BTreeMap<Key, Value>);

impl Records for Table {
    async fn event(&self, key: &Key) -> Result<Option<Value>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.get(key).cloned())
    }
}

/// Redrives what is selected, as fast as it goes.
pub(crate) async fn redrive(
    world: &World,
    source: Source,
    selection: &Selection,
    stop: &Stop,
) -> Result<RedriveReport, RedriveError> {
    plan(world, selection, &Table::default(), stop).run(source, &Unwatched).await
}

/// Returns a redrive of what is selected, as fast as it goes.
pub(crate) fn plan<'a>(
    world: &'a World,
    selection: &'a Selection,
    records: &'a Table,
    stop: &'a Stop,
) -> Redrive<'a, World, Table> {
    Redrive { queues: world, records, logs: None, selection, mode: Mode::Send, rate: None, stop, now: beginning() }
}
