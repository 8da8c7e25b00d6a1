//! What is different about an event source mapping from a FIFO queue. A batch is what one receive returns: there is no window,
//! and nothing is held back, for a group's messages must not overtake one another. The queue sees to the rest: a group's
//! next messages come when those before them are deleted or visible again.
//!
//! Deliveries are disturbed only in ways that such a queue allows: batches of any size, groups in any order, and records that
//! succeeded and come again with all that follow them in their group, as after an acknowledgement that was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use queue::ReceiptHandle;

use super::batch::Batch;
use super::hostile::{Disturber, Order};
use super::queue::{Mapping, POLL};
use super::queue_event::Record;

/// Receives after which a record that succeeded is always acknowledged, so that no disturbance makes a dead letter.
const WITHHELD_RECEIVES_MAX: u32 = 2;

type Group = Option<Arc<str>>;

/// Receives batches.
pub(super) struct Intake {
    disturber: Disturber,
}

impl Intake {
    pub(super) fn new(disturber: Disturber) -> Self {
        Self { disturber }
    }

    /// Waits for a batch.
    pub(super) async fn gather(&mut self, mapping: &Mapping) -> Vec<Record> {
        loop {
            let max = self.disturber.batch_size(mapping.declared.batch_size);
            let received = mapping.source.receive(max, mapping.visibility_timeout, POLL).await;
            let records = received.iter().map(|delivery| Record::new(&mapping.declared.queue, delivery)).collect();
            let (batch, left) = fill(max, self.order(records));
            if !left.is_empty() {
                mapping.source.release(&left).await;
            }
            if !batch.is_empty() {
                mapping.progress.read(batch.len());
                return batch;
            }
        }
    }

    fn order(&mut self, records: Vec<Record>) -> Vec<Record> {
        match self.disturber.order() {
            Order::AsRead => records,
            Order::Shuffled => self.disturber.mix(records, |record| record.group.clone()),
        }
    }
}

/// Puts records into a batch as far as they go, and returns the handles of all behind the first that does not.
fn fill(max: usize, records: Vec<Record>) -> (Vec<Record>, Vec<ReceiptHandle>) {
    let mut batch = Batch::new(max);
    let mut left = Vec::new();
    for record in records {
        if left.is_empty() {
            if let Err(record) = batch.add(record) {
                left.push(record.receipt);
            }
        } else {
            left.push(record.receipt);
        }
    }
    (batch.into_records(), left)
}

/// Decides which records that succeeded are not acknowledged.
pub(super) struct Forgetter {
    disturber: Mutex<Disturber>,
}

impl Forgetter {
    pub(super) fn new(disturber: Disturber) -> Self {
        Self { disturber: Mutex::new(disturber) }
    }

    /// Divides records that succeeded into those to acknowledge and those that come again: of a group none, or all from
    /// one on.
    pub(super) fn divide<'a>(&self, settled: &[&'a Record]) -> (Vec<&'a Record>, Vec<&'a Record>) {
        let mut by_group: BTreeMap<&Group, Vec<&'a Record>> = BTreeMap::new();
        for record in settled {
            by_group.entry(&record.group).or_default().push(record);
        }
        let mut disturber = self.disturber.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut acknowledged, mut forgotten) = (Vec::new(), Vec::new());
        for mut records in by_group.into_values() {
            let may_come_again = records.iter().all(|record| record.receive_count <= WITHHELD_RECEIVES_MAX);
            let again = if may_come_again && disturber.repeats() { disturber.rewind(records.len()) } else { 0 };
            forgotten.extend(records.split_off(records.len() - again));
            acknowledged.extend(records);
        }
        (acknowledged, forgotten)
    }
}

