//! An order as the fold of its events.

use events::{
    CancellationReason, Currency, Event, OrderEvent, OrderId, OrderItem, OrderPlaced, Payload, PlayerId, Timestamp,
    TrackingCode,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::lifecycle::{OrderAction, OrderStatus, Provided, steps};

/// An order at one version. As it stands here it is shown, kept as a view, and kept in snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which order.
    pub order_id: OrderId,
    /// Who placed it.
    pub player_id: PlayerId,
    /// Where it is in its life.
    pub status: OrderStatus,
    /// Version of the last event that it is the fold of.
    pub version: u64,
    /// What all amounts are in.
    pub currency: Currency,
    /// What was ordered.
    pub items: Vec<OrderItem>,
    /// What it costs, in hundredths of the currency.
    pub total_cents: u64,
    /// What has been paid.
    pub paid_cents: u64,
    /// What has been paid back.
    pub refunded_cents: u64,
    /// By what the parcel is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_code: Option<TrackingCode>,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation_reason: Option<CancellationReason>,
    /// When it was placed.
    pub placed_at: Timestamp,
    /// When its last event occurred.
    pub changed_at: Timestamp,
}

/// An event that does not follow on the events before it. No append makes one; a store that was tampered with may.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HistoryError {
    /// It is of another order, or of no order.
    #[error("event {version} belongs to {aggregate_id}, not to order {order_id}")]
    Foreign {
        /// The order.
        order_id: OrderId,
        /// What the event is about.
        aggregate_id: String,
        /// The event's version.
        version: u64,
    },
    /// It has another version than the next one.
    #[error("event {found} of order {order_id} stands where {expected} should")]
    OutOfOrder {
        /// The order.
        order_id: OrderId,
        /// The next version.
        expected: u64,
        /// The event's version.
        found: u64,
    },
    /// No order in that state can have such an event.
    #[error("event {version} of order {order_id} cannot follow: {illegal}")]
    Illegal {
        /// The order.
        order_id: OrderId,
        /// The event's version.
        version: u64,
        /// Why not.
        #[source]
        illegal: Illegal,
    },
}

/// Why something cannot be done with an order as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Illegal {
    /// There is no such order.
    #[error("there is no such order")]
    NoOrder,
    /// It is no event of an order.
    #[error("it is no event of an order")]
    NotAnOrder,
    /// The order's state does not allow it.
    #[error("an order that is {status} cannot be {}", action.participle())]
    Status {
        /// The state.
        status: OrderStatus,
        /// What was to be done.
        action: OrderAction,
    },
    /// A payment is more than what is due, or nothing.
    #[error("a payment of {amount_cents} is not between 1 and the {due_cents} that are due")]
    Amount {
        /// The payment.
        amount_cents: u64,
        /// What is due.
        due_cents: u64,
    },
    /// There is nothing to pay back.
    #[error("nothing was paid that could be paid back")]
    NothingPaid,
    /// What is paid back is not what was paid.
    #[error("a refund of {amount_cents} is not the {paid_cents} that were paid")]
    Refund {
        /// The refund.
        amount_cents: u64,
        /// What was paid.
        paid_cents: u64,
    },
}

impl Order {
    /// Returns what is still to be paid, in hundredths of the currency.
    pub fn due_cents(&self) -> u64 {
        self.total_cents.saturating_sub(self.paid_cents)
    }

    /// Returns the state after an action, `amount_cents` being what a payment pays.
    ///
    /// # Errors
    /// The action is not legal now.
    pub fn after(order: Option<&Self>, action: OrderAction, amount_cents: u64) -> Result<OrderStatus, Illegal> {
        let mut legal = steps(order.map(|order| order.status), action).peekable();
        if legal.peek().is_none() {
            let status = order.map(|order| order.status);
            return Err(status.map_or(Illegal::NoOrder, |status| Illegal::Status { status, action }));
        }
        let (due_cents, paid_cents) = order.map_or((0, 0), |order| (order.due_cents(), order.paid_cents));
        let holds = |provided| match provided {
            Provided::Always => true,
            Provided::PaidInPart => (1..due_cents).contains(&amount_cents),
            Provided::PaidInFull => amount_cents == due_cents && amount_cents > 0,
            Provided::SomethingPaid => paid_cents > 0,
        };
        let met = legal.find(|transition| holds(transition.provided)).map(|transition| transition.to);
        met.ok_or(match action {
            OrderAction::Pay => Illegal::Amount { amount_cents, due_cents },
            OrderAction::Place
            | OrderAction::Ship
            | OrderAction::Deliver
            | OrderAction::Cancel
            | OrderAction::Refund => Illegal::NothingPaid,
        })
    }

