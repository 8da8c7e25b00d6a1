//! Answers to what went wrong, as problem details
//! ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)). A problem with the input names every field that is wrong.

use aws::telemetry::chain;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::store::{StoreError, StoreFault};

/// Seconds after which a client may try again what the service was too busy for.
const RETRY_AFTER_SECONDS: u16 = 1;

/// The kinds of problems. Each has a URN, which is a promise to clients, a title and a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    NotJson,
    InvalidInput,
    Unauthenticated,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    TooLarge,
    UnsupportedMediaType,
    UnknownPlayer,
    IllegalTransition,
    ConcurrentChange,
    OrderIncomplete,
    Internal,
    Unavailable,
}

impl Kind {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::NotJson => (StatusCode::BAD_REQUEST, "not-json", "The body is not JSON"),
            Self::InvalidInput => (StatusCode::BAD_REQUEST, "invalid-input", "The input is not valid"),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "Nobody is known to ask for this"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "Somebody else may do this"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is nothing here"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The method is not allowed here")
            }
            Self::Conflict => (StatusCode::CONFLICT, "conflict", "The id is taken"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large"),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body is of the wrong type")
            }
            Self::UnknownPlayer => (StatusCode::UNPROCESSABLE_ENTITY, "unknown-player", "A player is not registered"),
            Self::IllegalTransition => (StatusCode::CONFLICT, "illegal-transition", "The order does not allow it"),
            Self::ConcurrentChange => (StatusCode::CONFLICT, "concurrent-change", "Others were faster"),
            Self::OrderIncomplete => (StatusCode::CONFLICT, "order-incomplete", "The order's history has a gap"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something went wrong"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The service is busy"),
        }
    }
}

/// Something wrong with one field of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) detail: String,
}

/// Where in a request a field stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// A JSON pointer into the body, as a URI fragment ([RFC 6901, section 6](https://www.rfc-editor.org/rfc/rfc6901#section-6)).
    Pointer(String),
    /// A parameter of the path or the query.
    Parameter(String),
    /// A header.
    Header(&'static str),
}

/// A problem on its way to the client.
#[derive(Debug)]
pub(crate) struct Problem {
    kind: Kind,
    detail: String,
    errors: Vec<FieldError>,
    cause: Option<String>,
}

/// Returns the place of a parameter of the path.
pub(crate) fn parameter(name: &str) -> Place {
    Place::Parameter(name.to_owned())
}

/// Why a request failed on our side. Travels with the response to the log, never to the client.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) String);

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: Vec::new(), cause: None }
    }

    /// The input is wrong in these fields.
    pub(crate) fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [] | [_] => "A field is not valid.".to_owned(),
            more => format!("{} fields are not valid.", more.len()),
        };
        Self { errors, ..Self::new(Kind::InvalidInput, detail) }
    }

    pub(crate) fn with_error(mut self, place: Place, detail: impl Into<String>) -> Self {
        self.errors.push(FieldError { place, detail: detail.into() });
        self
    }

    /// Something went wrong here that the client cannot change.
    pub(crate) fn internal(cause: &(dyn std::error::Error + 'static)) -> Self {
        let detail = "The request could not be answered. It was logged.";
        Self { cause: Some(chain(cause)), ..Self::new(Kind::Internal, detail) }
    }

    /// The same request may succeed later.
    pub(crate) fn unavailable(cause: String) -> Self {
        let detail = "The request was not carried out, or not for certain. Send it again as it is.";
        Self { cause: Some(cause), ..Self::new(Kind::Unavailable, detail) }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error.fault {
            StoreFault::Passing => Self::unavailable(chain(&error)),
            StoreFault::Lasting => Self::internal(&error),
        }
    }
}

impl From<domain::RowError> for Problem {
    fn from(error: domain::RowError) -> Self {
        Self::internal(&error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Details<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            errors: &'a [FieldError],
        }

        let (status, name, title) = self.kind.parts();
        let details = Details {
            r#type: format!("urn:players-engine:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            errors: &self.errors,
        };
        let mut response = (status, axum::Json(details)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.kind == Kind::Unavailable {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        if self.kind == Kind::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(Cause(cause));
        }
        response
    }
}
