//! Instances of functions: the production driver at work on a batch, while it may be slow, frozen or dead, and the requests
//! that it sends to the ledger and the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use consumer::{
    Attempt, BatchReport, Busy, CommitError, Conditions, Cost, FetchError, HOLDS_MAX, MessageId, Operation, Outcome,
    Plan, VisibilityChange, VisibilityError,
};
use domain::{Content, EVENT, Key, Need, State, Table};
use events::{Event, Timestamp};
use queue::ReceiptHandle;

use super::core::Core;
use super::deciders::Role;
use super::hazards::Hazard;
use super::lanes::{Held, VISIBILITY_TIMEOUT};
use super::sabotage::Slip;
use super::slot::Slot;
use crate::Flaw;

/// As in the templates.
pub(super) const FUNCTION_TIMEOUT: Duration = Duration::from_secs(30);
/// When a client gives up waiting for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// For how long an eventually consistent read may return what was there before, in milliseconds.
const STALE_MS: u64 = 1_000;

/// The number of an invocation.
pub(super) type InvocationId = u64;

/// Invocations under way.
#[derive(Debug, Default)]
pub(super) struct Instances {
    next: InvocationId,
    running: BTreeMap<InvocationId, Invocation>,
    starting: Vec<Start>,
    /// What stood under a key before its last write, and when that was.
    before: BTreeMap<Key, (Timestamp, domain::Row)>,
}

/// An invocation about to start.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) id: InvocationId,
    pub(super) role: Role,
    pub(super) batch: Vec<consumer::Delivery>,
    pub(super) deadline: Timestamp,
    /// How far the instance's clock is ahead, in milliseconds.
    pub(super) skew_ms: i64,
}

#[derive(Debug)]
struct Invocation {
    lane: usize,
    held: Vec<Held>,
    /// Whether the mapping still waits for the report.
    awaited: bool,
    frozen_until: Timestamp,
    /// When it last read anything.
    read_at: Timestamp,
}

/// What became of a commit on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Answered,
    Refused(Busy),
    AnswerLost,
    RequestLost,
    Late,
}

impl Core {
    /// Starts an invocation with a batch.
    pub(super) fn start(&mut self, lane: usize, batch: &[queue::Delivery]) {
        let id = self.instances.next;
        self.instances.next += 1;
        let held = batch.iter().map(Held::of).collect();
        let deliveries: Vec<consumer::Delivery> = batch.iter().filter_map(delivery).collect();
        let role = self.lanes[lane].role;
        self.note(|core| {
            let names: Vec<String> = batch.iter().map(|one| core.story_name(one.message.id)).collect();
            format!("invocation {id} of {} gets {}", role.queue(), names.join(", "))
        });
        // Within the twelve hours by which clocks may differ; most differ by little.
        let skew_ms = match self.random.u8(0..10) {
            0 => self.random.i64(-11 * 3_600_000..=11 * 3_600_000),
            1..=4 => self.random.i64(-5_000..=5_000),
            _ => 0,
        };
        let deadline = skewed(self.now + FUNCTION_TIMEOUT, skew_ms);
        let invocation = Invocation { lane, held, awaited: true, frozen_until: self.now, read_at: self.now };
        self.instances.running.insert(id, invocation);
        self.instances.starting.push(Start { id, role, batch: deliveries, deadline, skew_ms });
        self.after(FUNCTION_TIMEOUT, move |core| core.give_up(id));
    }

    /// Returns the invocations that are to be started.
    pub(super) fn take_starting(&mut self) -> Vec<Start> {
        std::mem::take(&mut self.instances.starting)
    }

    /// Returns whether an invocation is alive.
    pub(super) fn is_alive(&self, id: InvocationId) -> bool {
        self.instances.running.contains_key(&id)
    }

    /// Returns whether an invocation's code runs now.
    pub(super) fn is_awake(&self, id: InvocationId) -> bool {
        self.instances.running.get(&id).is_some_and(|invocation| invocation.frozen_until <= self.now)
    }

    /// Takes the report of an invocation that has come to its end.
    pub(super) fn report(&mut self, id: InvocationId, report: &BatchReport) {
        let Some(invocation) = self.instances.running.remove(&id) else { return };
        for (held, record) in invocation.held.iter().zip(&report.records) {
            let now = self.now;
            self.note(|core| format!("invocation {id}: {} is {:?}", core.story_name(held.message), record.outcome));
            if let Some(story) = self.history.messages.get_mut(&held.message) {
                story.outcomes.push((now, record.outcome.clone()));
            }
        }
        self.history.efforts.push((report.records.len(), report.cost.calls));
        self.note_groups(&invocation.held, report);
        if !invocation.awaited {
            self.note(|_| format!("invocation {id} ends, and nobody waits for it"));
        } else if self.strikes(Hazard::ReportLost) {
            self.note(|_| format!("invocation {id} dies before its report arrives"));
            self.ended(invocation.lane, &invocation.held, None);
        } else {
            self.ended(invocation.lane, &invocation.held, Some(report));
        }
    }

