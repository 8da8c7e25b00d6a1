//! What the functions are told by their environment, read once at the start, and the clients that follow from it. No file,
//! no profile and no metadata service is asked: on Lambda, the environment says everything.

use std::time::Duration;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, SharedCredentialsProvider, SharedHttpClient};
use aws_smithy_http_client::tls;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use thiserror::Error;

use crate::items::{PARTITION_KEY, SORT_KEY, TableNames};
use crate::telemetry::chain;
use aws_sdk_dynamodb::types::AttributeValue;

/// Variable that names the region.
pub const AWS_REGION: &str = "AWS_REGION";
/// Variable with an endpoint for all services, in place of AWS's own.
pub const AWS_ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";
/// Variable with an endpoint for DynamoDB.
pub const AWS_ENDPOINT_URL_DYNAMODB: &str = "AWS_ENDPOINT_URL_DYNAMODB";
/// Variable with an endpoint for SQS.
pub const AWS_ENDPOINT_URL_SQS: &str = "AWS_ENDPOINT_URL_SQS";
/// Variable with the name of the table of source records.
pub const RECORDS_TABLE: &str = "RECORDS_TABLE";
/// Variable with the name of the table of derived rows.
pub const VIEWS_TABLE: &str = "VIEWS_TABLE";
/// Variable with the name of the ledger's table.
pub const LEDGER_TABLE: &str = "LEDGER_TABLE";
/// Variable with everything that stands before a queue's name in its URL.
pub const QUEUE_URL_PREFIX: &str = "QUEUE_URL_PREFIX";

/// Variable with the URL of the queue that a consumer's batches come from.
pub const QUEUE_URL: &str = "QUEUE_URL";

/// Variable with the namespace of the metrics: the stack's prefix.
pub const METRICS_NAMESPACE: &str = "METRICS_NAMESPACE";

/// Variable with the URL that notifications are delivered to; without a value none is.
pub const WEBHOOK_URL: &str = "WEBHOOK_URL";

/// How long a new connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Attempts of a call that the SDK retries.
const SDK_ATTEMPTS_MAX: u32 = 3;

/// Why the environment is not enough to start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A variable has no value.
    #[error("environment variable {name} is missing or empty")]
    Missing {
        /// Which variable.
        name: &'static str,
    },
    /// A variable should be a URL.
    #[error("environment variable {name}: {value:?} is not a URL that begins with http:// or https://")]
    NotAUrl {
        /// Which variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
}

/// Returns the value of an environment variable of this process, if it is text. The lookup of every `main`.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the value of a variable; an empty one counts as missing.
///
/// # Errors
/// It is missing or empty.
pub fn required(lookup: impl Fn(&str) -> Option<String>, name: &'static str) -> Result<String, ConfigError> {
    optional(lookup, name).ok_or(ConfigError::Missing { name })
}

/// Returns the value of a variable unless it is missing or empty. Templates turn what is not set into empty text.
pub fn optional(lookup: impl Fn(&str) -> Option<String>, name: &'static str) -> Option<String> {
    lookup(name).filter(|value| !value.trim().is_empty())
}

/// What the request path is told.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// The tables.
    pub tables: TableNames,
    /// Namespace of the metrics.
    pub metrics_namespace: String,
    /// How services are reached.
    pub connection: Connection,
}

impl ApiConfig {
    /// Reads the settings.
    ///
    /// # Errors
    /// A variable is missing or wrong.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Ok(Self {
            tables: tables(&lookup)?,
            metrics_namespace: required(&lookup, METRICS_NAMESPACE)?,
            connection: Connection::from_lookup(&lookup)?,
        })
    }
}

/// What the relay is told.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Everything that stands before a queue's name in its URL.
    pub queue_url_prefix: String,
    /// Namespace of the metrics.
    pub metrics_namespace: String,
    /// How services are reached.
    pub connection: Connection,
}

impl RelayConfig {
    /// Reads the settings.
    ///
    /// # Errors
    /// A variable is missing or wrong.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let queue_url_prefix = url(QUEUE_URL_PREFIX, required(&lookup, QUEUE_URL_PREFIX)?)?;
        Ok(Self {
            queue_url_prefix,
            metrics_namespace: required(&lookup, METRICS_NAMESPACE)?,
            connection: Connection::from_lookup(&lookup)?,
        })
    }
}

/// What a consumer is told.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// The tables.
    pub tables: TableNames,
    /// The queue that batches come from.
    pub queue_url: String,
    /// Namespace of the metrics.
    pub metrics_namespace: String,
    /// How services are reached.
    pub connection: Connection,
}

impl ConsumerConfig {
    /// Reads the settings.
    ///
    /// # Errors
    /// A variable is missing or wrong.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Ok(Self {
            tables: tables(&lookup)?,
            queue_url: url(QUEUE_URL, required(&lookup, QUEUE_URL)?)?,
            metrics_namespace: required(&lookup, METRICS_NAMESPACE)?,
            connection: Connection::from_lookup(&lookup)?,
        })
    }
}

