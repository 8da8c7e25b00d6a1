//! Reactions to posts as source records, the commands that change one, and how many of each kind a post has.

use std::collections::BTreeMap;

use events::{Event, Payload, PlayerId, PostId, ReactionAdded, ReactionKind, ReactionRemoved};
use serde::{Deserialize, Serialize};

use crate::decision::{attributes, foreign};
use crate::{Change, Content, Decider, Decision, Deltas, Guard, Key, Need, RowError, Spread, State, Write};

/// A post that everybody reacts to is counted in four items.
pub const REACTION_SPREAD: Spread = Spread::over(4);

/// The record of one player's reaction to one post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// To which post.
    pub post_id: PostId,
    /// Who.
    pub player_id: PlayerId,
    /// In which way; `None` for one that was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReactionKind>,
}

impl Reaction {
    /// Returns the key of a reaction's record. Each has a partition, so that no post is hot.
    pub fn key(post_id: &PostId, player_id: &PlayerId) -> Key {
        Key::record(format!("REACTION#{post_id}#{player_id}"), "REACTION")
    }
}

/// Reacts to a post, or in another way than before.
pub fn react(existing: Option<Reaction>, post_id: PostId, player_id: PlayerId, kind: ReactionKind) -> Change<Reaction> {
    match existing {
        Some(reaction) if reaction.kind == Some(kind) => Change::Same(reaction),
        Some(_) | None => {
            let payload = ReactionAdded { post_id: post_id.clone(), player_id: player_id.clone(), kind };
            let record = Reaction { post_id, player_id, kind: Some(kind) };
            Change::Write { record, payload: Payload::ReactionAdded(payload) }
        }
    }
}

/// Takes a reaction back.
pub fn unreact(existing: Option<Reaction>, post_id: PostId, player_id: PlayerId) -> Change<Reaction> {
    let record = Reaction { post_id, player_id, kind: None };
    if existing.is_none_or(|reaction| reaction.kind.is_none()) {
        return Change::Same(record);
    }
    let payload = ReactionRemoved { post_id: record.post_id.clone(), player_id: record.player_id.clone() };
    Change::Write { record, payload: Payload::ReactionRemoved(payload) }
}

/// Returns the target of the numbers of reactions to a post, a counter a kind.
pub fn count_key(post_id: &PostId) -> Key {
    Key::view(format!("REACTIONS#{post_id}"), "COUNT")
}

/// A reaction as the counts know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionRow {
    /// Version of the reaction's record that the kind is from.
    pub record_version: u64,
    /// What it counts for; `None` for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReactionKind>,
}

impl ReactionRow {
    /// Returns the key of a reaction's row.
    pub fn key(post_id: &PostId, player_id: &PlayerId) -> Key {
        Key::view(format!("REACTION#{post_id}#{player_id}"), "ROW")
    }
}

/// Counts the reactions to each post by kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReactionCounts;

impl Decider for ReactionCounts {
    fn needs(&self, event: &Event) -> Vec<Need> {
        changed(&event.payload)
            .map(|(post_id, player_id, _)| ReactionRow::key(post_id, player_id))
            .map(Need::Key)
            .into_iter()
            .collect()
    }

    fn decide(&self, event: &Event, state: &State) -> Result<Decision, RowError> {
        let Some((post_id, player_id, kind)) = changed(&event.payload) else { return foreign(event) };
        let key = ReactionRow::key(post_id, player_id);
        let row = state.row(&key)?;
        let before = row.decode::<ReactionRow>(&key)?;
        if before.as_ref().is_some_and(|before| before.record_version >= event.version) {
            return Ok(Decision::Stale);
        }
        let after = ReactionRow { record_version: event.version, kind };
        let content = Content::Row(attributes(&after, &key)?);
        let mut writes = vec![Write::Replace { key, content, guard: Guard::Unchanged(row.version) }];
        let deltas = deltas(before.and_then(|before| before.kind), kind);
        if !deltas.is_empty() {
            writes.push(Write::Add { key: count_key(post_id), deltas, spread: REACTION_SPREAD });
        }
        Ok(Decision::Apply { writes, checks: Vec::new() })
    }
}

fn deltas(before: Option<ReactionKind>, after: Option<ReactionKind>) -> Deltas {
    let mut deltas = BTreeMap::new();
    for (kind, change) in [(before, -1), (after, 1)] {
        if let Some(kind) = kind {
            *deltas.entry(kind.as_str().to_owned()).or_default() += change;
        }
    }
    deltas.retain(|_, change| *change != 0);
    deltas
}

fn changed(payload: &Payload) -> Option<(&PostId, &PlayerId, Option<ReactionKind>)> {
    if let Payload::ReactionAdded(added) = payload {
        return Some((&added.post_id, &added.player_id, Some(added.kind)));
    }
    let Payload::ReactionRemoved(removed) = payload else { return None };
    Some((&removed.post_id, &removed.player_id, None))
}
