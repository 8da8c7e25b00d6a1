//! Carrying out packs: concurrently where they share nothing, again with the same token where the ledger was busy, and read
//! reason by reason where it refused.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::Key;
use events::Timestamp;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream;

use crate::delivery::Outcome;
use crate::draft::Draft;
use crate::group::Pack;
use crate::plan::{Operation, Plan};
use crate::ports::{Attempt, Busy, Clock, CommitError, Cost, Ledger, Random, Refusal};
use crate::wave::{Decided, Ending, Record, with_sources};
use crate::weakness::{Weakness, forced, split, weakened};

/// Plain conditional writes under way at the same time, at most.
const LONE_WRITES_AT_ONCE: usize = 16;
/// Transactions under way at the same time, at most. As many as the shards of a hot counter, each on its own.
const LANES: usize = 4;
/// How often the very same request is sent again.
const RESENDS_MAX: u32 = 6;
/// Upper bound of the first wait before sending again; it doubles each time.
const RESEND_WAIT_MIN: Duration = Duration::from_millis(25);
/// Rounds of deciding anew before a refused transaction is made smaller.
const ROUNDS_AT_FULL_SIZE: u32 = 4;

/// What became of the records of a wave's packs.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// Records with their outcome.
    pub(crate) settled: Vec<(Record, Outcome)>,
    /// Records to be decided again.
    pub(crate) again: Vec<Record>,
    /// What the ledger spent.
    pub(crate) cost: Cost,
}

/// Commits all packs.
pub(crate) async fn commit<L: Ledger, E: Clock + Random>(
    ledger: &L,
    environment: &E,
    packs: Vec<Pack>,
    deadline: Timestamp,
) -> Commits {
    let (lone, transactions): (Vec<Pack>, Vec<Pack>) = packs.into_iter().partition(|pack| pack.draft.is_lone_write());
    let first_shard = environment.bits() as u8;
    let shared = Shared { ledger, environment, deadline };
    let lanes = stream::iter(lanes(transactions).into_iter().enumerate().map(|(lane, packs)| {
        let shard = first_shard.wrapping_add(lane as u8);
        let shared = &shared;
        async move {
            let mut commits = Vec::new();
            for pack in packs {
                commits.push(shared.carry_out(pack, shard).await);
            }
            commits
        }
    }))
    .buffer_unordered(LANES);
    let singles = stream::iter(lone.into_iter().map(|pack| {
        let shared = &shared;
        async move { vec![shared.carry_out(pack, 0).await] }
    }))
    .buffer_unordered(LONE_WRITES_AT_ONCE);
    let mut all = Commits::default();
    for part in stream::select(lanes, singles).collect::<Vec<_>>().await.into_iter().flatten() {
        all.settled.extend(part.settled);
        all.again.extend(part.again);
        all.cost += part.cost;
    }
    all
}

/// Distributes transactions over lanes, so that two which share an item are in one lane and do not meet.
fn lanes(packs: Vec<Pack>) -> Vec<Vec<Pack>> {
    let mut lanes: Vec<(BTreeSet<Key>, Vec<Pack>)> = (0..LANES).map(|_| Default::default()).collect();
    for pack in packs {
        let keys: BTreeSet<Key> = meeting_places(&pack).cloned().collect();
        let emptiest = (0..LANES).min_by_key(|lane| lanes[*lane].1.len()).unwrap_or(0);
        let lane = lanes.iter().position(|(taken, _)| !taken.is_disjoint(&keys)).unwrap_or(emptiest);
        lanes[lane].0.extend(keys);
        lanes[lane].1.push(pack);
    }
    lanes.into_iter().map(|(_, packs)| packs).collect()
}

/// The items that two packs can have in common: counters on one item, and checks. A spread counter has a shard a lane.
fn meeting_places(pack: &Pack) -> impl Iterator<Item = &Key> {
    let counters = pack.draft.targets().filter(|(_, spread)| usize::from(spread.shards()) < LANES).map(|(key, _)| key);
    counters.chain(pack.draft.checked_rows())
}

struct Shared<'a, L, E> {
    ledger: &'a L,
    environment: &'a E,
    deadline: Timestamp,
}

