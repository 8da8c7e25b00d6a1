//! The states of an order and what may be done in each: the one table that decides, folds and documents.

use std::fmt;

use events::OrderEvent;
use serde::{Deserialize, Serialize};

/// Where an order is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// Placed, and not yet paid in full.
    Placed,
    /// Paid in full.
    Paid,
    /// On its way.
    Shipped,
    /// With the customer.
    Delivered,
    /// Given up before it was shipped.
    Cancelled,
    /// What was paid has been paid back.
    Refunded,
}

impl OrderStatus {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Placed, Self::Paid, Self::Shipped, Self::Delivered, Self::Cancelled, Self::Refunded];

    /// Returns the state as the tables write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Paid => "paid",
            Self::Shipped => "shipped",
            Self::Delivered => "delivered",
            Self::Cancelled => "cancelled",
            Self::Refunded => "refunded",
        }
    }
}

impl fmt::Display for OrderStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What can be done with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrderAction {
    /// Placing it.
    Place,
    /// Paying some or all of it.
    Pay,
    /// Handing it to the carrier.
    Ship,
    /// Handing it to the customer.
    Deliver,
    /// Giving it up.
    Cancel,
    /// Paying back what was paid.
    Refund,
}

impl OrderAction {
    /// All actions.
    pub const ALL: [Self; 6] = [Self::Place, Self::Pay, Self::Ship, Self::Deliver, Self::Cancel, Self::Refund];

    /// Returns the action that an event is the fact of.
    pub const fn of(event: &OrderEvent) -> Self {
        match event {
            OrderEvent::Placed(_) => Self::Place,
            OrderEvent::Paid(_) => Self::Pay,
            OrderEvent::Shipped(_) => Self::Ship,
            OrderEvent::Delivered(_) => Self::Deliver,
            OrderEvent::Cancelled(_) => Self::Cancel,
            OrderEvent::Refunded(_) => Self::Refund,
        }
    }

    /// Returns the action as a verb.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Pay => "pay",
            Self::Ship => "ship",
            Self::Deliver => "deliver",
            Self::Cancel => "cancel",
            Self::Refund => "refund",
        }
    }

    /// Returns the action as a participle, for sentences.
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Place => "placed",
            Self::Pay => "paid",
            Self::Ship => "shipped",
            Self::Deliver => "delivered",
            Self::Cancel => "cancelled",
            Self::Refund => "refunded",
        }
    }
}

/// What must hold besides for a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provided {
    /// Nothing.
    Always,
    /// The payment is less than what is due.
    PaidInPart,
    /// The payment is all that is due.
    PaidInFull,
    /// Something has been paid.
    SomethingPaid,
}

/// One legal step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The state before; `None` where there is no order yet.
    pub from: Option<OrderStatus>,
    /// What is done.
    pub action: OrderAction,
    /// What must hold besides.
    pub provided: Provided,
    /// The state afterwards.
    pub to: OrderStatus,
}

/// Every legal step. What is not here is refused.
pub const TRANSITIONS: [Transition; 9] = [
    step(None, OrderAction::Place, Provided::Always, OrderStatus::Placed),
    step(Some(OrderStatus::Placed), OrderAction::Pay, Provided::PaidInPart, OrderStatus::Placed),
    step(Some(OrderStatus::Placed), OrderAction::Pay, Provided::PaidInFull, OrderStatus::Paid),
    step(Some(OrderStatus::Placed), OrderAction::Cancel, Provided::Always, OrderStatus::Cancelled),
    step(Some(OrderStatus::Paid), OrderAction::Ship, Provided::Always, OrderStatus::Shipped),
    step(Some(OrderStatus::Paid), OrderAction::Cancel, Provided::Always, OrderStatus::Cancelled),
    step(Some(OrderStatus::Shipped), OrderAction::Deliver, Provided::Always, OrderStatus::Delivered),
    step(Some(OrderStatus::Delivered), OrderAction::Refund, Provided::SomethingPaid, OrderStatus::Refunded),
    step(Some(OrderStatus::Cancelled), OrderAction::Refund, Provided::SomethingPaid, OrderStatus::Refunded),
];

const fn step(from: Option<OrderStatus>, action: OrderAction, provided: Provided, to: OrderStatus) -> Transition {
    Transition { from, action, provided, to }
}

/// Returns the legal steps from a state by an action.
pub fn steps(from: Option<OrderStatus>, action: OrderAction) -> impl Iterator<Item = &'static Transition> {
    TRANSITIONS.iter().filter(move |transition| transition.from == from && transition.action == action)
}

/// Prints the transitions as a Markdown table: a row per state, a column per action.
pub fn transition_table() -> String {
    let mut table = String::from("| state |");
    for action in OrderAction::ALL {
        table.push_str(&format!(" {} |", action.as_str()));
    }
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(OrderAction::ALL.len()));
    table.push('\n');
    for from in std::iter::once(None).chain(OrderStatus::ALL.map(Some)) {
        table.push_str(&format!("| {} |", from.map_or("(none)", OrderStatus::as_str)));
        for action in OrderAction::ALL {
            let cells: Vec<String> = steps(from, action).map(cell).collect();
            table.push_str(&format!(" {} |", if cells.is_empty() { "-".to_owned() } else { cells.join("; ") }));
        }
        table.push('\n');
    }
    table
}

fn cell(transition: &Transition) -> String {
    let provided = match transition.provided {
        Provided::Always => "",
        Provided::PaidInPart => ", if less than what is due",
        Provided::PaidInFull => ", if all that is due",
        Provided::SomethingPaid => ", if anything was paid",
    };
    format!("{}{provided}", transition.to)
}
