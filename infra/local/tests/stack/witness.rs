//! The witness of calls: what passes it is not changed, and who asks for what is noted.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use local::calls::Witness;
use local::sqs::{self, Broker};
use local::stack::Addresses;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=prefix-worker/20261130/us-east-1/sqs/aws4_request, Signature=0";

async fn call(url: &str, operation: &str, body: &Value) -> (StatusCode, Value) {
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client.post(url).header("x-amz-target", format!("AmazonSQS.{operation}")).json(body);
    let answer = request.header("authorization", SIGNATURE).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_call_passes_as_it_is_and_is_noted_for_whoever_signs_it() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker = Broker::default();
    let queue = broker.create_queue("work", &BTreeMap::new()).unwrap();
    tokio::spawn(sqs::serve(listener, broker.clone(), std::future::pending()));
    let services = Addresses { api: address, dynamodb: address, sqs: address };
    let witness = Witness::start(&services).await.unwrap();
    let url = |name: &str| format!("{}/000000000000/{name}", services.sqs_url());

    let batch = json!({ "QueueUrl": url("work"), "Entries": [{ "Id": "0", "MessageBody": "text" }] });
    let (status, sent) = call(witness.sqs_url(), "SendMessageBatch", &batch).await;
    let missing = json!({ "QueueUrl": url("none"), "MessageBody": "text" });
    let refused = call(witness.sqs_url(), "SendMessage", &missing).await;

    assert_eq!((status, &sent["Successful"][0]["Id"]), (StatusCode::OK, &json!("0")), "{sent}");
    assert_eq!(broker.counts(&queue).unwrap().visible, 1);
    assert_eq!(refused.0, StatusCode::BAD_REQUEST);
    assert_eq!(refused, call(&services.sqs_url(), "SendMessage", &missing).await);
    let record = witness.record();
    for queue in ["work", "none"] {
        let resource = format!("arn:aws:sqs:us-east-1:000000000000:{queue}");
        assert!(record.has("prefix-worker", "sqs:SendMessage", &resource), "{record:?}");
    }
}
