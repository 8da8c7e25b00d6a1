//! FIFO message groups: a record that goes back to the queue takes the rest of its group with it, so that the order holds.
//!
//! A receive counts for the whole group, so a record that always fails would take the healthy ones behind it to the dead
//! letter queue. Two rules keep them from it. A rejected record holds nobody: it can never succeed, so nothing waits for it.
//! And a record holds the others for [`HOLDS_MAX`] receives only, half of a queue's `maxReceiveCount`; from then on it fails
//! alone. Whatever stands in front of a message has been received at least as often, since a group is received from its head
//! and is locked meanwhile: so with its own receive of that number at the latest, a message is held by nobody.

use crate::delivery::{Delivery, Outcome};
use crate::weakness::{Weakness, weakened};

/// With how many receives a record that goes back ceases to hold the rest of its group.
pub const HOLDS_MAX: u32 = 10;

/// Returns the position of the record that a record of this position has to go back with, if there is one: of the same
/// group, before it, and with an outcome that holds.
pub(crate) fn holder(deliveries: &[Delivery], outcomes: &[Option<Outcome>], position: usize) -> Option<usize> {
    let group = deliveries[position].group.as_ref()?;
    let before = deliveries[..position].iter().zip(outcomes);
    before
        .enumerate()
        .find(|(_, (delivery, outcome))| {
            delivery.group.as_ref() == Some(group) && outcome.as_ref().is_some_and(|outcome| holds(delivery, outcome))
        })
        .map(|(position, _)| position)
}

/// Returns whether a record with this outcome sends the rest of its group back.
pub(crate) fn holds(delivery: &Delivery, outcome: &Outcome) -> bool {
    delivery.receive_count < HOLDS_MAX && outcome.may_succeed_later() && !weakened(Weakness::GroupNotHeld)
}

/// Returns the outcome of a record that goes back for no fault of its own.
pub(crate) fn held(holder: &Delivery) -> Outcome {
    Outcome::Retry(format!("behind message {} of its group", holder.message_id))
}
