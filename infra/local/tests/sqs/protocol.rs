//! The operations through the AWS SDK.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry, MessageAttributeValue,
    MessageSystemAttributeName as System, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
    QueueAttributeName as Attribute, SendMessageBatchRequestEntry,
};
use tokio::time::timeout;

use crate::server::{Server, redrive_policy};

const BOUND: Duration = Duration::from_secs(10);

fn text(value: &str) -> MessageAttributeValue {
    MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
}

fn entry(id: &str, body: &str) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder().id(id).message_body(body).build().unwrap()
}

#[tokio::test]
async fn a_message_goes_round_with_everything_it_has() {
    let server = Server::start().await;
    let url = server.create("main", &[]).await;
    let binary =
        MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new([0, 255])).build().unwrap();
    let trace = MessageSystemAttributeValue::builder().data_type("String").string_value("Root=1-5-a").build().unwrap();
    let body = "{\"a\":\"\\u00e9\"} é\n\t";
    let sent = server
        .client
        .send_message()
        .queue_url(&url)
        .message_body(body)
        .message_attributes("trace.id", text("t"))
        .message_attributes("bytes", binary)
        .message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, trace)
        .message_group_id("tenant")
        .send()
        .await
        .unwrap();

    let receive = server.client.receive_message().queue_url(&url).message_attribute_names("All");
    let received = receive.message_system_attribute_names(System::All).send().await.unwrap();
    let message = &received.messages()[0];
    assert_eq!((message.message_id(), message.body()), (sent.message_id(), Some(body)));
    assert_eq!(message.md5_of_body(), sent.md5_of_message_body());
    assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
    assert!(sent.md5_of_message_system_attributes().is_some());
    let attributes = message.message_attributes().unwrap();
    assert_eq!(attributes["trace.id"].string_value(), Some("t"));
    assert_eq!(attributes["bytes"].binary_value().map(Blob::as_ref), Some(&[0, 255][..]));
    let system = message.attributes().unwrap();
    assert_eq!(system[&System::ApproximateReceiveCount], "1");
    assert_eq!(system[&System::AwsTraceHeader], "Root=1-5-a");
    assert_eq!(system[&System::MessageGroupId], "tenant");
    assert!(system[&System::SentTimestamp] <= system[&System::ApproximateFirstReceiveTimestamp]);

    server
        .client
        .delete_message()
        .queue_url(&url)
        .receipt_handle(message.receipt_handle().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(server.attribute(&url, Attribute::ApproximateNumberOfMessagesNotVisible).await.as_deref(), Some("0"));
    server.stop().await;
}

#[tokio::test]
async fn a_receive_returns_only_the_attributes_that_it_asks_for() {
    let server = Server::start().await;
    let url = server.create("main", &[]).await;
    let send = server.client.send_message().queue_url(&url).message_body("x");
    let send = send.message_attributes("trace.id", text("1")).message_attributes("other", text("2"));
    let all_md5 = send.send().await.unwrap().md5_of_message_attributes;
    let receive = |pattern: Option<&str>| {
        let request = server.client.receive_message().queue_url(&url).visibility_timeout(0);
        request.set_message_attribute_names(pattern.map(|pattern| vec![pattern.to_owned()])).send()
    };

    let nothing = receive(None).await.unwrap();
    assert!(nothing.messages()[0].message_attributes().is_none() && nothing.messages()[0].attributes().is_none());
    assert_eq!(nothing.messages()[0].md5_of_message_attributes(), None);
    let some = receive(Some("trace.*")).await.unwrap();
    let names: Vec<&String> = some.messages()[0].message_attributes().unwrap().keys().collect();
    assert_eq!(names, ["trace.id"]);
    let some_md5 = some.messages()[0].md5_of_message_attributes();
    assert!(some_md5.is_some() && some_md5 != all_md5.as_deref());
    server.stop().await;
}

#[tokio::test]
async fn a_queue_is_found_by_name_and_by_a_url_of_any_host() {
    let server = Server::start().await;
    let url = server.create("main", &[]).await;
    assert_eq!(url, format!("{}/000000000000/main", server.base_url));
    let found = server.client.get_queue_url().queue_name("main").send().await.unwrap();
    assert_eq!(found.queue_url(), Some(url.as_str()));

    server.send("https://sqs.us-east-1.amazonaws.com/000000000000/main", "x").await;
    assert_eq!(server.receive(&url).await[0].0, "x");
    server.stop().await;
}

