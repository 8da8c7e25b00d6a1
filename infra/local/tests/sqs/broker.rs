//! Receives that wait, on a paused clock: time jumps to the next timer once every task is waiting, so that the moments
//! are exact and nothing really sleeps.

use std::collections::BTreeMap;
use std::time::Duration;

use local::model;
use local::sqs::Broker;
use queue::{Configuration, Error, QueueName, ReceiveRequest, SendRequest};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(20);

/// What a waiting receive got, and after how many seconds.
type Outcome = (Result<Vec<String>, Error>, u64);

fn with_queue(attributes: &[(&str, &str)]) -> (Broker, QueueName) {
    let broker = Broker::default();
    let queue = create(&broker, "main", attributes);
    (broker, queue)
}

fn create(broker: &Broker, name: &str, pairs: &[(&str, &str)]) -> QueueName {
    let attributes: BTreeMap<String, String> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    broker.create_queue(name, &attributes).unwrap()
}

/// Starts a receive and lets it come to its wait.
async fn waiting(broker: &Broker, queue: &QueueName, max: usize, wait: Duration) -> JoinHandle<Outcome> {
    let (broker, queue, started) = (broker.clone(), queue.clone(), Instant::now());
    let task = tokio::spawn(async move {
        let request = ReceiveRequest { max, visibility_timeout: None };
        let received = broker.receive(&queue, request, wait).await;
        let bodies = received
            .map(|deliveries| deliveries.into_iter().map(|delivery| delivery.message.body.clone()).collect::<Vec<_>>());
        (bodies, started.elapsed().as_secs())
    });
    tokio::task::yield_now().await;
    task
}

fn delayed(body: &str, seconds: u64) -> SendRequest {
    SendRequest { delay: Some(Duration::from_secs(seconds)), ..SendRequest::from_body(body) }
}

async fn take(broker: &Broker, queue: &QueueName) -> Vec<queue::Delivery> {
    broker.receive(queue, ReceiveRequest { max: 10, visibility_timeout: None }, Duration::ZERO).await.unwrap()
}

fn got(bodies: &[&str], after: u64) -> Outcome {
    (Ok(bodies.iter().map(|body| (*body).to_owned()).collect()), after)
}

#[tokio::test(start_paused = true)]
async fn a_receive_waits_no_longer_than_it_is_told() {
    let (broker, queue) = with_queue(&[]);
    assert_eq!(waiting(&broker, &queue, 1, Duration::ZERO).await.await.unwrap(), got(&[], 0));
    assert_eq!(waiting(&broker, &queue, 1, WAIT).await.await.unwrap(), got(&[], 20));
}

#[tokio::test(start_paused = true)]
async fn a_receive_of_nothing_returns_at_once() {
    let (broker, queue) = with_queue(&[]);
    broker.send(&queue, SendRequest::from_body("x")).unwrap();
    assert_eq!(waiting(&broker, &queue, 0, WAIT).await.await.unwrap(), got(&[], 0));
}

#[tokio::test(start_paused = true)]
async fn a_send_ends_the_wait() {
    let (broker, queue) = with_queue(&[]);
    let receive = waiting(&broker, &queue, 10, WAIT).await;
    sleep(3 * SECOND).await;
    broker.send(&queue, SendRequest::from_body("x")).unwrap();
    assert_eq!(receive.await.unwrap(), got(&["x"], 3));
}

