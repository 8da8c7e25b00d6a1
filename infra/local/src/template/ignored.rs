//! What a template may declare that means nothing on one machine, each with the reason. It is ignored on purpose; all
//! that is neither read nor listed here is reported.

/// Types of resources that are not built, and why.
pub const RESOURCES: &[(&str, &str)] = &[
    ("AWS::IAM::Role", "nobody checks permissions here"),
    ("AWS::IAM::Policy", "nobody checks permissions here"),
    ("AWS::IAM::ManagedPolicy", "nobody checks permissions here"),
    ("AWS::Lambda::Permission", "nobody checks permissions here"),
    ("AWS::SQS::QueuePolicy", "nobody checks permissions here"),
    ("AWS::SNS::TopicPolicy", "nobody checks permissions here"),
    ("AWS::SNS::Topic", "a topic that something is subscribed to is reported for its subscription"),
    ("AWS::Logs::LogGroup", "logs go to the terminal"),
    ("AWS::Logs::MetricFilter", "there are no metrics here"),
    ("AWS::Logs::QueryDefinition", "there is no console here"),
    ("AWS::CloudWatch::Alarm", "there are no metrics here"),
    ("AWS::CloudWatch::CompositeAlarm", "there are no metrics here"),
    ("AWS::CloudWatch::Dashboard", "there is no console here"),
];

/// Attributes beside a resource's properties, and why they mean nothing here.
pub const ATTRIBUTES: &[(&str, &str)] = &[
    ("Type", "read to tell resources apart"),
    ("Properties", "read by the resource's type"),
    ("Metadata", "read where a function is built"),
    ("Condition", "read before the resource is"),
    ("DependsOn", "everything is there before the first request"),
    ("DeletionPolicy", "nothing outlives the stack but a data folder that the user names"),
    ("UpdateReplacePolicy", "there are no updates, only restarts"),
    ("CreationPolicy", "everything is there before the first request"),
    ("UpdatePolicy", "there are no updates, only restarts"),
];

/// Sections of a template, and why they need no attention of their own.
pub const SECTIONS: &[(&str, &str)] = &[
    ("AWSTemplateFormatVersion", "there is one version"),
    ("Description", "only people read it"),
    ("Metadata", "only tools read it"),
    ("Transform", "looked at by name"),
    ("Parameters", "read when referred to"),
    ("Mappings", "read when referred to"),
    ("Conditions", "read when referred to"),
    ("Globals", "merged into the resources"),
    ("Resources", "read one by one"),
    ("Outputs", "read when referred to"),
];

/// Properties of a parameter's declaration.
pub const PARAMETER: &[(&str, &str)] = &[
    ("Type", "read when the parameter is referred to"),
    ("Default", "read when the parameter is referred to"),
    ("AllowedValues", "read when the parameter is referred to"),
    ("AllowedPattern", "CloudFormation checks it on deployment"),
    ("MinLength", "CloudFormation checks it on deployment"),
    ("MaxLength", "CloudFormation checks it on deployment"),
    ("MinValue", "CloudFormation checks it on deployment"),
    ("MaxValue", "CloudFormation checks it on deployment"),
    ("ConstraintDescription", "only people read it"),
    ("Description", "only people read it"),
    ("NoEcho", "no parameter is shown here"),
];

/// Properties of a nested stack.
pub const NESTED_STACK: &[(&str, &str)] = &[
    ("Tags", "nothing is billed here"),
    ("NotificationARNs", "there are no updates, only restarts"),
    ("TimeoutInMinutes", "nothing takes minutes to create"),
];

/// Properties of a DynamoDB table.
pub const TABLE: &[(&str, &str)] = &[
    ("SSESpecification", "data at rest is in memory or in a folder of the user's"),
    ("PointInTimeRecoverySpecification", "there are no backups here"),
    ("DeletionProtectionEnabled", "tables end with the stack"),
    ("ContributorInsightsSpecification", "there are no metrics here"),
    ("TableClass", "nothing is billed here"),
    ("Tags", "nothing is billed here"),
];

/// Properties of an SQS queue.
pub const QUEUE: &[(&str, &str)] = &[
    ("SqsManagedSseEnabled", "data at rest is in memory"),
    ("KmsMasterKeyId", "data at rest is in memory"),
    ("KmsDataKeyReusePeriodSeconds", "data at rest is in memory"),
    ("Tags", "nothing is billed here"),
];

/// Properties of a function.
pub const FUNCTION: &[(&str, &str)] = &[
    ("Handler", "the binary is the handler"),
    ("Architectures", "the functions are built for this machine"),
    ("Role", "nobody checks permissions here"),
    ("Policies", "nobody checks permissions here"),
    ("PermissionsBoundary", "nobody checks permissions here"),
    ("AssumeRolePolicyDocument", "nobody checks permissions here"),
    ("Tracing", "there is no X-Ray here"),
    ("LoggingConfig", "logs go to the terminal"),
    ("RecursiveLoop", "nobody stops loops here"),
    ("Description", "only people read it"),
    ("Tags", "nothing is billed here"),
];

/// Properties of an event source mapping.
pub const MAPPING: &[(&str, &str)] =
    &[("MetricsConfig", "there are no metrics here"), ("Tags", "nothing is billed here")];

/// Properties of a schedule.
pub const SCHEDULE: &[(&str, &str)] = &[
    ("Name", "only people read it"),
    ("Description", "only people read it"),
    ("RetryPolicy", "the next time comes soon enough"),
];

/// Properties of an HTTP API.
pub const HTTP_API: &[(&str, &str)] = &[
    ("Name", "only people read it"),
    ("Description", "only people read it"),
    ("AccessLogSettings", "the functions log their requests"),
    ("Tags", "nothing is billed here"),
];
