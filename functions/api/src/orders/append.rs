//! Appending to the event store: each command is decided on what the events say, and is one transaction of its event and its
//! own record. Whoever is overtaken decides again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension as ResponseExtension, Json};
use domain::orders::{
    CommandRecord, EventRecord, Illegal, Order, OrderCommand, OrderRequest, Refusal, Snapshot, decide, same_request,
};
use domain::players::Player;
use domain::{Key, State as Rows};
use events::{Event, OrderId, Payload, TraceId};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::history::{History, incomplete, not_found};
use super::input::{amount_cents, command, placement};
use super::read::owner;
use crate::access::{Actor, Scope};
use crate::input::{self, Object};
use crate::log;
use crate::problem::{Kind, Place, Problem, parameter};
use crate::store::{Commit, Replacement, full_jitter};
use crate::{Api, Published};

/// How often a command is decided and written, at most.
const TRIES_MAX: u32 = 8;
/// Wait before the second try, at most. It doubles with each up to the limit below.
const BACKOFF: Duration = Duration::from_millis(5);
/// How long after its start a command is not tried again, so that the answer comes before the function is stopped.
const TRY_FOR: Duration = Duration::from_secs(4);

/// Whose command it is.
enum Sender {
    /// Somebody who was found to be allowed to send it, whatever the order is.
    Allowed,
    /// Somebody whose order it has to be.
    Owner(Actor),
}

impl Sender {
    /// Whoever has to be the order's player.
    fn customer(actor: Actor) -> Result<Self, Problem> {
        Ok(Self::Owner(actor))
    }

    /// Whoever runs the shop.
    fn operator(actor: Actor) -> Result<Self, Problem> {
        actor.must_have(Scope::Operate).map(|()| Self::Allowed)
    }

    fn check(&self, order: Option<&Order>) -> Result<(), Problem> {
        match (self, order) {
            (Self::Owner(actor), Some(order)) => actor.must_own(&order.player_id, parameter("order_id")),
            // Without an order there is nothing to carry out.
            (Self::Owner(_), None) | (Self::Allowed, _) => Ok(()),
        }
    }
}

/// `POST /orders`: 201 for a new order, 200 for the same command again, 409 for another order under the same id, 422 for a
/// player who is not registered.
pub(crate) async fn place(
    State(api): State<Arc<Api>>,
    actor: Actor,
    Extension(trace_id): Extension<TraceId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = input::json(&headers, body).await?;
    let command = placement(&body, &headers, api.now(), &actor)?;
    let location = [(LOCATION, format!("/orders/{}", command.order_id))];
    Ok((location, carry_out(&api, &command, &Sender::Allowed, trace_id).await?).into_response())
}

macro_rules! command_on_an_order {
    ($(#[$doc:meta])* $name:ident, $sender:expr, $fields:expr, $read:expr) => {
        $(#[$doc])*
        pub(crate) async fn $name(
            State(api): State<Arc<Api>>,
            actor: Actor,
            Extension(trace_id): Extension<TraceId>,
            Path(order_id): Path<String>,
            headers: HeaderMap,
            body: Body,
        ) -> Result<Response, Problem> {
            let sender = $sender(actor)?;
            let order_id: OrderId = input::path_parameter("order_id", &order_id)?;
            let body = input::json(&headers, body).await?;
            let command = command(order_id, &body, &headers, api.now(), &$fields, $read)?;
            carry_out(&api, &command, &sender, trace_id).await
        }
    };
}

command_on_an_order!(
    /// `POST /orders/{order_id}/payment`: 201, or 200 for the same command again, 403 for another player's order, 409 for what the
    /// order does not allow.
    pay,
    Sender::customer,
    ["amount_cents"],
    |fields: &mut Object<'_>| {
        Some(OrderRequest::Pay { amount_cents: fields.required("amount_cents", amount_cents)? })
    }
);
command_on_an_order!(
    /// `POST /orders/{order_id}/shipment`, for operators, answered like a payment.
    ship,
    Sender::operator,
    ["tracking_code"],
    |fields: &mut Object<'_>| {
        Some(OrderRequest::Ship { tracking_code: fields.required("tracking_code", input::text)? })
    }
);
command_on_an_order!(
    /// `POST /orders/{order_id}/delivery`, for operators, answered like a payment.
    deliver,
    Sender::operator,
    [],
    |_: &mut Object<'_>| Some(OrderRequest::Deliver)
);
command_on_an_order!(
    /// `POST /orders/{order_id}/cancellation`, answered like a payment.
    cancel,
    Sender::customer,
    ["reason"],
    |fields: &mut Object<'_>| Some(OrderRequest::Cancel { reason: fields.required("reason", input::text)? })
);
command_on_an_order!(
    /// `POST /orders/{order_id}/refund`, for operators, answered like a payment.
    refund,
    Sender::operator,
    [],
    |_: &mut Object<'_>| Some(OrderRequest::Refund)
);

