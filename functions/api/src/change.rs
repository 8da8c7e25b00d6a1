//! Commands that change one record. The record and the event that its change publishes are one item and one write.

use aws::items::EVENT;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use domain::{Change, Key, Row, State};
use events::{Event, EventId, Timestamp, TraceId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::log;
use crate::problem::Problem;
use crate::store::{Commit, Replacement};
use crate::tries::{Tries, Try};
use crate::{Api, Published};

/// What a command is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The record that it changes.
    pub(crate) key: Key,
    /// The business object, as events name it.
    pub(crate) aggregate_id: String,
    /// Records that it depends on and does not change.
    pub(crate) others: Vec<Key>,
    /// The request's trace.
    pub(crate) trace_id: TraceId,
}

/// A command that is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed<R> {
    /// The record as it stands now.
    pub(crate) record: R,
    /// Whether there was none before.
    outcome: Outcome,
    /// The event that the record carries.
    event_id: Option<EventId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Changed,
    Same,
}

impl<R> Changed<R> {
    /// Answers with what is shown of the record: 201 if the command has created it, 200 otherwise.
    pub(crate) fn answer(self, shown: impl Serialize) -> Response {
        let status = match self.outcome {
            Outcome::Created => StatusCode::CREATED,
            Outcome::Changed | Outcome::Same => StatusCode::OK,
        };
        let response = (status, Json(shown));
        match self.event_id {
            Some(event_id) => (Extension(Published(event_id)), response).into_response(),
            None => response.into_response(),
        }
    }
}

/// Carries out a command: `decide` is given the record, if there is one, all records that were read, and the moment.
pub(crate) async fn change<R, D>(api: &Api, target: &Target, decide: D) -> Result<Changed<R>, Problem>
where
    R: Serialize + DeserializeOwned,
    D: Fn(Option<R>, &State, Timestamp) -> Result<Change<R>, Problem>,
{
    let mut tries = Tries::begin();
    loop {
        match try_once(api, target, &decide).await? {
            Try::Done(changed) => return Ok(changed),
            Try::Again(reason) => tries.again(reason).await?,
        }
    }
}

async fn try_once<R, D>(api: &Api, target: &Target, decide: &D) -> Result<Try<Changed<R>>, Problem>
where
    R: Serialize + DeserializeOwned,
    D: Fn(Option<R>, &State, Timestamp) -> Result<Change<R>, Problem>,
{
    let keys: Vec<Key> = target.others.iter().chain([&target.key]).cloned().collect();
    let state = api.store.fetch(&keys).await?;
    let row = state.row(&target.key)?;
    let now = api.now();
    let (record, payload) = match decide(row.decode(&target.key)?, &state, now)? {
        Change::Write { record, payload } => (record, payload),
        Change::Same(record) => {
            return Ok(Try::Done(Changed { record, outcome: Outcome::Same, event_id: published(row) }));
        }
    };
    let event = Event {
        event_id: api.mint_event_id()?,
        aggregate_id: target.aggregate_id.clone(),
        version: row.version + 1,
        occurred_at: now,
        trace_id: target.trace_id,
        payload,
    };
    let mut attributes = api.attributes(&record)?;
    attributes.insert(EVENT.to_owned(), Value::Object(api.attributes(&event)?));
    let outcome = if row.version == 0 { Outcome::Created } else { Outcome::Changed };
    Ok(match api.store.put(Replacement { key: target.key.clone(), before: row.version, attributes }).await? {
        Commit::Done => {
            log::written(&event, &target.key);
            Try::Done(Changed { record, outcome, event_id: Some(event.event_id) })
        }
        Commit::Again(reason) => Try::Again(reason),
    })
}

/// Returns the id of the event that a record carries.
pub(crate) fn published(row: &Row) -> Option<EventId> {
    row.attributes.as_ref()?.get(EVENT)?.get("event_id")?.as_str()?.parse().ok()
}
