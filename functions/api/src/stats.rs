//! `/players/{player_id}/stats`: results by time control, in total and by day.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws::items::{Item, SORT_KEY};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use domain::Table;
use domain::players::Player;
use domain::statistics::{DRAWS, LOSSES, WINS, partition};
use events::{Day, PlayerId, TimeControl};
use serde::Serialize;

use crate::Api;
use crate::input::{self, Parameters};
use crate::players::not_found;
use crate::problem::Problem;
use crate::store::{Direction, Range, Sort};

/// Days that an answer covers unless it is asked for others.
const DAYS_DEFAULT: u16 = 30;
/// Days that an answer covers, at most.
const DAYS_MAX: u16 = 366;

const TOTAL: &str = "TOTAL#";
const DAY: &str = "DAY#";

/// A player's results.
#[derive(Debug, Serialize)]
struct Stats {
    player_id: PlayerId,
    from: String,
    to: String,
    totals: BTreeMap<TimeControl, Results>,
    days: Vec<DayResults>,
}

/// The results of one time control on one day.
#[derive(Debug, Serialize)]
struct DayResults {
    day: String,
    time_control: TimeControl,
    #[serde(flatten)]
    results: Results,
}

/// Games by their results.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Results {
    wins: u64,
    draws: u64,
    losses: u64,
    games: u64,
}

/// `GET /players/{player_id}/stats?from=&to=`: days in UTC, both included; the last 30 unless given.
pub(crate) async fn show(
    State(api): State<Arc<Api>>,
    Path(player_id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let player_id: PlayerId = input::path_parameter("player_id", &player_id)?;
    let (from, to) = days(&uri, api.now().day())?;
    let range = |sort| Range {
        table: Table::Views,
        index: None,
        partition: partition(&player_id),
        sort,
        direction: Direction::Ascending,
        limit: None,
    };
    let totals = range(Sort::Prefix(TOTAL.to_owned()));
    // '~' comes behind every time control.
    let days = range(Sort::Between(format!("{DAY}{from}#"), format!("{DAY}{to}#~")));
    let player_key = Player::key(&player_id);
    let (state, totals, days) = tokio::try_join!(
        api.store.fetch(std::slice::from_ref(&player_key)),
        api.store.query(&totals),
        api.store.query(&days),
    )?;
    if state.row(&player_key)?.attributes.is_none() {
        return Err(not_found(&player_id));
    }
    let totals = totals.iter().filter_map(total).collect();
    let days = days.iter().filter_map(day).collect();
    Ok(Json(Stats { player_id, from: from.to_string(), to: to.to_string(), totals, days }).into_response())
}

fn days(uri: &Uri, today: Day) -> Result<(Day, Day), Problem> {
    let mut parameters = Parameters::of(uri, &["from", "to"])?;
    let read = |text: &str| text.parse::<Day>().map_err(|_| "is not a day such as 2026-11-30".to_owned());
    let from = parameters.optional("from", read);
    let to = parameters.optional("to", read).unwrap_or(today);
    let from = from.unwrap_or(to.minus(DAYS_DEFAULT - 1));
    if from > to {
        parameters.note("from", "is later than the last day");
    } else if from < to.minus(DAYS_MAX - 1) {
        parameters.note("from", format!("is more than {DAYS_MAX} days before the last day"));
    }
    parameters.finish()?;
    Ok((from, to))
}

fn total(item: &Item) -> Option<(TimeControl, Results)> {
    let time_control = sort_key(item)?.strip_prefix(TOTAL)?.parse().ok()?;
    Some((time_control, results(item)))
}

fn day(item: &Item) -> Option<DayResults> {
    let (day, time_control) = sort_key(item)?.strip_prefix(DAY)?.split_once('#')?;
    Some(DayResults { day: day.to_owned(), time_control: time_control.parse().ok()?, results: results(item) })
}

fn sort_key(item: &Item) -> Option<&str> {
    item.get(SORT_KEY)?.as_s().ok().map(String::as_str)
}

fn results(item: &Item) -> Results {
    let count = |name| item.get(name).and_then(|value| value.as_n().ok()?.parse().ok()).unwrap_or(0);
    let (wins, draws, losses) = (count(WINS), count(DRAWS), count(LOSSES));
    Results { wins, draws, losses, games: wins + draws + losses }
}
