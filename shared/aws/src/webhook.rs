//! Letters over HTTP: each is a POST with its key as `Idempotency-Key`. How long it may take is the business of the driver.

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use consumer::{Notifier, NotifyError};
use events::{TraceId, encode_ascii};
use serde::Serialize;

use crate::telemetry::chain;

/// Header by which a receiver knows a letter that it has taken before
/// ([draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)).
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Header with the trace that a letter belongs to
/// ([W3C Trace Context, section 3.2](https://www.w3.org/TR/trace-context/#traceparent-header)).
pub const TRACEPARENT: &str = "traceparent";

/// Somebody who takes letters over HTTP.
#[derive(Debug)]
pub struct Webhook {
    url: String,
    connector: Connector,
}

impl Webhook {
    /// Sends to this URL. Connects to nothing yet.
    pub fn new(url: String) -> Self {
        let connector = Connector::builder().tls_provider(tls::Provider::Rustls(CryptoMode::AwsLc)).build();
        Self { url, connector }
    }

    fn request(
        &self,
        key: &str,
        trace_id: TraceId,
        letter: &impl Serialize,
    ) -> Result<HttpRequest, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = HttpRequest::new(SdkBody::from(encode_ascii(letter)));
        request.set_method("POST")?;
        request.set_uri(self.url.as_str())?;
        request.headers_mut().try_insert("content-type", "application/json")?;
        request.headers_mut().try_insert(IDEMPOTENCY_KEY, key.to_owned())?;
        request.headers_mut().try_insert(TRACEPARENT, trace_id.traceparent(fastrand::u64(..)))?;
        Ok(request)
    }
}

impl<L: Serialize + Send + Sync> Notifier<L> for Webhook {
    async fn send(&self, key: &str, trace_id: TraceId, letter: &L) -> Result<(), NotifyError> {
        let request =
            self.request(key, trace_id, letter).map_err(|error| NotifyError { reason: chain(error.as_ref()) })?;
        let response = self.connector.call(request).await;
        let status = response.map_err(|error| NotifyError { reason: chain(&error) })?.status();
        if status.is_success() { Ok(()) } else { Err(NotifyError { reason: format!("status {}", status.as_u16()) }) }
    }
}
