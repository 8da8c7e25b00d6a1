//! How the stack is reached: on AWS with what a profile or the environment says, on this machine with nothing but `--local`.

use aws::config::{
    AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SQS, AWS_REGION, CallTimeouts, ConfigError,
    Connection, Retries, environment, optional,
};
use aws::items::TableNames;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::default_provider::region::DefaultRegionChain;
use aws_sdk_dynamodb::config::{Credentials, Region, SharedCredentialsProvider};

use crate::command_line::Place;
use crate::dead_letters::Sqs;
use crate::tables::Tables;
use crate::trace::{Folder, Insights, Logs, default_folder};

/// Where a local stack's DynamoDB answers, unless it is told otherwise.
const LOCAL_DYNAMODB: &str = "http://127.0.0.1:8000";
/// Where a local stack's SQS answers, unless it is told otherwise.
const LOCAL_SQS: &str = "http://127.0.0.1:9324";
/// The region and the credentials of a local stack.
const LOCAL_REGION: &str = "us-east-1";
const LOCAL: &str = "local";
/// Variable with an endpoint for CloudWatch Logs.
const AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: &str = "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS";

/// A stack that can be reached.
#[derive(Debug)]
pub(crate) struct Reach {
    place: Place,
    region: String,
    credentials: SharedCredentialsProvider,
    connection: Connection,
}

impl Reach {
    /// Finds out region and credentials. Calls nothing of the stack's yet.
    pub(crate) async fn new(place: Place) -> Result<Self, ConfigError> {
        let region = region(&place).await.ok_or(ConfigError::Missing { name: AWS_REGION })?;
        let credentials = credentials(&place, &region).await;
        let lookup = |name: &str| match name {
            AWS_REGION => Some(region.clone()),
            AWS_ENDPOINT_URL_DYNAMODB => place.dynamodb_endpoint(),
            AWS_ENDPOINT_URL_SQS => place.sqs_endpoint(),
            _ => environment(name),
        };
        let connection = Connection::from_lookup(lookup)?.with_credentials(credentials.clone());
        Ok(Self { region, credentials, connection, place })
    }

    pub(crate) fn table_names(&self) -> TableNames {
        let name = |table| format!("{}-{table}", self.place.prefix);
        TableNames { records: name("records"), views: name("views"), ledger: name("ledger") }
    }

    /// Returns the client that scans, which retries by itself.
    pub(crate) fn scans(&self) -> aws_sdk_dynamodb::Client {
        self.connection.dynamodb(Retries::Sdk, CallTimeouts::BATCH)
    }

    /// Returns the client that writes, which leaves retries to its caller.
    pub(crate) fn writes(&self) -> aws_sdk_dynamodb::Client {
        self.connection.dynamodb(Retries::Caller, CallTimeouts::BATCH)
    }

    pub(crate) fn tables(&self) -> Tables {
        Tables::new(self.scans(), self.writes(), self.table_names())
    }

    pub(crate) fn queues(&self) -> Sqs {
        Sqs::new(self.connection.sqs(Retries::Sdk, CallTimeouts::BATCH), self.place.prefix.clone())
    }

    /// Returns where the functions' lines are: in a folder if one is given or the stack is on this machine, else in CloudWatch.
    pub(crate) fn logs(&self) -> Logs {
        let prefix = self.place.prefix.clone();
        match self.place.log_folder() {
            Some(folder) => Logs::Folder(Folder::new(folder, prefix)),
            None => Logs::Insights(Insights::new(self.cloudwatch(), prefix)),
        }
    }

    fn cloudwatch(&self) -> aws_sdk_cloudwatchlogs::Client {
        let mut config = aws_sdk_cloudwatchlogs::Config::builder()
            .behavior_version(aws_sdk_cloudwatchlogs::config::BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(self.credentials.clone());
        let endpoint = |name| optional(environment, name);
        config.set_endpoint_url(endpoint(AWS_ENDPOINT_URL_CLOUDWATCH_LOGS).or_else(|| endpoint(AWS_ENDPOINT_URL)));
        aws_sdk_cloudwatchlogs::Client::from_conf(config.build())
    }
}

impl Place {
    fn dynamodb_endpoint(&self) -> Option<String> {
        let local = self.local.then(|| LOCAL_DYNAMODB.to_owned());
        self.endpoint.clone().or(local).or_else(|| optional(environment, AWS_ENDPOINT_URL_DYNAMODB))
    }

    fn sqs_endpoint(&self) -> Option<String> {
        let local = self.local.then(|| LOCAL_SQS.to_owned());
        self.sqs_endpoint.clone().or(local).or_else(|| optional(environment, AWS_ENDPOINT_URL_SQS))
    }

    /// Returns the folder that a local stack logs in.
    fn log_folder(&self) -> Option<std::path::PathBuf> {
        let by_port = || {
            let endpoint = self.sqs_endpoint().filter(|_| self.local)?;
            endpoint.trim_end_matches('/').rsplit(':').next()?.parse().ok().map(default_folder)
        };
        self.logs.clone().or_else(by_port)
    }
}

async fn region(place: &Place) -> Option<String> {
    let said = place.region.clone().or_else(|| place.local.then(|| LOCAL_REGION.to_owned()));
    match said.or_else(|| optional(environment, AWS_REGION).filter(|_| place.profile.is_none())) {
        Some(region) => Some(region),
        None => {
            let mut chain = DefaultRegionChain::builder();
            if let Some(profile) = &place.profile {
                chain = chain.profile_name(profile);
            }
            chain.build().region().await.map(|region| region.to_string())
        }
    }
}

async fn credentials(place: &Place, region: &str) -> SharedCredentialsProvider {
    if place.local {
        return SharedCredentialsProvider::new(Credentials::new(LOCAL, LOCAL, None, None, LOCAL));
    }
    if let Some(profile) = &place.profile {
        let provider = aws_config::profile::ProfileFileCredentialsProvider::builder().profile_name(profile);
        return SharedCredentialsProvider::new(provider.build());
    }
    let chain = DefaultCredentialsChain::builder().region(Region::new(region.to_owned()));
    SharedCredentialsProvider::new(chain.build().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_stack_is_reached_at_its_usual_ports_and_its_logs_are_found_by_the_port_of_its_queues() {
        let place = Place { local: true, ..Place::default() };
        assert_eq!(place.dynamodb_endpoint().as_deref(), Some(LOCAL_DYNAMODB));
        assert_eq!(place.sqs_endpoint().as_deref(), Some(LOCAL_SQS));
        assert_eq!(place.log_folder(), Some(local::logs::default_folder(9324)));
        let place = Place { sqs_endpoint: Some("http://127.0.0.1:4100/".to_owned()), ..place };
        assert_eq!(place.log_folder(), Some(local::logs::default_folder(4100)));
        let place = Place { logs: Some("/logs".into()), ..place };
        assert_eq!(place.log_folder(), Some("/logs".into()));
    }
}
