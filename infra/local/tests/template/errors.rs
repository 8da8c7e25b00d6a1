//! Whatever is wrong, the message says in which file, resource and property.

use crate::support::{FUNCTION, read_files, read_text};

/// Reads a template and expects exactly this message.
fn check(template: &str, message: &str) {
    assert_eq!(read_text(template).unwrap_err().to_string(), message);
}

/// Checks a template of which only the resources matter; they begin in line 2.
fn check_resources(resources: &str, message: &str) {
    check(&format!("Resources:\n{}", resources.trim_start_matches('\n')), message);
}

fn check_function(rest: &str, message: &str) {
    check_resources(&format!("{FUNCTION}{rest}"), message);
}

#[test]
fn a_missing_file_is_named() {
    let path = std::path::Path::new("/nowhere/template.yaml");
    let error = local::template::read(path, &std::collections::BTreeMap::new()).unwrap_err();
    assert_eq!(error.to_string(), "template.yaml: the template cannot be read");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_missing_nested_template_is_named_by_its_own_path() {
    check_resources(
        "
  Nested:
    Type: AWS::Serverless::Application
    Properties: {Location: infra/nested.yaml}
",
        "infra/nested.yaml: the template cannot be read",
    );
}

#[test]
fn text_that_is_not_yaml_is_named_by_its_line() {
    let error = read_text("Resources:\n  Queue:\n    Type: [AWS::SQS::Queue\n  x: {").unwrap_err().to_string();
    assert!(error.starts_with("template.yaml:4: not YAML: "), "{error}");
}

#[test]
fn yaml_that_cloudformation_does_not_take_is_refused_with_its_line() {
    check("", "template.yaml:1: the file is empty");
    check("Resources:\n  A: {Type: T}\n  A: {Type: T}\n", "template.yaml:3: the key A is there twice");
    check("Resources:\n  A: &a {Type: T}\n  B: *a\n", "template.yaml:3: aliases are not allowed in templates");
    check("Resources:\n  A:\n    <<: {Type: T}\n", "template.yaml:3: merge keys are not allowed in templates");
    check(
        "Resources:\n  A:\n    Type:\n",
        "template.yaml:3: the value is empty; null values are not allowed in templates",
    );
    check("Resources:\n  A: !Reff B\n", "template.yaml:2: the tag !Reff is not known");
    check(
        "Resources: {}\n---\nResources: {}\n",
        "template.yaml:2: a template is one document, here a second one begins",
    );
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!("Resources: {}{}", "[".repeat(200), "]".repeat(200));
    check(&deep, "template.yaml:1: the nesting is too deep");
    check(&"- ".repeat(50_000), "template.yaml:1: the nesting is too deep");
    check(&"[".repeat(50_000), "template.yaml:1: not YAML: recursion limit exceeded");
}

#[test]
fn a_template_needs_resources_and_they_need_types() {
    check("Description: nothing\n", "template.yaml:1: Resources: the property is missing");
    check_resources("  Queue: {Properties: {}}\n", "template.yaml:2: Queue: Type: the property is missing");
    check("Resources: [a]\n", "template.yaml:1: Resources: the value is a list of 1, it must be a mapping");
}

#[test]
fn a_parameter_without_value_and_default_is_missing() {
    check(
        "Parameters:\n  Name: {Type: String}\nResources: {}\n",
        "template.yaml:2: Parameters: Name: the parameter has no value and no default",
    );
}

#[test]
fn a_value_for_an_undeclared_parameter_is_refused() {
    let error = read_files(&[("template.yaml", "Resources: {}\n")], &[("Prefiks", "x")]).unwrap_err();
    assert_eq!(error.to_string(), "template.yaml: Parameters: Prefiks: the template declares no such parameter");
}

#[test]
fn a_nested_stack_gets_the_parameters_that_it_declares_and_no_others() {
    let parent = |parameters: &str| {
        format!(
            "Resources:\n  Nested:\n    Type: AWS::Serverless::Application\n    Properties:\n      Location: nested.yaml\n      Parameters: {parameters}\n"
        )
    };
    let nested = ("nested.yaml", "Parameters:\n  Name: {Type: String}\nResources: {}\n");

    let unknown = read_files(&[("template.yaml", &parent("{Name: a, Nam: b}")), nested], &[]).unwrap_err();
    let missing = read_files(&[("template.yaml", &parent("{}")), nested], &[]).unwrap_err();

    assert_eq!(unknown.to_string(), "template.yaml:6: Nested: Parameters.Nam: the template declares no such parameter");
    assert_eq!(missing.to_string(), "nested.yaml:2: Parameters: Name: the parameter has no value and no default");
}

#[test]
fn a_parameter_s_value_must_be_of_its_type_and_allowed() {
    check(
        "Parameters:\n  Days: {Type: Number, Default: few}\nResources: {}\n",
        "template.yaml:2: Parameters: Days: \"few\" is not a number",
    );
    check(
        "Parameters:\n  Size: {Type: String, Default: XL, AllowedValues: [S, M]}\nResources: {}\n",
        "template.yaml:2: Parameters: Size: \"XL\" is not one of the parameter's AllowedValues",
    );
}

#[test]
fn a_reference_to_nothing_names_what_it_looked_for() {
    let queue = |name: &str| format!("  Queue:\n    Type: AWS::SQS::Queue\n    Properties:\n      QueueName: {name}\n");
    for name in ["!Ref Nothing", "!Sub 'a-${Nothing}'", "!GetAtt Nothing.Arn", "!If [Nothing, a, b]"] {
        check_resources(&queue(name), "template.yaml:5: Queue: QueueName: nothing here is called Nothing");
    }
    check_resources(
        &queue("!FindInMap [Map, First, Second]"),
        "template.yaml:5: Queue: QueueName: nothing here is called Map.First.Second",
    );
    check_resources(
        &queue("!ImportValue elsewhere"),
        "template.yaml:5: Queue: QueueName: nothing here is called elsewhere",
    );
}

#[test]
fn an_attribute_that_has_no_value_here_is_named() {
    check_resources(
        "
  Queue:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !GetAtt Topic.Colour}
  Topic: {Type: AWS::SNS::Topic}
",
        "template.yaml:4: Queue: QueueName: Topic has no attribute Colour here",
    );
}

