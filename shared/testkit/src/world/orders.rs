//! Orders of the shop: commands append events by the production decisions, and some events come into the store only after
//! those behind them. What is withheld is known to the world alone.

use std::collections::BTreeMap;

use domain::Row;
use domain::orders::{EventRecord, Gap, Order, OrderRequest, decide};
use events::{CommandId, Consumer, Currency, Event, OrderId, Payload};
use queue::MessageId;

use super::core::Core;
use super::deciders::Role;
use super::hazards::Hazard;
use super::history::Body;
use crate::sample;

/// Events of one order that come into the store in one command of a client, at most: enough for snapshots.
const PAYMENTS_MAX: u32 = 130;
/// For how long an event is withheld, at most: longer than a gap is waited for.
const WITHHELD_MS_MAX: u64 = 180_000;

/// The orders as they are in truth, withheld events included.
#[derive(Debug, Default)]
pub(super) struct Shop {
    pub(super) orders: BTreeMap<OrderId, Order>,
}

impl Core {
    /// Carries out a command on an order, if the order allows it.
    pub(super) fn order(&mut self, order_id: &OrderId, request: &OrderRequest) {
        let order = self.shop.orders.get(order_id).cloned();
        let Ok(decision) = decide(request, order.as_ref()) else { return };
        let event = self.event(order_id.to_string(), decision.version, Payload::Order(decision.event));
        let mut order = order;
        if Order::follow(&mut order, order_id, &event).is_err() {
            self.history.refused.push(order_id.to_string());
            return;
        }
        self.shop.orders.extend(order.map(|order| (order_id.clone(), order)));
        if self.strikes(Hazard::EventWithheld) {
            let delay = self.millis(100, WITHHELD_MS_MAX);
            self.note(|_| format!("{order_id} event {} is withheld for {delay:?}", event.version));
            self.after(delay, move |core| core.append(&event));
        } else {
            self.append(&event);
        }
    }

    /// Pays an order cent by cent, so that it has more events than a snapshot covers.
    pub(super) fn pay_by_cents(&mut self, order_id: &OrderId) {
        for _ in 0..self.random.u32(1..=PAYMENTS_MAX) {
            self.order(order_id, &OrderRequest::Pay { amount_cents: 1 });
        }
    }

    /// Writes an event into the store, which publishes it.
    fn append(&mut self, event: &Event) {
        let (Ok(order_id), Ok(command_id)) =
            (event.aggregate_id.parse::<OrderId>(), format!("command-{}", event.version).parse::<CommandId>())
        else {
            return;
        };
        let key = EventRecord::key(&order_id, event.version);
        let record = EventRecord { event: event.clone(), inserted_at: self.now, command_id };
        let Ok(attributes) = record.attributes(&key) else { return };
        if self.ledger.row(&key) != Row::default() {
            self.history.refused.push(key.to_string());
            return;
        }
        self.ledger.put(key, attributes);
        self.publish(event.clone());
    }

    /// Draws what an order begins with.
    pub(super) fn placement(&mut self, players: u32) -> OrderRequest {
        let unit_price_cents = if self.random.bool() { 200 } else { 1 + self.random.u32(0..300) };
        OrderRequest::Place {
            player_id: sample::player_id(self.random.u32(0..players)),
            currency: Currency::Eur,
            items: sample::order_items(unit_price_cents),
        }
    }

    /// Draws a command on an order, legal or not.
    pub(super) fn order_request(&mut self, players: u32) -> OrderRequest {
        match self.random.u8(0..8) {
            0 => self.placement(players),
            1..=3 => OrderRequest::Pay { amount_cents: 1 },
            4 => OrderRequest::Pay { amount_cents: 200 },
            5 => OrderRequest::Ship { tracking_code: sample::tracking_code() },
            6 => OrderRequest::Deliver,
            _ => OrderRequest::Refund,
        }
    }

    /// Looks whether a wake-up was acknowledged too early.
    pub(super) fn note_skipped(&mut self, message: MessageId) {
        let Some(story) = self.history.messages.get(&message) else { return };
        let Body::Event(event_id) = story.body else { return };
        if story.role != Role::Production(Consumer::OrderChanged) {
            return;
        }
        let Some(event) = self.history.event(event_id) else { return };
        let Payload::Order(_) = event.payload else { return };
        let Ok(order_id) = event.aggregate_id.parse::<OrderId>() else { return };
        let key = Order::view_key(&order_id);
        let viewed = self.ledger.row(&key).decode::<Order>(&key).ok().flatten().map_or(0, |order| order.version);
        let gap_key = Gap::key(&order_id);
        let gap = self.ledger.row(&gap_key).decode::<Gap>(&gap_key).ok().flatten();
        // Whoever has put it on the list tells of it. Others may be done before, as long as it is there.
        let told = gap.is_some_and(|gap| gap.listed_by != event_id || self.history.told_of(event_id));
        if viewed < event.version && !told {
            self.history.skipped.push(message);
        }
    }
}