/// What the canary's sender is told.
#[derive(Debug, Clone)]
pub struct CanaryConfig {
    /// Physical name of the table of source records.
    pub records_table: String,
    /// How services are reached.
    pub connection: Connection,
}

impl CanaryConfig {
    /// Reads the settings.
    ///
    /// # Errors
    /// A variable is missing or wrong.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Ok(Self { records_table: required(&lookup, RECORDS_TABLE)?, connection: Connection::from_lookup(&lookup)? })
    }
}

/// Reads where notifications are delivered to, if anywhere.
///
/// # Errors
/// It is no URL.
pub fn webhook_url(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<String>, ConfigError> {
    optional(lookup, WEBHOOK_URL).map(|value| url(WEBHOOK_URL, value)).transpose()
}

/// Who repeats a call that failed for a passing reason. Never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// The SDK, up to three attempts with jitter.
    Sdk,
    /// The caller; the SDK makes one attempt.
    Caller,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeouts {
    /// One attempt.
    pub attempt: Duration,
    /// All attempts together.
    pub operation: Duration,
}

impl CallTimeouts {
    /// Of a call that somebody waits for.
    pub const INTERACTIVE: Self = Self { attempt: Duration::from_millis(1_500), operation: Duration::from_secs(4) };
    /// Of a call of a batch in the background.
    pub const BATCH: Self = Self { attempt: Duration::from_secs(5), operation: Duration::from_secs(10) };
}

/// How services are reached. Clients made from one connection share their sockets.
///
/// The SDK's own loader takes an empty endpoint variable for a URL and panics on it; the variables are read here instead.
#[derive(Debug, Clone)]
pub struct Connection {
    region: String,
    dynamodb_endpoint: Option<String>,
    sqs_endpoint: Option<String>,
    credentials: SharedCredentialsProvider,
    http_client: SharedHttpClient,
}

impl Connection {
    /// Reads region and endpoints. Connects to nothing yet.
    ///
    /// # Errors
    /// The region is missing, or an endpoint is no URL.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let endpoint = |name| {
            let own = optional(&lookup, name).map(|value| url(name, value));
            let common = || optional(&lookup, AWS_ENDPOINT_URL).map(|value| url(AWS_ENDPOINT_URL, value));
            own.or_else(common).transpose()
        };
        Ok(Self {
            region: required(&lookup, AWS_REGION)?,
            dynamodb_endpoint: endpoint(AWS_ENDPOINT_URL_DYNAMODB)?,
            sqs_endpoint: endpoint(AWS_ENDPOINT_URL_SQS)?,
            credentials: SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()),
            http_client: aws_smithy_http_client::Builder::new()
                .tls_provider(tls::Provider::Rustls(CryptoMode::AwsLc))
                .build_https(),
        })
    }

    /// Takes credentials from elsewhere than the environment: for programs that are no function.
    pub fn with_credentials(mut self, credentials: SharedCredentialsProvider) -> Self {
        self.credentials = credentials;
        self
    }

    /// Makes a client of DynamoDB.
    pub fn dynamodb(&self, retries: Retries, timeouts: CallTimeouts) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(self.credentials.clone())
            .http_client(self.http_client.clone())
            .retry_config(retry_config(retries))
            .timeout_config(timeout_config(timeouts));
        config.set_endpoint_url(self.dynamodb_endpoint.clone());
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// Makes a client of SQS.
    pub fn sqs(&self, retries: Retries, timeouts: CallTimeouts) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(self.credentials.clone())
            .http_client(self.http_client.clone())
            .retry_config(retry_config(retries))
            .timeout_config(timeout_config(timeouts));
        config.set_endpoint_url(self.sqs_endpoint.clone());
        aws_sdk_sqs::Client::from_conf(config.build())
    }
}

/// Makes one cheap call, so that the connection's handshake happens before the first event and not in it. A failure is
/// logged and no more: the first event will show whether it lasts.
pub async fn warm_up(client: &aws_sdk_dynamodb::Client, table: &str) {
    let nothing = AttributeValue::S("WARM-UP".to_owned());
    let answer =
        client.get_item().table_name(table).key(PARTITION_KEY, nothing.clone()).key(SORT_KEY, nothing).send().await;
    if let Err(error) = answer {
        tracing::warn!(table, error = chain(&error), "the table did not answer at the start");
    }
}

fn retry_config(retries: Retries) -> RetryConfig {
    match retries {
        Retries::Sdk => RetryConfig::standard().with_max_attempts(SDK_ATTEMPTS_MAX),
        Retries::Caller => RetryConfig::disabled(),
    }
}

