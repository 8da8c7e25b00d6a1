//! Handles of a FIFO queue's receives, and receives that are repeated, one behaviour a test.

use std::time::Duration;

use queue::{Configuration, Deletion, Delivery, Error, ErrorCode, QueueName, Receipts, ReceiveRequest};

use crate::world::{SECOND, World, bodies, code};

fn attempt(world: &mut World, queue: &QueueName, id: &str, max: usize) -> Vec<Delivery> {
    let request = ReceiveRequest { max, visibility_timeout: None };
    world.queues.receive_attempt(queue, id, request, world.now).unwrap().deliveries
}

fn handles(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.receipt.as_str()).collect()
}

#[test]
fn a_handle_ends_with_its_visibility_timeout() {
    for receipts in [Receipts::Any, Receipts::LatestOnly] {
        let mut world = World::new(Configuration { receipts, ..Configuration::default() });
        let main = world.create_fifo("main.fifo", &[("VisibilityTimeout", "10")]);
        world.send_to(&main, "g", "x");
        let first = world.receive_one(&main).receipt;
        world.pass(10 * SECOND);
        let expired = Error::ReceiptHandleExpired { receipt: first.to_string() };
        assert_eq!(world.delete(&main, &first), Err(expired.clone()));
        assert_eq!(world.change(&main, &first, 5), Err(expired.clone()));
        assert_eq!(expired.code(), ErrorCode::InvalidParameterValue);

        // A later receive does not bring it back.
        let second = world.receive_one(&main).receipt;
        assert_eq!(world.delete(&main, &first), Err(expired));
        assert_eq!(world.counts(&main), (0, 1, 0));
        assert_eq!(world.delete(&main, &second), Ok(Deletion::Deleted));
    }
}

#[test]
fn a_handle_whose_message_was_made_visible_has_ended() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    world.send_to(&main, "g", "x");
    let receipt = world.receive_one(&main).receipt;
    world.change(&main, &receipt, 0).unwrap();
    assert!(matches!(world.delete(&main, &receipt), Err(Error::ReceiptHandleExpired { .. })));
    let at_once = ReceiveRequest { max: 1, visibility_timeout: Some(Duration::ZERO) };
    let never_hidden = world.queues.receive(&main, at_once, world.now).unwrap().deliveries.remove(0);
    assert!(matches!(world.delete(&main, &never_hidden.receipt), Err(Error::ReceiptHandleExpired { .. })));
}

#[test]
fn deleting_again_succeeds() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    world.send_to(&main, "g", "x");
    let receipt = world.receive_one(&main).receipt;
    assert_eq!(world.delete(&main, &receipt), Ok(Deletion::Deleted));
    assert_eq!(world.delete(&main, &receipt), Ok(Deletion::NothingToDelete));
    assert!(matches!(world.change(&main, &receipt, 1), Err(Error::MessageDoesNotExist { .. })));
    assert_eq!(code(world.delete(&main, &"garbage".into())), Some(ErrorCode::ReceiptHandleIsInvalid));
}

#[test]
fn a_repeated_attempt_gets_the_same_messages_and_handles_and_all_the_time_again() {
    let (mut world, main) = World::with_fifo_queue(&[("VisibilityTimeout", "30")]);
    for body in ["a1", "a2", "b1"] {
        world.send_to(&main, &body[..1], body);
    }
    let first = attempt(&mut world, &main, "attempt", 2);
    world.pass(20 * SECOND);
    let again = attempt(&mut world, &main, "attempt", 2);
    assert_eq!(again, first);
    assert_eq!(bodies(&again), ["a1", "a2"]);
    world.pass(20 * SECOND);
    assert_eq!(attempt(&mut world, &main, "attempt", 2), first);
    assert_eq!(bodies(&attempt(&mut world, &main, "another", 2)), ["b1"]);
    assert_eq!(world.queues.totals(&main, world.now).unwrap().received, 3);
    assert_eq!(world.delete(&main, &first[0].receipt), Ok(Deletion::Deleted));
}

#[test]
fn an_attempt_is_new_once_something_has_happened_to_what_it_took() {
    let cases: [fn(&mut World, &QueueName, &Delivery); 3] = [
        |world, main, taken| {
            world.delete(main, &taken.receipt).unwrap();
        },
        |world, main, taken| world.change(main, &taken.receipt, 60).unwrap(),
        |world, _, _| world.pass(30 * SECOND),
    ];
    for happens in cases {
        let (mut world, main) = World::with_fifo_queue(&[("VisibilityTimeout", "30")]);
        for body in ["a1", "b1"] {
            world.send_to(&main, &body[..1], body);
        }
        let first = attempt(&mut world, &main, "attempt", 1);
        happens(&mut world, &main, &first[0]);
        let again = attempt(&mut world, &main, "attempt", 1);
        assert_eq!(again.len(), 1);
        assert_ne!(handles(&again), handles(&first));
    }
}

#[test]
fn an_attempt_is_known_for_5_minutes_from_when_it_was_first_made() {
    let (mut world, main) = World::with_fifo_queue(&[("VisibilityTimeout", "600")]);
    world.send_to(&main, "a", "a1");
    let first = attempt(&mut world, &main, "attempt", 1);
    world.pass(299 * SECOND);
    assert_eq!(attempt(&mut world, &main, "attempt", 1), first);
    world.pass(SECOND);
    assert!(attempt(&mut world, &main, "attempt", 1).is_empty());
}

#[test]
fn an_attempt_that_took_nothing_is_made_anew() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    assert!(attempt(&mut world, &main, "attempt", 1).is_empty());
    world.send_to(&main, "a", "a1");
    assert_eq!(bodies(&attempt(&mut world, &main, "attempt", 1)), ["a1"]);
}

#[test]
fn attempts_are_a_fifo_queues_and_have_ids_of_128_characters_at_most() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    let standard = world.create("standard", &[]);
    let request = ReceiveRequest { max: 1, visibility_timeout: None };
    let mut refused = |queue, id: &str| world.queues.receive_attempt(queue, id, request, world.now).unwrap_err();
    assert!(matches!(refused(&standard, "attempt"), Error::NotForQueueType { .. }));
    for id in ["", "a b", &"a".repeat(129)] {
        assert!(matches!(refused(&main, id), Error::InvalidParameter { .. }), "{id:?}");
    }
}
