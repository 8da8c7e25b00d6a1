//! What holds of FIFO queues after any sequence of calls: the state machine against a model that keeps a plain list and looks
//! at every message every time.

#![cfg(test)]

mod model;
mod pair;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use queue::{Configuration, QueueName, Queues, ReceiveRequest, SendRequest, Timestamp};

use pair::{Pair, Place, Step, steps};

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_calls_does_what_the_model_allows(steps in steps(), scope in pair::scopes()) {
        let mut pair = Pair::new(7, scope);
        for step in &steps {
            pair.step(step);
            pair.check();
        }
    }

    #[test]
    fn the_same_calls_with_the_same_seed_give_the_same_answers(
        steps in steps(),
        seed in any::<u64>(),
        scope in pair::scopes(),
    ) {
        let answers = |seed| {
            let mut pair = Pair::new(seed, scope);
            steps.iter().map(|step| pair.step(step)).collect::<Vec<_>>()
        };
        prop_assert_eq!(answers(seed), answers(seed));
    }

    #[test]
    fn first_deliveries_of_a_group_are_in_the_order_of_their_sending(steps in steps(), scope in pair::scopes()) {
        let mut pair = Pair::new(3, scope);
        let mut last = BTreeMap::new();
        for step in &steps {
            let Step::Receive { from: Place::Main, max, visibility } = step else {
                pair.step(step);
                continue;
            };
            for delivery in pair.receive(Place::Main, *max, *visibility) {
                if delivery.receive_count == 1 {
                    let before = last.insert(delivery.message.group_id.clone(), delivery.message.sequence_number);
                    prop_assert!(before.is_none_or(|before| before < delivery.message.sequence_number));
                }
            }
        }
    }

    #[test]
    fn workers_that_fail_at_random_empty_a_queue_in_order(
        groups in prop::collection::vec(0..5_u8, 1..60),
        seed in any::<u64>(),
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut queues, name, start) = filled(&groups);
        let mut done: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut now = start;
        while let Some(at) = queues.next_wake(&name, now).unwrap() {
            now = at;
            let request = ReceiveRequest { max: random.usize(1..=10), visibility_timeout: None };
            let mut failed = Vec::new();
            for delivery in queues.receive(&name, request, now).unwrap().deliveries {
                let group = delivery.message.group_id.clone().unwrap();
                // A worker stops a group at the first failure, and leaves the rest of it.
                if failed.contains(&group) || random.u8(0..4) == 0 {
                    failed.push(group);
                    continue;
                }
                done.entry(group).or_default().push(delivery.message.body.parse().unwrap());
                queues.delete_message(&name, &delivery.receipt, now).unwrap();
            }
            prop_assert!(now.since(start) < Duration::from_secs(86_400), "the queue is not emptied");
        }
        prop_assert_eq!(done.values().map(Vec::len).sum::<usize>(), groups.len());
        prop_assert!(done.values().all(|bodies| bodies.is_sorted()), "{:?}", done);
    }
}

/// A queue with messages of these groups; the bodies are their numbers.
fn filled(groups: &[u8]) -> (Queues, QueueName, Timestamp) {
    let mut queues = Queues::new(Configuration::default());
    let name = QueueName::parse("main.fifo").unwrap();
    let attributes = [("FifoQueue", "true"), ("VisibilityTimeout", "5")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let start = Timestamp::from_millis(1);
    queues.create(&name, &attributes, start).unwrap();
    for (number, group) in groups.iter().enumerate() {
        let request = SendRequest {
            group_id: Some(group.to_string()),
            deduplication_id: Some(number.to_string()),
            ..SendRequest::from_body(number.to_string())
        };
        queues.send(&name, request, start).unwrap();
    }
    (queues, name, start)
}
