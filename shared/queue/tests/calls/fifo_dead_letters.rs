//! What happens to messages of a FIFO queue that are received too often, one behaviour a test.

use queue::{Configuration, QueueName, ReceiveRequest};

use crate::world::{SECOND, World, bodies, redrive_policy};

/// `main.fifo`, whose messages are received twice before they go to `dead.fifo`.
fn world() -> (World, QueueName, QueueName) {
    let mut world = World::new(Configuration::default());
    let dead = world.create_fifo("dead.fifo", &[("MessageRetentionPeriod", "1000")]);
    let policy = redrive_policy("dead.fifo", 2);
    let main = world.create_fifo("main.fifo", &[("RedrivePolicy", &policy)]);
    (world, main, dead)
}

/// Receives messages one by one and makes them visible again.
fn fail(world: &mut World, queue: &QueueName, times: usize) {
    for _ in 0..times {
        let receipt = world.receive_one(queue).receipt;
        world.change(queue, &receipt, 0).unwrap();
    }
}

#[test]
fn a_poison_first_message_goes_to_the_dead_letter_queue_and_its_group_goes_on() {
    let (mut world, main, dead) = world();
    for body in ["a1", "a2", "a3"] {
        world.send_to(&main, "a", body);
    }
    fail(&mut world, &main, 2);
    assert_eq!((world.counts(&main), world.counts(&dead)), ((3, 0, 0), (0, 0, 0)));

    let request = ReceiveRequest { max: 10, visibility_timeout: None };
    let received = world.queues.receive(&main, request, world.now).unwrap();
    assert_eq!(bodies(&received.deliveries), ["a2", "a3"]);
    let moved = received.dead_lettered.unwrap();
    assert_eq!((moved.queue, moved.messages.len()), (dead.clone(), 1));
    assert_eq!(bodies(&world.receive(&dead, 10)), ["a1"]);
}

#[test]
fn a_receive_counts_for_all_that_it_takes_so_a_poison_message_goes_alone_only_if_it_is_alone_visible() {
    for (others_hidden, expected) in [(false, (0, 2)), (true, (1, 1))] {
        let (mut world, main, dead) = world();
        for body in ["a1", "a2"] {
            world.send_to(&main, "a", body);
        }
        for _ in 0..2 {
            for delivery in world.receive(&main, 10) {
                if delivery.message.body == "a1" || !others_hidden {
                    world.change(&main, &delivery.receipt, 0).unwrap();
                }
            }
        }
        world.receive(&main, 10);
        let left = (world.counts(&main), world.counts(&dead).0);
        assert_eq!((left.0.0 + left.0.1, left.1), expected);
    }
}

#[test]
fn a_dead_letter_is_a_new_message_with_an_old_id() {
    let (mut world, main, dead) = world();
    let sent = world.send_to(&main, "a", "a1");
    fail(&mut world, &main, 2);
    world.pass(500 * SECOND);
    assert!(world.receive(&main, 1).is_empty());
    let moved = world.receive_one(&dead);
    assert_eq!((moved.message.id, moved.receive_count), (sent.id, 3));
    assert_eq!(moved.dead_letter_source, Some(main));
    assert_eq!(moved.message.group_id, sent.group_id);
    // Its retention begins anew.
    assert_eq!((sent.sent_at.plus(500 * SECOND), world.now), (moved.message.sent_at, world.now));
    world.pass(999 * SECOND);
    assert_eq!(world.counts(&dead).0 + world.counts(&dead).1, 1);
    world.pass(SECOND);
    assert_eq!(world.counts(&dead), (0, 0, 0));
}

#[test]
fn two_dead_letters_with_the_same_deduplication_id_both_arrive() {
    let (mut world, main, dead) = world();
    let first = world.send_to(&main, "a", "same");
    fail(&mut world, &main, 2);
    assert!(world.receive(&main, 1).is_empty());
    world.pass(300 * SECOND);
    let second = world.send_to(&main, "a", "same");
    fail(&mut world, &main, 2);
    assert!(world.receive(&main, 1).is_empty());

    let moved = world.receive(&dead, 10);
    let ids: Vec<_> = moved.iter().map(|delivery| delivery.message.deduplication_id.clone().unwrap()).collect();
    assert_eq!(ids, [first.id.to_string(), second.id.to_string()]);
    assert!(moved[0].message.sequence_number < moved[1].message.sequence_number);
}

#[test]
fn dead_letters_keep_the_order_of_their_group() {
    let (mut world, main, dead) = world();
    for body in ["a1", "b1", "a2"] {
        world.send_to(&main, &body[..1], body);
    }
    for _ in 0..2 {
        for delivery in world.receive(&main, 10) {
            world.change(&main, &delivery.receipt, 0).unwrap();
        }
    }
    assert!(world.receive(&main, 10).is_empty());
    assert_eq!((world.counts(&main), world.counts(&dead)), ((0, 0, 0), (3, 0, 0)));
    assert_eq!(bodies(&world.receive(&dead, 2)), ["a1", "a2"]);
}
