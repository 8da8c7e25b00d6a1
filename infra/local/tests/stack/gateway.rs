//! The HTTP API over real sockets: routes, errors, limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use local::gateway::{Gateway, REQUEST_BYTES_MAX};
use local::issuer::PublicKeys;
use local::lambda::Functions;
use local::model::{Access, Route};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::runtime::{Answer, Runtimes, eventually, function, functions, scaling};

/// An API that a function answers.
struct World {
    url: String,
    client: Client,
    gateway: Arc<Gateway>,
    server: JoinHandle<std::io::Result<()>>,
    _functions: Functions,
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl World {
    async fn start(runtimes: Arc<Runtimes>, concurrency: usize) -> Self {
        Self::with_functions(functions(&runtimes), concurrency).await
    }

    async fn with_functions(functions: Functions, concurrency: usize) -> Self {
        let route = |method: &str, path: &str| Route {
            method: method.to_owned(),
            path: path.to_owned(),
            function: "function".to_owned(),
            access: Access::Anyone,
        };
        let routes = [route("POST", "/games"), route("GET", "/players/{player_id}")];
        let gateway = Arc::new(Gateway::new(&routes, &functions, concurrency, PublicKeys::default()).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let server = tokio::spawn(Arc::clone(&gateway).serve(listener));
        let client = Client::builder().no_proxy().build().unwrap();
        Self { url: format!("http://{address}"), client, gateway, server, _functions: functions }
    }

    async fn post(&self, body: impl Into<reqwest::Body>) -> (StatusCode, String) {
        let request = self.client.post(format!("{}/games", self.url)).header("content-type", "application/json");
        let response = request.body(body).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }
}

fn message(status: u16, text: &str) -> (StatusCode, String) {
    (StatusCode::from_u16(status).unwrap(), json!({ "message": text }).to_string())
}

#[tokio::test]
async fn a_request_reaches_the_function_of_its_route_and_the_answer_its_client() {
    let runtimes = Runtimes::new(|event: Value| async move {
        let body = json!({ "route": event["routeKey"], "id": event["pathParameters"]["player_id"] }).to_string();
        Answer::json(&json!({ "statusCode": 203, "headers": { "x-test": "1" }, "body": body }))
    });
    let world = World::start(runtimes, 4).await;

    let response = world.client.get(format!("{}/players/p7", world.url)).send().await.unwrap();

    assert_eq!(response.status(), 203);
    assert_eq!(response.headers()["x-test"], "1");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body, json!({ "route": "GET /players/{player_id}", "id": "p7" }));
    assert_eq!((world.gateway.requests(), world.gateway.failures()), (1, 0));
}

#[tokio::test]
async fn without_a_route_nothing_is_found_and_nothing_started() {
    let runtimes = Runtimes::new(|event| async move { Answer::json(&event) });
    let world = World::start(Arc::clone(&runtimes), 4).await;

    for path in ["/nothing", "/games/7", "/players"] {
        let response = world.client.get(format!("{}{path}", world.url)).send().await.unwrap();
        assert_eq!((response.status(), response.text().await.unwrap()), message(404, "Not Found"), "{path}");
    }

    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_goes_wrong_in_the_function_is_an_internal_error() {
    let runtimes = Runtimes::new(|event: Value| async move {
        match event["body"].as_str() {
            Some("error") => Answer::Error { error_type: "Any", message: "error" },
            Some("exit") => Answer::Exit("exit status: 1"),
            Some("never") => Answer::Never,
            Some("malformed") => Answer::json(&json!({ "statusCode": "no number" })),
            _ => Answer::Response("not JSON".to_owned()),
        }
    });
    let functions = Functions::new(&[function(Duration::from_millis(300))], &scaling(runtimes));
    let world = World::with_functions(functions, 4).await;

    for body in ["error", "exit", "never", "malformed", "other"] {
        assert_eq!(world.post(body).await, message(500, "Internal Server Error"), "{body}");
    }
    assert_eq!((world.gateway.requests(), world.gateway.failures()), (5, 5));
}

#[tokio::test]
async fn bodies_over_the_limit_are_refused() {
    let runtimes = Runtimes::new(|_| async move { Answer::json(&json!({ "statusCode": 200 })) });
    let world = World::start(runtimes, 4).await;

    let too_large = message(413, "Request Entity Too Large");
    assert_eq!(world.post(vec![b'7'; REQUEST_BYTES_MAX + 1]).await, too_large);
    // Smaller than the API's limit, but as an event larger than the function's.
    assert_eq!(world.post(vec![b'7'; 7 * 1024 * 1024]).await, too_large);
    assert_eq!(world.post(vec![b'7'; 5 * 1024 * 1024]).await.0, 200);
}

#[tokio::test]
async fn only_so_many_requests_are_processed_at_once() {
    let open = Arc::new(Semaphore::new(0));
    let working = Arc::new(AtomicUsize::new(0));
    let runtimes = Runtimes::new({
        let (open, working) = (Arc::clone(&open), Arc::clone(&working));
        move |_| {
            let (open, working) = (Arc::clone(&open), Arc::clone(&working));
            async move {
                working.fetch_add(1, Ordering::SeqCst);
                open.acquire().await.unwrap().forget();
                Answer::json(&json!({ "statusCode": 200 }))
            }
        }
    });
    let world = Arc::new(World::start(Arc::clone(&runtimes), 2).await);

    let requests: Vec<_> = (0..5)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.post("{}").await.0 })
        })
        .collect();
    eventually("two at work", || working.load(Ordering::SeqCst) == 2).await;
    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 2);
    open.add_permits(5);

    for request in requests {
        assert_eq!(request.await.unwrap(), 200);
    }
    assert_eq!(runtimes.launches.load(Ordering::SeqCst), 2);
}
