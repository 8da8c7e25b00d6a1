//! `order_placed`, `order_paid`, `order_shipped`, `order_delivered`, `order_cancelled`, `order_refunded`: what happens to an
//! order of the shop. The aggregate is the order, and its events are numbered without gaps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{EventType, PlayerId, Sku, TrackingCode};

/// What happened to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OrderEvent {
    /// It was placed.
    Placed(OrderPlaced),
    /// It was paid, in full or in part.
    Paid(OrderPaid),
    /// It was handed to the carrier.
    Shipped(OrderShipped),
    /// It was handed to the customer.
    Delivered(OrderDelivered),
    /// It was given up.
    Cancelled(OrderCancelled),
    /// What was paid was paid back.
    Refunded(OrderRefunded),
}

impl OrderEvent {
    /// Returns the type of the event.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::Placed(_) => EventType::OrderPlaced,
            Self::Paid(_) => EventType::OrderPaid,
            Self::Shipped(_) => EventType::OrderShipped,
            Self::Delivered(_) => EventType::OrderDelivered,
            Self::Cancelled(_) => EventType::OrderCancelled,
            Self::Refunded(_) => EventType::OrderRefunded,
        }
    }
}

/// Payload of `order_placed`, schema version 2: version 1 had no currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPlaced {
    /// Who placed it.
    pub player_id: PlayerId,
    /// What all its amounts are in.
    pub currency: Currency,
    /// What was ordered.
    pub items: Vec<OrderItem>,
}

/// Payload of `order_placed`, schema version 1, as it still stands in the event store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPlacedVersion1 {
    /// Who placed it.
    pub player_id: PlayerId,
    /// What was ordered.
    pub items: Vec<OrderItem>,
}

impl From<OrderPlacedVersion1> for OrderPlaced {
    /// The shop began with one currency.
    fn from(old: OrderPlacedVersion1) -> Self {
        Self { player_id: old.player_id, currency: Currency::Eur, items: old.items }
    }
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderItem {
    /// Which article.
    pub sku: Sku,
    /// How many of it.
    pub quantity: u32,
    /// Price of one, in hundredths of the currency.
    pub unit_price_cents: u32,
}

/// Payload of `order_paid`, schema version 1: a payment in full or in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPaid {
    /// How much, in hundredths of the order's currency.
    pub amount_cents: u64,
}

/// Payload of `order_shipped`, schema version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderShipped {
    /// By what the parcel is found.
    pub tracking_code: TrackingCode,
}

/// Payload of `order_delivered`, schema version 1: nothing but the fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderDelivered {}

/// Payload of `order_cancelled`, schema version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCancelled {
    /// Why.
    pub reason: CancellationReason,
}

/// Payload of `order_refunded`, schema version 1: all that was paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderRefunded {
    /// How much, in hundredths of the order's currency.
    pub amount_cents: u64,
}

/// The currencies of the shop, as [ISO 4217](https://www.iso.org/iso-4217-currency-codes.html) writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Currency {
    /// Euro.
    Eur,
    /// Pound sterling.
    Gbp,
    /// US dollar.
    Usd,
}

/// Why an order was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancellationReason {
    /// The customer asked for it.
    CustomerRequest,
    /// An article cannot be had.
    OutOfStock,
    /// It was not paid in time.
    PaymentOverdue,
}

macro_rules! names {
    ($type:ident, $error:ident, $what:literal, [$($variant:ident => $name:literal),+ $(,)?]) => {
        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name as the wire and the tables write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        #[doc = concat!("A text that is no ", $what, ".")]
        #[derive(Debug, Clone, PartialEq, Eq, Error)]
        #[error("{text:?} is not one of {}", $type::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", "))]
        pub struct $error {
            text: String,
        }

        impl FromStr for $type {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                let known = Self::ALL.iter().copied().find(|one| one.as_str() == text);
                known.ok_or_else(|| $error { text: text.chars().take(64).collect() })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}

names!(Currency, UnknownCurrency, "currency of the shop", [Eur => "EUR", Gbp => "GBP", Usd => "USD"]);
names!(CancellationReason, UnknownCancellationReason, "reason for a cancellation", [
    CustomerRequest => "customer_request",
    OutOfStock => "out_of_stock",
    PaymentOverdue => "payment_overdue",
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for currency in Currency::ALL {
            assert_eq!(serde_json::to_string(currency).unwrap(), format!("\"{currency}\""));
            assert_eq!(currency.as_str().parse(), Ok(*currency));
        }
        for reason in CancellationReason::ALL {
            assert_eq!(serde_json::to_string(reason).unwrap(), format!("\"{reason}\""));
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        let unknown = "eur".parse::<Currency>().unwrap_err();
        assert_eq!(unknown.to_string(), "\"eur\" is not one of EUR, GBP, USD");
    }
}
