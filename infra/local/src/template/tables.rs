//! `AWS::DynamoDB::Table` and `AWS::SQS::Queue`: what holds data.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::TemplateError;
use super::fields::{Fields, Property};
use super::findings::{Findings, Stream};
use super::reader::Resource;
use super::{ignored, names};
use crate::model::{Queue, Table};

const KEY_TYPES: [&str; 2] = ["HASH", "RANGE"];
const ATTRIBUTE_TYPES: [&str; 3] = ["S", "N", "B"];

/// Queue attributes that are numbers, with the range that SQS takes.
const QUEUE_NUMBERS: [(&str, u64, u64); 5] = [
    ("DelaySeconds", 0, 900),
    ("MaximumMessageSize", 1_024, 1_048_576),
    ("MessageRetentionPeriod", 60, 1_209_600),
    ("ReceiveMessageWaitTimeSeconds", 0, 20),
    ("VisibilityTimeout", 0, 43_200),
];

/// Attributes of FIFO queues that are words, with the words that SQS takes.
const FIFO_QUEUE_WORDS: [(&str, [&str; 2]); 3] = [
    ("ContentBasedDeduplication", ["true", "false"]),
    ("DeduplicationScope", ["queue", "messageGroup"]),
    ("FifoThroughputLimit", ["perQueue", "perMessageGroupId"]),
];

/// Reads a DynamoDB table.
///
/// # Errors
/// A missing key schema, values that DynamoDB does not take, and a name that is taken.
pub(super) fn read_table(resource: &Resource<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let name = resource.physical_name()?;
    let mut properties = resource.properties()?;
    properties.text("TableName")?;
    let mut request = Map::from_iter([("TableName".to_owned(), json!(name))]);
    let key_schema = pairs(properties.require("KeySchema")?, ("AttributeName", "KeyType"), &KEY_TYPES, findings)?;
    request.insert("KeySchema".to_owned(), key_schema);
    let definitions = properties.require("AttributeDefinitions")?;
    let definitions = pairs(definitions, ("AttributeName", "AttributeType"), &ATTRIBUTE_TYPES, findings)?;
    request.insert("AttributeDefinitions".to_owned(), definitions);
    if let Some(mode) = properties.take("BillingMode")? {
        request.insert("BillingMode".to_owned(), json!(mode.one_of(&["PAY_PER_REQUEST", "PROVISIONED"])?));
    }
    if let Some(throughput) = properties.take("ProvisionedThroughput")? {
        request.insert("ProvisionedThroughput".to_owned(), throughput_of(throughput, findings)?);
    }
    for indexes in ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"] {
        if let Some(property) = properties.take(indexes)? {
            let read = property.items()?.into_iter().map(|index| index_of(index, findings));
            request.insert(indexes.to_owned(), Value::Array(read.collect::<Result<_, _>>()?));
        }
    }
    let stream = match properties.take("StreamSpecification")? {
        Some(specification) => {
            request.insert("StreamSpecification".to_owned(), stream_of(specification, findings)?);
            Stream::Present
        }
        None => Stream::Absent,
    };
    let time_to_live_attribute = match properties.take("TimeToLiveSpecification")? {
        Some(specification) => time_to_live_of(specification, findings)?,
        None => None,
    };
    findings.left_over(properties, ignored::TABLE);
    let create_request = Value::Object(request).to_string();
    findings.table(resource.place(), Table { name, create_request, time_to_live_attribute }, stream)
}

/// Reads an SQS queue.
///
/// # Errors
/// Values that SQS does not take, and a name that is taken.
pub(super) fn read_queue(resource: &Resource<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let name = resource.physical_name()?;
    let mut properties = resource.properties()?;
    let mut attributes = fifo_attributes(&name, &mut properties)?;
    for (attribute, least, most) in QUEUE_NUMBERS {
        if let Some(number) = properties.number(attribute, least..=most)? {
            attributes.insert(attribute.to_owned(), number.to_string());
        }
    }
    if let Some(policy) = properties.take("RedrivePolicy")? {
        let mut policy = policy.fields()?;
        let target = policy.require("deadLetterTargetArn")?;
        let count: u32 = policy.require("maxReceiveCount")?.number(1..=1_000)?;
        findings.dead_letter_queue(target.place.clone(), target.text()?);
        let value = json!({ "deadLetterTargetArn": target.text()?, "maxReceiveCount": count });
        attributes.insert("RedrivePolicy".to_owned(), value.to_string());
        findings.left_over(policy, &[]);
    }
    if let Some(policy) = properties.take("RedriveAllowPolicy")? {
        attributes.insert("RedriveAllowPolicy".to_owned(), redrive_allow_policy(policy, findings)?);
    }
    findings.left_over(properties, ignored::QUEUE);
    findings.queue(resource.place(), Queue { name, attributes })
}

