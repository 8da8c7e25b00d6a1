//! FIFO queues through the AWS SDK.

use std::time::Duration;

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::operation::receive_message::ReceiveMessageOutput;
use aws_sdk_sqs::operation::send_message::builders::SendMessageFluentBuilder;
use aws_sdk_sqs::types::{
    MessageSystemAttributeName as System, QueueAttributeName as Attribute, SendMessageBatchRequestEntry,
};
use tokio::time::timeout;

use crate::server::{Server, redrive_policy};

const BOUND: Duration = Duration::from_secs(10);

async fn with_queue(attributes: &[(Attribute, &str)]) -> (Server, String) {
    let server = Server::start().await;
    let url = create(&server, "main.fifo", attributes).await;
    (server, url)
}

async fn create(server: &Server, name: &str, attributes: &[(Attribute, &str)]) -> String {
    server.create(name, &[attributes, &[(Attribute::FifoQueue, "true")]].concat()).await
}

fn message(server: &Server, url: &str, group: &str, body: &str) -> SendMessageFluentBuilder {
    let send = server.client.send_message().queue_url(url).message_body(body).message_group_id(group);
    send.message_deduplication_id(body)
}

fn bodies(received: &ReceiveMessageOutput) -> Vec<&str> {
    received.messages().iter().filter_map(|message| message.body()).collect()
}

#[tokio::test]
async fn a_message_comes_with_its_group_its_deduplication_id_and_its_number() {
    let (server, url) = with_queue(&[]).await;
    let sent = message(&server, &url, "order-1", "event-1").send().await.unwrap();
    let again = message(&server, &url, "order-1", "event-1").send().await.unwrap();
    assert_eq!((again.message_id(), again.sequence_number()), (sent.message_id(), sent.sequence_number()));

    let receive = server.client.receive_message().queue_url(&url).max_number_of_messages(10);
    let received = receive.message_system_attribute_names(System::All).send().await.unwrap();
    assert_eq!(received.messages().len(), 1);
    let system = received.messages()[0].attributes().unwrap();
    assert_eq!(system[&System::MessageGroupId], "order-1");
    assert_eq!(system[&System::MessageDeduplicationId], "event-1");
    assert_eq!(Some(system[&System::SequenceNumber].as_str()), sent.sequence_number());
    server.stop().await;
}

#[tokio::test]
async fn batches_keep_the_order_of_their_entries() {
    let (server, url) = with_queue(&[(Attribute::ContentBasedDeduplication, "true")]).await;
    let entry = |id: &str, group: Option<&str>, body: &str| {
        let entry = SendMessageBatchRequestEntry::builder().id(id).message_body(body);
        entry.set_message_group_id(group.map(str::to_owned)).build().unwrap()
    };
    let entries =
        [entry("0", Some("a"), "a1"), entry("1", None, "x"), entry("2", Some("b"), "b1"), entry("3", Some("a"), "a2")];
    let batch = server.client.send_message_batch().queue_url(&url).set_entries(Some(entries.into()));
    let sent = batch.send().await.unwrap();
    let numbers: Vec<_> = sent.successful().iter().filter_map(|entry| entry.sequence_number()).collect();
    assert!(numbers.len() == 3 && numbers.is_sorted(), "{numbers:?}");
    assert_eq!((sent.failed()[0].id(), sent.failed()[0].code()), ("1", "MissingParameter"));

    let receive = server.client.receive_message().queue_url(&url).max_number_of_messages(10);
    assert_eq!(bodies(&receive.send().await.unwrap()), ["a1", "a2", "b1"]);
    server.stop().await;
}

#[tokio::test]
async fn attributes_of_a_fifo_queue_are_set_and_read() {
    let (server, url) = with_queue(&[
        (Attribute::DeduplicationScope, "messageGroup"),
        (Attribute::FifoThroughputLimit, "perMessageGroupId"),
    ])
    .await;
    assert!(url.ends_with("/000000000000/main.fifo"), "{url}");
    let set = server.client.set_queue_attributes().queue_url(&url);
    set.attributes(Attribute::ContentBasedDeduplication, "true").send().await.unwrap();
    for (attribute, expected) in [
        (Attribute::FifoQueue, "true"),
        (Attribute::ContentBasedDeduplication, "true"),
        (Attribute::DeduplicationScope, "messageGroup"),
        (Attribute::FifoThroughputLimit, "perMessageGroupId"),
    ] {
        assert_eq!(server.attribute(&url, attribute).await.as_deref(), Some(expected));
    }
    server.stop().await;
}