#[tokio::test]
async fn lists_of_queues_are_paged_to_the_end() {
    let server = Server::start().await;
    server.create("dead", &[]).await;
    let policy = redrive_policy("dead", 3);
    let mut expected = BTreeSet::new();
    for number in 0..5 {
        expected.insert(server.create(&format!("source-{number}"), &[(Attribute::RedrivePolicy, &policy)]).await);
    }

    let listing = server.client.list_queues().queue_name_prefix("source").max_results(2);
    let (mut listed, mut pages, mut next) = (BTreeSet::new(), 0, None::<String>);
    loop {
        let page = listing.clone().set_next_token(next).send().await.unwrap();
        listed.extend(page.queue_urls().iter().cloned());
        pages += 1;
        next = page.next_token;
        if next.is_none() {
            break;
        }
    }
    assert_eq!((&listed, pages), (&expected, 3));
    let all = server.client.list_queues().send().await.unwrap();
    assert_eq!((all.queue_urls().len(), all.next_token()), (6, None));
    let dead = format!("{}/000000000000/dead", server.base_url);
    let sources = server.client.list_dead_letter_source_queues().queue_url(dead).send().await.unwrap();
    assert_eq!(sources.queue_urls().iter().cloned().collect::<BTreeSet<_>>(), expected);
    server.stop().await;
}

#[tokio::test]
async fn attributes_and_tags_are_set_and_read() {
    let server = Server::start().await;
    let create = server.client.create_queue().queue_name("main").tags("team", "games");
    let url = create.attributes(Attribute::VisibilityTimeout, "190").send().await.unwrap().queue_url.unwrap();
    let set = server.client.set_queue_attributes().queue_url(&url).attributes(Attribute::DelaySeconds, "3");
    set.send().await.unwrap();
    server.client.tag_queue().queue_url(&url).tags("stage", "test").send().await.unwrap();
    server.client.untag_queue().queue_url(&url).tag_keys("team").send().await.unwrap();

    let all = server.client.get_queue_attributes().queue_url(&url).attribute_names(Attribute::All);
    let attributes = all.send().await.unwrap().attributes.unwrap();
    assert_eq!(attributes[&Attribute::VisibilityTimeout], "190");
    assert_eq!(attributes[&Attribute::DelaySeconds], "3");
    assert_eq!(attributes[&Attribute::QueueArn], "arn:aws:sqs:us-east-1:000000000000:main");
    assert_eq!(server.attribute(&url, Attribute::FifoQueue).await, None);
    let tags = server.client.list_queue_tags().queue_url(&url).send().await.unwrap().tags.unwrap();
    assert_eq!(tags.into_iter().collect::<Vec<_>>(), [("stage".to_owned(), "test".to_owned())]);
    server.stop().await;
}