#[test]
fn a_function_that_is_not_evaluated_is_named() {
    check_resources(
        "
  Queue:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !Base64 name}
",
        "template.yaml:4: Queue: QueueName: Fn::Base64 cannot be evaluated here",
    );
}

#[test]
fn values_made_from_one_another_are_a_cycle() {
    check_resources(
        "
  First:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !GetAtt Second.QueueName}
  Second:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !GetAtt First.QueueName}
",
        "template.yaml:4: First: QueueName: the value is made from itself: \
         local name of First -> local name of Second -> local name of First",
    );
    check(
        "Conditions:\n  A: !Not [!Condition B]\n  B: !Not [!Condition A]\nResources:\n  Q: {Type: T, Condition: A}\n",
        "template.yaml:2: Conditions: A: the value is made from itself: \
         local condition A -> local condition B -> local condition A",
    );
}

#[test]
fn stacks_that_feed_each_other_are_a_cycle() {
    let parent = "
Resources:
  One:
    Type: AWS::Serverless::Application
    Properties: {Location: nested.yaml, Parameters: {Name: !GetAtt Two.Outputs.Name}}
  Two:
    Type: AWS::Serverless::Application
    Properties: {Location: nested.yaml, Parameters: {Name: !GetAtt One.Outputs.Name}}
";
    let nested = "
Parameters: {Name: {Type: String}}
Resources: {Queue: {Type: AWS::SQS::Queue, Properties: {QueueName: !Ref Name}}}
Outputs: {Name: {Value: !Ref Name}}
";
    let error = read_files(&[("template.yaml", parent), ("nested.yaml", nested)], &[]).unwrap_err().to_string();
    assert!(
        error.contains("the value is made from itself: local-One parameter Name -> local-Two output Name"),
        "{error}"
    );
}

#[test]
fn a_template_that_nests_itself_is_a_cycle() {
    check_resources(
        "
  Again:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: ./template.yaml}
",
        "template.yaml:4: Again: the value is made from itself: template.yaml -> template.yaml",
    );
}

