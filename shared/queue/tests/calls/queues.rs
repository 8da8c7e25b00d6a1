//! What the calls about queues do, one behaviour a test.

use std::collections::BTreeMap;
use std::time::Duration;

use queue::{
    Configuration, Creation, Deletion, Error, ErrorCode, QueueName, ReceiptHandle, ReceiveRequest, SendRequest,
    Timestamp, Totals,
};

use crate::world::{SECOND, World, attributes, bodies, code, redrive_policy};

#[test]
fn creating_again_with_the_same_attributes_changes_nothing() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "190"), ("DelaySeconds", "5")]);
    world.send(&main, "kept");
    for given in [&[][..], &[("VisibilityTimeout", "190")], &[("MessageRetentionPeriod", "345600")]] {
        assert_eq!(world.queues.create(&main, &attributes(given), world.now), Ok(Creation::Existed));
    }
    assert_eq!(world.counts(&main), (0, 0, 1));
}

#[test]
fn creating_again_with_another_value_is_refused_with_the_attributes_name() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "190")]);
    let refused = world.queues.create(&main, &attributes(&[("VisibilityTimeout", "30")]), world.now);
    let expected = Error::QueueNameExists { queue: "main".into(), attribute: "VisibilityTimeout".into() };
    assert_eq!(refused, Err(expected));
    assert_eq!(world.queues.settings(&main).unwrap().visibility_timeout, Duration::from_secs(190));
}

#[test]
fn a_redrive_policy_needs_a_queue_that_exists_and_allows_it() {
    let mut world = World::new(Configuration::default());
    world.create("closed", &[("RedriveAllowPolicy", r#"{"redrivePermission":"denyAll"}"#)]);
    let main = QueueName::parse("main").unwrap();
    for target in ["missing", "closed"] {
        let policy = redrive_policy(target, 3);
        let refused = world.queues.create(&main, &attributes(&[("RedrivePolicy", &policy)]), world.now);
        assert_eq!(code(refused), Some(ErrorCode::InvalidParameterValue), "{target}");
        assert!(!world.queues.contains(&main));
    }
}

#[test]
fn every_call_on_an_unknown_queue_is_refused() {
    let mut world = World::new(Configuration::default());
    let ghost = QueueName::parse("ghost").unwrap();
    let (receipt, now, queues) = (ReceiptHandle::from("x"), world.now, &mut world.queues);
    let codes = [
        code(queues.delete(&ghost)),
        code(queues.purge(&ghost, now)),
        code(queues.attributes(&ghost, now)),
        code(queues.set_attributes(&ghost, &BTreeMap::new(), now)),
        code(queues.send(&ghost, SendRequest::from_body("x"), now)),
        code(queues.receive(&ghost, ReceiveRequest { max: 1, visibility_timeout: None }, now)),
        code(queues.delete_message(&ghost, &receipt, now)),
        code(queues.change_visibility(&ghost, &receipt, SECOND, now)),
        code(queues.counts(&ghost, now)),
        code(queues.next_wake(&ghost, now)),
        code(queues.dead_letter_sources(&ghost)),
    ];
    assert_eq!(codes, [Some(ErrorCode::QueueDoesNotExist); 11]);
}

#[test]
fn attributes_tell_settings_counts_and_identity() {
    let (mut world, main) = World::with_queue(&[("DelaySeconds", "0"), ("VisibilityTimeout", "190")]);
    for body in ["a", "b", "c"] {
        world.send(&main, body);
    }
    world.receive(&main, 2);
    let delayed = SendRequest { delay: Some(SECOND), ..SendRequest::from_body("d") };
    world.queues.send(&main, delayed, world.now).unwrap();

    let read = world.queues.attributes(&main, world.now).unwrap();
    for (name, value) in [
        ("ApproximateNumberOfMessages", "1"),
        ("ApproximateNumberOfMessagesNotVisible", "2"),
        ("ApproximateNumberOfMessagesDelayed", "1"),
        ("QueueArn", "arn:aws:sqs:us-east-1:000000000000:main"),
        ("VisibilityTimeout", "190"),
        ("MaximumMessageSize", "1048576"),
        ("CreatedTimestamp", "1700000000"),
    ] {
        assert_eq!(read[name], value, "{name}");
    }
}

#[test]
fn one_wrong_attribute_leaves_all_of_them_unchanged() {
    let (mut world, main) = World::with_queue(&[]);
    let wrong = attributes(&[("DelaySeconds", "5"), ("VisibilityTimeout", "43201")]);
    assert_eq!(code(world.queues.set_attributes(&main, &wrong, world.now)), Some(ErrorCode::InvalidAttributeValue));
    assert_eq!(world.queues.settings(&main).unwrap().delay, Duration::ZERO);
}

#[test]
fn a_purge_removes_everything_and_says_so() {
    let (mut world, main) = World::with_queue(&[("DelaySeconds", "0")]);
    for body in ["a", "b"] {
        world.send(&main, body);
    }
    let receipt = world.receive_one(&main).receipt;
    world.queues.purge(&main, world.now).unwrap();
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 0, 0), None));
    assert_eq!(world.delete(&main, &receipt), Ok(Deletion::NothingToDelete));
    let expected = Totals { sent: 2, received: 1, purged: 2, ..Totals::default() };
    assert_eq!(world.queues.totals(&main, world.now), Ok(expected));
    world.send(&main, "c");
    assert_eq!(bodies(&world.receive(&main, 10)), ["c"]);
}

#[test]
fn tags_are_added_replaced_and_removed() {
    let (mut world, main) = World::with_queue(&[]);
    world.queues.tag(&main, attributes(&[("a", "1"), ("b", "2")])).unwrap();
    world.queues.tag(&main, attributes(&[("a", "3")])).unwrap();
    world.queues.untag(&main, &["b".to_owned(), "c".to_owned()]).unwrap();
    assert_eq!(world.queues.tags(&main), Ok(&attributes(&[("a", "3")])));
}

#[test]
fn time_that_goes_backwards_stands_still() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "10")]);
    world.send(&main, "x");
    world.pass(5 * SECOND);
    world.receive(&main, 1);
    let earlier = Timestamp::from_millis(0);
    assert_eq!(world.queues.next_wake(&main, earlier), Ok(Some(world.now.plus(10 * SECOND))));
    assert_eq!(world.queues.oldest_age(&main, earlier), Ok(Some(5 * SECOND)));
}

#[test]
fn a_redrive_policy_is_checked_when_it_changes_and_only_then() {
    let (mut world, main) = World::with_queue(&[]);
    let dead = world.create("dead", &[]);
    let set =
        |world: &mut World, pairs: &[(&str, &str)]| world.queues.set_attributes(&main, &attributes(pairs), world.now);
    let missing = set(&mut world, &[("RedrivePolicy", &redrive_policy("missing", 3))]);
    assert_eq!(code(missing), Some(ErrorCode::InvalidParameterValue));
    assert_eq!(world.queues.settings(&main).unwrap().redrive, None);

    set(&mut world, &[("RedrivePolicy", &redrive_policy("dead", 3))]).unwrap();
    world.queues.delete(&dead).unwrap();
    assert_eq!(set(&mut world, &[("VisibilityTimeout", "190")]), Ok(()));
}