#[tokio::test]
async fn batches_report_each_entry_on_its_own() {
    let server = Server::start().await;
    let url = server.create("main", &[(Attribute::MaximumMessageSize, "1024")]).await;
    let long = "x".repeat(1025);
    let entries = [entry("good", "a"), entry("control", "\u{1}"), entry("long", &long), entry("also-good", "b")];
    let sent =
        server.client.send_message_batch().queue_url(&url).set_entries(Some(entries.into())).send().await.unwrap();
    assert_eq!(sent.successful().iter().map(|entry| entry.id()).collect::<Vec<_>>(), ["good", "also-good"]);
    let failed: Vec<_> = sent.failed().iter().map(|entry| (entry.id(), entry.code(), entry.sender_fault())).collect();
    assert_eq!(failed, [("control", "InvalidMessageContents", true), ("long", "InvalidParameterValue", true)]);

    let received = server.receive(&url).await;
    assert_eq!(received.iter().map(|(body, _)| body.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let change = |id: &str, handle: &str| {
        let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(id).receipt_handle(handle);
        entry.visibility_timeout(0).build().unwrap()
    };
    let changes = server.client.change_message_visibility_batch().queue_url(&url);
    let changed = changes.entries(change("a", &received[0].1)).entries(change("x", "x")).send().await.unwrap();
    assert_eq!(changed.successful()[0].id(), "a");
    assert_eq!((changed.failed()[0].id(), changed.failed()[0].code()), ("x", "ReceiptHandleIsInvalid"));

    let delete = |id: &str, handle: &str| {
        DeleteMessageBatchRequestEntry::builder().id(id).receipt_handle(handle).build().unwrap()
    };
    let deletes = server.client.delete_message_batch().queue_url(&url);
    let deletes = deletes.entries(delete("a", &received[0].1)).entries(delete("b", &received[1].1));
    let deleted = deletes.entries(delete("x", "x")).send().await.unwrap();
    assert_eq!(deleted.successful().iter().map(|entry| entry.id()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(deleted.failed()[0].code(), "ReceiptHandleIsInvalid");
    assert!(server.receive(&url).await.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_message_received_too_often_is_in_the_dead_letter_queue_with_its_source() {
    let server = Server::start().await;
    let dead = server.create("dead", &[]).await;
    let main = server.create("main", &[(Attribute::RedrivePolicy, &redrive_policy("dead", 1))]).await;
    server.send(&main, "poison").await;
    let handle = server.receive(&main).await.remove(0).1;
    let change = server.client.change_message_visibility().queue_url(&main).receipt_handle(handle);
    change.visibility_timeout(0).send().await.unwrap();
    assert!(server.receive(&main).await.is_empty());

    let receive = server.client.receive_message().queue_url(&dead);
    let received = receive.message_system_attribute_names(System::All).send().await.unwrap();
    let message = &received.messages()[0];
    let system = message.attributes().unwrap();
    assert_eq!(message.body(), Some("poison"));
    assert_eq!(system[&System::DeadLetterQueueSourceArn], "arn:aws:sqs:us-east-1:000000000000:main");
    assert_eq!(system[&System::ApproximateReceiveCount], "2");
    server.stop().await;
}

#[tokio::test]
async fn a_long_poll_is_answered_by_the_next_send() {
    let server = Server::start().await;
    // The queue's own wait is used where the request has none.
    let url = server.create("main", &[(Attribute::ReceiveMessageWaitTimeSeconds, "20")]).await;
    let poll = tokio::spawn(server.client.receive_message().queue_url(&url).send());
    server.send(&url, "x").await;
    let received = timeout(BOUND, poll).await.expect("the wait did not end").unwrap().unwrap();
    assert_eq!(received.messages()[0].body(), Some("x"));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_ends_answers_a_long_poll_with_nothing() {
    let server = Server::start().await;
    let dead = server.create("dead", &[]).await;
    let main = server.create("main", &[(Attribute::RedrivePolicy, &redrive_policy("dead", 1))]).await;
    server.send(&main, "poison").await;
    let receive = server.client.receive_message().queue_url(&main).visibility_timeout(0);
    assert_eq!(receive.send().await.unwrap().messages().len(), 1);
    let poll = tokio::spawn(server.client.receive_message().queue_url(&main).wait_time_seconds(20).send());
    // The poll has arrived, and waits, once it has moved the message to the dead letters.
    let arrived = async {
        while server.attribute(&dead, Attribute::ApproximateNumberOfMessages).await.as_deref() != Some("1") {
            tokio::task::yield_now().await;
        }
    };
    timeout(BOUND, arrived).await.expect("the poll did not arrive");

    timeout(BOUND, server.stop()).await.expect("the server did not end");
    let received = timeout(BOUND, poll).await.expect("the poll did not end").unwrap().unwrap();
    assert!(received.messages().is_empty());
}

#[tokio::test]
async fn a_purged_queue_is_empty_and_a_deleted_one_unknown() {
    let server = Server::start().await;
    let url = server.create("main", &[]).await;
    server.send(&url, "x").await;
    server.client.purge_queue().queue_url(&url).send().await.unwrap();
    assert!(server.receive(&url).await.is_empty());
    server.client.delete_queue().queue_url(&url).send().await.unwrap();
    let unknown = server.client.get_queue_url().queue_name("main").send().await.unwrap_err().into_service_error();
    assert!(unknown.is_queue_does_not_exist(), "{unknown:?}");
    assert!(server.broker.queues().is_empty());
}