/// What one try comes to.
enum Try {
    Answered(Response),
    /// To be decided again. The version is the one that could not be written.
    Again {
        version: u64,
        reason: String,
    },
}

async fn carry_out(api: &Api, command: &OrderCommand, sender: &Sender, trace_id: TraceId) -> Result<Response, Problem> {
    let started = Instant::now();
    let mut last = None;
    for attempt in 0..TRIES_MAX {
        if attempt > 0 {
            sleep(full_jitter(BACKOFF, attempt)).await;
        }
        if started.elapsed() > TRY_FOR {
            break;
        }
        match try_once(api, command, sender, trace_id).await? {
            Try::Answered(response) => return Ok(response),
            Try::Again { version, reason } => last = Some((version, reason)),
        }
    }
    let (version, reason) = last.unwrap_or_default();
    Err(overtaken(api, command, version, reason).await?)
}

/// Reads, decides and appends once.
async fn try_once(api: &Api, command: &OrderCommand, sender: &Sender, trace_id: TraceId) -> Result<Try, Problem> {
    let order_id = &command.order_id;
    let command_key = CommandRecord::key(order_id, &command.command_id);
    let rows = api.store.fetch(&needs(command, &command_key)).await?;
    if let Some(done) = rows.row(&command_key)?.decode::<CommandRecord>(&command_key)? {
        return repeated(api, command, sender, done.event_version).await.map(Try::Answered);
    }
    unregistered(command, &rows)?;
    let history = History::read(api, order_id, &rows).await?;
    sender.check(history.order.as_ref())?;
    let order = history.complete(order_id)?;
    let decision = match decide(&command.request, order.as_ref()) {
        Ok(decision) => decision,
        Err(refusal) => return done_meanwhile(api, command, sender, &command_key, &refusal).await.map(Try::Answered),
    };
    // A new id for every try, of which one at most is written: it serves as the transaction's token, too.
    let event_id = api.mint_event_id()?;
    let event = Event {
        event_id,
        aggregate_id: order_id.to_string(),
        version: decision.version,
        occurred_at: command.occurred_at,
        trace_id,
        payload: Payload::Order(decision.event),
    };
    let records = records(api, command, &event, command_key)?;
    Ok(match api.store.replace(records, event_id.to_string()).await? {
        Commit::Done => {
            log::written(&event, &EventRecord::key(order_id, event.version));
            Try::Answered(answer(StatusCode::CREATED, &event))
        }
        Commit::Again(reason) => Try::Again { version: event.version, reason },
    })
}

/// Answers a command that the events refuse. They were read after the command's record: an earlier request with the same command,
/// whose answer was lost, may have been carried out in between, and what refuses the command is then its own event.
async fn done_meanwhile(
    api: &Api,
    command: &OrderCommand,
    sender: &Sender,
    command_key: &Key,
    refusal: &Refusal,
) -> Result<Response, Problem> {
    let rows = api.store.fetch(std::slice::from_ref(command_key)).await?;
    match rows.row(command_key)?.decode::<CommandRecord>(command_key)? {
        Some(done) => repeated(api, command, sender, done.event_version).await,
        None => Err(refused(&command.order_id, refusal)),
    }
}

