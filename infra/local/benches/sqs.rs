//! Throughput of the SQS server: 16 clients on connections of their own send, receive and delete while 100,000 messages
//! wait. The clients speak plain HTTP/1.1 through hyper, since the SDK's signing would cost more than the server. Server
//! and clients share the machine. Run it with `cargo bench -p local --bench sqs`; it takes about 15 seconds.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use local::sqs::{Broker, serve};
use queue::{QueueName, ReceiveRequest};
use serde::Deserialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

const CLIENTS: usize = 16;
const WAITING: usize = 100_000;
const BATCH: usize = 10;
const RUN: Duration = Duration::from_secs(5);
const QUEUE: &str = "bench";
/// Bytes of a message's body: an event of two players, as the request handler writes it.
const BODY_BYTES: usize = 600;

type Failure = Box<dyn Error + Send + Sync>;

/// One keep-alive connection.
struct Client {
    connection: SendRequest<Full<Bytes>>,
    queue_url: String,
    body: String,
}

/// How long every call of one kind took.
#[derive(Default)]
struct Latencies(Vec<Duration>);

/// What a client did in a run.
#[derive(Default)]
struct Done {
    cycles: usize,
    send: Latencies,
    receive: Latencies,
    delete: Latencies,
}

#[derive(Debug, Clone, Copy)]
enum Size {
    Single,
    Batch,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Received<'a> {
    #[serde(borrow, default)]
    messages: Vec<Handle<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Handle<'a> {
    receipt_handle: &'a str,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let broker = Broker::default();
    let queue = broker.create_queue(QUEUE, &BTreeMap::new())?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, broker.clone(), async move { stopped.await.unwrap_or_default() }));

    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(address).await?);
    }
    println!("{CLIENTS} clients, plain HTTP/1.1 (hyper), bodies of {BODY_BYTES} bytes, default of 30 s in flight");
    clients = fill(clients).await?;
    println!("waiting before: {}", broker.counts(&queue)?.visible);
    for size in [Size::Batch, Size::Single] {
        clients = run(clients, size).await?;
    }
    println!("waiting after: {}", broker.counts(&queue)?.visible);
    in_process(&broker, &queue).await?;

    drop(clients);
    stop.send(()).map_err(|()| "the server has ended before it was asked to")?;
    server.await??;
    Ok(())
}

/// Puts the waiting messages in, in batches.
async fn fill(clients: Vec<Client>) -> Result<Vec<Client>, Failure> {
    let started = Instant::now();
    let (clients, done) = all(clients, |mut client| async move {
        let mut done = Done::default();
        for _ in 0..WAITING.div_ceil(CLIENTS * BATCH) {
            client.send(Size::Batch, &mut done.send).await?;
        }
        Ok((client, done))
    })
    .await?;
    let mut send = Latencies::default();
    done.into_iter().for_each(|done| send.0.extend(done.send.0));
    let per_second = (send.0.len() * BATCH) as f64 / started.elapsed().as_secs_f64();
    println!("filling, batches of {BATCH}: {per_second:.0} messages/s sent; a call {}", send.summary());
    Ok(clients)
}

/// Sends, receives and deletes with every client until the time is over.
async fn run(clients: Vec<Client>, size: Size) -> Result<Vec<Client>, Failure> {
    let started = Instant::now();
    let (clients, done) = all(clients, move |mut client| async move {
        let mut done = Done::default();
        while started.elapsed() < RUN {
            client.cycle(size, &mut done).await?;
        }
        Ok((client, done))
    })
    .await?;
    let elapsed = started.elapsed().as_secs_f64();
    let mut sum = Done::default();
    for done in done {
        sum.cycles += done.cycles;
        sum.send.0.extend(done.send.0);
        sum.receive.0.extend(done.receive.0);
        sum.delete.0.extend(done.delete.0);
    }
    println!("{size:?}: {:.0} messages/s sent, received and deleted", sum.cycles as f64 / elapsed);
    for (name, latencies) in [("send", sum.send), ("receive", sum.receive), ("delete", sum.delete)] {
        println!("  {name:<8} {}", latencies.summary());
    }
    Ok(clients)
}