    /// Brings an order to its next event; `None` is the order before its first. On an error it is as it was.
    ///
    /// # Errors
    /// The event does not follow on those before it.
    pub fn follow(order: &mut Option<Self>, order_id: &OrderId, event: &Event) -> Result<(), HistoryError> {
        let expected = order.as_ref().map_or(1, |order| order.version + 1);
        if event.aggregate_id != order_id.as_str() {
            let (aggregate_id, version) = (event.aggregate_id.clone(), event.version);
            return Err(HistoryError::Foreign { order_id: order_id.clone(), aggregate_id, version });
        }
        if event.version != expected {
            return Err(HistoryError::OutOfOrder { order_id: order_id.clone(), expected, found: event.version });
        }
        let version = event.version;
        fold(order, order_id, event).map_err(|illegal| HistoryError::Illegal {
            order_id: order_id.clone(),
            version,
            illegal,
        })
    }
}

fn fold(order: &mut Option<Order>, order_id: &OrderId, event: &Event) -> Result<(), Illegal> {
    let Payload::Order(change) = &event.payload else { return Err(Illegal::NotAnOrder) };
    let status = Order::after(order.as_ref(), OrderAction::of(change), paid_by(change))?;
    if let OrderEvent::Placed(placed) = change {
        *order = Some(placed_order(order_id, placed, status, event.occurred_at));
        return Ok(());
    }
    let order = order.as_mut().ok_or(Illegal::NoOrder)?;
    match change {
        OrderEvent::Placed(_) | OrderEvent::Delivered(_) => {}
        OrderEvent::Paid(paid) => order.paid_cents += paid.amount_cents,
        OrderEvent::Shipped(shipped) => order.tracking_code = Some(shipped.tracking_code.clone()),
        OrderEvent::Cancelled(cancelled) => order.cancellation_reason = Some(cancelled.reason),
        OrderEvent::Refunded(refunded) if refunded.amount_cents != order.paid_cents => {
            return Err(Illegal::Refund { amount_cents: refunded.amount_cents, paid_cents: order.paid_cents });
        }
        OrderEvent::Refunded(refunded) => order.refunded_cents = refunded.amount_cents,
    }
    order.status = status;
    order.version = event.version;
    order.changed_at = event.occurred_at;
    Ok(())
}

/// What a payment pays; nothing for any other event.
fn paid_by(change: &OrderEvent) -> u64 {
    match change {
        OrderEvent::Paid(paid) => paid.amount_cents,
        OrderEvent::Placed(_)
        | OrderEvent::Shipped(_)
        | OrderEvent::Delivered(_)
        | OrderEvent::Cancelled(_)
        | OrderEvent::Refunded(_) => 0,
    }
}

fn placed_order(order_id: &OrderId, placed: &OrderPlaced, status: OrderStatus, placed_at: Timestamp) -> Order {
    let line = |item: &OrderItem| u64::from(item.quantity) * u64::from(item.unit_price_cents);
    Order {
        order_id: order_id.clone(),
        player_id: placed.player_id.clone(),
        status,
        version: 1,
        currency: placed.currency,
        items: placed.items.clone(),
        total_cents: placed.items.iter().map(line).fold(0, u64::saturating_add),
        paid_cents: 0,
        refunded_cents: 0,
        tracking_code: None,
        cancellation_reason: None,
        placed_at,
        changed_at: placed_at,
    }
}