#[test]
fn a_value_of_the_wrong_shape_says_what_was_found() {
    check_resources(
        "
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: [30]
",
        "template.yaml:5: Queue: VisibilityTimeout: the value is a list of 1, it must be a text",
    );
    check_function(
        "      Events: [a]\n",
        "template.yaml:11: Function: Events: the value is a list of 1, it must be a mapping",
    );
    check_function(
        "      Environment: {Variables: {LIST: [a]}}\n",
        "template.yaml:11: Function: Environment.Variables.LIST: the value is a list of 1, it must be a text",
    );
}

#[test]
fn a_value_out_of_range_says_what_the_property_takes() {
    check_resources(
        "
  Queue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 50000}
",
        "template.yaml:4: Queue: VisibilityTimeout: 50000 is not a whole number from 0 to 43200",
    );
    check_function(
        "      Timeout: 901\n",
        "template.yaml:11: Function: Timeout: 901 is not a whole number from 1 to 900",
    );
    check_resources(
        "
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {KeySchema: [{AttributeName: pk, KeyType: hash}]}
",
        "template.yaml:4: Table: KeySchema[0].KeyType: hash is not one of HASH, RANGE",
    );
}

#[test]
fn a_function_without_a_binary_is_refused() {
    let function = |metadata: &str| {
        format!("  Function:\n    Type: AWS::Serverless::Function\n{metadata}    Properties: {{CodeUri: .}}\n")
    };
    check_resources(
        &function(""),
        "template.yaml:3: Function: Metadata.BuildProperties.Binary: the name of the function's cargo binary is missing",
    );
    check_resources(
        &function("    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Profile: dev}}\n"),
        "template.yaml:4: Function: Metadata.BuildProperties.Binary: the name of the function's cargo binary is missing",
    );
}

#[test]
fn a_function_without_code_here_is_refused() {
    let metadata = "    Metadata: {BuildProperties: {Binary: worker}}\n";
    let function = |properties: &str| {
        format!("  Function:\n    Type: AWS::Serverless::Function\n{metadata}    Properties: {properties}\n")
    };
    check_resources(&function("{Timeout: 3}"), "template.yaml:5: Function: CodeUri: the property is missing");
    check_resources(
        &function("{CodeUri: s3://bucket/code.zip}"),
        "template.yaml:5: Function: CodeUri: s3://bucket/code.zip is not a folder of this machine",
    );
}

#[test]
fn a_table_without_a_key_schema_is_refused() {
    check_resources(
        "
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: table}
",
        "template.yaml:4: Table: KeySchema: the property is missing",
    );
}

#[test]
fn two_resources_of_one_kind_cannot_share_a_name() {
    let two = |kind: &str, properties: &str| {
        format!(
            "  A:\n    Type: {kind}\n    Properties: {properties}\n  B:\n    Type: {kind}\n    Properties: {properties}\n"
        )
    };
    check_resources(
        &two("AWS::SQS::Queue", "{QueueName: same}"),
        "template.yaml:6: B: the name same is taken by template.yaml:3: A",
    );
    check_resources(
        &two("AWS::DynamoDB::Table", "{TableName: same, KeySchema: [], AttributeDefinitions: []}"),
        "template.yaml:6: B: the name same is taken by template.yaml:3: A",
    );
    check_function(
        "      Events:\n        A: {Type: HttpApi, Properties: {Method: get, Path: /a}}\n        B: {Type: HttpApi, Properties: {Method: GET, Path: /a}}\n",
        "template.yaml:13: Function: Events.B.Properties: the name GET /a is taken by template.yaml:12: Function: Events.A.Properties",
    );
}

#[test]
fn a_mapping_from_nothing_names_the_queue_or_stream() {
    check_function(
        "      Events: {Q: {Type: SQS, Properties: {Queue: arn:aws:sqs:us-east-1:000000000000:none}}}\n",
        "template.yaml:11: Function: Events.Q.Properties.Queue: there is no queue none",
    );
    check_function(
        "      Events: {S: {Type: DynamoDB, Properties: {Stream: elsewhere, StartingPosition: TRIM_HORIZON}}}\n",
        "template.yaml:11: Function: Events.S.Properties.Stream: there is no table with the stream elsewhere",
    );
}

#[test]
fn a_mapping_from_a_table_without_a_stream_is_refused() {
    check_function(
        "      Events: {S: {Type: DynamoDB, Properties: {Stream: !GetAtt Table.StreamArn, StartingPosition: TRIM_HORIZON}}}
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: still, KeySchema: [], AttributeDefinitions: []}
",
        "template.yaml:11: Function: Events.S.Properties.Stream: there is no table with the stream still",
    );
}

