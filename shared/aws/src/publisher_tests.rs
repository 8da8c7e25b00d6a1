//! Batches at their limits, and what SQS's answers are taken for.

use std::sync::{Arc, Mutex};

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;

use super::*;

fn message(bytes: usize) -> Message {
    Message { body: "x".repeat(bytes), attributes: Vec::new(), fifo: None }
}

/// A message for a FIFO queue, named after its group and its number in it.
fn in_group(name: &str) -> Message {
    let place = FifoPlace { group_id: name[..1].to_owned(), deduplication_id: format!("id-{name}") };
    Message { body: name.to_owned(), attributes: Vec::new(), fifo: Some(place) }
}

/// Cuts messages of so many bytes into batches.
fn cut(sizes: &[usize]) -> Vec<Part> {
    let messages: Vec<Message> = sizes.iter().map(|bytes| message(*bytes)).collect();
    batches(&messages.iter().collect::<Vec<_>>())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[test]
fn attributes_count_with_name_type_and_value() {
    let message = Message { body: "12345".to_owned(), attributes: vec![("event_id", "abc".to_owned())], fifo: None };
    assert_eq!(message.bytes(), 5 + "event_id".len() + "String".len() + 3);
}

#[test]
fn a_batch_ends_at_ten_messages_or_one_mebibyte() {
    assert_eq!(cut(&[]), vec![]);
    assert_eq!(cut(&[1; 10]), vec![Part::Batch(0..10)]);
    assert_eq!(cut(&[1; 11]), vec![Part::Batch(0..10), Part::Batch(10..11)]);
    let half = BATCH_BYTES_MAX / 2;
    assert_eq!(cut(&[half, half]), vec![Part::Batch(0..2)]);
    assert_eq!(cut(&[half, half + 1, 1]), vec![Part::Batch(0..1), Part::Batch(1..3)]);
    assert_eq!(cut(&[BATCH_BYTES_MAX]), vec![Part::Batch(0..1)]);
}

#[test]
fn a_message_over_one_mebibyte_is_in_no_batch() {
    let too_big = BATCH_BYTES_MAX + 1;
    assert_eq!(cut(&[too_big]), vec![Part::TooBig(0)]);
    assert_eq!(cut(&[1, too_big, 1]), vec![Part::Batch(0..1), Part::TooBig(1), Part::Batch(2..3)]);
    assert_eq!(cut(&[too_big, too_big]), vec![Part::TooBig(0), Part::TooBig(1)]);
}

#[test]
fn a_batch_has_no_group_twice() {
    let check = |names: &[&str], expected: &[usize]| {
        let messages: Vec<Message> = names.iter().map(|name| in_group(name)).collect();
        let parts = batches(&messages.iter().collect::<Vec<_>>());
        let sizes = parts.iter().map(|part| match part {
            Part::Batch(range) => range.len(),
            Part::TooBig(_) => 0,
        });
        assert_eq!(sizes.collect::<Vec<_>>(), expected, "{names:?}");
    };
    check(&["a1", "b1", "c1"], &[3]);
    check(&["a1", "b1", "a2", "c1", "b2", "a3"], &[2, 3, 1]);
    check(&["a1", "a2", "a3"], &[1, 1, 1]);
}

type Answer = Result<Vec<Result<(), Failure>>, Failure>;

/// Answers from a list, or accepts everything once the list is used up, and remembers how many messages each call had.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<Answer>>,
    calls: Mutex<Vec<usize>>,
}

impl Scripted {
    fn new(answers: Vec<Answer>) -> Self {
        Self { answers: Mutex::new(answers), calls: Mutex::default() }
    }
}

impl SendBatch for Scripted {
    async fn send_batch(&self, _queue_url: &str, messages: &[&Message]) -> Answer {
        self.calls.lock().unwrap().push(messages.len());
        let mut answers = self.answers.lock().unwrap();
        if answers.is_empty() { Ok(vec![Ok(()); messages.len()]) } else { answers.remove(0) }
    }
}

fn failure(fault: Fault) -> Failure {
    Failure { fault, reason: "told so".to_owned() }
}

