//! What the calls about messages do, one behaviour a test.

use std::time::Duration;

use queue::{Configuration, Deletion, Error, ErrorCode, ReceiptHandle, Receipts, ReceiveRequest, SendRequest};

use crate::world::{SECOND, World, bodies, code};

#[test]
fn a_received_message_is_invisible_until_its_timeout_has_passed() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "10")]);
    world.send(&main, "x");
    assert_eq!(world.wake(&main), Some(Duration::ZERO));

    let first = world.receive_one(&main);
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 1, 0), Some(10 * SECOND)));

    world.pass(10 * SECOND - Duration::from_millis(1));
    assert!(world.receive(&main, 1).is_empty());

    world.pass(Duration::from_millis(1));
    let second = world.receive_one(&main);
    assert_eq!((first.receive_count, second.receive_count), (1, 2));
    assert_eq!(first.first_received_at, second.first_received_at);
    assert_eq!(first.message, second.message);
    assert_ne!(first.receipt, second.receipt);
}

#[test]
fn a_receive_can_have_a_timeout_of_its_own() {
    let (mut world, main) = World::with_queue(&[]);
    world.send(&main, "x");
    let receive = |world: &mut World, seconds| {
        let request = ReceiveRequest { max: 10, visibility_timeout: Some(Duration::from_secs(seconds)) };
        world.queues.receive(&main, request, world.now).map(|received| received.deliveries.len())
    };
    assert_eq!(receive(&mut world, 0), Ok(1));
    assert_eq!(receive(&mut world, 5), Ok(1));
    assert_eq!(world.wake(&main), Some(5 * SECOND));
    assert_eq!(code(receive(&mut world, 43_201)), Some(ErrorCode::InvalidParameterValue));
}

#[test]
fn a_message_is_delayed_by_its_own_delay_or_its_queues() {
    let (mut world, main) = World::with_queue(&[("DelaySeconds", "5")]);
    world.send(&main, "queue");
    let own = |seconds| Some(Duration::from_secs(seconds));
    world.queues.send(&main, SendRequest { delay: own(2), ..SendRequest::from_body("own") }, world.now).unwrap();
    world.queues.send(&main, SendRequest { delay: own(0), ..SendRequest::from_body("none") }, world.now).unwrap();

    assert_eq!(world.counts(&main), (1, 0, 2));
    assert_eq!(bodies(&world.receive(&main, 10)), ["none"]);
    assert_eq!(world.wake(&main), Some(2 * SECOND));
    world.pass(2 * SECOND);
    assert_eq!(bodies(&world.receive(&main, 10)), ["own"]);
    world.pass(3 * SECOND);
    assert_eq!(bodies(&world.receive(&main, 10)), ["queue"]);
}

#[test]
fn waiting_messages_come_in_the_order_in_which_they_became_visible() {
    let (mut world, main) = World::with_queue(&[]);
    for body in ["a", "b", "c"] {
        world.send(&main, body);
    }
    let first = world.receive_one(&main);
    world.pass(SECOND);
    world.change(&main, &first.receipt, 0).unwrap();
    assert_eq!(bodies(&world.receive(&main, 500)), ["b", "c", "a"]);
}

#[test]
fn deleting_removes_a_message_in_any_state_and_succeeds_again() {
    let (mut world, main) = World::with_queue(&[]);
    world.send(&main, "in flight");
    world.send(&main, "visible again");
    let receipts: Vec<ReceiptHandle> = world.receive(&main, 2).into_iter().map(|delivery| delivery.receipt).collect();
    world.change(&main, &receipts[1], 0).unwrap();
    for expected in [Deletion::Deleted, Deletion::NothingToDelete] {
        for receipt in &receipts {
            assert_eq!(world.delete(&main, receipt), Ok(expected));
        }
    }
    assert_eq!(world.counts(&main), (0, 0, 0));
}

#[test]
fn an_older_handle_deletes_or_does_nothing_as_configured() {
    for (receipts, expected, left) in
        [(Receipts::Any, Deletion::Deleted, (0, 0, 0)), (Receipts::LatestOnly, Deletion::NothingToDelete, (0, 1, 0))]
    {
        let mut world = World::new(Configuration { receipts, ..Configuration::default() });
        let main = world.create("main", &[("VisibilityTimeout", "1")]);
        world.send(&main, "x");
        let older = world.receive_one(&main);
        world.pass(SECOND);
        let latest = world.receive_one(&main);

        let extended = world.change(&main, &older.receipt, 60);
        assert_eq!(extended.is_ok(), receipts == Receipts::Any);
        assert_eq!(world.delete(&main, &older.receipt), Ok(expected));
        assert_eq!(world.counts(&main), left);
        assert!(world.delete(&main, &latest.receipt).is_ok());
        assert_eq!(world.counts(&main), (0, 0, 0));
    }
}

#[test]
fn a_handle_that_the_queue_did_not_give_out_is_invalid() {
    let (mut world, main) = World::with_queue(&[]);
    let other = world.create("other", &[]);
    world.send(&main, "x");
    // The other queues have a message in the same place.
    world.send(&other, "y");
    let receipt = world.receive_one(&main).receipt;
    for (queue, receipt) in [(&other, receipt.clone()), (&main, "garbage".into()), (&main, "".into())] {
        assert_eq!(code(world.delete(queue, &receipt)), Some(ErrorCode::ReceiptHandleIsInvalid));
        assert_eq!(code(world.change(queue, &receipt, 1)), Some(ErrorCode::ReceiptHandleIsInvalid));
    }
    world.queues.delete(&main).unwrap();
    let again = world.create("main", &[]);
    world.send(&again, "z");
    assert_eq!(code(world.delete(&again, &receipt)), Some(ErrorCode::ReceiptHandleIsInvalid));
}