impl<L: Ledger, E: Clock + Random> Shared<'_, L, E> {
    async fn carry_out(&self, pack: Pack, shard: u8) -> Commits {
        let token = u128::from(self.environment.bits()) << 64 | u128::from(self.environment.bits());
        let Pack { draft, members } = pack;
        let plan = draft.seal(token, shard);
        // Deltas can cancel out to nothing, as when a player goes up and down again within the batch.
        if plan.items() == 0 {
            return settled(members, Cost::default());
        }
        let mut cost = Cost::default();
        match self.carried_out(&plan, &mut cost).await {
            Ok(()) => settled(members, cost),
            Err(CommitError::Refused { refusals, cost: refused }) => {
                cost += refused;
                refused_members(members, &refusals, &plan, cost)
            }
            Err(error @ CommitError::Busy { .. }) => {
                let reason = with_sources(&error);
                let settled =
                    members.into_iter().map(|member| (member.record, Outcome::Retry(reason.clone()))).collect();
                Commits { settled, again: Vec::new(), cost }
            }
            Err(CommitError::Invalid { reason }) => invalid_members(members, &reason, cost),
        }
    }

    /// Sends a plan; where a test has broken this step on purpose, in that broken way.
    async fn carried_out(&self, plan: &Plan, cost: &mut Cost) -> Result<(), CommitError> {
        if weakened(Weakness::GroupSplit) {
            for part in split(plan) {
                self.send(&part, cost).await?;
            }
            return Ok(());
        }
        match self.send(plan, cost).await {
            Err(CommitError::Refused { .. }) if weakened(Weakness::RefusalTakenForDone) => Ok(()),
            Err(CommitError::Refused { .. }) if weakened(Weakness::RefusedDecisionForced) => {
                self.send(&forced(plan), cost).await
            }
            Err(CommitError::Busy { .. }) if weakened(Weakness::BusyTakenForDone) => Ok(()),
            sent => sent,
        }
    }

    /// Sends a plan until there is an answer that is more than busy, or time or patience ends.
    async fn send(&self, plan: &Plan, cost: &mut Cost) -> Result<(), CommitError> {
        let request = self.ledger.prepare(plan)?;
        let mut attempt = Attempt::First;
        let mut resends = 0;
        loop {
            let answer = self.before_deadline(self.ledger.commit(&request, attempt)).await;
            let answer = answer.unwrap_or(Err(CommitError::Busy { busy: Busy::NoAnswer, source: None }));
            match answer {
                Ok(spent) => {
                    *cost += spent;
                    return Ok(());
                }
                Err(error @ CommitError::Busy { .. }) => {
                    cost.calls += 1;
                    let wait = self.environment.up_to(RESEND_WAIT_MIN * 2_u32.pow(resends));
                    if resends == RESENDS_MAX || self.environment.now() + wait >= self.deadline {
                        return Err(error);
                    }
                    self.environment.sleep(wait).await;
                    resends += 1;
                    attempt = Attempt::Again;
                }
                Err(error @ (CommitError::Refused { .. } | CommitError::Invalid { .. })) => return Err(error),
            }
        }
    }

    async fn before_deadline<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        before(self.environment, self.deadline, future).await
    }
}

/// Waits for a future until a deadline.
pub(crate) async fn before<E: Clock, T>(
    environment: &E,
    deadline: Timestamp,
    future: impl Future<Output = T>,
) -> Option<T> {
    let remaining = deadline.since(environment.now());
    let timer = std::pin::pin!(environment.sleep(remaining));
    match select(std::pin::pin!(future), timer).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

fn settled(members: Vec<Decided>, cost: Cost) -> Commits {
    let mut commits = Commits { cost, ..Commits::default() };
    for member in members {
        match member.ending {
            Ending::Settled(outcome) => commits.settled.push((member.record, outcome)),
            Ending::Again => commits.again.push(member.record),
        }
    }
    commits
}

/// After a refusal no decision of the transaction survives: what the refusal settles is marked, the rest is decided again.
fn refused_members(members: Vec<Decided>, refusals: &[Refusal], plan: &Plan, cost: Cost) -> Commits {
    let refused: BTreeSet<&Refusal> = refusals.iter().collect();
    let companions = members.len();
    let mut commits = Commits { cost, ..Commits::default() };
    for member in members {
        let Decided { mut record, draft, .. } = member;
        if refused.contains(&Refusal::Claimed(record.event.event_id)) || recreates(draft.as_ref(), &refused) {
            commits.settled.push((record, Outcome::Duplicate));
            continue;
        }
        record.superseded.extend(superseded(draft.as_ref(), &refused, plan));
        record.refusals += 1;
        if record.refusals < ROUNDS_AT_FULL_SIZE {
            commits.again.push(record);
        } else if companions > 1 {
            record.share = companions / 2;
            commits.again.push(record);
        } else {
            let reason = format!("refused {} times by writers in between", record.refusals);
            commits.settled.push((record, Outcome::Retry(reason)));
        }
    }
    commits
}

/// Whether the record creates something that exists: it has been carried out before.
fn recreates(draft: Option<&Draft>, refused: &BTreeSet<&Refusal>) -> bool {
    draft.is_some_and(|draft| {
        draft.written_rows().any(|key| {
            matches!(draft.row(key), Some(Operation::Create(_))) && refused.contains(&Refusal::Row(key.clone()))
        })
    })
}

/// The refused rows that were guarded by nothing but their source version: they are newer, and stay so.
fn superseded(draft: Option<&Draft>, refused: &BTreeSet<&Refusal>, plan: &Plan) -> Vec<Key> {
    let by_source_version_alone = |operation: Option<&Operation>| match operation {
        Some(Operation::Replace { conditions, .. }) => conditions.newer.is_some() && conditions.unchanged.is_none(),
        Some(Operation::Create(_) | Operation::Add(_) | Operation::Check(_)) | None => false,
    };
    draft
        .into_iter()
        .flat_map(Draft::written_rows)
        .filter(|key| refused.contains(&Refusal::Row((*key).clone())))
        .filter(|key| by_source_version_alone(plan.operation(key)))
        .cloned()
        .collect()
}

/// What the ledger calls invalid is narrowed down to one record, which is rejected.
fn invalid_members(members: Vec<Decided>, reason: &str, cost: Cost) -> Commits {
    let companions = members.len();
    let writers = members.iter().filter(|member| member.draft.is_some()).count();
    let mut commits = Commits { cost, ..Commits::default() };
    for member in members {
        let mut record = member.record;
        if writers == 1 && member.draft.is_some() {
            commits.settled.push((record, Outcome::Rejected(reason.to_owned())));
        } else {
            record.share = record.share.min(companions.div_ceil(2)).max(1);
            commits.again.push(record);
        }
    }
    commits
}
