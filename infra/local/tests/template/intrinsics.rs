//! Intrinsic functions, parameters, conditions, globals and nested stacks evaluate to what CloudFormation makes of them.

use std::time::Duration;

use local::sqs::Broker;

use crate::support::{FUNCTION, read_files, read_text};

/// Evaluates an expression as the name of a queue.
fn evaluate(expression: &str) -> String {
    evaluate_with("", expression)
}

/// The same after further sections.
fn evaluate_with(sections: &str, expression: &str) -> String {
    let template = format!(
        "{sections}
Resources:
  Queue: {{Type: AWS::SQS::Queue, Properties: {{QueueName: {expression}}}}}
  Other: {{Type: AWS::SQS::Queue, Properties: {{QueueName: other}}}}
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {{TableName: table, KeySchema: [], AttributeDefinitions: []}}
  Role: {{Type: AWS::IAM::Role, Properties: {{RoleName: role}}}}
  Topic: {{Type: AWS::SNS::Topic, Properties: {{TopicName: topic}}}}
  Log: {{Type: AWS::Logs::LogGroup}}
"
    );
    read_text(&template).unwrap().queues[0].name.clone()
}

#[test]
fn ref_is_a_parameter_a_pseudo_parameter_or_a_resource() {
    assert_eq!(evaluate_with("Parameters: {Name: {Type: String, Default: given}}", "!Ref Name"), "given");
    assert_eq!(evaluate("{Ref: AWS::Region}"), "us-east-1");
    assert_eq!(evaluate("!Ref AWS::AccountId"), "000000000000");
    assert_eq!(evaluate("!Ref AWS::Partition"), "aws");
    assert_eq!(evaluate("!Ref AWS::URLSuffix"), "amazonaws.com");
    assert_eq!(evaluate("!Ref AWS::StackName"), "local");
    assert_eq!(evaluate("!Ref Other"), "https://sqs.us-east-1.amazonaws.com/000000000000/other");
    assert_eq!(evaluate("!Ref Table"), "table");
    assert_eq!(evaluate("!Ref Topic"), "arn:aws:sns:us-east-1:000000000000:topic");
    assert_eq!(evaluate("!Ref Log"), "local-Log");
}

#[test]
fn get_att_takes_both_forms() {
    assert_eq!(evaluate("!GetAtt Other.Arn"), "arn:aws:sqs:us-east-1:000000000000:other");
    assert_eq!(
        evaluate("{Fn::GetAtt: [Table, StreamArn]}"),
        "arn:aws:dynamodb:us-east-1:000000000000:table/table/stream/local"
    );
    assert_eq!(evaluate("!GetAtt Table.Arn"), "arn:aws:dynamodb:us-east-1:000000000000:table/table");
    assert_eq!(evaluate("!GetAtt Role.Arn"), "arn:aws:iam::000000000000:role/role");
    assert_eq!(evaluate("!GetAtt Log.Arn"), "arn:aws:logs:us-east-1:000000000000:log-group:local-Log:*");
}

#[test]
fn sub_replaces_names_attributes_and_its_own_variables() {
    assert_eq!(evaluate("!Sub 'a-${AWS::Region}-${Other.QueueName}-${!Plain}'"), "a-us-east-1-other-${Plain}");
    assert_eq!(evaluate("{Fn::Sub: ['${One}-${Two}', {One: 1, Two: !Ref Table}]}"), "1-table");
}

#[test]
fn text_functions_nest() {
    assert_eq!(evaluate("!Join ['-', [a, !Ref Table, !Ref AWS::NoValue, b]]"), "a-table-b");
    assert_eq!(evaluate("!Select [1, !Split ['/', a/b/c]]"), "b");
    assert_eq!(
        evaluate_with("Parameters: {List: {Type: CommaDelimitedList, Default: 'x, y'}}", "!Join [+, !Ref List]"),
        "x+y"
    );
    assert_eq!(
        evaluate_with("Mappings: {Sizes: {us-east-1: {small: s}}}", "!FindInMap [Sizes, !Ref AWS::Region, small]"),
        "s"
    );
}

#[test]
fn conditions_choose() {
    let sections = "
Parameters: {Stage: {Type: String, Default: prod}}
Conditions:
  Prod: !Equals [!Ref Stage, prod]
  Test: {Fn::Not: [{Condition: Prod}]}
  Both: !And [!Condition Prod, !Condition Test]
  Either: !Or [!Condition Prod, !Condition Test]
";
    assert_eq!(evaluate_with(sections, "!If [Prod, yes-it-is, no-it-is-not]"), "yes-it-is");
    assert_eq!(evaluate_with(sections, "!If [Test, a, !If [Both, b, c]]"), "c");
    assert_eq!(evaluate_with(sections, "!If [Either, a, b]"), "a");
}

#[test]
fn no_value_is_as_if_nothing_were_there() {
    assert_eq!(evaluate("!Ref AWS::NoValue"), "local-Queue");
}

#[test]
fn an_untaken_branch_need_not_be_known() {
    let sections = "Conditions: {Never: !Equals [a, b]}";
    assert_eq!(evaluate_with(sections, "!If [Never, !GetAtt Topic.Nothing, known]"), "known");
}

#[test]
fn a_resource_whose_condition_does_not_hold_is_not_there() {
    let model = read_text(
        "
Conditions: {Never: !Equals [a, b]}
Resources:
  Here: {Type: AWS::SQS::Queue}
  Gone: {Type: AWS::SQS::Queue, Condition: Never}
",
    )
    .unwrap();
    let names: Vec<&str> = model.queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["local-Here"]);
}

