//! A server on a port of its own, with an SDK client.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use local::sqs::{Broker, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) base_url: String,
    pub(crate) broker: Broker,
    shutdown: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let broker = Broker::default();
        let (shutdown, asked) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, broker.clone(), async move { asked.await.unwrap_or_default() }));
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&base_url)
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .build();
        Self { client: Client::from_conf(config), base_url, broker, shutdown, served }
    }

    /// Creates a queue and returns its URL.
    pub(crate) async fn create(&self, name: &str, attributes: &[(QueueAttributeName, &str)]) -> String {
        let mut request = self.client.create_queue().queue_name(name);
        for (attribute, value) in attributes {
            request = request.attributes(attribute.clone(), *value);
        }
        request.send().await.unwrap().queue_url.unwrap()
    }

    pub(crate) async fn send(&self, url: &str, body: &str) {
        self.client.send_message().queue_url(url).message_body(body).send().await.unwrap();
    }

    /// Receives up to ten messages without waiting, and returns their bodies and handles.
    pub(crate) async fn receive(&self, url: &str) -> Vec<(String, String)> {
        let received = self.client.receive_message().queue_url(url).max_number_of_messages(10).send().await.unwrap();
        let part = |text: Option<String>| text.unwrap();
        received.messages().iter().cloned().map(|message| (part(message.body), part(message.receipt_handle))).collect()
    }

    pub(crate) async fn attribute(&self, url: &str, name: QueueAttributeName) -> Option<String> {
        let request = self.client.get_queue_attributes().queue_url(url).attribute_names(name.clone());
        request.send().await.unwrap().attributes.and_then(|attributes| attributes.get(&name).cloned())
    }

    /// Posts a body to an operation and returns status, `x-amzn-query-error` and body.
    pub(crate) async fn post(&self, target: &str, body: &str) -> (u16, Option<String>, serde_json::Value) {
        let request = reqwest::Client::new().post(&self.base_url).header("X-Amz-Target", target).body(body.to_owned());
        let response = request.send().await.unwrap();
        let query_error = response.headers().get("x-amzn-query-error").map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), query_error, response.json().await.unwrap())
    }

    /// Asks the server to end and waits until it has.
    pub(crate) async fn stop(self) {
        let Self { shutdown, served, client, .. } = self;
        drop(client);
        shutdown.send(()).unwrap();
        served.await.unwrap().unwrap();
    }
}

pub(crate) fn redrive_policy(queue: &str, max_receive_count: u32) -> String {
    format!(
        r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:{queue}","maxReceiveCount":{max_receive_count}}}"#
    )
}
