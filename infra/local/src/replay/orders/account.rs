//! What the commands on an order come to: an account of its own, which shares no code with the shop.

/// Where an order is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Placed,
    Paid,
    Shipped,
    Delivered,
    Cancelled,
    Refunded,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Place,
    Pay { amount_cents: u64 },
    Ship,
    Deliver,
    Cancel,
    Refund,
}

/// A line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) sku: String,
    pub(super) quantity: u64,
    pub(super) unit_price_cents: u64,
}

/// An order, and what has happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) order_id: String,
    pub(super) player_id: String,
    pub(super) currency: &'static str,
    pub(super) items: Vec<Item>,
    pub(super) status: Option<Status>,
    pub(super) paid_cents: u64,
    pub(super) refunded_cents: u64,
    /// The types of its events, the first of which has version 1.
    pub(super) events: Vec<&'static str>,
}

impl Status {
    /// Returns the status as the shop writes it.
    pub(super) const fn as_str(self) -> &'static str {
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

impl Account {
    /// Returns the version of the last event; 0 if there is none.
    pub(super) fn version(&self) -> u64 {
        self.events.len() as u64
    }

    /// Returns what the order costs.
    pub(super) fn total_cents(&self) -> u64 {
        self.items.iter().map(|item| item.quantity * item.unit_price_cents).sum()
    }

    /// Returns what is still to be paid.
    pub(super) fn due_cents(&self) -> u64 {
        self.total_cents() - self.paid_cents
    }

    /// Does what is asked for, if the order allows it, and tells whether it did.
    pub(super) fn take(&mut self, action: &Action) -> bool {
        let due_cents = self.due_cents();
        let (status, event) = match (self.status, action) {
            (None, Action::Place) => (Status::Placed, "order_placed"),
            (Some(Status::Placed), Action::Pay { amount_cents }) if (1..=due_cents).contains(amount_cents) => {
                self.paid_cents += amount_cents;
                (if *amount_cents == due_cents { Status::Paid } else { Status::Placed }, "order_paid")
            }
            (Some(Status::Placed | Status::Paid), Action::Cancel) => (Status::Cancelled, "order_cancelled"),
            (Some(Status::Paid), Action::Ship) => (Status::Shipped, "order_shipped"),
            (Some(Status::Shipped), Action::Deliver) => (Status::Delivered, "order_delivered"),
            (Some(Status::Delivered | Status::Cancelled), Action::Refund) if self.paid_cents > 0 => {
                self.refunded_cents = self.paid_cents;
                (Status::Refunded, "order_refunded")
            }
            (
                _,
                Action::Place | Action::Pay { .. } | Action::Ship | Action::Deliver | Action::Cancel | Action::Refund,
            ) => {
                return false;
            }
        };
        self.status = Some(status);
        self.events.push(event);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actions: &[(Action, bool)], status: Status, paid_cents: u64, refunded_cents: u64) {
        let item = Item { sku: "board".to_owned(), quantity: 2, unit_price_cents: 50 };
        let mut account = Account {
            order_id: "o".to_owned(),
            player_id: "p".to_owned(),
            currency: "EUR",
            items: vec![item],
            status: None,
            paid_cents: 0,
            refunded_cents: 0,
            events: Vec::new(),
        };
        for (action, accepted) in actions {
            assert_eq!(account.take(action), *accepted, "{action:?} {account:?}");
        }
        let taken = actions.iter().filter(|(_, accepted)| *accepted).count();
        assert_eq!((account.status, account.version()), (Some(status), taken as u64));
        assert_eq!((account.paid_cents, account.refunded_cents), (paid_cents, refunded_cents));
    }

    #[test]
    fn an_order_goes_through_its_life_and_refuses_what_is_out_of_turn() {
        let pay = |amount_cents| Action::Pay { amount_cents };
        check(
            &[
                (Action::Refund, false),
                (Action::Place, true),
                (Action::Place, false),
                (Action::Ship, false),
                (pay(101), false),
                (pay(40), true),
                (pay(60), true),
                (pay(1), false),
                (Action::Deliver, false),
                (Action::Ship, true),
                (Action::Cancel, false),
                (Action::Deliver, true),
                (Action::Refund, true),
                (Action::Refund, false),
            ],
            Status::Refunded,
            100,
            100,
        );
        check(&[(Action::Place, true), (Action::Cancel, true), (Action::Refund, false)], Status::Cancelled, 0, 0);
        check(
            &[(Action::Place, true), (pay(30), true), (Action::Cancel, true), (Action::Refund, true)],
            Status::Refunded,
            30,
            30,
        );
    }
}
