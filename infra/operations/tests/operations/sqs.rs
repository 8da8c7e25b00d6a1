//! The same against SQS's protocol, as the local stack speaks it.

use std::collections::BTreeMap;
use std::future::pending;

use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use events::Consumer;
use local::sqs::{self, Broker};
use operations::dead_letters::{Mode, Queues, Redrive, Selection, Source, Sqs};
use operations::progress::Unwatched;
use operations::stop::Stop;
use queue::{AttributeValue, MessageAttribute, ReceiveRequest, SendRequest};
use tokio::net::TcpListener;

use crate::world::{Table, beginning};

/// Serves these queues.
async fn serve(names: &[&str]) -> (Broker, Sqs) {
    let broker = Broker::default();
    for name in names {
        let fifo = name.ends_with(".fifo").then(|| ("FifoQueue".to_owned(), "true".to_owned()));
        broker.create_queue(&format!("p-{name}"), &fifo.into_iter().collect()).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(sqs::serve(listener, broker.clone(), pending()));
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(endpoint);
    (broker, Sqs::new(aws_sdk_sqs::Client::from_conf(config.build()), "p"))
}

async fn redrive(queues: &Sqs, consumer: Consumer) -> operations::dead_letters::RedriveReport {
    let (selection, (_wish, stop)) = (Selection::default(), Stop::new());
    let redrive = Redrive {
        queues,
        records: &Table::default(),
        logs: None,
        selection: &selection,
        mode: Mode::Send,
        rate: None,
        stop: &stop,
        now: beginning(),
    };
    redrive.run(Source::Consumer(consumer), &Unwatched).await.unwrap()
}

#[tokio::test]
async fn a_message_comes_back_with_all_that_it_carries() {
    let (broker, queues) = serve(&["game-ended", "game-ended-dead-letters"]).await;
    let text = |data_type: &str, value: &str| MessageAttribute {
        data_type: data_type.to_owned(),
        value: AttributeValue::Text(value.to_owned()),
    };
    let binary = MessageAttribute { data_type: "Binary".to_owned(), value: AttributeValue::Binary(vec![0, 255, 7]) };
    let attributes = BTreeMap::from([
        ("event_id".to_owned(), text("String", "e-1")),
        ("number".to_owned(), text("Number", "7")),
        ("bytes".to_owned(), binary),
    ]);
    let dead = broker.queue("p-game-ended-dead-letters").unwrap();
    for number in 0..25 {
        let request =
            SendRequest { attributes: attributes.clone(), ..SendRequest::from_body(format!("letter {number}")) };
        broker.send(&dead, request).unwrap();
    }
    let report = redrive(&queues, Consumer::GameEnded).await;
    assert_eq!((report.before, report.sent, report.after), (25, 25, 0), "{report}");
    let queue = broker.queue("p-game-ended").unwrap();
    let request = ReceiveRequest { max: 100, visibility_timeout: None };
    let there = broker.receive(&queue, request, std::time::Duration::ZERO).await.unwrap();
    assert_eq!(there.len(), 25);
    assert!(there.iter().all(|delivery| delivery.message.attributes == attributes));
}

#[tokio::test]
async fn a_message_of_a_group_comes_back_to_its_group_under_a_new_deduplication_id() {
    let (broker, queues) = serve(&["order-changed.fifo", "order-changed-dead-letters.fifo"]).await;
    let request = SendRequest {
        group_id: Some("order-1".to_owned()),
        deduplication_id: Some("e-1".to_owned()),
        ..SendRequest::from_body("letter")
    };
    for name in ["p-order-changed.fifo", "p-order-changed-dead-letters.fifo"] {
        broker.send(&broker.queue(name).unwrap(), request.clone()).unwrap();
    }
    let report = redrive(&queues, Consumer::OrderChanged).await;
    assert_eq!((report.sent, report.after), (1, 0), "{report}");
    assert_eq!(queues.count("order-changed.fifo").await.unwrap(), 2);
    let queue = broker.queue("p-order-changed.fifo").unwrap();
    let request = ReceiveRequest { max: 10, visibility_timeout: None };
    let there = broker.receive(&queue, request, std::time::Duration::ZERO).await.unwrap();
    let message = &there[1].message;
    assert_eq!(message.group_id.as_deref(), Some("order-1"));
    assert!(message.deduplication_id.as_ref().is_some_and(|id| id.starts_with("redrive-")));
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_named() {
    let (_broker, queues) = serve(&[]).await;
    let error = queues.count("game-ended").await.unwrap_err();
    let text = aws::telemetry::chain(&error);
    assert!(text.contains("game-ended") && text.contains("QueueDoesNotExist"), "{text}");
}