#[tokio::test]
async fn the_sdk_tells_a_fifo_queues_errors_apart() {
    let (server, url) = with_queue(&[]).await;
    let client = &server.client;
    let send = || client.send_message().queue_url(&url).message_body("x");
    for (request, code, expected) in [
        (send(), "MissingParameter", "MessageGroupId"),
        (send().message_group_id("g"), "InvalidParameterValue", "ContentBasedDeduplication"),
        (message(&server, &url, "a b", "x"), "InvalidParameterValue", "MessageGroupId"),
        (message(&server, &url, "g", "x").delay_seconds(1), "InvalidParameterValue", "DelaySeconds"),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{expected}");
        assert!(error.message().is_some_and(|message| message.contains(expected)), "{error:?}");
    }

    let standard = server.create("standard", &[]).await;
    let group = client.create_queue().queue_name("other").attributes(Attribute::DeduplicationScope, "queue");
    assert!(group.send().await.unwrap_err().into_service_error().is_invalid_attribute_name());
    let scope = client.create_queue().queue_name("other.fifo").attributes(Attribute::FifoQueue, "true");
    let scope = scope.attributes(Attribute::FifoThroughputLimit, "perMessageGroupId").send().await.unwrap_err();
    assert!(scope.into_service_error().is_invalid_attribute_value());
    let dead = client.create_queue().queue_name("other.fifo").attributes(Attribute::FifoQueue, "true");
    let dead = dead.attributes(Attribute::RedrivePolicy, redrive_policy("standard", 3)).send().await.unwrap_err();
    assert_eq!(dead.code(), Some("InvalidParameterValue"));
    assert!(dead.message().is_some_and(|message| message.contains("same type of queue")), "{dead:?}");
    let attempt = client.receive_message().queue_url(&standard).receive_request_attempt_id("1").send().await;
    assert_eq!(attempt.unwrap_err().code(), Some("InvalidParameterValue"));
    server.stop().await;
}

#[tokio::test]
async fn a_handle_that_has_ended_deletes_nothing_and_says_so() {
    let (server, url) = with_queue(&[]).await;
    message(&server, &url, "g", "x").send().await.unwrap();
    let handle = server.receive(&url).await.remove(0).1;
    let change = server.client.change_message_visibility().queue_url(&url).receipt_handle(&handle);
    change.visibility_timeout(0).send().await.unwrap();

    let refused = server.client.delete_message().queue_url(&url).receipt_handle(&handle).send().await.unwrap_err();
    assert_eq!(refused.code(), Some("InvalidParameterValue"));
    assert!(refused.message().is_some_and(|message| message.contains("The receipt handle has expired")));
    assert_eq!(server.receive(&url).await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_attempt_is_answered_as_before() {
    let (server, url) = with_queue(&[]).await;
    for body in ["a1", "a2"] {
        message(&server, &url, "a", body).send().await.unwrap();
    }
    let attempt = || server.client.receive_message().queue_url(&url).receive_request_attempt_id("attempt").send();
    let handle = |received: &ReceiveMessageOutput| received.messages()[0].receipt_handle().unwrap().to_owned();
    let first = attempt().await.unwrap();
    let again = attempt().await.unwrap();
    assert_eq!((bodies(&first), handle(&first)), (bodies(&again), handle(&again)));
    server.stop().await;
}

#[tokio::test]
async fn a_long_poll_ends_when_a_delete_frees_the_group() {
    let (server, url) = with_queue(&[]).await;
    for body in ["a1", "a2"] {
        message(&server, &url, "a", body).send().await.unwrap();
    }
    let first = server.client.receive_message().queue_url(&url).send().await.unwrap();
    let poll = tokio::spawn(server.client.receive_message().queue_url(&url).wait_time_seconds(20).send());
    let handle = first.messages()[0].receipt_handle().unwrap();
    server.client.delete_message().queue_url(&url).receipt_handle(handle).send().await.unwrap();
    let second = timeout(BOUND, poll).await.expect("the wait did not end").unwrap().unwrap();
    assert_eq!((bodies(&first), bodies(&second)), (vec!["a1"], vec!["a2"]));
    server.stop().await;
}
