//! What is declared and not acted on is reported with template, resource and property, and nothing else is.

use crate::support::{FUNCTION, read_files, read_text};

/// Reads a template and expects exactly these reports, as `resource property`.
fn check(template: &str, expected: &[&str]) {
    let unsupported = read_text(template).unwrap().unsupported;
    let reported: Vec<String> =
        unsupported.iter().map(|report| format!("{} {}", report.resource, report.property)).collect();
    assert_eq!(reported, expected);
    assert!(unsupported.iter().all(|report| report.template == "template.yaml"));
}

fn check_function(rest: &str, expected: &[&str]) {
    check(&format!("Resources:{FUNCTION}{rest}"), expected);
}

#[test]
fn a_resource_of_an_unknown_type_is_reported_by_its_type() {
    check(
        "Resources:\n  Bus: {Type: AWS::Events::EventBus}\n  Old: {Type: AWS::Lambda::Function}\n",
        &["Bus AWS::Events::EventBus", "Old AWS::Lambda::Function"],
    );
}

#[test]
fn resources_without_a_local_meaning_are_not_reported() {
    let types = [
        "AWS::IAM::Role",
        "AWS::Logs::LogGroup",
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::SNS::Topic",
        "AWS::SQS::QueuePolicy",
        "AWS::Logs::QueryDefinition",
    ];
    let resources = types.iter().enumerate().map(|(index, kind)| {
        format!(
            "  R{index}: {{Type: {kind}, DependsOn: R9, DeletionPolicy: Retain, Properties: {{Any: !Ref Thing}}}}\n"
        )
    });
    check(&format!("Resources:\n{}", resources.collect::<String>()), &[]);
}

#[test]
fn a_subscription_is_reported() {
    check("Resources:\n  S: {Type: AWS::SNS::Subscription}\n", &["S AWS::SNS::Subscription"]);
}

#[test]
fn properties_of_a_queue_that_change_what_it_does_are_reported() {
    check(
        "
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: orders.fifo
      FifoQueue: true
      ContentBasedDeduplication: true
      SqsManagedSseEnabled: true
      Tags: [{Key: a, Value: b}]
      Colour: red
",
        &["Queue Colour"],
    );
}

#[test]
fn properties_of_a_table_that_change_what_it_does_are_reported() {
    check(
        "
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      BillingMode: PAY_PER_REQUEST
      OnDemandThroughput: {MaxReadRequestUnits: 5}
      StreamSpecification: {StreamViewType: KEYS_ONLY, ResourcePolicy: {PolicyDocument: {}}}
      KinesisStreamSpecification: {StreamArn: x}
      SSESpecification: {SSEEnabled: true}
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}
      DeletionProtectionEnabled: true
",
        &["Table OnDemandThroughput", "Table StreamSpecification.ResourcePolicy", "Table KinesisStreamSpecification"],
    );
}

#[test]
fn properties_of_a_function_that_change_what_it_does_are_reported() {
    check_function(
        "
      ReservedConcurrentExecutions: 5
      DeadLetterQueue: {Type: SQS, TargetArn: x}
      VpcConfig: {SubnetIds: [a]}
      Environment: {Variables: {A: b}, Extra: c}
      Policies: [AWSLambdaBasicExecutionRole]
      Role: !GetAtt Nobody.Arn
      Tracing: Active
      LoggingConfig: {LogFormat: JSON}
      Architectures: [arm64]
",
        &[
            "Function ReservedConcurrentExecutions",
            "Function DeadLetterQueue",
            "Function VpcConfig",
            "Function Environment.Extra",
        ],
    );
}

#[test]
fn a_function_that_is_built_or_run_otherwise_is_reported() {
    check(
        "
Resources:
  Function:
    Type: AWS::Serverless::Function
    Metadata:
      BuildMethod: makefile
      BuildProperties: {Binary: worker, Flags: [--features, x]}
    Connectors: {Mine: {}}
    Properties: {CodeUri: ., Runtime: python3.13}
",
        &[
            "Function Metadata.BuildMethod",
            "Function Metadata.BuildProperties.Flags",
            "Function Connectors",
            "Function Runtime",
        ],
    );
}

#[test]
fn events_of_other_types_are_reported() {
    check_function(
        "      Events:\n        Upload: {Type: S3, Properties: {Bucket: !Ref Bucket}}\n",
        &["Function Events.Upload.Type"],
    );
}

