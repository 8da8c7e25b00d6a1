//! What happens to messages that are received too often, one behaviour a test.

use std::time::Duration;

use queue::{Configuration, Deletion, ReceiveRequest};

use crate::world::{SECOND, World, bodies, redrive_policy};

#[test]
fn a_message_goes_to_the_dead_letter_queue_instead_of_being_received_once_too_often() {
    let (mut world, main, dead) = World::with_dead_letters(2);
    world.send(&main, "poison");
    let sent_at = world.now;
    let mut last = None;
    for count in 1..=2 {
        world.pass(SECOND);
        let delivery = world.receive_one(&main);
        assert_eq!((delivery.receive_count, world.counts(&dead)), (count, (0, 0, 0)));
        world.change(&main, &delivery.receipt, 0).unwrap();
        last = Some(delivery);
    }
    let last = last.unwrap();
    assert_eq!((world.counts(&main), world.counts(&dead)), ((1, 0, 0), (0, 0, 0)));

    world.pass(SECOND);
    let request = ReceiveRequest { max: 10, visibility_timeout: None };
    let received = world.queues.receive(&main, request, world.now).unwrap();
    assert!(received.deliveries.is_empty());
    assert_eq!(
        received.dead_lettered.map(|moved| (moved.queue, moved.messages)),
        Some((dead.clone(), vec![last.message.id]))
    );

    let moved = world.receive_one(&dead);
    assert_eq!((moved.message.id, moved.message.sent_at), (last.message.id, sent_at));
    assert_eq!((moved.receive_count, moved.first_received_at), (3, last.first_received_at));
    assert_eq!(moved.dead_letter_source, Some(main.clone()));
    assert_eq!(world.delete(&main, &last.receipt), Ok(Deletion::NothingToDelete));
    assert_eq!((world.counts(&main), world.counts(&dead)), ((0, 0, 0), (0, 1, 0)));
}

#[test]
fn a_receive_goes_past_dead_letters_to_what_can_be_delivered() {
    let (mut world, main, dead) = World::with_dead_letters(1);
    for body in ["a", "b"] {
        world.send(&main, body);
    }
    for delivery in world.receive(&main, 2) {
        world.change(&main, &delivery.receipt, 0).unwrap();
    }
    world.send(&main, "fresh");
    assert_eq!(bodies(&world.receive(&main, 1)), ["fresh"]);
    assert_eq!(world.counts(&dead), (2, 0, 0));
}

#[test]
fn a_dead_letter_queue_counts_its_own_receives() {
    let mut world = World::new(Configuration::default());
    let grave = world.create("grave", &[]);
    let dead = world.create("dead", &[("RedrivePolicy", &redrive_policy("grave", 2))]);
    let main = world.create("main", &[("RedrivePolicy", &redrive_policy("dead", 2))]);
    world.send(&main, "x");
    let mut places = Vec::new();
    for _ in 0..6 {
        for queue in [&main, &dead, &grave] {
            for delivery in world.receive(queue, 1) {
                world.change(queue, &delivery.receipt, 0).unwrap();
                places.push((queue.as_str().to_owned(), delivery.receive_count));
            }
        }
    }
    let expected = [("main", 1), ("main", 2), ("dead", 3), ("dead", 4), ("grave", 5), ("grave", 6)];
    assert_eq!(places.iter().take(6).map(|(queue, count)| (queue.as_str(), *count)).collect::<Vec<_>>(), expected);
}

#[test]
fn without_its_dead_letter_queue_a_message_is_delivered_again() {
    let (mut world, main, dead) = World::with_dead_letters(1);
    world.send(&main, "x");
    world.queues.delete(&dead).unwrap();
    for count in 1..=3 {
        let delivery = world.receive_one(&main);
        assert_eq!(delivery.receive_count, count);
        world.change(&main, &delivery.receipt, 0).unwrap();
    }
}

#[test]
fn a_queue_knows_whose_dead_letters_it_takes() {
    let (mut world, main, dead) = World::with_dead_letters(1);
    let other = world.create("also", &[("RedrivePolicy", &redrive_policy("dead", 5))]);
    assert_eq!(world.queues.dead_letter_sources(&dead), Ok(vec![other, main.clone()]));
    assert_eq!(world.queues.dead_letter_sources(&main), Ok(Vec::new()));
}

#[test]
fn a_dead_letter_expires_by_when_it_was_first_sent() {
    let mut world = World::new(Configuration::default());
    let dead = world.create("dead", &[("MessageRetentionPeriod", "100")]);
    let main = world.create("main", &[("RedrivePolicy", &redrive_policy("dead", 1)), ("VisibilityTimeout", "90")]);
    world.send(&main, "x");
    world.receive(&main, 1);
    world.pass(90 * SECOND);
    assert!(world.receive(&main, 1).is_empty());
    assert_eq!(world.counts(&dead), (1, 0, 0));
    assert_eq!(world.queues.oldest_age(&dead, world.now), Ok(Some(Duration::ZERO)));
    world.pass(10 * SECOND);
    assert_eq!(world.counts(&dead), (0, 0, 0));
}
