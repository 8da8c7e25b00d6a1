//! In which order a FIFO queue gives out messages, and what holds a group back, one behaviour a test.

use std::time::Duration;

use queue::{Configuration, ReceiveRequest};

use crate::world::{SECOND, World, attributes, bodies};

/// Sends messages named after their group and their number in it.
fn with_messages(pairs: &[(&str, &str)], sent: &[&str]) -> (World, queue::QueueName) {
    let (mut world, main) = World::with_fifo_queue(pairs);
    for body in sent {
        world.send_to(&main, &body[..1], body);
    }
    (world, main)
}

#[test]
fn a_receive_takes_group_by_group_and_keeps_the_order_of_each() {
    let (mut world, main) = with_messages(&[], &["a1", "b1", "a2", "a3", "b2"]);
    assert_eq!(bodies(&world.receive(&main, 4)), ["a1", "a2", "a3", "b1"]);
}

#[test]
fn a_group_is_locked_while_its_first_message_is_in_flight() {
    let (mut world, main) = with_messages(&[], &["a1", "a2", "a3", "b1"]);
    let first = world.receive(&main, 2);
    assert_eq!(bodies(&first), ["a1", "a2"]);
    assert_eq!(bodies(&world.receive(&main, 10)), ["b1"]);
    assert_eq!((world.counts(&main), world.wake(&main)), ((1, 3, 0), Some(30 * SECOND)));

    // Half of what is in flight is not enough.
    world.delete(&main, &first[0].receipt).unwrap();
    world.send_to(&main, "a", "a4");
    assert!(world.receive(&main, 10).is_empty());
    world.delete(&main, &first[1].receipt).unwrap();
    assert_eq!(world.wake(&main), Some(Duration::ZERO));
    assert_eq!(bodies(&world.receive(&main, 10)), ["a3", "a4"]);
}

#[test]
fn what_was_not_deleted_comes_again_in_the_old_order() {
    let (mut world, main) = with_messages(&[("VisibilityTimeout", "10")], &["a1", "a2", "a3"]);
    for _ in 0..3 {
        assert_eq!(bodies(&world.receive(&main, 10)), ["a1", "a2", "a3"]);
        world.pass(10 * SECOND);
    }
    let taken = world.receive(&main, 10);
    // In whatever order they become visible.
    world.change(&main, &taken[2].receipt, 0).unwrap();
    assert!(world.receive(&main, 10).is_empty());
    world.change(&main, &taken[1].receipt, 0).unwrap();
    world.change(&main, &taken[0].receipt, 0).unwrap();
    assert_eq!(bodies(&world.receive(&main, 10)), ["a1", "a2", "a3"]);
}

#[test]
fn a_first_message_that_is_visible_again_comes_without_those_behind_it_that_are_not() {
    let (mut world, main) = with_messages(&[], &["a1", "a2", "b1"]);
    let taken = world.receive(&main, 2);
    world.change(&main, &taken[0].receipt, 1).unwrap();
    assert_eq!(world.wake(&main), Some(Duration::ZERO));
    world.pass(SECOND);
    // `b` was receivable before `a` was again.
    assert_eq!(bodies(&world.receive(&main, 3)), ["b1", "a1"]);
}

#[test]
fn what_stands_behind_a_first_message_waits_for_it_however_long_it_is_hidden() {
    let (mut world, main) = with_messages(&[("VisibilityTimeout", "10")], &["a1", "a2", "a3"]);
    let taken = world.receive(&main, 3);
    world.change(&main, &taken[0].receipt, 15).unwrap();
    world.pass(12 * SECOND);
    assert!(world.receive(&main, 10).is_empty());
    assert_eq!((world.counts(&main), world.wake(&main)), ((2, 1, 0), Some(3 * SECOND)));
    world.pass(3 * SECOND);
    assert_eq!(bodies(&world.receive(&main, 10)), ["a1", "a2", "a3"]);
}

#[test]
fn groups_take_turns() {
    let (mut world, main) = with_messages(&[], &["a1", "b1", "b2", "c1", "a2"]);
    let at_once = ReceiveRequest { max: 3, visibility_timeout: Some(Duration::ZERO) };
    let mut receive = || world.queues.receive(&main, at_once, world.now).unwrap().deliveries;
    assert_eq!(bodies(&receive()), ["a1", "a2", "b1"]);
    assert_eq!(bodies(&receive()), ["c1", "a1", "a2"]);
    assert_eq!(bodies(&receive()), ["b1", "b2", "c1"]);
}