#[test]
fn schedules_by_the_clock_and_what_they_are_given_are_reported() {
    check_function(
        "
      Events:
        Nightly: {Type: Schedule, Properties: {Schedule: cron(0 3 * * ? *)}}
        Often: {Type: Schedule, Properties: {Schedule: rate(1 minute), Description: x, Input: '{}'}}
",
        &["Function Events.Nightly.Properties.Schedule", "Function Events.Often.Properties.Input"],
    );
}

#[test]
fn properties_of_a_queue_mapping_are_reported() {
    check_function(
        "
      Events:
        Queue:
          Type: SQS
          Properties:
            Queue: !GetAtt Queue.Arn
            FilterCriteria: {Filters: []}
            ProvisionedPollerConfig: {MinimumPollers: 2}
            ScalingConfig: {MaximumConcurrency: 2, MinimumConcurrency: 1}
  Queue: {Type: AWS::SQS::Queue}
",
        &[
            "Function Events.Queue.Properties.FilterCriteria",
            "Function Events.Queue.Properties.ProvisionedPollerConfig",
            "Function Events.Queue.Properties.ScalingConfig.MinimumConcurrency",
        ],
    );
}

#[test]
fn properties_of_a_stream_mapping_are_reported() {
    check_function(
        "
      Events:
        Stream:
          Type: DynamoDB
          Properties:
            Stream: !GetAtt Table.StreamArn
            StartingPosition: LATEST
            MaximumRecordAgeInSeconds: 60
            DestinationConfig: {OnFailure: {Destination: x}}
            TumblingWindowInSeconds: 5
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      StreamSpecification: {StreamViewType: NEW_IMAGE}
",
        &[
            "Function Events.Stream.Properties.StartingPosition",
            "Function Events.Stream.Properties.MaximumRecordAgeInSeconds",
            "Function Events.Stream.Properties.DestinationConfig",
            "Function Events.Stream.Properties.TumblingWindowInSeconds",
        ],
    );
}

#[test]
fn a_mapping_from_another_kind_of_source_is_reported() {
    check_function(
        "
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: arn:aws:kinesis:us-east-1:000000000000:stream/x, FunctionName: !Ref Function}
",
        &["Mapping EventSourceArn"],
    );
}

#[test]
fn properties_of_the_http_api_and_its_routes_are_reported() {
    check_function(
        "
      Events:
        Any: {Type: HttpApi, Properties: {ApiId: !Ref Api}}
        Get:
          Type: HttpApi
          Properties:
            ApiId: !Ref Api
            Method: GET
            Path: /
            PayloadFormatVersion: '1.0'
            TimeoutInMillis: 9
  Api:
    Type: AWS::Serverless::HttpApi
    Properties: {Name: api, StageName: v1, CorsConfiguration: true, AccessLogSettings: {}}
",
        &[
            "Function Events.Any.Properties",
            "Function Events.Get.Properties.PayloadFormatVersion",
            "Function Events.Get.Properties.TimeoutInMillis",
            "Api StageName",
            "Api CorsConfiguration",
        ],
    );
}

#[test]
fn nested_stacks_from_elsewhere_are_reported() {
    check(
        "
Resources:
  Bucket:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: https://bucket.s3.amazonaws.com/template.yaml}
  Repository:
    Type: AWS::Serverless::Application
    Properties: {Location: {ApplicationId: arn, SemanticVersion: 1.0.0}}
",
        &["Bucket TemplateURL", "Repository Location"],
    );
}

#[test]
fn sections_and_transforms_that_change_the_template_are_reported() {
    check(
        "
AWSTemplateFormatVersion: '2010-09-09'
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Rules: {Rule: {Assertions: []}}
Globals: {SimpleTable: {SSESpecification: {SSEEnabled: true}}}
Resources: {}
",
        &["Transform AWS::LanguageExtensions", "Rules Rules", "Globals SimpleTable"],
    );
}

#[test]
fn reports_of_a_nested_stack_name_its_file() {
    let parent =
        "Resources:\n  Nested: {Type: AWS::Serverless::Application, Properties: {Location: infra/nested.yaml}}\n";
    let nested = "Resources:\n  Bus: {Type: AWS::Events::EventBus}\n";

    let model = read_files(&[("template.yaml", parent), ("infra/nested.yaml", nested)], &[]).unwrap();

    assert_eq!(model.unsupported.len(), 1);
    assert_eq!(model.unsupported[0].template, "infra/nested.yaml");
}