    /// Looks whether a record was done although one before it in its group went back and held the others.
    fn note_groups(&mut self, held: &[Held], report: &BatchReport) {
        let outcomes: Vec<_> = held.iter().zip(&report.records).filter(|(held, _)| held.group.is_some()).collect();
        for (position, (held, record)) in outcomes.iter().enumerate() {
            let before = outcomes[..position].iter().filter(|(before, _)| before.group == held.group);
            let held_back = before
                .into_iter()
                .any(|(before, record)| before.receive_count < HOLDS_MAX && goes_back(&record.outcome));
            if held_back && record.outcome.acknowledges() {
                self.history.overtaken.push(held.message);
            }
        }
    }

    /// Ends the wait for an invocation. One that is frozen may still wake up, and go on where it was.
    fn give_up(&mut self, id: InvocationId) {
        let now = self.now;
        let Some(invocation) = self.instances.running.get_mut(&id) else { return };
        if !std::mem::replace(&mut invocation.awaited, false) {
            return;
        }
        let (lane, frozen) = (invocation.lane, invocation.frozen_until > now);
        let held = invocation.held.clone();
        self.note(|_| format!("invocation {id} has taken too long"));
        if !frozen {
            self.instances.running.remove(&id);
        }
        self.ended(lane, &held, None);
    }

    fn kill(&mut self, id: InvocationId) {
        let Some(invocation) = self.instances.running.remove(&id) else { return };
        self.note(|_| format!("invocation {id} dies"));
        if invocation.awaited {
            self.after(Duration::from_millis(10), move |core| core.ended(invocation.lane, &invocation.held, None));
        }
    }

    fn freeze(&mut self, id: InvocationId) {
        let beyond_visibility = VISIBILITY_TIMEOUT.as_millis() as u64 * 2;
        let longest = if self.random.bool() { beyond_visibility } else { 20_000 };
        let until = self.now + self.millis(1_000, longest);
        self.note(|_| format!("invocation {id} stands still until {until}"));
        if let Some(invocation) = self.instances.running.get_mut(&id) {
            invocation.frozen_until = until;
        }
        // Nothing but the passing of time: whoever is awake by then is polled.
        self.at(until, |_| {});
    }

    /// Whether a request gets on its way, and what becomes of its sender.
    pub(super) fn sends(&mut self, id: InvocationId) -> bool {
        if self.strikes(Hazard::CrashBeforeRequest) {
            self.kill(id);
            return false;
        }
        if self.strikes(Hazard::CrashAfterRequest) {
            self.kill(id);
        } else if self.strikes(Hazard::Frozen) {
            self.freeze(id);
        }
        true
    }

    pub(super) fn latency(&mut self) -> Duration {
        if self.strikes(Hazard::Slow) { self.millis(500, 9_000) } else { self.millis(1, 20) }
    }

    /// Reads rows, all at once or in parts at different moments.
    pub(super) fn fetch(
        &mut self,
        id: InvocationId,
        needs: &BTreeSet<Need>,
        slot: Slot<Result<(State, Cost), FetchError>>,
    ) {
        if !self.sends(id) {
            return;
        }
        let latency = self.latency();
        if self.now < self.outage_until || self.strikes(Hazard::Unreadable) {
            self.after(latency, move |_| slot.fill(Err(FetchError::Unavailable("the table does not answer".into()))));
            return;
        }
        let mut needs: Vec<Need> = needs.iter().cloned().collect();
        let unprocessed = if self.strikes(Hazard::Unprocessed) {
            let processed = self.random.usize(0..needs.len());
            self.random.shuffle(&mut needs);
            needs.split_off(processed)
        } else {
            Vec::new()
        };
        self.after(latency, move |core| {
            core.note_reading(id);
            core.read(needs, unprocessed, (State::default(), Cost::default()), slot);
        });
    }

    /// Notes that an invocation reads now. What it reads in a second part is newer still.
    fn note_reading(&mut self, id: InvocationId) {
        if let Some(invocation) = self.instances.running.get_mut(&id) {
            invocation.read_at = self.now;
        }
    }