fn timeout_config(timeouts: CallTimeouts) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(timeouts.attempt)
        .operation_attempt_timeout(timeouts.attempt)
        .operation_timeout(timeouts.operation)
        .build()
}

fn tables(lookup: impl Fn(&str) -> Option<String>) -> Result<TableNames, ConfigError> {
    Ok(TableNames {
        records: required(&lookup, RECORDS_TABLE)?,
        views: required(&lookup, VIEWS_TABLE)?,
        ledger: required(&lookup, LEDGER_TABLE)?,
    })
}

fn url(name: &'static str, value: String) -> Result<String, ConfigError> {
    let host = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with('/') => Ok(value),
        Some(_) | None => Err(ConfigError::NotAUrl { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn a_missing_or_empty_variable_is_named() {
        let region_only = [(AWS_REGION, "eu-central-1")];
        let error = ApiConfig::from_lookup(lookup(&region_only)).unwrap_err();
        assert_eq!(error.to_string(), "environment variable RECORDS_TABLE is missing or empty");

        let blank = [(AWS_REGION, "eu-central-1"), (RECORDS_TABLE, "r"), (VIEWS_TABLE, " ")];
        assert_eq!(ApiConfig::from_lookup(lookup(&blank)).unwrap_err(), ConfigError::Missing { name: VIEWS_TABLE });

        let no_namespace = [(QUEUE_URL_PREFIX, "https://sqs.example/1/p-"), (AWS_REGION, "eu-central-1")];
        let error = RelayConfig::from_lookup(lookup(&no_namespace)).unwrap_err();
        assert_eq!(error, ConfigError::Missing { name: METRICS_NAMESPACE });

        let no_region = [(QUEUE_URL_PREFIX, "https://sqs.example/1/p-"), (METRICS_NAMESPACE, "n"), (AWS_REGION, "")];
        assert_eq!(
            RelayConfig::from_lookup(lookup(&no_region)).unwrap_err(),
            ConfigError::Missing { name: AWS_REGION }
        );
    }

    #[test]
    fn an_empty_endpoint_is_none_at_all() {
        let empty =
            [(AWS_REGION, "r"), (AWS_ENDPOINT_URL, ""), (AWS_ENDPOINT_URL_DYNAMODB, ""), (AWS_ENDPOINT_URL_SQS, "")];
        let connection = Connection::from_lookup(lookup(&empty)).unwrap();
        assert_eq!((connection.dynamodb_endpoint.clone(), connection.sqs_endpoint.clone()), (None, None));
        connection.dynamodb(Retries::Sdk, CallTimeouts::INTERACTIVE);
        connection.sqs(Retries::Caller, CallTimeouts::BATCH);
    }

    #[test]
    fn a_webhook_is_a_url_or_none_at_all() {
        assert_eq!(webhook_url(lookup(&[(WEBHOOK_URL, "")])), Ok(None));
        let url = "https://example.com/notifications";
        assert_eq!(webhook_url(lookup(&[(WEBHOOK_URL, url)])), Ok(Some(url.to_owned())));
        let error = webhook_url(lookup(&[(WEBHOOK_URL, "example.com")])).unwrap_err();
        assert_eq!(error, ConfigError::NotAUrl { name: WEBHOOK_URL, value: "example.com".to_owned() });
    }

    #[test]
    fn a_service_s_own_endpoint_goes_before_the_common_one() {
        let both = [(AWS_REGION, "r"), (AWS_ENDPOINT_URL, "http://common"), (AWS_ENDPOINT_URL_SQS, "http://sqs")];
        let connection = Connection::from_lookup(lookup(&both)).unwrap();
        assert_eq!(connection.dynamodb_endpoint.as_deref(), Some("http://common"));
        assert_eq!(connection.sqs_endpoint.as_deref(), Some("http://sqs"));
    }

    #[test]
    fn an_endpoint_that_is_no_url_is_named() {
        for bad in ["localhost:8000", "http://", "https:///path", "ftp://host"] {
            let variables = [(AWS_REGION, "r"), (AWS_ENDPOINT_URL_DYNAMODB, bad)];
            let error = Connection::from_lookup(lookup(&variables)).unwrap_err();
            assert_eq!(error, ConfigError::NotAUrl { name: AWS_ENDPOINT_URL_DYNAMODB, value: bad.to_owned() });
        }
    }

    #[test]
    fn one_owner_retries_a_call() {
        let connection = Connection::from_lookup(lookup(&[(AWS_REGION, "r")])).unwrap();
        let attempts = |retries| {
            let client = connection.dynamodb(retries, CallTimeouts::INTERACTIVE);
            client.config().retry_config().unwrap().max_attempts()
        };
        assert_eq!(attempts(Retries::Sdk), SDK_ATTEMPTS_MAX);
        assert_eq!(attempts(Retries::Caller), 1);
    }
}