#[test]
fn a_changed_visibility_counts_from_the_change() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "30")]);
    world.send(&main, "x");
    let receipt = world.receive_one(&main).receipt;
    world.pass(20 * SECOND);
    world.change(&main, &receipt, 25).unwrap();
    assert_eq!(world.wake(&main), Some(25 * SECOND));
    world.change(&main, &receipt, 0).unwrap();
    assert_eq!((world.wake(&main), world.counts(&main)), (Some(Duration::ZERO), (1, 0, 0)));
}

#[test]
fn only_a_message_in_flight_has_a_visibility_to_change() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "1")]);
    world.send(&main, "x");
    let receipt = world.receive_one(&main).receipt;
    world.pass(SECOND);
    assert_eq!(code(world.change(&main, &receipt, 10)), Some(ErrorCode::MessageNotInflight));
    world.delete(&main, &receipt).unwrap();
    assert!(matches!(world.change(&main, &receipt, 10), Err(Error::MessageDoesNotExist { .. })));
}

#[test]
fn a_message_is_in_flight_for_12_hours_at_most_after_a_receive() {
    let (mut world, main) = World::with_queue(&[("VisibilityTimeout", "43200")]);
    world.send(&main, "x");
    let receipt = world.receive_one(&main).receipt;
    assert_eq!(code(world.change(&main, &receipt, 43_201)), Some(ErrorCode::InvalidParameterValue));
    world.pass(Duration::from_secs(43_000));
    assert!(matches!(world.change(&main, &receipt, 201), Err(Error::VisibilityBeyondLimit { .. })));
    assert_eq!(world.change(&main, &receipt, 200), Ok(()));
}

#[test]
fn receives_stop_at_the_limit_of_messages_in_flight() {
    let mut world = World::new(Configuration { in_flight_max: 3, ..Configuration::default() });
    let main = world.create("main", &[("VisibilityTimeout", "30")]);
    for body in ["a", "b", "c", "d"] {
        world.send(&main, body);
    }
    let taken = world.receive(&main, 10);
    assert_eq!(bodies(&taken), ["a", "b", "c"]);
    let request = ReceiveRequest { max: 1, visibility_timeout: None };
    assert_eq!(code(world.queues.receive(&main, request, world.now)), Some(ErrorCode::OverLimit));
    assert_eq!(world.wake(&main), Some(30 * SECOND));

    world.delete(&main, &taken[0].receipt).unwrap();
    assert_eq!(world.wake(&main), Some(Duration::ZERO));
    assert_eq!(bodies(&world.receive(&main, 10)), ["d"]);
}

#[test]
fn a_message_expires_after_its_retention_in_whatever_state_it_is() {
    let (mut world, main) = World::with_queue(&[("MessageRetentionPeriod", "60"), ("VisibilityTimeout", "600")]);
    world.send(&main, "visible");
    world.send(&main, "in flight");
    world.receive(&main, 1);
    let delayed = SendRequest { delay: Some(Duration::from_secs(300)), ..SendRequest::from_body("delayed") };
    world.queues.send(&main, delayed, world.now).unwrap();

    world.pass(Duration::from_millis(59_999));
    assert_eq!(world.counts(&main), (1, 1, 1));
    world.pass(Duration::from_millis(1));
    assert_eq!((world.counts(&main), world.wake(&main)), ((0, 0, 0), None));
    assert_eq!(world.queues.totals(&main, world.now).unwrap().expired, 3);
}

#[test]
fn a_message_that_expires_while_hidden_wakes_nobody() {
    let (mut world, main) = World::with_queue(&[("MessageRetentionPeriod", "60"), ("VisibilityTimeout", "60")]);
    world.send(&main, "x");
    world.receive(&main, 1);
    assert_eq!(world.wake(&main), None);
}

#[test]
fn the_oldest_message_is_the_one_that_arrived_first_and_is_still_there() {
    let (mut world, main) = World::with_queue(&[]);
    assert_eq!(world.queues.oldest_age(&main, world.now), Ok(None));
    world.send(&main, "a");
    world.pass(2 * SECOND);
    world.send(&main, "b");
    world.pass(SECOND);
    assert_eq!(world.queues.oldest_age(&main, world.now), Ok(Some(3 * SECOND)));
    let receipt = world.receive_one(&main).receipt;
    world.delete(&main, &receipt).unwrap();
    assert_eq!(world.queues.oldest_age(&main, world.now), Ok(Some(SECOND)));
}

#[test]
fn a_queues_own_size_limit_holds() {
    let (mut world, main) = World::with_queue(&[("MaximumMessageSize", "1024")]);
    world.send(&main, &"x".repeat(1_024));
    let refused = world.queues.send(&main, SendRequest::from_body("x".repeat(1_025)), world.now);
    assert_eq!(refused.err(), Some(Error::MessageTooLong { bytes: 1_025, limit_bytes: 1_024 }));
}

#[test]
fn a_hundred_thousand_waiting_messages_are_taken_in_order_and_none_twice() {
    let (mut world, main) = World::with_queue(&[]);
    for number in 0..100_000_u32 {
        world.send(&main, &number.to_string());
    }
    let mut next = 0_u32;
    while let Some(first) = world.receive(&main, 500).first().cloned() {
        assert_eq!(first.message.body, next.to_string());
        next += 500;
    }
    assert_eq!((next, world.counts(&main)), (100_000, (0, 100_000, 0)));
}
