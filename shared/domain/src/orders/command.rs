//! Commands on orders: each is decided on the order as it is, and comes to one event.

use events::{
    CancellationReason, CommandId, Currency, OrderCancelled, OrderDelivered, OrderEvent, OrderId, OrderItem, OrderPaid,
    OrderPlaced, OrderRefunded, OrderShipped, PlayerId, Timestamp, TrackingCode,
};
use thiserror::Error;

use super::lifecycle::OrderAction;
use super::order::{Illegal, Order};

/// A command of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderCommand {
    /// On which order.
    pub order_id: OrderId,
    /// By what the caller knows it: the same command again has the same id.
    pub command_id: CommandId,
    /// When what it says occurred.
    pub occurred_at: Timestamp,
    /// What is asked for.
    pub request: OrderRequest,
}

/// What a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderRequest {
    /// A new order.
    Place {
        /// Who places it.
        player_id: PlayerId,
        /// What all amounts are in.
        currency: Currency,
        /// What is ordered.
        items: Vec<OrderItem>,
    },
    /// A payment, in full or in part.
    Pay {
        /// How much, in hundredths of the currency.
        amount_cents: u64,
    },
    /// Handing it to the carrier.
    Ship {
        /// By what the parcel is found.
        tracking_code: TrackingCode,
    },
    /// Handing it to the customer.
    Deliver,
    /// Giving it up.
    Cancel {
        /// Why.
        reason: CancellationReason,
    },
    /// Paying back what was paid.
    Refund,
}

impl OrderRequest {
    /// Returns the action that is asked for.
    pub fn action(&self) -> OrderAction {
        match self {
            Self::Place { .. } => OrderAction::Place,
            Self::Pay { .. } => OrderAction::Pay,
            Self::Ship { .. } => OrderAction::Ship,
            Self::Deliver => OrderAction::Deliver,
            Self::Cancel { .. } => OrderAction::Cancel,
            Self::Refund => OrderAction::Refund,
        }
    }
}

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandDecision {
    /// The event's version.
    pub version: u64,
    /// What happens.
    pub event: OrderEvent,
}

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Another command has placed an order with this id.
    #[error("another order has this id")]
    Taken,
    /// The order does not allow it.
    #[error(transparent)]
    Illegal(Illegal),
}

/// Decides a command on the order as it is, `None` where there is none.
///
/// # Errors
/// The command is refused.
pub fn decide(request: &OrderRequest, order: Option<&Order>) -> Result<CommandDecision, Refusal> {
    let amount_cents = match request {
        OrderRequest::Pay { amount_cents } => *amount_cents,
        OrderRequest::Place { .. } if order.is_some() => return Err(Refusal::Taken),
        OrderRequest::Place { .. }
        | OrderRequest::Ship { .. }
        | OrderRequest::Deliver
        | OrderRequest::Cancel { .. }
        | OrderRequest::Refund => 0,
    };
    Order::after(order, request.action(), amount_cents).map_err(Refusal::Illegal)?;
    let event = match request.clone() {
        OrderRequest::Place { player_id, currency, items } => {
            OrderEvent::Placed(OrderPlaced { player_id, currency, items })
        }
        OrderRequest::Pay { amount_cents } => OrderEvent::Paid(OrderPaid { amount_cents }),
        OrderRequest::Ship { tracking_code } => OrderEvent::Shipped(OrderShipped { tracking_code }),
        OrderRequest::Deliver => OrderEvent::Delivered(OrderDelivered {}),
        OrderRequest::Cancel { reason } => OrderEvent::Cancelled(OrderCancelled { reason }),
        OrderRequest::Refund => {
            OrderEvent::Refunded(OrderRefunded { amount_cents: order.map_or(0, |order| order.paid_cents) })
        }
    };
    Ok(CommandDecision { version: order.map_or(1, |order| order.version + 1), event })
}

/// Returns whether an event is what such a request comes to: then a command that comes again asks for the same.
pub fn same_request(request: &OrderRequest, event: &OrderEvent) -> bool {
    match (request, event) {
        (OrderRequest::Place { player_id, currency, items }, OrderEvent::Placed(placed)) => {
            (player_id, currency, items) == (&placed.player_id, &placed.currency, &placed.items)
        }
        (OrderRequest::Pay { amount_cents }, OrderEvent::Paid(paid)) => *amount_cents == paid.amount_cents,
        (OrderRequest::Ship { tracking_code }, OrderEvent::Shipped(shipped)) => *tracking_code == shipped.tracking_code,
        (OrderRequest::Cancel { reason }, OrderEvent::Cancelled(cancelled)) => *reason == cancelled.reason,
        (OrderRequest::Deliver, OrderEvent::Delivered(_)) | (OrderRequest::Refund, OrderEvent::Refunded(_)) => true,
        (
            OrderRequest::Place { .. }
            | OrderRequest::Pay { .. }
            | OrderRequest::Ship { .. }
            | OrderRequest::Deliver
            | OrderRequest::Cancel { .. }
            | OrderRequest::Refund,
            _,
        ) => false,
    }
}
