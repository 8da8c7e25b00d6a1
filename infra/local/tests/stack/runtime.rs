//! Stand-ins for functions: runtimes that are tasks and speak the Runtime API over HTTP, and plain closures.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use local::lambda::{Functions, Invoke, InvokeError, Launch, LaunchError, Running, Scaling};
use local::model::Function;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Longest time that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What a stand-in does with an event.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Response(String),
    Error {
        error_type: &'static str,
        message: &'static str,
    },
    /// The process ends in the middle of the invocation.
    Exit(&'static str),
    /// The invocation never ends.
    Never,
}

impl Answer {
    pub(crate) fn json(value: &Value) -> Self {
        Self::Response(value.to_string())
    }
}

/// How a stand-in's process begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Init {
    Works,
    Reports,
    Exits,
    Hangs,
}

type Handler = dyn Fn(Value) -> BoxFuture<'static, Answer> + Send + Sync;

/// Starts tasks instead of processes.
pub(crate) struct Runtimes {
    handler: Arc<Handler>,
    init: Init,
    pub(crate) launches: AtomicUsize,
}

impl Runtimes {
    pub(crate) fn new<F>(handler: impl Fn(Value) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::with_init(Init::Works, handler)
    }

    pub(crate) fn with_init<F>(init: Init, handler: impl Fn(Value) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let handler = Arc::new(move |event| handler(event).boxed());
        Arc::new(Self { handler, init, launches: AtomicUsize::new(0) })
    }
}

impl Launch for Runtimes {
    fn launch(&self, _function: &Function, runtime_api: SocketAddr) -> Result<Running, LaunchError> {
        self.launches.fetch_add(1, Ordering::SeqCst);
        let base = format!("http://{runtime_api}/2018-06-01/runtime");
        Ok(run(base, self.init, Arc::clone(&self.handler)).boxed())
    }
}

/// What a runtime does: it asks for work, works, and answers, again and again.
async fn run(base: String, init: Init, handler: Arc<Handler>) -> String {
    let client = Client::builder().no_proxy().build().unwrap();
    match init {
        Init::Works => {}
        Init::Reports => {
            let report = json!({ "errorType": "Config.Missing", "errorMessage": "TABLE is not set" });
            client.post(format!("{base}/init/error")).body(report.to_string()).send().await.unwrap();
            return "exit status: 1".to_owned();
        }
        Init::Exits => return "exit status: 101".to_owned(),
        Init::Hangs => std::future::pending().await,
    }
    loop {
        let next = client.get(format!("{base}/invocation/next")).send().await.unwrap();
        let request_id = next.headers()["lambda-runtime-aws-request-id"].to_str().unwrap().to_owned();
        for header in ["lambda-runtime-deadline-ms", "lambda-runtime-invoked-function-arn", "lambda-runtime-trace-id"] {
            assert!(next.headers().contains_key(header), "{header}");
        }
        let event = next.json().await.unwrap();
        let (path, body) = match handler(event).await {
            Answer::Response(body) => ("response", body),
            Answer::Error { error_type, message } => {
                ("error", json!({ "errorType": error_type, "errorMessage": message }).to_string())
            }
            Answer::Exit(status) => return status.to_owned(),
            Answer::Never => std::future::pending().await,
        };
        client.post(format!("{base}/invocation/{request_id}/{path}")).body(body).send().await.unwrap();
    }
}

/// Scaling with small times.
pub(crate) fn scaling(launcher: Arc<dyn Launch>) -> Scaling {
    Scaling {
        launcher,
        logs: None,
        instances_max: 8,
        idle: Duration::from_secs(60),
        init_timeout: Duration::from_secs(5),
    }
}

/// A function called `function`.
pub(crate) fn function(timeout: Duration) -> Function {
    Function {
        name: "function".to_owned(),
        binary: "function".to_owned(),
        code: "/".into(),
        environment: BTreeMap::new(),
        timeout,
        memory_mib: 256,
    }
}

/// The function `function` alone, with tasks as instances.
pub(crate) fn functions(runtimes: &Arc<Runtimes>) -> Functions {
    let launcher = Arc::clone(runtimes);
    Functions::new(&[function(Duration::from_secs(10))], &scaling(launcher))
}

/// A function without instances: a closure that is told every event.
pub(crate) struct Closure {
    events: Mutex<Vec<Value>>,
    answer: Box<dyn Fn(&Value) -> Answer + Send + Sync>,
}

impl Closure {
    pub(crate) fn new(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { events: Mutex::default(), answer: Box::new(answer) })
    }

    /// The events so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    /// A text of each record of each event so far, for example its body.
    pub(crate) fn records(&self, text: impl Fn(&Value) -> String) -> Vec<Vec<String>> {
        let of_event = |event: &Value| event["Records"].as_array().unwrap().iter().map(&text).collect();
        self.events().iter().map(of_event).collect()
    }
}

impl Invoke for Closure {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'static, Result<Bytes, InvokeError>> {
        let event: Value = serde_json::from_slice(&payload).unwrap();
        let answer = (self.answer)(&event);
        self.events.lock().unwrap().push(event);
        let function = "function".to_owned();
        async move {
            match answer {
                Answer::Response(body) => Ok(body.into()),
                Answer::Error { error_type, message } => Err(InvokeError::Function {
                    function,
                    error_type: error_type.to_owned(),
                    message: message.to_owned(),
                }),
                Answer::Exit(exit) => {
                    Err(InvokeError::Exit { function, request_id: "request".to_owned(), exit: exit.to_owned() })
                }
                Answer::Never => std::future::pending().await,
            }
        }
        .boxed()
    }
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
