//! Generated orders: seeded, with the mix of a shop. Most are paid, shipped and delivered; some are paid in parts, given up or
//! paid back; some callers ask for what is not possible, and some send a command again.

use fastrand::Rng;

use super::account::{Account, Action, Item};

/// Of a hundred orders, how many have which life after they were placed.
const LIVES: [(u32, Life); 9] = [
    (30, Life::Delivered),
    (8, Life::PaidInParts),
    (10, Life::LeftUnpaid),
    (10, Life::LeftPaid),
    (8, Life::LeftShipped),
    (12, Life::CancelledUnpaid),
    (6, Life::CancelledPaidInPart),
    (8, Life::CancelledPaid),
    (8, Life::SentBack),
];
/// Share of commands before which somebody asks for something else, which may not be possible.
const STRAY: f64 = 0.15;
/// Share of commands after which an earlier one of the order comes again.
const AGAIN: f64 = 0.1;
/// Time between two orders, in ticks. Only the order of ticks matters.
const ORDER_TICKS: u64 = 10;
/// Time between two commands of an order, in ticks, at most: some two hundred orders are under way at once.
const STEP_TICKS_MAX: u64 = 500;
const CURRENCIES: [&str; 3] = ["EUR", "GBP", "USD"];
const SKUS: [&str; 5] = ["board-walnut", "board-vinyl", "clock-digital", "pieces-staunton", "book-endgames"];

#[derive(Debug, Clone, Copy)]
enum Life {
    Delivered,
    PaidInParts,
    LeftUnpaid,
    LeftPaid,
    LeftShipped,
    CancelledUnpaid,
    CancelledPaidInPart,
    CancelledPaid,
    SentBack,
}

/// What the answer to a command has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// The event of this version, now or before.
    Event(u64),
    /// A refusal.
    Refused,
    /// Neither, which is never what it has to be.
    Nothing,
}

/// A command on an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Which order, by its place among the accounts.
    pub(super) order: usize,
    pub(super) command_id: String,
    pub(super) action: Action,
    pub(super) expected: Expected,
    tick: u64,
}

/// Commands in the order of their sending, and what they come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stories {
    pub(super) accounts: Vec<Account>,
    pub(super) steps: Vec<Step>,
}

/// Generates orders of some players.
pub(super) fn stories(orders: u32, players: u32, seed: u64) -> Stories {
    let mut rng = Rng::with_seed(seed);
    let mut stories = Stories { accounts: Vec::new(), steps: Vec::new() };
    for number in 0..orders as usize {
        let account = order(&mut rng, number, players, seed);
        let mut story = Story { account, steps: Vec::new(), number, tick: number as u64 * ORDER_TICKS };
        story.tell(&mut rng);
        stories.accounts.push(story.account);
        stories.steps.extend(story.steps);
    }
    // Stable: commands of one order have rising ticks.
    stories.steps.sort_by_key(|step| step.tick);
    stories
}

fn order(rng: &mut Rng, number: usize, players: u32, seed: u64) -> Account {
    let item = |rng: &mut Rng| Item {
        sku: SKUS[rng.usize(..SKUS.len())].to_owned(),
        quantity: rng.u64(1..=3),
        unit_price_cents: rng.u64(499..=9_999),
    };
    Account {
        order_id: format!("order-{seed}-{number}"),
        player_id: format!("customer-{}", rng.u32(..players)),
        currency: CURRENCIES[rng.usize(..CURRENCIES.len())],
        items: (0..rng.usize(1..=4)).map(|_| item(rng)).collect(),
        status: None,
        paid_cents: 0,
        refunded_cents: 0,
        events: Vec::new(),
    }
}

struct Story {
    account: Account,
    steps: Vec<Step>,
    number: usize,
    tick: u64,
}

impl Story {
    fn tell(&mut self, rng: &mut Rng) {
        self.ask(rng, Action::Place);
        for action in self.life(rng) {
            if rng.f64() < STRAY {
                let stray = self.stray(rng);
                self.ask(rng, stray);
            }
            // What was asked in between may have changed what is possible; then the shop refuses.
            self.ask(rng, action);
            if rng.f64() < AGAIN {
                self.send_again(rng);
            }
        }
        self.send_again_sometimes(rng);
    }

