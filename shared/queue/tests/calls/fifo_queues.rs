//! What makes a queue a FIFO queue, and what such a queue asks of a message, one behaviour a test.

use std::time::Duration;

use queue::{Configuration, Creation, Error, ErrorCode, QueueKind, QueueName, SendRequest};

use crate::world::{SECOND, World, attributes, code, in_group, redrive_policy};

#[test]
fn the_name_and_the_attribute_have_to_say_the_same() {
    let mut world = World::new(Configuration::default());
    for (name, pairs) in [("orders", &[("FifoQueue", "true")][..]), ("orders.fifo", &[])] {
        let queue = QueueName::parse(name).unwrap();
        let refused = world.queues.create(&queue, &attributes(pairs), world.now);
        assert_eq!(refused, Err(Error::NameOfOtherType { queue: name.into() }));
        assert!(!world.queues.contains(&queue));
    }
    // There is no such value on SQS: a standard queue is one without the attribute.
    let standard = QueueName::parse("orders").unwrap();
    let refused = world.queues.create(&standard, &attributes(&[("FifoQueue", "false")]), world.now);
    assert_eq!(code(refused), Some(ErrorCode::InvalidAttributeName));
}

#[test]
fn a_fifo_queue_tells_its_own_attributes() {
    let pairs = [
        ("ContentBasedDeduplication", "true"),
        ("DeduplicationScope", "messageGroup"),
        ("FifoThroughputLimit", "perMessageGroupId"),
    ];
    let (mut world, main) = World::with_fifo_queue(&pairs);
    let read = world.queues.attributes(&main, world.now).unwrap();
    for (name, value) in pairs.into_iter().chain([("FifoQueue", "true")]) {
        assert_eq!(read[name], value);
    }
    assert_eq!(read["QueueArn"], "arn:aws:sqs:us-east-1:000000000000:main.fifo");
    assert_eq!(main.kind(), QueueKind::Fifo);
    let again = world.queues.create(&main, &attributes(&[("FifoQueue", "true")]), world.now);
    assert_eq!(again, Ok(Creation::Existed));
}

#[test]
fn the_type_of_a_queue_stays() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    let set = |world: &mut World, pairs: &[(&str, &str)]| {
        world.queues.set_attributes(&main, &attributes(pairs), world.now).err()
    };
    let refused = set(&mut world, &[("FifoQueue", "false")]).unwrap();
    assert!(refused.to_string().contains("Modifying queue type is not supported"), "{refused}");
    assert_eq!(set(&mut world, &[("FifoQueue", "true"), ("ContentBasedDeduplication", "true")]), None);
}

#[test]
fn dead_letters_go_to_a_queue_of_the_same_type() {
    let mut world = World::new(Configuration::default());
    world.create("dead", &[]);
    world.create_fifo("dead.fifo", &[]);
    for (name, target) in [("main", "dead.fifo"), ("main.fifo", "dead")] {
        let queue = QueueName::parse(name).unwrap();
        let policy = redrive_policy(target, 3);
        let mut pairs = vec![("RedrivePolicy", policy.as_str())];
        if queue.kind() == QueueKind::Fifo {
            pairs.push(("FifoQueue", "true"));
        }
        let refused = world.queues.create(&queue, &attributes(&pairs), world.now);
        let message = refused.as_ref().unwrap_err().to_string();
        assert!(message.contains("must be same type of queue as the source"), "{message}");
        assert_eq!(code(refused), Some(ErrorCode::InvalidParameterValue));
    }
    world.create_fifo("main.fifo", &[("RedrivePolicy", &redrive_policy("dead.fifo", 3))]);
}

#[test]
fn a_message_needs_a_group_and_a_deduplication_id() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    let mut send = |request| world.queues.send(&main, request, world.now).err();
    let complete = in_group("g", "d", "x");
    assert_eq!(send(SendRequest { group_id: None, ..complete.clone() }), Some(Error::MissingGroupId));
    assert_eq!(Error::MissingGroupId.code(), ErrorCode::MissingParameter);
    let without_id = SendRequest { deduplication_id: None, ..complete.clone() };
    assert_eq!(send(without_id), Some(Error::MissingDeduplicationId));
    assert_eq!(Error::MissingDeduplicationId.code(), ErrorCode::InvalidParameterValue);
    assert_eq!(send(complete), None);
}

#[test]
fn ids_have_up_to_128_printable_characters() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    for id in ["", "a b", "é", &"a".repeat(129)] {
        for (request, parameter) in
            [(in_group(id, "d", "x"), "MessageGroupId"), (in_group("g", id, "x"), "MessageDeduplicationId")]
        {
            let refused = world.queues.send(&main, request, world.now).unwrap_err();
            assert!(
                matches!(refused, Error::InvalidParameter { parameter: named, .. } if named == parameter),
                "{id:?} {refused:?}"
            );
        }
    }
    let longest = "~".repeat(128);
    world.queues.send(&main, in_group(&longest, &longest, "x"), world.now).unwrap();
}

#[test]
fn a_message_has_no_delay_of_its_own() {
    let (mut world, main) = World::with_fifo_queue(&[("DelaySeconds", "5")]);
    let delayed = |delay| SendRequest { delay: Some(delay), ..in_group("g", "d", "x") };
    let refused = world.queues.send(&main, delayed(SECOND), world.now);
    assert_eq!(refused.err(), Some(Error::NotForQueueType { parameter: "DelaySeconds", value: "1".into() }));
    world.queues.send(&main, delayed(Duration::ZERO), world.now).unwrap();
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 0, 1), Some(5 * SECOND)));
}

#[test]
fn a_standard_queue_takes_a_group_and_no_deduplication_id() {
    let (mut world, main) = World::with_queue(&[]);
    let request = in_group("g", "d", "x");
    let refused = world.queues.send(&main, request.clone(), world.now);
    let expected = Error::NotForQueueType { parameter: "MessageDeduplicationId", value: "d".into() };
    assert_eq!(refused, Err(expected));
    let sent = world.queues.send(&main, SendRequest { deduplication_id: None, ..request }, world.now).unwrap();
    assert_eq!((sent.group_id.as_deref(), sent.sequence_number), (Some("g"), None));
}