#[test]
fn given_parameters_replace_defaults() {
    let template = "
Parameters: {Name: {Type: String, Default: default}}
Resources: {Queue: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref Name}}}
";
    let model = read_files(&[("template.yaml", template)], &[("Name", "given")]).unwrap();
    assert_eq!(model.queues[0].name, "given");
}

#[test]
fn nested_stacks_pass_parameters_down_and_outputs_across() {
    let parent = "
Parameters: {Prefix: {Type: String, Default: p}}
Resources:
  Consumer:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: parts/consumer.yaml, Parameters: {Target: !GetAtt Producer.Outputs.Arn}}
  Producer:
    Type: AWS::Serverless::Application
    Properties: {Location: parts/producer.yaml, Parameters: {Prefix: !Ref Prefix}}
";
    let consumer = "
Parameters: {Target: {Type: String, Default: unused}}
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !Ref Target, maxReceiveCount: 3}}
";
    let producer = "
Parameters: {Prefix: {Type: String}}
Resources: {Dead: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub '${Prefix}-dead'}}}
Outputs: {Arn: {Value: !GetAtt Dead.Arn}}
";
    let files = [("template.yaml", parent), ("parts/consumer.yaml", consumer), ("parts/producer.yaml", producer)];

    let model = read_files(&files, &[]).unwrap();

    assert_eq!(model.queues[0].name, "local-Consumer-Queue");
    assert_eq!(
        model.queues[0].attributes["RedrivePolicy"],
        r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:p-dead","maxReceiveCount":3}"#
    );
}

#[test]
fn a_fifo_queue_has_its_attributes_and_a_name_that_says_so() {
    let template = "
Parameters: {HighThroughput: {Type: String, Default: true}}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties:
      FifoQueue: !Ref HighThroughput
      ContentBasedDeduplication: true
      DeduplicationScope: messageGroup
      FifoThroughputLimit: perMessageGroupId
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3}
  Dead: {Type: AWS::SQS::Queue, Properties: {QueueName: dead.fifo, FifoQueue: true}}
  Standard: {Type: AWS::SQS::Queue, Properties: {FifoQueue: false}}
";

    let model = read_files(&[("template.yaml", template)], &[]).unwrap();

    let queue = |name: &str| model.queues.iter().find(|queue| queue.name == name).unwrap();
    let orders = &queue("local-Orders.fifo").attributes;
    for (attribute, value) in [
        ("FifoQueue", "true"),
        ("ContentBasedDeduplication", "true"),
        ("DeduplicationScope", "messageGroup"),
        ("FifoThroughputLimit", "perMessageGroupId"),
    ] {
        assert_eq!(orders[attribute], value);
    }
    assert!(orders["RedrivePolicy"].contains("dead.fifo"));
    assert_eq!(queue("dead.fifo").attributes.len(), 1);
    assert!(queue("local-Standard").attributes.is_empty());
    Broker::default().create_declared(&model.queues).unwrap();
}

#[test]
fn exports_are_found_in_other_stacks_of_the_tree() {
    let parent = "
Resources:
  Exporter: {Type: AWS::Serverless::Application, Properties: {Location: exporter.yaml}}
  Queue: {Type: AWS::SQS::Queue, Properties: {QueueName: !ImportValue shared-name}}
";
    let exporter = "
Resources: {}
Outputs: {Name: {Value: exported, Export: {Name: shared-name}}}
";
    let model = read_files(&[("template.yaml", parent), ("exporter.yaml", exporter)], &[]).unwrap();
    assert_eq!(model.queues[0].name, "exported");
}

#[test]
fn globals_are_merged_as_sam_merges_them() {
    let template = format!(
        "
Globals:
  Function:
    Timeout: 7
    MemorySize: 1024
    Environment: {{Variables: {{SHARED: global, MINE: global}}}}
Resources:{FUNCTION}      MemorySize: 256
      Environment: {{Variables: {{MINE: own}}}}
"
    );

    let function = read_text(&template).unwrap().functions.remove(0);

    assert_eq!(function.timeout, Duration::from_secs(7));
    assert_eq!(function.memory_mib, 256);
    assert_eq!(function.environment["SHARED"], "global");
    assert_eq!(function.environment["MINE"], "own");
}

#[test]
fn a_function_without_numbers_has_lambda_s_own() {
    let function = read_text(&format!("Resources:{FUNCTION}")).unwrap().functions.remove(0);
    assert_eq!(function.timeout, Duration::from_secs(3));
    assert_eq!(function.memory_mib, 128);
    assert!(function.code.is_absolute() && function.code.ends_with("functions/worker"));
}

#[test]
fn a_mapping_of_its_own_is_read_like_an_event_and_a_disabled_one_is_left_out() {
    let template = format!(
        "Resources:{FUNCTION}
  Queue: {{Type: AWS::SQS::Queue, Properties: {{QueueName: queue}}}}
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {{EventSourceArn: !GetAtt Queue.Arn, FunctionName: !GetAtt Function.Arn, BatchSize: 5}}
  Disabled:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {{EventSourceArn: !GetAtt Queue.Arn, FunctionName: !Ref Function, Enabled: false}}
"
    );

    let model = read_text(&template).unwrap();

    assert_eq!(model.queue_mappings.len(), 1);
    let mapping = &model.queue_mappings[0];
    assert_eq!((mapping.queue.as_str(), mapping.function.as_str(), mapping.batch_size), ("queue", "worker", 5));
    assert_eq!(mapping.maximum_concurrency, None);
}
