//! What a FIFO queue takes only once, one behaviour a test.

use std::time::Duration;

use queue::{SendRequest, Totals, text_md5};

use crate::world::{SECOND, World, attributes, bodies, in_group};

const INTERVAL: Duration = Duration::from_secs(300);

#[test]
fn a_known_deduplication_id_is_accepted_and_not_delivered() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    let first = world.queues.send(&main, in_group("g", "d", "first"), world.now).unwrap();
    let again = world.queues.send(&main, in_group("g", "d", "another body"), world.now).unwrap();
    assert_eq!((again.id, again.sequence_number), (first.id, first.sequence_number));
    // A sender compares the digest with what it sent.
    assert_eq!(again.body_md5, text_md5("another body"));
    assert_eq!(bodies(&world.receive(&main, 10)), ["first"]);
    let expected = Totals { sent: 1, deduplicated: 1, received: 1, ..Totals::default() };
    assert_eq!(world.queues.totals(&main, world.now), Ok(expected));
}

#[test]
fn an_id_is_known_for_5_minutes_from_when_it_was_first_sent() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    let first = world.send_to(&main, "g", "x");
    world.pass(INTERVAL - Duration::from_millis(1));
    assert_eq!(world.send_to(&main, "g", "x").id, first.id);
    // The repetition does not prolong it.
    world.pass(Duration::from_millis(1));
    let second = world.send_to(&main, "g", "x");
    assert!(second.id != first.id && second.sequence_number > first.sequence_number);
    assert_eq!(world.counts(&main), (2, 0, 0));
}

#[test]
fn an_id_stays_known_after_its_message_was_deleted_expired_or_purged() {
    let (mut world, main) = World::with_fifo_queue(&[("MessageRetentionPeriod", "60")]);
    world.send_to(&main, "g", "deleted");
    let receipt = world.receive_one(&main).receipt;
    world.delete(&main, &receipt).unwrap();
    world.send_to(&main, "g", "expired");
    world.pass(60 * SECOND);
    world.send_to(&main, "g", "purged");
    world.queues.purge(&main, world.now).unwrap();
    for body in ["deleted", "expired", "purged"] {
        world.send_to(&main, "g", body);
    }
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 0, 0), None));
    world.pass(INTERVAL);
    for body in ["deleted", "expired", "purged"] {
        world.send_to(&main, "g", body);
    }
    assert_eq!(world.counts(&main), (3, 0, 0));
}

#[test]
fn a_new_queue_of_the_same_name_knows_nothing() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    world.send_to(&main, "g", "x");
    world.queues.delete(&main).unwrap();
    let again = world.create_fifo("main.fifo", &[]);
    world.send_to(&again, "g", "x");
    assert_eq!(world.counts(&again), (1, 0, 0));
}

#[test]
fn the_content_is_the_id_where_the_queue_says_so_and_the_message_has_none() {
    let (mut world, main) = World::with_fifo_queue(&[("ContentBasedDeduplication", "true")]);
    let by_content = |body: &str| SendRequest { deduplication_id: None, ..in_group("g", "", body) };
    let mut send = |request| world.queues.send(&main, request, world.now).unwrap();
    let first = send(by_content("abc"));
    // SHA-256 of the body, as FIPS 180-2 has it for this text.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(first.deduplication_id.as_deref(), Some(digest));
    assert_eq!(send(by_content("abc")).id, first.id);
    // A given id stands in place of the computed one, and the other way round.
    assert_ne!(send(in_group("g", "given", "abc")).id, first.id);
    assert_eq!(send(in_group("g", digest, "other")).id, first.id);
    assert_eq!(world.counts(&main), (2, 0, 0));
}

#[test]
fn attributes_are_no_part_of_the_content() {
    let (mut world, main) = World::with_fifo_queue(&[("ContentBasedDeduplication", "true")]);
    let mut request = SendRequest { deduplication_id: None, ..in_group("g", "", "x") };
    world.queues.send(&main, request.clone(), world.now).unwrap();
    request.trace_header = Some("Root=1-5-a".into());
    world.queues.send(&main, request, world.now).unwrap();
    assert_eq!(world.counts(&main), (1, 0, 0));
}

#[test]
fn the_scope_is_the_queue_or_the_group() {
    for (scope, expected) in [("queue", 1), ("messageGroup", 2)] {
        let (mut world, main) = World::with_fifo_queue(&[("DeduplicationScope", scope)]);
        for group in ["a", "b", "a", "b"] {
            world.send_to(&main, group, "x");
        }
        assert_eq!(world.counts(&main), (expected, 0, 0), "{scope}");
    }
}

#[test]
fn a_changed_scope_holds_for_what_was_sent_before() {
    let (mut world, main) = World::with_fifo_queue(&[("DeduplicationScope", "messageGroup")]);
    world.send_to(&main, "a", "x");
    let queue = attributes(&[("DeduplicationScope", "queue")]);
    world.queues.set_attributes(&main, &queue, world.now).unwrap();
    world.send_to(&main, "b", "x");
    assert_eq!(world.counts(&main), (1, 0, 0));
}
