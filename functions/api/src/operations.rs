//! `/operations`: what somebody has to look into.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use domain::Table;
use domain::orders::{GAPS, Gap};
use events::OrderId;
use serde::Serialize;

use crate::Api;
use crate::access::{Actor, Scope};
use crate::input::Parameters;
use crate::orders::limit;
use crate::problem::Problem;
use crate::store::{Direction, Range, Sort};

/// Entries of a page, unless it is asked for others.
const PAGE_ROWS: usize = 100;

/// A page of the list of gaps.
#[derive(Debug, Serialize)]
struct Gaps {
    gaps: Vec<Gap>,
    /// What the next page is asked for with, if there is one.
    next_after: Option<String>,
}

/// `GET /operations/gaps?limit=&after=`: the orders that miss events, by order.
pub(crate) async fn gaps(State(api): State<Arc<Api>>, actor: Actor, uri: Uri) -> Result<Response, Problem> {
    actor.must_have(Scope::Operate)?;
    let mut parameters = Parameters::of(&uri, &["limit", "after"])?;
    let limit = parameters.optional("limit", limit).unwrap_or(PAGE_ROWS);
    let after = parameters
        .optional("after", |text| text.parse::<OrderId>().map_err(|error: events::InvalidId| error.to_string()));
    parameters.finish()?;
    let mut start = after.map(|order_id| Gap::key(&order_id).sort);
    let mut gaps: Vec<Gap> = Vec::new();
    // Gaps that have closed leave tombstones between those that are open.
    loop {
        let page = Range {
            table: Table::Views,
            index: None,
            partition: GAPS.to_owned(),
            sort: start.map_or(Sort::All, Sort::Above),
            direction: Direction::Ascending,
            limit: Some(limit + 1),
        };
        let items = api.store.query(&page).await?;
        let more = items.len() > limit;
        start = None;
        for item in items {
            let (key, row) = aws::items::row(Table::Views, item).map_err(|error| Problem::internal(&error))?;
            gaps.extend(row.decode::<Gap>(&key)?);
            start = Some(key.sort);
        }
        if !more || gaps.len() > limit {
            break;
        }
    }
    let more = gaps.len() > limit;
    gaps.truncate(limit);
    let next_after = gaps.last().filter(|_| more).map(|gap| gap.order_id.to_string());
    Ok(Json(Gaps { gaps, next_after }).into_response())
}