fn needs(command: &OrderCommand, command_key: &Key) -> Vec<Key> {
    let mut keys = vec![command_key.clone(), Snapshot::key(&command.order_id)];
    if let OrderRequest::Place { player_id, .. } = &command.request {
        keys.push(Player::key(player_id));
    }
    keys
}

fn unregistered(command: &OrderCommand, rows: &Rows) -> Result<(), Problem> {
    let OrderRequest::Place { player_id, .. } = &command.request else { return Ok(()) };
    if rows.row(&Player::key(player_id))?.attributes.is_some() {
        return Ok(());
    }
    Err(Problem::new(Kind::UnknownPlayer, format!("There is no player {player_id}."))
        .with_error(Place::Pointer("#/player_id".to_owned()), "is not registered"))
}

/// The event and the record of its command, both where nothing has ever been.
fn records(api: &Api, command: &OrderCommand, event: &Event, command_key: Key) -> Result<Vec<Replacement>, Problem> {
    let key = EventRecord::key(&command.order_id, event.version);
    let inserted_at = api.now();
    let record = EventRecord { event: event.clone(), inserted_at, command_id: command.command_id.clone() };
    let attributes = record.attributes(&key)?;
    let marker = CommandRecord { event_version: event.version }.attributes(&command_key)?;
    Ok(vec![
        Replacement { key, before: 0, attributes },
        Replacement { key: command_key, before: 0, attributes: marker },
    ])
}

/// Answers a command that was carried out before with the event that it came to.
async fn repeated(api: &Api, command: &OrderCommand, sender: &Sender, version: u64) -> Result<Response, Problem> {
    if let Sender::Owner(actor) = sender {
        actor.must_own(&owner(api, &command.order_id).await?, parameter("order_id"))?;
    }
    let key = EventRecord::key(&command.order_id, version);
    let rows = api.store.fetch(std::slice::from_ref(&key)).await?;
    let Ok(record) = EventRecord::read(&key, rows.row(&key)?) else {
        return Err(incomplete(&command.order_id, version));
    };
    if let Payload::Order(event) = &record.event.payload
        && same_request(&command.request, event)
    {
        return Ok(answer(StatusCode::OK, &record.event));
    }
    let detail = format!("Command {} asked for something else of order {}.", command.command_id, command.order_id);
    Err(Problem::new(Kind::Conflict, detail))
}

fn refused(order_id: &OrderId, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Taken => Problem::new(Kind::Conflict, format!("Another order was placed as {order_id}.")),
        Refusal::Illegal(Illegal::NoOrder) => not_found(order_id),
        Refusal::Illegal(illegal) => Problem::new(Kind::IllegalTransition, format!("Order {order_id}: {illegal}.")),
    }
}

/// The problem of a command that was tried often enough: others were faster each time, or the store is busy.
async fn overtaken(api: &Api, command: &OrderCommand, version: u64, reason: String) -> Result<Problem, Problem> {
    let key = EventRecord::key(&command.order_id, version);
    let rows = api.store.fetch(std::slice::from_ref(&key)).await?;
    if rows.row(&key)?.version == 0 {
        return Ok(Problem::unavailable(reason));
    }
    let detail = format!("Order {} was changed by others at the same time, {TRIES_MAX} times.", command.order_id);
    Ok(Problem::new(Kind::ConcurrentChange, detail))
}

fn answer(status: StatusCode, event: &Event) -> Response {
    let published = ResponseExtension(Published(event.event_id));
    match serde_json::to_value(event) {
        Ok(event) => (status, published, Json::<Value>(event)).into_response(),
        Err(error) => Problem::internal(&error).into_response(),
    }
}