/// The same cycle on the broker alone, from one task: what HTTP and JSON cost is the difference.
async fn in_process(broker: &Broker, queue: &QueueName) -> Result<(), Failure> {
    let (started, mut cycles) = (Instant::now(), 0);
    let body = "x".repeat(BODY_BYTES);
    while started.elapsed() < Duration::from_secs(1) {
        let batch = (0..BATCH).map(|_| queue::SendRequest::from_body(&*body)).collect();
        broker.send_many(queue, batch).into_iter().collect::<Result<Vec<_>, _>>()?;
        let request = ReceiveRequest { max: BATCH, visibility_timeout: None };
        let deliveries = broker.receive(queue, request, Duration::ZERO).await?;
        let receipts: Vec<_> = deliveries.into_iter().map(|delivery| delivery.receipt).collect();
        cycles += broker.delete_many(queue, &receipts).into_iter().filter(Result::is_ok).count();
    }
    let per_second = f64::from(u32::try_from(cycles)?) / started.elapsed().as_secs_f64();
    println!("in process, without HTTP: {per_second:.0} messages/s sent, received and deleted");
    Ok(())
}

/// Runs a task for each client and waits for all of them.
async fn all<F, T>(clients: Vec<Client>, task: F) -> Result<(Vec<Client>, Vec<Done>), Failure>
where
    F: Fn(Client) -> T,
    T: Future<Output = Result<(Client, Done), Failure>> + Send + 'static,
{
    let tasks: Vec<_> = clients.into_iter().map(|client| tokio::spawn(task(client))).collect();
    let (mut clients, mut results) = (Vec::new(), Vec::new());
    for task in tasks {
        let (client, done) = task.await??;
        clients.push(client);
        results.push(done);
    }
    Ok((clients, results))
}

impl Client {
    async fn connect(address: std::net::SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        let queue_url = format!("http://{address}/000000000000/{QUEUE}");
        Ok(Self { connection, queue_url, body: format!("{{\"event\":\"{}\"}}", "x".repeat(BODY_BYTES - 12)) })
    }

    async fn cycle(&mut self, size: Size, done: &mut Done) -> Result<(), Failure> {
        self.send(size, &mut done.send).await?;
        let most = match size {
            Size::Single => 1,
            Size::Batch => BATCH,
        };
        let request = json!({"QueueUrl": self.queue_url, "MaxNumberOfMessages": most});
        let answer = self.call("ReceiveMessage", &request, &mut done.receive).await?;
        let received: Received = serde_json::from_slice(&answer)?;
        if received.messages.is_empty() {
            return Err("a receive returned nothing with messages waiting".into());
        }
        match size {
            Size::Single => {
                let request = json!({"QueueUrl": self.queue_url, "ReceiptHandle": received.messages[0].receipt_handle});
                self.call("DeleteMessage", &request, &mut done.delete).await?;
            }
            Size::Batch => {
                let entry = |(index, message): (usize, &Handle)| json!({"Id": index.to_string(), "ReceiptHandle": message.receipt_handle});
                let entries: Vec<_> = received.messages.iter().enumerate().map(entry).collect();
                let request = json!({"QueueUrl": self.queue_url, "Entries": entries});
                self.call("DeleteMessageBatch", &request, &mut done.delete).await?;
            }
        }
        done.cycles += received.messages.len();
        Ok(())
    }

    async fn send(&mut self, size: Size, latencies: &mut Latencies) -> Result<(), Failure> {
        let (operation, request) = match size {
            Size::Single => ("SendMessage", json!({"QueueUrl": self.queue_url, "MessageBody": self.body})),
            Size::Batch => {
                let entry = |index: usize| json!({"Id": index.to_string(), "MessageBody": self.body});
                let entries: Vec<_> = (0..BATCH).map(entry).collect();
                ("SendMessageBatch", json!({"QueueUrl": self.queue_url, "Entries": entries}))
            }
        };
        self.call(operation, &request, latencies).await.map(|_| ())
    }

    async fn call(
        &mut self,
        operation: &str,
        request: &serde_json::Value,
        latencies: &mut Latencies,
    ) -> Result<Bytes, Failure> {
        let request = Request::post("/")
            .header("host", "127.0.0.1")
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("AmazonSQS.{operation}"))
            .body(Full::new(Bytes::from(serde_json::to_vec(request)?)))?;
        let started = Instant::now();
        self.connection.ready().await?;
        let response = self.connection.send_request(request).await?;
        let (status, body) = (response.status(), response.into_body().collect().await?.to_bytes());
        latencies.0.push(started.elapsed());
        if !status.is_success() || body.windows(8).any(|window| window == b"\"Failed\"") {
            return Err(format!("{operation} was answered with {status} {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(body)
    }
}

impl Latencies {
    fn summary(mut self) -> String {
        self.0.sort_unstable();
        let at = |share: f64| {
            let index = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
            self.0.get(index).map_or(0.0, |latency| latency.as_secs_f64() * 1_000.0)
        };
        format!("p50 {:.2} ms, p99 {:.2} ms ({} calls)", at(0.5), at(0.99), self.0.len())
    }
}