async fn outcomes(sender: &Scripted, messages: &[Message]) -> Vec<Outcome> {
    let messages: Vec<&Message> = messages.iter().collect();
    publish(sender, "https://queue", &messages, soon()).await
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_sent_again_without_what_was_sent() {
    let sender = Scripted::new(vec![Ok(vec![Ok(()), Err(failure(Fault::Passing)), Err(failure(Fault::Message))])]);
    let outcomes = outcomes(&sender, &[message(1), message(1), message(1)]).await;
    assert_eq!(outcomes, [Outcome::Sent, Outcome::Sent, Outcome::Never { reason: "told so".to_owned() }]);
    assert_eq!(*sender.calls.lock().unwrap(), [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_for_its_content_is_repeated_message_by_message() {
    let sender = Scripted::new(vec![
        Err(failure(Fault::Message)),
        Ok(vec![Ok(())]),
        Err(failure(Fault::Message)),
        Ok(vec![Ok(())]),
    ]);
    let outcomes = outcomes(&sender, &[message(1), message(2), message(3)]).await;
    assert_eq!(outcomes, [Outcome::Sent, Outcome::Never { reason: "told so".to_owned() }, Outcome::Sent]);
    assert_eq!(*sender.calls.lock().unwrap(), [3, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_behind_what_has_to_wait() {
    let busy = || Err(failure(Fault::Passing));
    let sender = Scripted::new(vec![busy(), busy(), busy()]);
    let messages: Vec<Message> = (0..25).map(|_| message(1)).collect();
    let outcomes = outcomes(&sender, &messages).await;
    assert_eq!(outcomes.len(), 25);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Later { .. })), "{outcomes:?}");
    assert_eq!(*sender.calls.lock().unwrap(), [10, 10, 10]);
}

/// Fails messages for a passing reason as long as they are on its list, and remembers what each call carried.
#[derive(Default)]
struct Groups {
    failing: &'static [&'static str],
    calls: Mutex<Vec<Vec<String>>>,
}

impl SendBatch for Groups {
    async fn send_batch(&self, _queue_url: &str, messages: &[&Message]) -> Answer {
        self.calls.lock().unwrap().push(messages.iter().map(|message| message.body.clone()).collect());
        let result = |message: &&Message| match self.failing.contains(&message.body.as_str()) {
            true => Err(failure(Fault::Passing)),
            false => Ok(()),
        };
        Ok(messages.iter().map(result).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn behind_a_message_that_fails_none_of_its_group_is_sent() {
    let sender = Groups { failing: &["a1"], ..Groups::default() };
    let messages = ["b1", "a1", "c1", "a2", "a3", "d1"].map(in_group);
    let outcomes = publish(&sender, "https://queue", &messages.iter().collect::<Vec<_>>(), soon()).await;
    let sent: Vec<bool> = outcomes.iter().map(|outcome| *outcome == Outcome::Sent).collect();
    assert_eq!(sent, [true, false, true, false, false, false]);
    assert_eq!(*sender.calls.lock().unwrap(), [vec!["b1", "a1", "c1"], vec!["a1"], vec!["a1"]]);
}

#[tokio::test(start_paused = true)]
async fn messages_of_one_group_follow_one_another() {
    let sender = Groups::default();
    let messages = ["a1", "b1", "a2", "b2", "c1"].map(in_group);
    let outcomes = publish(&sender, "https://queue", &messages.iter().collect::<Vec<_>>(), soon()).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Sent));
    assert_eq!(*sender.calls.lock().unwrap(), [vec!["a1", "b1"], vec!["a2", "b2", "c1"]]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_takes_nothing_is_asked_once() {
    let sender = Scripted::new(vec![Err(failure(Fault::Queue))]);
    let outcomes = outcomes(&sender, &[message(1), message(1)]).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Never { .. })), "{outcomes:?}");
    assert_eq!(*sender.calls.lock().unwrap(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_answer_leaves_out_is_not_taken_for_sent() {
    let sender = Scripted::new(vec![Ok(vec![Ok(())]); 3]);
    let outcomes = outcomes(&sender, &[message(1), message(1)]).await;
    // The second attempt carries the second message alone, which the answer then names.
    assert_eq!(outcomes, [Outcome::Sent, Outcome::Sent]);
    assert_eq!(*sender.calls.lock().unwrap(), [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_deadline() {
    let sender = Scripted::default();
    let outcomes = publish(&sender, "https://queue", &[&message(1)], Instant::now()).await;
    assert_eq!(outcomes, [Outcome::Later { reason: "the time is up".to_owned() }]);
    assert!(sender.calls.lock().unwrap().is_empty());
}

/// A transport that gives the same answer every time, or none.
#[derive(Debug, Clone)]
struct Canned(Option<(u16, String)>);

impl HttpConnector for Canned {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::ready(match &self.0 {
            Some((status, body)) => Ok(HttpResponse::new((*status).try_into().unwrap(), SdkBody::from(body.as_str()))),
            None => Err(ConnectorError::io("the connection was reset".into())),
        })
    }
}

/// A transport that keeps what it is given and answers nothing.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<serde_json::Value>>>);

impl HttpConnector for Kept {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().unwrap_or_default();
        self.0.lock().unwrap().push(serde_json::from_slice(body).unwrap());
        HttpConnectorFuture::ready(Err(ConnectorError::io("the connection was reset".into())))
    }
}

fn sqs(transport: impl HttpConnector + Clone + 'static) -> Sqs {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("a", "b", None, None, "test"))
        .retry_config(aws_sdk_sqs::config::retry::RetryConfig::disabled())
        .http_client(http_client_fn(move |_, _| SharedHttpConnector::new(transport.clone())))
        .build();
    Sqs::new(aws_sdk_sqs::Client::from_conf(config))
}

async fn answer(canned: Canned) -> Answer {
    let message = Message { body: "{}".to_owned(), attributes: vec![("event_id", "e".to_owned())], fifo: None };
    sqs(canned).send_batch("https://sqs.us-east-1.amazonaws.com/1/q", &[&message, &message]).await
}

#[tokio::test]
async fn a_message_has_a_group_and_a_deduplication_id_if_it_has_a_place_in_a_fifo_queue() {
    let kept = Kept::default();
    let url = "https://sqs.us-east-1.amazonaws.com/1/q.fifo";
    sqs(kept.clone()).send_batch(url, &[&in_group("a1"), &message(1)]).await.unwrap_err();
    let requests = kept.0.lock().unwrap();
    let expected = serde_json::json!([
        {"Id": "0", "MessageBody": "a1", "MessageGroupId": "a", "MessageDeduplicationId": "id-a1"},
        {"Id": "1", "MessageBody": "x"},
    ]);
    assert_eq!(requests[0]["Entries"], expected);
}

#[tokio::test]
async fn each_entry_of_an_answer_is_read_by_its_id() {
    let body = serde_json::json!({
        "Successful": [{"Id": "1", "MessageId": "m", "MD5OfMessageBody": "x"}],
        "Failed": [{"Id": "0", "SenderFault": true, "Code": "InvalidMessageContents", "Message": "bad character"}],
    });
    let results = answer(Canned(Some((200, body.to_string())))).await.unwrap();
    let expected = Failure { fault: Fault::Message, reason: "InvalidMessageContents: bad character".to_owned() };
    assert_eq!(results, [Err(expected), Ok(())]);
}

#[tokio::test]
async fn an_entry_that_the_answer_does_not_name_may_be_sent_again() {
    let body = r#"{"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"x"},{"Id":"x","MessageId":"m","MD5OfMessageBody":"x"}],"Failed":[]}"#;
    let results = answer(Canned(Some((200, body.to_owned())))).await.unwrap();
    assert_eq!(results[0], Ok(()));
    assert_eq!(results[1].as_ref().unwrap_err().fault, Fault::Passing);
}

#[tokio::test]
async fn the_kind_of_a_failed_call_is_read_from_its_answer() {
    let cases = [
        (400, "com.amazonaws.sqs#QueueDoesNotExist", Fault::Queue),
        (400, "AWS.SimpleQueueService.NonExistentQueue", Fault::Queue),
        (400, "com.amazonaws.sqs#BatchRequestTooLong", Fault::Message),
        (400, "InvalidMessageContents", Fault::Message),
        (403, "com.amazon.coral.service#AccessDeniedException", Fault::Queue),
        (400, "com.amazonaws.sqs#KmsDisabled", Fault::Queue),
        (400, "com.amazonaws.sqs#KmsThrottled", Fault::Passing),
        (400, "com.amazonaws.sqs#RequestThrottled", Fault::Passing),
        (400, "ThrottlingException", Fault::Passing),
        (403, "ExpiredTokenException", Fault::Passing),
        (403, "InvalidClientTokenId", Fault::Passing),
        (500, "InternalFailure", Fault::Passing),
        (503, "ServiceUnavailable", Fault::Passing),
    ];
    for (status, code, fault) in cases {
        let body = serde_json::json!({"__type": code, "message": "m"}).to_string();
        let failure = answer(Canned(Some((status, body)))).await.unwrap_err();
        assert_eq!(failure.fault, fault, "{code}: {failure:?}");
    }
}

#[tokio::test]
async fn no_answer_or_half_an_answer_may_get_better() {
    for canned in [Canned(None), Canned(Some((200, "{\"Succ".to_owned()))), Canned(Some((502, "<html>".to_owned())))] {
        let failure = answer(canned.clone()).await.unwrap_err();
        assert_eq!(failure.fault, Fault::Passing, "{canned:?}: {failure:?}");
    }
}

#[test]
fn an_entry_s_code_weighs_more_than_its_blame() {
    let entry = |code: &str, sender_fault| {
        let entry = BatchResultErrorEntry::builder().id("0").code(code).sender_fault(sender_fault).build().unwrap();
        entry_failure(&entry).fault
    };
    assert_eq!(entry("KMS.ThrottlingException", true), Fault::Passing);
    assert_eq!(entry("KMS.DisabledException", true), Fault::Queue);
    assert_eq!(entry("MessageTooLong", true), Fault::Message);
    assert_eq!(entry("InternalError", false), Fault::Passing);
}
