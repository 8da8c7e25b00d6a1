//! Names: pseudo parameters, physical names, ARNs, and what `Ref` and `Fn::GetAtt` make of a resource.

use super::error::{Place, TemplateError};
use super::node::{Data, Node};
use super::scope::{Scope, literal};
use super::stack::Stack;

/// What `AWS::Region` stands for.
pub const REGION: &str = "us-east-1";
/// What `AWS::AccountId` stands for.
pub const ACCOUNT_ID: &str = "000000000000";
/// What the name of a FIFO queue ends in.
pub(super) const FIFO_SUFFIX: &str = ".fifo";
const PARTITION: &str = "aws";
const URL_SUFFIX: &str = "amazonaws.com";

/// What a pseudo parameter other than `AWS::NoValue` stands for.
pub(super) fn pseudo_parameter(stack: &Stack, name: &str) -> Option<String> {
    let value = match name {
        "AWS::Region" => REGION.to_owned(),
        "AWS::AccountId" => ACCOUNT_ID.to_owned(),
        "AWS::Partition" => PARTITION.to_owned(),
        "AWS::URLSuffix" => URL_SUFFIX.to_owned(),
        "AWS::StackName" => stack.name.clone(),
        "AWS::StackId" => arn("cloudformation", &format!("stack/{}/local", stack.name)),
        _ => return None,
    };
    Some(value)
}

/// The name under which a resource is found: the one that its properties give, else one made from the stack's name and
/// the logical id, as CloudFormation makes one.
///
/// # Errors
/// A name that cannot be evaluated.
pub(super) fn physical_name<'t>(
    scope: Scope<'t>,
    logical_id: &str,
    resource: &'t Node,
) -> Result<String, TemplateError> {
    let generated = || Ok(format!("{}-{logical_id}{}", scope.stack().name, suffix_of(scope, logical_id, resource)?));
    let node =
        name_property(kind(resource)).and_then(|property| Some((property, resource.get("Properties")?.get(property)?)));
    let Some((property, node)) = node else {
        return generated();
    };
    let place = scope.stack().place(logical_id, node.line).property(property, node.line);
    scope.once(&place, &format!("name of {logical_id}"), || {
        let value = scope.head(&place, node)?;
        if value.data == Data::Nothing { generated() } else { literal(&place, &value).map(str::to_owned) }
    })
}

/// What a name that is made up has to end in: a FIFO queue's has a suffix.
fn suffix_of<'t>(scope: Scope<'t>, logical_id: &str, resource: &'t Node) -> Result<&'static str, TemplateError> {
    const PROPERTY: &str = "FifoQueue";
    let node = resource.get("Properties").and_then(|properties| properties.get(PROPERTY));
    let Some(node) = node.filter(|_| kind(resource) == "AWS::SQS::Queue") else {
        return Ok("");
    };
    let place = scope.stack().place(logical_id, node.line).property(PROPERTY, node.line);
    let is_fifo = scope.head(&place, node)?.as_text().is_some_and(|text| text.eq_ignore_ascii_case("true"));
    Ok(if is_fifo { FIFO_SUFFIX } else { "" })
}

/// What `Ref` makes of a resource.
///
/// # Errors
/// A name that cannot be evaluated.
pub(super) fn reference<'t>(scope: Scope<'t>, logical_id: &str, resource: &'t Node) -> Result<String, TemplateError> {
    let name = physical_name(scope, logical_id, resource)?;
    Ok(match kind(resource) {
        "AWS::SQS::Queue" => queue_url(&name),
        "AWS::SNS::Topic" => arn("sns", &name),
        "AWS::CloudFormation::Stack" | "AWS::Serverless::Application" => {
            arn("cloudformation", &format!("stack/{}-{logical_id}/local", scope.stack().name))
        }
        _ => name,
    })
}

/// What `Fn::GetAtt` makes of a resource.
///
/// # Errors
/// An attribute that the type does not have, or that has no meaning on one machine.
pub(super) fn attribute<'t>(
    scope: Scope<'t>,
    place: &Place,
    logical_id: &str,
    resource: &'t Node,
    attribute: &str,
) -> Result<String, TemplateError> {
    let name = physical_name(scope, logical_id, resource)?;
    Ok(match (kind(resource), attribute) {
        ("AWS::DynamoDB::Table", "Arn") => table_arn(&name),
        ("AWS::DynamoDB::Table", "StreamArn") => stream_arn(&name),
        ("AWS::SQS::Queue", "Arn") => queue_arn(&name),
        ("AWS::SQS::Queue", "QueueName") => name,
        ("AWS::SQS::Queue", "QueueUrl") => queue_url(&name),
        ("AWS::Serverless::Function", "Arn") => function_arn(&name),
        ("AWS::SNS::Topic", "TopicArn") => arn("sns", &name),
        ("AWS::SNS::Topic", "TopicName") => name,
        ("AWS::Logs::LogGroup", "Arn") => arn("logs", &format!("log-group:{name}:*")),
        ("AWS::IAM::Role", "Arn") => format!("arn:{PARTITION}:iam::{ACCOUNT_ID}:role/{name}"),
        _ => {
            return Err(TemplateError::UnknownAttribute {
                place: place.clone(),
                resource: logical_id.to_owned(),
                attribute: attribute.to_owned(),
            });
        }
    })
}

/// The type of a resource, which is known to have one.
pub(super) fn kind(resource: &Node) -> &str {
    resource.get("Type").and_then(Node::as_text).unwrap_or_default()
}

/// The ARN of a queue.
pub(super) fn queue_arn(name: &str) -> String {
    arn("sqs", name)
}

/// The name of the queue that an ARN is of; the whole text where it is of none here.
pub(super) fn queue_of(queue_arn: &str) -> &str {
    queue_arn.strip_prefix(&arn("sqs", "")).unwrap_or(queue_arn)
}

/// The name of the table whose stream an ARN is of.
pub(super) fn table_of(stream_arn: &str) -> Option<&str> {
    let (table, _) = stream_arn.strip_prefix(&table_arn(""))?.split_once("/stream/")?;
    Some(table)
}

/// The name of the function that an ARN is of; the whole text where it is none.
pub(super) fn function_of(name_or_arn: &str) -> &str {
    name_or_arn.strip_prefix(&function_arn("")).unwrap_or(name_or_arn)
}

fn name_property(kind: &str) -> Option<&'static str> {
    match kind {
        "AWS::DynamoDB::Table" => Some("TableName"),
        "AWS::SQS::Queue" => Some("QueueName"),
        "AWS::Serverless::Function" => Some("FunctionName"),
        "AWS::IAM::Role" => Some("RoleName"),
        "AWS::SNS::Topic" => Some("TopicName"),
        "AWS::Logs::LogGroup" => Some("LogGroupName"),
        "AWS::CloudWatch::Alarm" => Some("AlarmName"),
        _ => None,
    }
}

fn arn(service: &str, resource: &str) -> String {
    format!("arn:{PARTITION}:{service}:{REGION}:{ACCOUNT_ID}:{resource}")
}

fn table_arn(name: &str) -> String {
    arn("dynamodb", &format!("table/{name}"))
}

fn stream_arn(name: &str) -> String {
    // A real stream's name ends in the moment of its creation; here a table has one stream for good.
    format!("{}/stream/local", table_arn(name))
}

fn function_arn(name: &str) -> String {
    arn("lambda", &format!("function:{name}"))
}

fn queue_url(name: &str) -> String {
    format!("https://sqs.{REGION}.{URL_SUFFIX}/{ACCOUNT_ID}/{name}")
}