    /// Returns when an invocation last read anything.
    pub(super) fn last_read(&self, id: InvocationId) -> Timestamp {
        self.instances.running.get(&id).map_or(self.now, |invocation| invocation.read_at)
    }

    fn read(
        &mut self,
        needs: Vec<Need>,
        unprocessed: Vec<Need>,
        (mut state, mut cost): (State, Cost),
        slot: Slot<Result<(State, Cost), FetchError>>,
    ) {
        cost.calls += 1;
        cost.read_units += needs.len() as f64;
        for need in needs {
            match need {
                Need::Key(key) => {
                    let row = self.row(&key);
                    state.insert(key, row);
                }
                Need::Range(range) => {
                    let rows = self.ledger.range(&range);
                    state.insert_range(range, rows);
                }
            }
        }
        if unprocessed.is_empty() {
            let latency = self.latency();
            self.after(latency, move |_| slot.fill(Ok((state, cost))));
        } else if self.slips(Slip::UnprocessedTakenForAbsent) {
            for need in unprocessed {
                match need {
                    Need::Key(key) => state.insert(key, domain::Row::default()),
                    Need::Range(range) => state.insert_range(range, Vec::new()),
                }
            }
            self.after(Duration::from_millis(1), move |_| slot.fill(Ok((state, cost))));
        } else {
            let latency = self.latency();
            self.after(latency, move |core| core.read(unprocessed, Vec::new(), (state, cost), slot));
        }
    }

    fn row(&mut self, key: &Key) -> domain::Row {
        let stale = match self.instances.before.get(key) {
            Some((written_at, row)) if self.now.since(*written_at) < Duration::from_millis(STALE_MS) => {
                Some(row.clone())
            }
            Some(_) | None => None,
        };
        match stale {
            Some(row) if self.slips(Slip::EventualReads) && self.random.bool() => row,
            Some(_) | None => self.ledger.row(key),
        }
    }

    /// Remembers what stands under a key that is about to be written, for reads that are behind.
    pub(super) fn remember(&mut self, key: &Key) {
        let row = self.ledger.row(key);
        self.instances.before.insert(key.clone(), (self.now, row));
    }

    /// Sends a plan to the ledger.
    pub(super) fn commit(
        &mut self,
        id: InvocationId,
        plan: Plan,
        attempt: Attempt,
        slot: Slot<Result<Cost, CommitError>>,
    ) {
        if !self.sends(id) {
            return;
        }
        let (there, back) = (self.latency(), self.latency());
        let no_answer = |slot: Slot<Result<Cost, CommitError>>| move |_: &mut Self| slot.fill(busy(Busy::NoAnswer));
        match self.way() {
            Way::Refused(reason) => self.after(there + back, move |_| slot.fill(busy(reason))),
            Way::RequestLost => self.after(ANSWER_TIMEOUT, no_answer(slot)),
            Way::AnswerLost => {
                self.after(there, move |core| drop(core.carry_out(id, &plan, attempt)));
                self.after(there.max(ANSWER_TIMEOUT), no_answer(slot));
            }
            Way::Late => {
                self.after(ANSWER_TIMEOUT, no_answer(slot));
                let late = ANSWER_TIMEOUT + self.millis(0, 60_000);
                self.after(late, move |core| drop(core.carry_out(id, &plan, attempt)));
            }
            Way::Answered => self.after(there, move |core| {
                let answer = core.carry_out(id, &plan, attempt);
                core.after(back, move |core| {
                    // A claim by a write of its own waits for the answer to the first write, as whoever writes it would.
                    let claims_apart = core.ledger.has(Flaw::ClaimsInSecondWrite);
                    if claims_apart && core.is_alive(id) && answer.is_ok() {
                        core.ledger.claim(&plan);
                    }
                    slot.fill(answer);
                });
            }),
        }
    }

    fn way(&mut self) -> Way {
        if self.now < self.outage_until {
            return Way::Refused(Busy::Throttled);
        }
        let ways = [
            (Hazard::Throttled, Way::Refused(Busy::Throttled)),
            (Hazard::Conflict, Way::Refused(Busy::Conflict)),
            (Hazard::AnswerLost, Way::AnswerLost),
            (Hazard::RequestLost, Way::RequestLost),
            (Hazard::LateEffect, Way::Late),
        ];
        let struck = ways.into_iter().find(|(hazard, _)| self.strikes(*hazard));
        struck.map_or(Way::Answered, |(_, way)| way)
    }

