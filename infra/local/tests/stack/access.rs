//! The HTTP API's gate over real sockets: which tokens pass, and that nothing is started for those that do not.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Header};
use local::gateway::Gateway;
use local::issuer::{Grant, Issuer, SigningKey};
use local::lambda::Functions;
use local::model::{Access, JwtAuthorizer, Route};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::runtime::{Answer, Runtimes, functions};

/// An API with an open route, one that needs a token, and one that needs a scope; the function answers with what it is told.
struct World {
    url: String,
    key: SigningKey,
    runtimes: Arc<Runtimes>,
    server: JoinHandle<std::io::Result<()>>,
    _functions: Functions,
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn authorizer() -> JwtAuthorizer {
    JwtAuthorizer {
        header: "authorization".to_owned(),
        issuer: "https://issuer.test".to_owned(),
        audiences: vec!["chess".to_owned()],
    }
}

impl World {
    async fn start() -> Self {
        let runtimes = Runtimes::new(|event: Value| async move {
            let told = event["requestContext"]["authorizer"].to_string();
            Answer::json(&json!({ "statusCode": 200, "body": told }))
        });
        let functions = functions(&runtimes);
        let route = |path: &str, access| Route {
            method: "POST".to_owned(),
            path: path.to_owned(),
            function: "function".to_owned(),
            access,
        };
        let token = |scopes: &[&str]| Access::Token {
            authorizer: authorizer(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        };
        let routes =
            [route("/open", Access::Anyone), route("/token", token(&[])), route("/scope", token(&["games:write"]))];
        let key = SigningKey::generate().unwrap();
        let gateway = Arc::new(Gateway::new(&routes, &functions, 4, key.public_keys()).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(gateway.serve(listener));
        Self { url, key, runtimes, server, _functions: functions }
    }

    async fn post(&self, path: &str, token: Option<&str>) -> Response {
        let request = Client::builder().no_proxy().build().unwrap().post(format!("{}{path}", self.url));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.unwrap()
    }

    fn token(&self, subject: &str, scopes: &[&str]) -> String {
        let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let issuer = Issuer::new(self.key.clone(), authorizer());
        issuer.token(&Grant { subject, scopes: &scopes, lifetime: Duration::from_secs(60) }).unwrap()
    }

    fn signed(&self, key: &SigningKey, kid: &str, claims: &Value) -> String {
        key.sign(&Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::RS256) }, claims).unwrap()
    }

    /// Tokens that somebody without the issuer's key, or with the wrong token of it, could try.
    fn forged(&self) -> Vec<(&'static str, String)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let good = json!({"iss": "https://issuer.test", "aud": "chess", "sub": "ann", "scope": "games:write", "exp": now + 60});
        let changed = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            self.signed(&self.key, self.key.id(), &claims)
        };
        let stranger = SigningKey::generate().unwrap();
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let unsigned =
            |alg: &str| encode(&json!({"alg": alg, "typ": "JWT", "kid": self.key.id()})) + "." + &encode(&good);
        let genuine = self.signed(&self.key, self.key.id(), &good);
        let parts: Vec<&str> = genuine.split('.').collect();
        let mut other = good.clone();
        other["sub"] = json!("bea");
        let with_public_key = unsigned("HS256");
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, self.key.public()), with_public_key.as_bytes());
        vec![
            ("expired", changed("exp", json!(now - 1))),
            ("not yet valid", changed("nbf", json!(now + 60))),
            ("issued later", changed("iat", json!(now + 60))),
            ("wrong audience", changed("aud", json!("checkers"))),
            ("wrong issuer", changed("iss", json!("https://issuer.test.evil"))),
            ("wrong key", self.signed(&stranger, self.key.id(), &good)),
            ("unknown key", self.signed(&stranger, stranger.id(), &good)),
            ("unknown id of the key", self.signed(&self.key, "other", &good)),
            ("no id of a key", self.key.sign(&Header::new(Algorithm::RS256), &good).unwrap()),
            ("no algorithm", unsigned("none") + "."),
            ("no algorithm, in capitals", unsigned("None") + "." + parts[2]),
            ("HS256 with the public key", format!("{with_public_key}.{}", URL_SAFE_NO_PAD.encode(tag))),
            ("another payload", format!("{}.{}.{}", parts[0], encode(&other), parts[2])),
            ("another header", format!("{}.{}.{}", unsigned("RS512").split('.').next().unwrap(), parts[1], parts[2])),
            ("no signature", format!("{}.{}.", parts[0], parts[1])),
            ("two parts", format!("{}.{}", parts[0], parts[1])),
            ("no token", "token".to_owned()),
        ]
    }
}

async fn check_refused(what: &str, response: Response, status: u16, text: &str, challenge: &str) {
    assert_eq!(response.status(), status, "{what}");
    assert!(response.headers()["www-authenticate"].to_str().unwrap().starts_with(challenge), "{what}: {response:?}");
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "message": text }), "{what}");
}

#[tokio::test]
async fn bad_tokens_are_refused_and_nothing_is_started() {
    let world = World::start().await;

    for path in ["/token", "/scope"] {
        check_refused("without", world.post(path, None).await, 401, "Unauthorized", "Bearer").await;
        for (what, token) in world.forged() {
            let challenge = "Bearer scope=\"\" error=\"invalid_token\"";
            check_refused(what, world.post(path, Some(&token)).await, 401, "Unauthorized", challenge).await;
        }
    }

    assert_eq!(world.runtimes.launches.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_good_token_without_the_scope_is_forbidden_and_nothing_is_started() {
    let world = World::start().await;

    for scopes in [&[][..], &["moderate", "operate"], &["games"]] {
        let token = world.token("ann", scopes);
        let challenge = "Bearer scope=\"games:write\" error=\"insufficient_scope\"";
        check_refused("a scope", world.post("/scope", Some(&token)).await, 403, "Forbidden", challenge).await;
    }

    assert_eq!(world.runtimes.launches.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_good_token_passes_and_its_claims_with_it() {
    let world = World::start().await;
    let token = world.token("ann", &["games:write", "moderate"]);

    let told: Value = world.post("/scope", Some(&token)).await.json().await.unwrap();
    let jwt = &told["jwt"];
    assert_eq!((&jwt["claims"]["sub"], &jwt["scopes"]), (&json!("ann"), &json!(["games:write", "moderate"])));
    assert_eq!(jwt["claims"]["scope"], "games:write moderate");
    assert_eq!(jwt["claims"]["aud"], "chess");
    assert!(jwt["claims"]["exp"].is_string(), "{jwt}");
    let told: Value = world.post("/token", Some(&token)).await.json().await.unwrap();
    assert_eq!((&told["jwt"]["claims"]["sub"], &told["jwt"]["scopes"]), (&json!("ann"), &Value::Null));
    let unprefixed = Client::builder().no_proxy().build().unwrap().post(format!("{}/token", world.url));
    assert_eq!(unprefixed.header("authorization", token).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_open_route_looks_at_no_token() {
    let world = World::start().await;

    for token in [None, Some("nonsense")] {
        let response = world.post("/open", token).await;
        assert_eq!((response.status().as_u16(), response.json::<Value>().await.unwrap()), (200, Value::Null));
    }
}
