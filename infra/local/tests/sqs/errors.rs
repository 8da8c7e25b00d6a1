//! What the server refuses: as the SDK decodes it, and as it is on the wire.

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{QueueAttributeName as Attribute, SendMessageBatchRequestEntry};
use serde_json::json;

use crate::server::Server;

fn entries(ids: &[&str], body: &str) -> Option<Vec<SendMessageBatchRequestEntry>> {
    let entry = |id: &&str| SendMessageBatchRequestEntry::builder().id(*id).message_body(body).build().unwrap();
    Some(ids.iter().map(entry).collect())
}

#[tokio::test]
async fn the_sdk_tells_a_queues_errors_apart() {
    let server = Server::start().await;
    let client = &server.client;
    let url = server.create("main", &[(Attribute::VisibilityTimeout, "30")]).await;

    let exists = client.create_queue().queue_name("main").attributes(Attribute::VisibilityTimeout, "31");
    assert!(exists.send().await.unwrap_err().into_service_error().is_queue_name_exists());
    let value = client.create_queue().queue_name("other").attributes(Attribute::DelaySeconds, "901");
    assert!(value.send().await.unwrap_err().into_service_error().is_invalid_attribute_value());
    let name = client.set_queue_attributes().queue_url(&url).attributes(Attribute::from("Colour"), "red");
    assert!(name.send().await.unwrap_err().into_service_error().is_invalid_attribute_name());
    let unmarked = client.create_queue().queue_name("orders.fifo").send().await.unwrap_err();
    assert_eq!(unmarked.code(), Some("InvalidParameterValue"));
    let ghost = client.receive_message().queue_url(url.replace("main", "ghost")).send().await;
    assert!(ghost.unwrap_err().into_service_error().is_queue_does_not_exist());
    server.stop().await;
}

#[tokio::test]
async fn the_sdk_tells_a_messages_errors_apart() {
    let server = Server::start().await;
    let client = &server.client;
    let url = server.create("main", &[]).await;

    let contents = client.send_message().queue_url(&url).message_body("\u{b}").send().await;
    assert!(contents.unwrap_err().into_service_error().is_invalid_message_contents());
    let empty = client.send_message().queue_url(&url).message_body("").send().await.unwrap_err();
    assert_eq!(empty.code(), Some("MissingParameter"));
    let long = client.send_message().queue_url(&url).message_body("x".repeat(1_048_577)).send().await.unwrap_err();
    assert_eq!(long.code(), Some("InvalidParameterValue"));
    let delay = client.send_message().queue_url(&url).message_body("x").delay_seconds(901).send().await.unwrap_err();
    assert_eq!(delay.code(), Some("InvalidParameterValue"));
    let fifo = client.send_message().queue_url(&url).message_body("x").message_deduplication_id("1").send().await;
    assert!(fifo.unwrap_err().message().is_some_and(|message| message.contains("MessageDeduplicationId")));

    let handle = client.delete_message().queue_url(&url).receipt_handle("x").send().await.unwrap_err();
    assert!(handle.into_service_error().is_receipt_handle_is_invalid());
    server.send(&url, "x").await;
    let handle = server.receive(&url).await.remove(0).1;
    let change = |seconds| {
        client.change_message_visibility().queue_url(&url).receipt_handle(&handle).visibility_timeout(seconds).send()
    };
    change(0).await.unwrap();
    assert!(change(5).await.unwrap_err().into_service_error().is_message_not_inflight());
    assert_eq!(change(43_201).await.unwrap_err().code(), Some("InvalidParameterValue"));
    server.stop().await;
}

#[tokio::test]
async fn a_receive_outside_the_apis_limits_is_refused_by_parameter() {
    let server = Server::start().await;
    let url = server.create("main", &[]).await;
    let receive = || server.client.receive_message().queue_url(&url);
    for (request, parameter) in [
        (receive().max_number_of_messages(0), "MaxNumberOfMessages"),
        (receive().max_number_of_messages(11), "MaxNumberOfMessages"),
        (receive().wait_time_seconds(21), "WaitTimeSeconds"),
        (receive().visibility_timeout(-1), "VisibilityTimeout"),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.code(), Some("InvalidParameterValue"));
        assert!(error.message().is_some_and(|message| message.contains(parameter)), "{error:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_sdk_tells_a_batchs_errors_apart() {
    let server = Server::start().await;
    let url = server.create("main", &[]).await;
    let eleven: Vec<String> = (0..11).map(|number| number.to_string()).collect();
    let eleven: Vec<&str> = eleven.iter().map(String::as_str).collect();
    let send = |ids: &[&str], body: &str| {
        let request = server.client.send_message_batch().queue_url(&url).set_entries(entries(ids, body));
        async { request.send().await.unwrap_err().into_service_error() }
    };
    assert!(send(&[], "x").await.is_empty_batch_request());
    assert!(send(&eleven, "x").await.is_too_many_entries_in_batch_request());
    assert!(send(&["a", "a"], "x").await.is_batch_entry_ids_not_distinct());
    assert!(send(&["a b"], "x").await.is_invalid_batch_entry_id());
    assert!(send(&["a", "b"], &"x".repeat(600_000)).await.is_batch_request_too_long());
    assert!(server.receive(&url).await.is_empty(), "a refused batch sends nothing");
    server.stop().await;
}

#[tokio::test]
async fn an_error_has_its_type_its_query_code_and_a_message() {
    let server = Server::start().await;
    let answer = server.post("AmazonSQS.GetQueueUrl", r#"{"QueueName":"ghost"}"#).await;
    let body = json!({
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist: ghost."
    });
    assert_eq!(answer, (400, Some("AWS.SimpleQueueService.NonExistentQueue;Sender".to_owned()), body));
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_refused_with_what_is_wrong() {
    let server = Server::start().await;
    server.create("main", &[]).await;
    for (target, body, expected) in [
        ("AmazonSQS.SendMessage", "{", "not what the operation expects"),
        ("AmazonSQS.SendMessage", r#"{"QueueUrl":"main","DelaySeconds":"5"}"#, "DelaySeconds"),
        ("AmazonSQS.SendMessage", r#"{"QueueUrl":"main"}"#, "MessageBody"),
        ("AmazonSQS.SendMessage", r#"{"MessageBody":"x"}"#, "QueueUrl"),
        ("AmazonSQS.SendMessage", "", "QueueUrl"),
        ("AmazonSQS.ReceiveMessage", r#"{"QueueUrl":"main","AttributeNames":["Colour"]}"#, "Colour"),
        ("AmazonSQS.SendMessageBatch", r#"{"QueueUrl":"main","Entries":[{"MessageBody":"x"}]}"#, "Entries.1.Id"),
        ("AmazonSQS.StartMessageMoveTask", "{}", "StartMessageMoveTask"),
        ("AmazonSQS.Dance", "{}", "Dance"),
        ("", "{}", "does not exist"),
    ] {
        let (status, query_error, answer) = server.post(target, body).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(status == 400 && query_error.is_some(), "{target} {body}");
        assert!(message.contains(expected), "{target} {body}: {message}");
    }
    server.stop().await;
}

#[tokio::test]
async fn whoever_does_not_speak_the_json_protocol_is_told_so() {
    let server = Server::start().await;
    let form = reqwest::Client::new().post(&server.base_url).body("Action=ListQueues&Version=2012-11-05");
    let response = form.send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("X-Amz-Target"));
    server.stop().await;
}
