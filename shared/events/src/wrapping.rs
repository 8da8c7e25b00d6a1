//! Takes the event out of what SNS or EventBridge wrap around it. The two are told apart by the keys that they always
//! carry and a raw event never does; a key that a user may choose, such as `Message` alone, proves nothing.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The keys that tell wrappers apart. Values stay raw: only one of them is needed.
#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(rename = "Type", default, borrow)]
    sns_type: Option<&'a RawValue>,
    #[serde(rename = "TopicArn", default, borrow)]
    sns_topic_arn: Option<&'a RawValue>,
    #[serde(rename = "Message", default, borrow)]
    sns_message: Option<&'a RawValue>,
    #[serde(rename = "detail-type", default, borrow)]
    bridge_detail_type: Option<&'a RawValue>,
    #[serde(default, borrow)]
    source: Option<&'a RawValue>,
    #[serde(default, borrow)]
    detail: Option<&'a RawValue>,
}

/// Returns the JSON text of the event in `body`.
///
/// # Errors
/// The body is not a JSON object, or a wrapper's content is not what that wrapper carries.
pub(crate) fn unwrapped(body: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let probe: Probe<'_> = serde_json::from_str(body)?;
    let is_notification = probe.sns_type.is_some_and(|value| value.get() == "\"Notification\"");
    if let (true, Some(_), Some(message)) = (is_notification, probe.sns_topic_arn, probe.sns_message) {
        return serde_json::from_str::<String>(message.get()).map(Cow::Owned);
    }
    if let (Some(_), Some(_), Some(detail)) = (probe.bridge_detail_type, probe.source, probe.detail) {
        return Ok(Cow::Borrowed(detail.get()));
    }
    Ok(Cow::Borrowed(body))
}