/// Reads what makes a queue a FIFO queue, which its name has to say, too.
fn fifo_attributes(name: &str, properties: &mut Fields<'_>) -> Result<BTreeMap<String, String>, TemplateError> {
    let given_name = properties.take("QueueName")?;
    let is_fifo = properties.boolean("FifoQueue")?.unwrap_or(false);
    if let Some(given_name) = given_name
        && is_fifo != name.ends_with(names::FIFO_SUFFIX)
    {
        return Err(given_name.invalid("a name that ends in .fifo exactly if FifoQueue is true"));
    }
    let mut attributes = BTreeMap::new();
    if is_fifo {
        attributes.insert("FifoQueue".to_owned(), "true".to_owned());
    }
    for (attribute, words) in FIFO_QUEUE_WORDS {
        if let Some(property) = properties.take(attribute)? {
            let word = property.one_of(&words)?.to_owned();
            if !is_fifo {
                return Err(property.invalid("a value for a queue whose FifoQueue is not true"));
            }
            attributes.insert(attribute.to_owned(), word);
        }
    }
    Ok(attributes)
}

fn redrive_allow_policy(policy: Property<'_>, findings: &mut Findings) -> Result<String, TemplateError> {
    let mut policy = policy.fields()?;
    let permission = policy.require("redrivePermission")?;
    let mut value = json!({ "redrivePermission": permission.one_of(&["allowAll", "denyAll", "byQueue"])? });
    if let Some(sources) = policy.take("sourceQueueArns")? {
        value["sourceQueueArns"] = texts(sources)?;
    }
    findings.left_over(policy, &[]);
    Ok(value.to_string())
}

/// A list of mappings of a name to a word.
fn pairs(
    property: Property<'_>,
    (name, word): (&str, &str),
    words: &[&str],
    findings: &mut Findings,
) -> Result<Value, TemplateError> {
    let mut pairs = Vec::new();
    for item in property.items()? {
        let mut fields = item.fields()?;
        let named = fields.require(name)?;
        let described = fields.require(word)?;
        let mut pair = Map::from_iter([(name.to_owned(), json!(named.text()?))]);
        pair.insert(word.to_owned(), json!(described.one_of(words)?));
        pairs.push(Value::Object(pair));
        findings.left_over(fields, &[]);
    }
    Ok(Value::Array(pairs))
}

fn index_of(property: Property<'_>, findings: &mut Findings) -> Result<Value, TemplateError> {
    let mut fields = property.fields()?;
    let name = fields.require("IndexName")?;
    let mut index = Map::from_iter([("IndexName".to_owned(), json!(name.text()?))]);
    let key_schema = pairs(fields.require("KeySchema")?, ("AttributeName", "KeyType"), &KEY_TYPES, findings)?;
    index.insert("KeySchema".to_owned(), key_schema);
    index.insert("Projection".to_owned(), projection_of(fields.require("Projection")?, findings)?);
    if let Some(throughput) = fields.take("ProvisionedThroughput")? {
        index.insert("ProvisionedThroughput".to_owned(), throughput_of(throughput, findings)?);
    }
    findings.left_over(fields, &[("ContributorInsightsSpecification", "there are no metrics here")]);
    Ok(Value::Object(index))
}

fn projection_of(property: Property<'_>, findings: &mut Findings) -> Result<Value, TemplateError> {
    let mut fields = property.fields()?;
    let kind = fields.require("ProjectionType")?;
    let mut projection = json!({ "ProjectionType": kind.one_of(&["ALL", "KEYS_ONLY", "INCLUDE"])? });
    if let Some(attributes) = fields.take("NonKeyAttributes")? {
        projection["NonKeyAttributes"] = texts(attributes)?;
    }
    findings.left_over(fields, &[]);
    Ok(projection)
}

fn throughput_of(property: Property<'_>, findings: &mut Findings) -> Result<Value, TemplateError> {
    let mut fields = property.fields()?;
    let mut units = |name: &str| fields.require(name)?.number(1..=u64::MAX);
    let throughput = json!({
        "ReadCapacityUnits": units("ReadCapacityUnits")?,
        "WriteCapacityUnits": units("WriteCapacityUnits")?,
    });
    findings.left_over(fields, &[]);
    Ok(throughput)
}

fn stream_of(property: Property<'_>, findings: &mut Findings) -> Result<Value, TemplateError> {
    let mut fields = property.fields()?;
    let view = fields.require("StreamViewType")?;
    let view = view.one_of(&["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])?.to_owned();
    findings.left_over(fields, &[]);
    // CloudFormation leaves out what the request has to say.
    Ok(json!({ "StreamEnabled": true, "StreamViewType": view }))
}

fn time_to_live_of(property: Property<'_>, findings: &mut Findings) -> Result<Option<String>, TemplateError> {
    let mut fields: Fields<'_> = property.fields()?;
    let enabled = fields.require("Enabled")?.boolean()?;
    let attribute = fields.text("AttributeName")?;
    let place = fields.place().property("AttributeName", fields.place().line);
    findings.left_over(fields, &[]);
    match (enabled, attribute) {
        (false, _) => Ok(None),
        (true, Some(attribute)) => Ok(Some(attribute)),
        (true, None) => Err(TemplateError::MissingProperty { place }),
    }
}

fn texts(property: Property<'_>) -> Result<Value, TemplateError> {
    let items = property.items()?;
    let texts = items.iter().map(|item| item.text().map(Value::from));
    Ok(Value::Array(texts.collect::<Result<_, _>>()?))
}
