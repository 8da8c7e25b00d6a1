//! The request path: validates a command, writes the records that must exist now, and answers; reads what was derived since.
//! No derived data is written here.
//!
//! Commands are idempotent by their natural key: the same one again is answered alike and writes nothing, also when the
//! answer to the first was lost on the way. Who sends it, the token says alone (`access`).

mod access;
mod log;
mod problem;

mod cursor;
mod input;
mod list_cursor;
mod store;
mod tries;

mod board;
mod change;
mod people;

mod days;
mod follows;
mod games;
mod graph;
mod leaderboards;
mod notifications;
mod operations;
mod orders;
mod players;
mod posts;
mod stats;

use std::sync::Arc;

use aws::metrics::Metrics;
use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};
use domain::Attributes;
use events::{EventId, Timestamp};
use serde::Serialize;

pub use store::{Store, StoreError, StoreFault};

use problem::{Kind, Problem};

/// What the routes work with.
pub struct Api {
    store: Store,
    metrics: Metrics,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Api {
    /// Works on these tables, counts requests through `metrics` and takes the time from `clock`.
    pub fn new(store: Store, metrics: Metrics, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { store, metrics, clock: Box::new(clock) }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn mint_event_id(&self) -> Result<EventId, Problem> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).map_err(|error| Problem::internal(&error))?;
        Ok(EventId::mint(self.now(), random))
    }

    fn attributes<T: Serialize>(&self, record: &T) -> Result<Attributes, Problem> {
        let value = serde_json::to_value(record).and_then(serde_json::from_value);
        value.map_err(|error| Problem::internal(&error))
    }
}

/// The event that a request published, on the response's way to the log.
#[derive(Debug, Clone, Copy)]
struct Published(EventId);

/// Makes the service that answers the API's requests.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    Router::new()
        .route("/players", post(players::register))
        .route("/players/{player_id}", get(players::show))
        .route("/players/{player_id}/username", put(players::rename))
        .route("/players/{player_id}/restriction", put(players::restrict).delete(players::reinstate))
        .route("/players/{player_id}/stats", get(stats::show))
        .route("/players/{player_id}/follows/{other}", put(follows::follow).delete(follows::unfollow))
        .route("/players/{player_id}/followers", get(graph::followers))
        .route("/players/{player_id}/following", get(graph::following))
        .route("/players/{player_id}/mutual", get(graph::mutual))
        .route("/players/{player_id}/suggestions", get(graph::suggestions))
        .route("/players/{player_id}/notifications", get(notifications::list))
        .route("/players/{player_id}/notifications/{notification_id}/read", put(notifications::read))
        .route("/posts/{post_id}", get(posts::show).put(posts::publish).delete(posts::delete))
        .route("/posts/{post_id}/reactions/{player_id}", put(posts::react).delete(posts::unreact))
        .route("/games", post(games::end))
        .route("/statistics/days/{date}", get(days::show))
        .route("/players/{player_id}/orders", get(orders::list))
        .route("/orders", post(orders::place))
        .route("/orders/{order_id}", get(orders::show))
        .route("/orders/{order_id}/events", get(orders::events))
        .route("/orders/{order_id}/payment", post(orders::pay))
        .route("/orders/{order_id}/shipment", post(orders::ship))
        .route("/orders/{order_id}/delivery", post(orders::deliver))
        .route("/orders/{order_id}/cancellation", post(orders::cancel))
        .route("/orders/{order_id}/refund", post(orders::refund))
        .route("/operations/gaps", get(operations::gaps))
        .route("/leaderboards/{time_control}", get(leaderboards::list))
        .route("/leaderboards/{time_control}/players/{player_id}", get(leaderboards::standing))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(from_fn_with_state(Arc::clone(&api), log::log))
        .with_state(api)
}

async fn not_found(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(Kind::NotFound, format!("There is no resource {path}."))
}

async fn method_not_allowed(method: Method) -> Problem {
    Problem::new(Kind::MethodNotAllowed, format!("Method {method} is not among those that header Allow names."))
}
