//! Lines about a request: one for the record that it wrote and one for its answer, with which the search for what became of an
//! event begins, and one that is counted.

use std::sync::Arc;
use std::time::Instant;

use aws::metrics::Answer;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use domain::Key;
use events::{Event, TraceId};
use tracing::Instrument;

use crate::problem::Cause;
use crate::{Api, Published};

/// Header with the trace of the caller, as W3C writes it.
const TRACEPARENT: &str = "traceparent";
/// Header with the trace of the gateway, as X-Ray writes it.
const AMAZON_TRACE: &str = "x-amzn-trace-id";

/// Gives the request its trace, logs how it was answered, and counts it.
pub(crate) async fn log(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let trace_id = trace_id(request.headers());
    request.extensions_mut().insert(trace_id);
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", %trace_id, method = %request.method(), route);
    let response = next.run(request).instrument(span.clone()).await;
    let _entered = span.entered();
    let status = response.status().as_u16();
    let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let event_id =
        response.extensions().get::<Published>().map(|Published(event_id)| tracing::field::display(event_id));
    match response.extensions().get::<Cause>() {
        Some(Cause(error)) => tracing::error!(event_id, status, latency_ms, error, "request failed"),
        None => tracing::info!(event_id, status, latency_ms, "request answered"),
    }
    api.metrics.request(answer(response.status()), latency_ms, api.now());
    response
}

fn answer(status: StatusCode) -> Answer {
    if status.is_server_error() {
        Answer::ServerError
    } else if status.is_client_error() {
        Answer::ClientError
    } else {
        Answer::Success
    }
}

/// Logs that a record was written, whose event is thereby published. The request's span adds the trace.
pub(crate) fn written(event: &Event, key: &Key) {
    tracing::info!(
        event_id = %event.event_id,
        event_type = event.payload.event_type().as_str(),
        aggregate_id = event.aggregate_id,
        version = event.version,
        record = %key,
        "record written"
    );
}

/// Returns the caller's trace; the gateway's, if the caller has none; or a new one.
fn trace_id(headers: &HeaderMap) -> TraceId {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    header(TRACEPARENT)
        .and_then(TraceId::from_traceparent)
        .or_else(|| header(AMAZON_TRACE).and_then(from_amazon))
        .unwrap_or_else(|| TraceId::mint(fastrand::u128(..)))
}

/// Takes the trace id of X-Ray's header, `Root=1-<8 digits>-<24 digits>;...`, whose digits together are a W3C trace id
/// ([X-Ray, trace ids](https://docs.aws.amazon.com/xray/latest/devguide/xray-api-sendingdata.html)).
fn from_amazon(header: &str) -> Option<TraceId> {
    let root = header.split(';').find_map(|part| part.trim().strip_prefix("Root="))?;
    let (time, unique) = root.strip_prefix("1-")?.split_once('-')?;
    format!("{time}{unique}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &str)], expected: Option<&str>) {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (axum::http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        let (first, second) = (trace_id(&headers), trace_id(&headers));
        match expected {
            Some(expected) => assert_eq!(first.to_string(), expected),
            None => assert_ne!(first, second),
        }
    }

    #[test]
    fn the_trace_of_the_caller_goes_on() {
        let w3c = (TRACEPARENT, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let x_ray = (AMAZON_TRACE, "Root=1-67891233-abcdef012345678912345678;Parent=463ac35c9f6413ad;Sampled=1");
        check(&[w3c], Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        check(&[x_ray], Some("67891233abcdef012345678912345678"));
        check(&[w3c, x_ray], Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        check(&[(TRACEPARENT, "00-xyz"), x_ray], Some("67891233abcdef012345678912345678"));
    }

    #[test]
    fn a_request_without_a_trace_begins_one() {
        check(&[], None);
        check(&[(TRACEPARENT, "nonsense"), (AMAZON_TRACE, "Self=1-67891233-abcdef012345678912345678")], None);
    }
}