    fn life(&self, rng: &mut Rng) -> Vec<Action> {
        let mut share = rng.u32(0..LIVES.iter().map(|(share, _)| share).sum());
        let mut life = Life::Delivered;
        for (its_share, candidate) in LIVES {
            if share < its_share {
                life = candidate;
                break;
            }
            share -= its_share;
        }
        let total = self.account.total_cents();
        let pay = |amount_cents| Action::Pay { amount_cents };
        let part = rng.u64(1..total);
        match life {
            Life::Delivered => vec![pay(total), Action::Ship, Action::Deliver],
            Life::PaidInParts => vec![pay(part), pay(total - part), Action::Ship, Action::Deliver],
            Life::LeftUnpaid => Vec::new(),
            Life::LeftPaid => vec![pay(total)],
            Life::LeftShipped => vec![pay(total), Action::Ship],
            Life::CancelledUnpaid => vec![Action::Cancel],
            Life::CancelledPaidInPart => vec![pay(part), Action::Cancel, Action::Refund],
            Life::CancelledPaid => vec![pay(total), Action::Cancel, Action::Refund],
            Life::SentBack => vec![pay(total), Action::Ship, Action::Deliver, Action::Refund],
        }
    }

    /// Something that somebody asks for at the wrong time, or for too much.
    fn stray(&self, rng: &mut Rng) -> Action {
        let too_much = Action::Pay { amount_cents: self.account.due_cents() + 1 };
        let stray = [too_much, Action::Place, Action::Ship, Action::Deliver, Action::Refund, Action::Cancel];
        // Cancelling is nearly always possible and would end most orders.
        let not_cancelled = stray.len() - usize::from(rng.u32(..10) > 0);
        stray[rng.usize(..not_cancelled)].clone()
    }

    fn ask(&mut self, rng: &mut Rng, action: Action) {
        let expected = match self.account.take(&action) {
            true => Expected::Event(self.account.version()),
            false => Expected::Refused,
        };
        let command_id = format!("{}-command-{}", self.account.order_id, self.steps.len());
        self.push(rng, Step { order: self.number, command_id, action, expected, tick: 0 });
    }

    fn send_again(&mut self, rng: &mut Rng) {
        let accepted: Vec<&Step> =
            self.steps.iter().filter(|step| matches!(step.expected, Expected::Event(_))).collect();
        let again = accepted[rng.usize(..accepted.len())].clone();
        self.push(rng, again);
    }

    fn send_again_sometimes(&mut self, rng: &mut Rng) {
        if rng.f64() < AGAIN {
            self.send_again(rng);
        }
    }

    fn push(&mut self, rng: &mut Rng, step: Step) {
        self.tick += rng.u64(1..=STEP_TICKS_MAX);
        self.steps.push(Step { tick: self.tick, ..step });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::account::Status;
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_orders() {
        assert_eq!(stories(200, 20, 7), stories(200, 20, 7));
        assert_ne!(stories(200, 20, 7), stories(200, 20, 8));
    }

    #[test]
    fn all_kinds_of_lives_and_of_answers_are_there() {
        let stories = stories(1_000, 50, 1);
        for status in
            [Status::Placed, Status::Paid, Status::Shipped, Status::Delivered, Status::Cancelled, Status::Refunded]
        {
            let orders = stories.accounts.iter().filter(|account| account.status == Some(status)).count();
            assert!(orders > 20, "{status:?}: {orders}");
        }
        let refused = stories.steps.iter().filter(|step| step.expected == Expected::Refused).count();
        assert!(refused > stories.steps.len() / 20, "{refused} of {} are refused", stories.steps.len());
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        for step in &stories.steps {
            *ids.entry(&step.command_id).or_default() += 1;
        }
        assert!(ids.values().filter(|sent| **sent > 1).count() > 100);
    }

    #[test]
    fn a_command_that_comes_again_has_the_answer_that_it_had() {
        let stories = stories(500, 50, 2);
        let mut known: BTreeMap<&str, &Step> = BTreeMap::new();
        for step in &stories.steps {
            if let Some(before) = known.insert(&step.command_id, step) {
                assert_eq!((&before.action, before.expected, before.order), (&step.action, step.expected, step.order));
            }
        }
    }

    #[test]
    fn accepted_commands_of_an_order_make_its_versions_in_order() {
        let stories = stories(300, 50, 3);
        let mut versions: BTreeMap<usize, u64> = BTreeMap::new();
        for step in &stories.steps {
            let version = versions.entry(step.order).or_default();
            if let Expected::Event(expected) = step.expected {
                assert!(expected <= *version + 1);
                *version = (*version).max(expected);
            }
        }
        let told: Vec<u64> = versions.into_values().collect();
        assert_eq!(told, stories.accounts.iter().map(Account::version).collect::<Vec<_>>());
    }
}
