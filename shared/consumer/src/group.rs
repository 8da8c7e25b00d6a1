//! Which decisions stand or fall together, and how they are packed into as few transactions as possible.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Key, Need};

use crate::draft::Draft;
use crate::wave::{Decided, Record};

/// Decisions that are committed by one plan.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) draft: Draft,
    pub(crate) members: Vec<Decided>,
}

/// Decisions packed for their commits.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    /// In the order in which they are best committed.
    pub(crate) packs: Vec<Pack>,
    /// Decisions that write nothing and depend on nobody's write.
    pub(crate) settled: Vec<Decided>,
    /// Records whose group did not fit; they are decided again on what the part before them left.
    pub(crate) deferred: Vec<Record>,
}

/// Packs decisions. Records that touch a row which one of them writes, by key or by a range that it lies in, are one group:
/// they were decided on one another's overlay, so they are committed in one transaction or, where that is too small, one
/// after the other. So are those of one message group of a FIFO queue, whose order is to hold.
pub(crate) fn pack(decided: Vec<Decided>) -> Packing {
    let mut packing = Packing::default();
    let mut packs = Vec::new();
    for group in groups(decided) {
        let (draft, members, rest) = prefix(group);
        packing.deferred.extend(rest);
        match draft {
            Some(draft) => packs.push(Pack { draft, members }),
            None => packing.settled.extend(members),
        }
    }
    // Neighbours share counters, so that a transaction has fewer items and meets fewer others.
    packs.sort_by(|one, other| one.draft.targets().next().cmp(&other.draft.targets().next()));
    for pack in packs {
        match packing.packs.last_mut() {
            Some(last) if may_share(last, &pack) => {
                if let Err(pack) = join(last, pack) {
                    packing.packs.push(pack);
                }
            }
            Some(_) | None => packing.packs.push(pack),
        }
    }
    packing
}

fn groups(decided: Vec<Decided>) -> Vec<Vec<Decided>> {
    let written: BTreeSet<Key> =
        decided.iter().filter_map(|one| one.draft.as_ref()).flat_map(|draft| draft.written_rows().cloned()).collect();
    let mut leader: Vec<usize> = (0..decided.len()).collect();
    let mut first_touch: BTreeMap<&Key, usize> = BTreeMap::new();
    let mut first_of_message_group: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, one) in decided.iter().enumerate() {
        let rows = one.draft.iter().flat_map(|draft| draft.written_rows().chain(draft.checked_rows()));
        let needed = one.record.all_needs().flat_map(|need| needed_of(need, &written));
        for key in rows.filter_map(|key| written.get(key)).chain(needed) {
            unite(&mut leader, *first_touch.entry(key).or_insert(index), index);
        }
        if let Some(group) = &one.record.group {
            unite(&mut leader, *first_of_message_group.entry(group).or_insert(index), index);
        }
    }
    let mut groups: BTreeMap<usize, Vec<Decided>> = BTreeMap::new();
    for (index, one) in decided.into_iter().enumerate() {
        groups.entry(root(&mut leader, index)).or_default().push(one);
    }
    groups.into_values().collect()
}

/// Returns the written rows that a need depends on.
fn needed_of<'a>(need: &Need, written: &'a BTreeSet<Key>) -> Vec<&'a Key> {
    match need {
        Need::Key(key) => written.get(key).into_iter().collect(),
        Need::Range(range) => written
            .range(range.start()..)
            .take_while(|key| key.table == range.table && key.partition == range.partition)
            .filter(|key| range.covers(key))
            .collect(),
    }
}

fn unite(leader: &mut [usize], one: usize, other: usize) {
    let (one_root, other_root) = (root(leader, one), root(leader, other));
    leader[one_root.max(other_root)] = one_root.min(other_root);
}

fn root(leader: &mut [usize], mut index: usize) -> usize {
    while leader[index] != index {
        leader[index] = leader[leader[index]];
        index = leader[index];
    }
    index
}

/// Splits a group into what fits one transaction, in order, and the rest.
fn prefix(group: Vec<Decided>) -> (Option<Draft>, Vec<Decided>, Vec<Record>) {
    let mut whole: Option<Draft> = None;
    let mut members: Vec<Decided> = Vec::new();
    let mut share = usize::MAX;
    let mut group = group.into_iter();
    let mut rest = Vec::new();
    for one in group.by_ref() {
        share = share.min(one.record.share);
        let fits = members.is_empty() || (members.len() < share && absorbs(&mut whole, one.draft.as_ref()));
        if !fits {
            rest.push(one.record);
            break;
        }
        if members.is_empty() {
            whole = one.draft.clone();
        }
        members.push(one);
    }
    rest.extend(group.map(|one| one.record));
    (whole, members, rest)
}

fn absorbs(whole: &mut Option<Draft>, part: Option<&Draft>) -> bool {
    match (whole.as_mut(), part) {
        (_, None) => true,
        (None, Some(part)) => {
            *whole = Some(part.clone());
            true
        }
        (Some(whole), Some(part)) => whole.absorb(part.clone()).is_ok(),
    }
}

/// A lone guarded write is cheapest on its own.
fn may_share(one: &Pack, other: &Pack) -> bool {
    let members = one.members.len() + other.members.len();
    let share = one.members.iter().chain(&other.members).map(|member| member.record.share).min().unwrap_or(1);
    !one.draft.is_lone_write() && !other.draft.is_lone_write() && members <= share
}

fn join(one: &mut Pack, other: Pack) -> Result<(), Pack> {
    match one.draft.absorb(other.draft) {
        Ok(()) => {
            one.members.extend(other.members);
            Ok(())
        }
        Err(draft) => Err(Pack { draft: *draft, members: other.members }),
    }
}