/// Returns the groups of which a record succeeded behind one that failed, so that the one that failed comes again after it.
pub(super) fn out_of_order(batch: &[Record], failed: &BTreeSet<String>) -> BTreeSet<Group> {
    let mut failed_groups = BTreeSet::new();
    let mut out_of_order = BTreeSet::new();
    for record in batch {
        if failed.contains(&record.message_id) {
            failed_groups.insert(record.group.clone());
        } else if failed_groups.contains(&record.group) {
            out_of_order.insert(record.group.clone());
        }
    }
    out_of_order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Hostility;
    use crate::mapping::batch::Record as _;
    use crate::mapping::queue_event::testing::records;

    fn forgetter(duplicate: f64) -> Forgetter {
        let hostility = Hostility { duplicate, order: Order::AsRead, seed: 7 };
        Forgetter::new(Disturber::new(hostility, "mapping"))
    }

    fn bodies(records: &[&Record]) -> Vec<String> {
        let body = |record: &&Record| {
            serde_json::from_slice::<serde_json::Value>(record.json()).unwrap()["body"].as_str().unwrap().to_owned()
        };
        records.iter().map(body).collect()
    }

    #[test]
    fn a_batch_that_is_full_by_its_payload_leaves_everything_behind() {
        let big = "x".repeat(1024 * 1024 - 64);
        let bodies = ["a", &big, &big, &big, &big, &big, &big, "b"];
        let all = records(&bodies.map(|body| ("g", body)));
        let expected: Vec<_> = all[6..].iter().map(|record| record.receipt.clone()).collect();

        let (batch, left) = fill(10, all);

        assert_eq!((batch.len(), left), (6, expected));
    }

    #[test]
    fn what_comes_again_is_the_end_of_its_group() {
        let batch = records(&[("a", "a1"), ("b", "b1"), ("a", "a2"), ("a", "a3"), ("b", "b2")]);
        let settled: Vec<_> = batch.iter().collect();
        let forgetter = forgetter(1.0);
        let mut cuts = BTreeSet::new();
        for _ in 0..100 {
            let (acknowledged, forgotten) = forgetter.divide(&settled);
            let of = |records: &[&Record], group: &str| -> Vec<_> {
                bodies(records).into_iter().filter(|body| body.starts_with(group)).collect()
            };
            for (group, all) in [("a", vec!["a1", "a2", "a3"]), ("b", vec!["b1", "b2"])] {
                assert!(!of(&forgotten, group).is_empty());
                assert_eq!([of(&acknowledged, group), of(&forgotten, group)].concat(), all);
            }
            cuts.insert(of(&forgotten, "a").len());
        }
        assert_eq!(cuts, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn without_hostility_everything_is_acknowledged() {
        let batch = records(&[("a", "a1"), ("a", "a2")]);
        let settled: Vec<_> = batch.iter().collect();
        assert_eq!(bodies(&forgetter(0.0).divide(&settled).0), ["a1", "a2"]);
    }

    #[test]
    fn what_was_received_often_is_always_acknowledged() {
        let mut batch = records(&[("a", "a1"), ("a", "a2")]);
        batch[1].receive_count = WITHHELD_RECEIVES_MAX + 1;
        let settled: Vec<_> = batch.iter().collect();
        assert!(forgetter(1.0).divide(&settled).1.is_empty());
    }

    #[test]
    fn a_success_behind_a_failure_of_the_same_group_is_out_of_order() {
        let batch = records(&[("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2")]);
        let failed = |positions: &[usize]| positions.iter().map(|at| batch[*at].message_id.clone()).collect();
        let check = |positions: &[usize], expected: &[&str]| {
            let groups = out_of_order(&batch, &failed(positions));
            let groups: Vec<_> = groups.iter().flatten().map(|group| &**group).collect();
            assert_eq!(groups, expected, "{positions:?}");
        };
        check(&[], &[]);
        check(&[2], &[]);
        check(&[0, 2], &[]);
        check(&[0], &["a"]);
        check(&[0, 1, 3], &["a"]);
        check(&[0, 1], &["a", "b"]);
    }
}