    /// Lets a plan take effect, unless its conditions refuse it.
    fn carry_out(&mut self, id: InvocationId, plan: &Plan, attempt: Attempt) -> Result<Cost, CommitError> {
        let written: Vec<Key> = plan.operations().map(|(key, _)| key.clone()).collect();
        let commits = self.ledger.commits();
        let before: Vec<(Key, domain::Row)> = written.iter().map(|key| (key.clone(), self.ledger.row(key))).collect();
        let answer = self.ledger.carry_out(plan, attempt);
        self.note(|_| {
            let keys: Vec<String> = written.iter().map(Key::to_string).collect();
            format!("invocation {id} commits {}: {}", keys.join(", "), told(&answer))
        });
        if self.ledger.commits() > commits {
            for (key, row) in before {
                let replaced = matches!(plan.operation(&key), Some(Operation::Replace { .. }));
                if replaced && row.attributes.is_some() && row.attributes == self.ledger.row(&key).attributes {
                    self.history.idle.push(key.clone());
                }
                self.history.created.entry(key.clone()).or_insert(self.now);
                self.instances.before.insert(key, (self.now, row));
            }
            for (key, operation) in plan.operations() {
                if let Operation::Replace { conditions: Conditions { newer: Some(version), .. }, .. } = operation {
                    *self.history.source_versions.entry((key.clone(), *version)).or_default() += 1;
                }
            }
            for claim in plan.claims() {
                let known = self.history.claims.entry((claim.consumer, claim.event_id));
                known.or_insert_with(|| (claim.clone(), 0)).1 += 1;
            }
            self.publish_written(plan);
        }
        answer
    }

    /// Publishes the events of the records that a plan has written, as the stream does: those that are new.
    fn publish_written(&mut self, plan: &Plan) {
        for (key, operation) in plan.operations().filter(|(key, _)| key.table == Table::Records) {
            let attributes = match operation {
                Operation::Create(attributes) | Operation::Replace { content: Content::Row(attributes), .. } => {
                    attributes
                }
                Operation::Replace { content: Content::Tombstone, .. } | Operation::Add(_) | Operation::Check(_) => {
                    continue;
                }
            };
            let event = attributes.get(EVENT).map(|event| Event::decode(event.to_string().as_bytes()));
            match event {
                Some(Ok(event)) if self.history.event(event.event_id).is_none() => self.publish(event),
                Some(Err(error)) => self.note(|_| format!("{key} carries no event: {error}")),
                Some(Ok(_)) | None => {}
            }
        }
    }

    /// Asks the queue to change visibilities.
    pub(super) fn change(
        &mut self,
        id: InvocationId,
        changes: Vec<VisibilityChange>,
        slot: Slot<Result<(), VisibilityError>>,
    ) {
        if !self.sends(id) {
            return;
        }
        let latency = self.latency();
        let lost = self.strikes(Hazard::VisibilityLost);
        let lane = self.instances.running.get(&id).map(|invocation| invocation.lane);
        self.after(latency, move |core| {
            let mut failed = 0;
            for change in &changes {
                let receipt = ReceiptHandle::from(change.receipt_handle.as_str());
                let changed = !lost && lane.is_some_and(|lane| core.change_visibility(lane, &receipt, change.timeout));
                failed += usize::from(!changed);
            }
            let refused = || VisibilityError { failed, source: "the queue did not change them".into() };
            slot.fill(if failed == 0 { Ok(()) } else { Err(refused()) });
        });
    }
}

/// Returns what an instance's clock shows.
pub(super) fn skewed(moment: Timestamp, skew_ms: i64) -> Timestamp {
    Timestamp::from_millis(moment.as_millis() + skew_ms)
}

fn delivery(delivery: &queue::Delivery) -> Option<consumer::Delivery> {
    Some(consumer::Delivery {
        message_id: MessageId::try_from(delivery.message.id.to_string()).ok()?,
        receipt_handle: Some(delivery.receipt.to_string()),
        receive_count: delivery.receive_count,
        group: delivery.message.group_id.clone(),
        body: delivery.message.body.clone().into_bytes(),
    })
}

fn goes_back(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Retry(_) | Outcome::Waiting(_))
}

fn busy(busy: Busy) -> Result<Cost, CommitError> {
    Err(CommitError::Busy { busy, source: None })
}

fn told(answer: &Result<Cost, CommitError>) -> String {
    match answer {
        Ok(_) => "done".to_owned(),
        Err(CommitError::Refused { refusals, .. }) => format!("refused for {refusals:?}"),
        Err(error @ (CommitError::Busy { .. } | CommitError::Invalid { .. })) => error.to_string(),
    }
}