#[test]
fn a_mapping_to_an_unknown_function_is_refused() {
    check_resources(
        "
  Queue: {Type: AWS::SQS::Queue}
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: nobody}
",
        "template.yaml:5: Mapping: FunctionName: there is no function nobody",
    );
}

#[test]
fn a_dead_letter_queue_must_exist() {
    check_resources(
        "
  Queue:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: nowhere, maxReceiveCount: 3}}
",
        "template.yaml:4: Queue: RedrivePolicy.deadLetterTargetArn: there is no queue nowhere",
    );
}

#[test]
fn a_big_batch_needs_a_window_as_lambda_asks_for_it() {
    check_function(
        "      Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Queue.Arn, BatchSize: 11}}}\n  Queue: {Type: AWS::SQS::Queue}\n",
        "template.yaml:11: Function: Events.Q.Properties.BatchSize: 11 is not \
         a batch size without a MaximumBatchingWindowInSeconds, which is at most 10",
    );
}

#[test]
fn a_fifo_queue_has_no_window_and_no_big_batch() {
    let queue = "  Queue: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}\n";
    let event = |properties: &str| {
        format!("      Events: {{Q: {{Type: SQS, Properties: {{Queue: !GetAtt Queue.Arn, {properties}}}}}}}\n{queue}")
    };
    check_function(
        &event("MaximumBatchingWindowInSeconds: 1"),
        "template.yaml:11: Function: Events.Q.Properties.MaximumBatchingWindowInSeconds: 1 is not \
         a window of a FIFO queue, which has none",
    );
    check_function(
        &event("BatchSize: 11"),
        "template.yaml:11: Function: Events.Q.Properties.BatchSize: 11 is not \
         a batch size without a MaximumBatchingWindowInSeconds, which is at most 10",
    );
}

#[test]
fn the_name_of_a_fifo_queue_says_so() {
    for (properties, expected) in [
        (
            "QueueName: orders, FifoQueue: true",
            "QueueName: orders is not a name that ends in .fifo exactly if FifoQueue is true",
        ),
        ("QueueName: a.fifo", "QueueName: a.fifo is not a name that ends in .fifo exactly if FifoQueue is true"),
        (
            "DeduplicationScope: queue",
            "DeduplicationScope: queue is not a value for a queue whose FifoQueue is not true",
        ),
        (
            "FifoQueue: true, FifoThroughputLimit: perGroup",
            "FifoThroughputLimit: perGroup is not one of perQueue, perMessageGroupId",
        ),
    ] {
        check_resources(
            &format!("\n  Queue:\n    Type: AWS::SQS::Queue\n    Properties: {{{properties}}}\n"),
            &format!("template.yaml:4: Queue: {expected}"),
        );
    }
}

#[test]
fn a_queue_must_hide_messages_for_as_long_as_the_function_may_take() {
    check_function(
        "      Timeout: 31\n      Events: {Q: {Type: SQS, Properties: {Queue: !GetAtt Queue.Arn}}}\n  Queue: {Type: AWS::SQS::Queue, Properties: {QueueName: short}}\n",
        "template.yaml:12: Function: Events.Q.Properties.Queue: the queue short with a visibility timeout of 30 s is not \
         a queue with at least the 31 s that the function may take",
    );
}

#[test]
fn an_event_can_only_name_an_api_of_its_own_template() {
    check_function(
        "      Events: {Get: {Type: HttpApi, Properties: {ApiId: abc, Method: GET, Path: /}}}\n",
        "template.yaml:11: Function: Events.Get.Properties.ApiId: abc is not an AWS::Serverless::HttpApi of this template",
    );
}

#[test]
fn a_template_cut_off_anywhere_ends_in_a_model_or_a_message() {
    let whole = include_str!("../../../api.yaml");
    let mut messages = 0;
    for end in (0..whole.len()).step_by(29).filter(|end| whole.is_char_boundary(*end)) {
        if let Err(error) = read_text(&whole[..end]) {
            assert!(error.to_string().starts_with("template.yaml:"), "cut off at {end}: {error}");
            messages += 1;
        }
    }
    assert!(messages > 100, "only {messages} of the cut templates were refused");
}