#[tokio::test(start_paused = true)]
async fn one_call_that_sends_two_messages_ends_two_waits() {
    let (broker, queue) = with_queue(&[]);
    let receives = [waiting(&broker, &queue, 1, WAIT).await, waiting(&broker, &queue, 1, WAIT).await];
    sleep(SECOND).await;
    broker.send_many(&queue, vec![SendRequest::from_body("x"), SendRequest::from_body("x")]);
    for receive in receives {
        assert_eq!(receive.await.unwrap(), got(&["x"], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_a_delay_has_passed() {
    let (broker, queue) = with_queue(&[]);
    let receive = waiting(&broker, &queue, 10, WAIT).await;
    broker.send(&queue, delayed("x", 7)).unwrap();
    assert_eq!(receive.await.unwrap(), got(&["x"], 7));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_a_visibility_timeout_has_passed_or_is_set_to_0() {
    let (broker, queue) = with_queue(&[("VisibilityTimeout", "5")]);
    broker.send(&queue, SendRequest::from_body("x")).unwrap();
    take(&broker, &queue).await;
    assert_eq!(waiting(&broker, &queue, 10, WAIT).await.await.unwrap(), got(&["x"], 5));

    sleep(5 * SECOND).await;
    let receipt = take(&broker, &queue).await.remove(0).receipt;
    let receive = waiting(&broker, &queue, 10, WAIT).await;
    sleep(2 * SECOND).await;
    assert_eq!(broker.change_visibility_many(&queue, &[(receipt, Duration::ZERO)]), [Ok(())]);
    assert_eq!(receive.await.unwrap(), got(&["x"], 2));
}

#[tokio::test(start_paused = true)]
async fn whoever_still_waits_learns_what_the_one_before_knew() {
    for ends_by_itself in [true, false] {
        let (broker, queue) = with_queue(&[]);
        let short = waiting(&broker, &queue, 1, 3 * SECOND).await;
        let long = waiting(&broker, &queue, 1, WAIT).await;
        // One bell, one waiter: only the short wait hears of the message that comes after its own end.
        broker.send(&queue, delayed("x", 5)).unwrap();
        sleep(SECOND).await;
        if ends_by_itself {
            assert_eq!(short.await.unwrap(), got(&[], 3));
        } else {
            short.abort();
        }
        assert_eq!(long.await.unwrap(), got(&["x"], 5));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_ends_the_wait_at_its_new_queue() {
    let broker = Broker::default();
    let dead = create(&broker, "dead", &[]);
    let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}"#;
    let main = create(&broker, "main", &[("RedrivePolicy", policy), ("VisibilityTimeout", "1")]);
    broker.send(&main, SendRequest::from_body("x")).unwrap();
    take(&broker, &main).await;
    let at_dead = waiting(&broker, &dead, 10, WAIT).await;
    // The move happens when somebody receives from the source.
    let at_main = waiting(&broker, &main, 10, 2 * SECOND).await;
    assert_eq!(at_dead.await.unwrap(), got(&["x"], 1));
    assert_eq!(at_main.await.unwrap(), got(&[], 2));
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_in_flight_a_wait_ends_when_a_message_is_deleted() {
    let broker = Broker::new(Configuration { in_flight_max: 1, ..Configuration::default() });
    let queue = create(&broker, "main", &[("VisibilityTimeout", "600")]);
    broker.send(&queue, SendRequest::from_body("a")).unwrap();
    broker.send(&queue, SendRequest::from_body("b")).unwrap();
    let first = take(&broker, &queue).await.remove(0);

    let (without_wait, _) = waiting(&broker, &queue, 1, Duration::ZERO).await.await.unwrap();
    assert_eq!(without_wait, Err(Error::OverLimit { queue: "main".into(), limit: 1 }));
    let receive = waiting(&broker, &queue, 1, WAIT).await;
    sleep(4 * SECOND).await;
    broker.delete_many(&queue, &[first.receipt]);
    assert_eq!(receive.await.unwrap(), got(&["b"], 4));
}

#[tokio::test(start_paused = true)]
async fn deleting_a_queue_ends_every_wait_with_an_error() {
    let (broker, queue) = with_queue(&[]);
    let receives = [waiting(&broker, &queue, 1, WAIT).await, waiting(&broker, &queue, 1, WAIT).await];
    sleep(SECOND).await;
    broker.delete_queue(&queue).unwrap();
    for receive in receives {
        assert_eq!(receive.await.unwrap(), (Err(Error::QueueDoesNotExist { queue: "main".into() }), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_receive_in_process_takes_more_than_ten() {
    let (broker, queue) = with_queue(&[]);
    let sent = broker.send_many(&queue, (0..600).map(|number| SendRequest::from_body(number.to_string())).collect());
    assert!(sent.iter().all(Result::is_ok));
    let (taken, _) = waiting(&broker, &queue, 500, WAIT).await.await.unwrap();
    assert_eq!(taken.map(|bodies| bodies.len()), Ok(500));
    let counts = broker.counts(&queue).unwrap();
    assert_eq!((counts.visible, counts.in_flight), (100, 500));
}

#[test]
fn declared_queues_are_created_in_any_order() {
    let declared = |name: &str, pairs: &[(&str, &str)]| model::Queue {
        name: name.to_owned(),
        attributes: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:b-dead","maxReceiveCount":20}"#;
    let source = declared("a-source", &[("RedrivePolicy", policy), ("VisibilityTimeout", "190")]);
    let broker = Broker::default();

    let names = broker.create_declared(&[source.clone(), declared("b-dead", &[])]).unwrap();
    let settings = broker.settings(&names[0]).unwrap();
    assert_eq!(settings.redrive.map(|policy| policy.max_receive_count), Some(20));
    assert_eq!(settings.visibility_timeout, Duration::from_secs(190));

    let refused = Broker::default().create_declared(&[source]).unwrap_err();
    assert_eq!(refused.0, "a-source");
    assert!(refused.1.to_string().contains("b-dead"), "{}", refused.1);
}
