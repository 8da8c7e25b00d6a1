//! The operations about queues: create, find, list, attributes, tags, purge and delete.

use std::collections::BTreeMap;

use queue::QueueName;
use queue::attribute_names::READABLE;
use serde::{Deserialize, Serialize};

use super::Broker;
use super::fault::Fault;
use super::server::queue_url;
use super::wire::{Answer, Empty, page, queue_of, read, required, write};

const ALL: &str = "All";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateQueue {
    queue_name: Option<String>,
    attributes: Option<BTreeMap<String, String>>,
    // The one parameter that the service model spells in lower case.
    #[serde(rename = "tags")]
    tags: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueueRequest {
    queue_url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetQueueUrl {
    queue_name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListQueues {
    queue_name_prefix: Option<String>,
    max_results: Option<i64>,
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListDeadLetterSourceQueues {
    queue_url: Option<String>,
    max_results: Option<i64>,
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetQueueAttributes {
    queue_url: Option<String>,
    attribute_names: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SetQueueAttributes {
    queue_url: Option<String>,
    attributes: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TagQueue {
    queue_url: Option<String>,
    tags: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UntagQueue {
    queue_url: Option<String>,
    tag_keys: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct QueueUrl {
    queue_url: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct QueueUrls {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
struct SourceQueueUrls {
    // The one list that the service model spells in lower case, and that is there even if empty.
    #[serde(rename = "queueUrls")]
    queue_urls: Vec<String>,
    #[serde(rename = "NextToken", skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Tags {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

pub(super) fn create_queue(broker: &Broker, base_url: &str, body: &[u8]) -> Answer {
    let request: CreateQueue = read(body)?;
    let name = required(request.queue_name, "QueueName")?;
    let attributes = request.attributes.unwrap_or_default();
    let queue = broker.create_tagged(&name, &attributes, request.tags.unwrap_or_default())?;
    write(&QueueUrl { queue_url: queue_url(base_url, &queue) })
}

pub(super) fn get_queue_url(broker: &Broker, base_url: &str, body: &[u8]) -> Answer {
    let request: GetQueueUrl = read(body)?;
    let queue = broker.queue(&required(request.queue_name, "QueueName")?)?;
    write(&QueueUrl { queue_url: queue_url(base_url, &queue) })
}

pub(super) fn list_queues(broker: &Broker, base_url: &str, body: &[u8]) -> Answer {
    let request: ListQueues = read(body)?;
    let prefix = request.queue_name_prefix.unwrap_or_default();
    let names = broker.queues().into_iter().filter(|name| name.as_str().starts_with(&prefix));
    let page = page(names, request.max_results, request.next_token.as_deref())?;
    // SQS gives out a token only to who asked for pages.
    let next_token = page.next_token.filter(|_| request.max_results.is_some());
    write(&QueueUrls { queue_urls: urls(base_url, &page.names), next_token })
}

pub(super) fn list_dead_letter_source_queues(broker: &Broker, base_url: &str, body: &[u8]) -> Answer {
    let request: ListDeadLetterSourceQueues = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let sources = broker.read(|queues, _| queues.dead_letter_sources(&queue))?;
    let page = page(sources.into_iter(), request.max_results, request.next_token.as_deref())?;
    write(&SourceQueueUrls { queue_urls: urls(base_url, &page.names), next_token: page.next_token })
}

pub(super) fn get_queue_attributes(broker: &Broker, body: &[u8]) -> Answer {
    let request: GetQueueAttributes = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let asked = request.attribute_names.unwrap_or_default();
    let known = |name: &str| name == ALL || READABLE.contains(&name);
    if let Some(unknown) = asked.iter().find(|name| !known(name)) {
        return Err(Fault::invalid_attribute_name(unknown));
    }
    let mut attributes = broker.read(|queues, now| queues.attributes(&queue, now))?;
    if !asked.iter().any(|name| name == ALL) {
        attributes.retain(|name, _| asked.contains(name));
    }
    write(&Attributes { attributes })
}

pub(super) fn set_queue_attributes(broker: &Broker, body: &[u8]) -> Answer {
    let request: SetQueueAttributes = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    broker.set_attributes(&queue, &required(request.attributes, "Attributes")?)?;
    write(&Empty {})
}

pub(super) fn delete_queue(broker: &Broker, body: &[u8]) -> Answer {
    let request: QueueRequest = read(body)?;
    broker.delete_queue(&queue_of(broker, request.queue_url)?)?;
    write(&Empty {})
}

pub(super) fn purge_queue(broker: &Broker, body: &[u8]) -> Answer {
    let request: QueueRequest = read(body)?;
    broker.purge(&queue_of(broker, request.queue_url)?)?;
    write(&Empty {})
}

pub(super) fn tag_queue(broker: &Broker, body: &[u8]) -> Answer {
    let request: TagQueue = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let tags = required(request.tags, "Tags")?;
    broker.read(|queues, _| queues.tag(&queue, tags))?;
    write(&Empty {})
}

pub(super) fn untag_queue(broker: &Broker, body: &[u8]) -> Answer {
    let request: UntagQueue = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let keys = required(request.tag_keys, "TagKeys")?;
    broker.read(|queues, _| queues.untag(&queue, &keys))?;
    write(&Empty {})
}

pub(super) fn list_queue_tags(broker: &Broker, body: &[u8]) -> Answer {
    let request: QueueRequest = read(body)?;
    let queue = queue_of(broker, request.queue_url)?;
    let tags = broker.read(|queues, _| queues.tags(&queue).cloned())?;
    write(&Tags { tags })
}

fn urls(base_url: &str, names: &[QueueName]) -> Vec<String> {
    names.iter().map(|name| queue_url(base_url, name)).collect()
}
