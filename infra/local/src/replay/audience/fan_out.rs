//! How far a fan-out has come, as the records of its ranges say.

use dynoxide::Database;
use events::PostId;
use serde_json::{Value, json};

/// How far a fan-out has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Ranges that the audience is cut into; 0 before it has begun.
    pub(super) ranges: usize,
    /// How many of them have been gone through.
    pub(super) done: usize,
    /// Followers for whom a notification was asked for.
    pub(super) asked: u64,
}

impl Progress {
    /// Reads the progress of a post's fan-out. What cannot be read has not begun.
    pub(super) fn read(database: &Database, records: &str, post: &PostId) -> Self {
        let request = json!({
            "TableName": records,
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": format!("FANOUT#{post}")}},
        });
        let response = serde_json::from_value(request).ok().and_then(|request| database.query(request).ok());
        let response = response.and_then(|response| serde_json::to_value(response).ok()).unwrap_or_default();
        response["Items"].as_array().into_iter().flatten().fold(Self::default(), |progress, range| Self {
            ranges: progress.ranges + 1,
            done: progress.done + usize::from(range["progress"]["S"] == "done"),
            asked: progress.asked + number(&range["recipients"]),
        })
    }

    /// Returns whether all ranges have been gone through.
    pub(super) fn is_done(&self) -> bool {
        self.ranges > 0 && self.done == self.ranges
    }
}

fn number(value: &Value) -> u64 {
    value["N"].as_str().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