#[test]
fn a_group_of_many_does_not_keep_others_waiting() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    for number in 0..100 {
        world.send_to(&main, "many", &format!("many{number}"));
    }
    world.send_to(&main, "few", "few");
    assert_eq!(world.receive(&main, 10).len(), 10);
    assert_eq!(bodies(&world.receive(&main, 10)), ["few"]);
}

#[test]
fn sequence_numbers_go_up_and_have_20_digits() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    let numbers: Vec<_> =
        ["a1", "b1", "a2"].iter().map(|body| world.send_to(&main, &body[..1], body).sequence_number.unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next && one.to_string() < next.to_string()), "{numbers:?}");
    assert!(numbers.iter().all(|number| number.to_string().len() == 20));
    let delivered: Vec<_> = world.receive(&main, 3).iter().map(|delivery| delivery.message.sequence_number).collect();
    assert_eq!(delivered, [Some(numbers[0]), Some(numbers[2]), Some(numbers[1])]);
}

#[test]
fn a_changed_delay_holds_for_the_messages_that_still_wait() {
    let (mut world, main) = with_messages(&[("DelaySeconds", "10")], &["a1", "b1"]);
    world.pass(SECOND);
    world.send_to(&main, "a", "a2");
    let set = |world: &mut World, seconds: &str| {
        world.queues.set_attributes(&main, &attributes(&[("DelaySeconds", seconds)]), world.now).unwrap();
    };
    set(&mut world, "20");
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 0, 3), Some(19 * SECOND)));
    set(&mut world, "1");
    assert_eq!(bodies(&world.receive(&main, 10)), ["a1", "b1"]);
    world.pass(SECOND);
    assert_eq!(world.counts(&main), (1, 2, 0));
}

#[test]
fn a_group_goes_on_when_its_first_message_expires_in_flight() {
    let (mut world, main) = with_messages(&[("MessageRetentionPeriod", "60"), ("VisibilityTimeout", "600")], &["a1"]);
    world.receive(&main, 1);
    world.pass(30 * SECOND);
    world.send_to(&main, "a", "a2");
    assert_eq!(world.wake(&main), Some(30 * SECOND));
    world.pass(30 * SECOND);
    assert_eq!(bodies(&world.receive(&main, 10)), ["a2"]);
}

#[test]
fn at_the_limit_of_messages_in_flight_nothing_is_received_and_nothing_is_an_error() {
    let mut world = World::new(Configuration { in_flight_max: 2, ..Configuration::default() });
    let main = world.create_fifo("main.fifo", &[("VisibilityTimeout", "30")]);
    for body in ["a1", "a2", "b1"] {
        world.send_to(&main, &body[..1], body);
    }
    let taken = world.receive(&main, 10);
    assert_eq!(bodies(&taken), ["a1", "a2"]);
    assert!(world.receive(&main, 10).is_empty());
    assert_eq!(world.wake(&main), Some(30 * SECOND));
    world.delete(&main, &taken[0].receipt).unwrap();
    assert_eq!(bodies(&world.receive(&main, 10)), ["b1"]);
}

#[test]
fn a_purge_empties_every_group() {
    let (mut world, main) = with_messages(&[], &["a1", "a2", "b1"]);
    world.receive(&main, 1);
    world.queues.purge(&main, world.now).unwrap();
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 0, 0), None));
    world.send_to(&main, "a", "a3");
    assert_eq!(bodies(&world.receive(&main, 10)), ["a3"]);
}

#[test]
fn twenty_thousand_messages_in_a_thousand_groups_come_in_order() {
    let (mut world, main) = World::with_fifo_queue(&[]);
    for number in 0..20_000_u32 {
        world.send_to(&main, &(number % 1_000).to_string(), &number.to_string());
    }
    let mut next: Vec<u32> = (0..1_000).collect();
    let mut received = 0;
    loop {
        let taken = world.receive(&main, 10);
        if taken.is_empty() {
            break;
        }
        for delivery in &taken {
            let number: u32 = delivery.message.body.parse().unwrap();
            let expected = &mut next[(number % 1_000) as usize];
            assert_eq!(number, *expected);
            *expected += 1_000;
            world.delete(&main, &delivery.receipt).unwrap();
        }
        received += taken.len();
    }
    assert_eq!((received, world.counts(&main)), (20_000, (0, 0, 0)));
}
