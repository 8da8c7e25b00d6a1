//! `/statistics/days/{date}`: what went on in a day.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use domain::activity::{ACTIVE_PLAYERS, DAY_SPREAD, events_key, players_key};
use events::Day;
use serde::Serialize;

use crate::Api;
use crate::input;
use crate::problem::Problem;

/// A day.
#[derive(Debug, Serialize)]
struct DayView {
    date: String,
    /// Players who did something on the day.
    active_players: u64,
    /// How many events of each type happened; types without any are left out.
    events: BTreeMap<String, u64>,
}

/// `GET /statistics/days/{date}`: a day in UTC.
pub(crate) async fn show(State(api): State<Arc<Api>>, Path(date): Path<String>) -> Result<Response, Problem> {
    let day: Day = date.parse().map_err(|_| input::invalid_parameter("date", "is not a day such as 2026-11-30"))?;
    let (event_keys, player_keys) = (DAY_SPREAD.keys(&events_key(day)), DAY_SPREAD.keys(&players_key(day)));
    let (mut events, players) = tokio::try_join!(api.store.counts(&event_keys), api.store.counts(&player_keys))?;
    events.retain(|_, count| *count > 0);
    let active_players = players.get(ACTIVE_PLAYERS).copied().unwrap_or(0);
    Ok(Json(DayView { date: day.to_string(), active_players, events }).into_response())
}
