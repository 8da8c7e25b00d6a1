//! Reading what a wave's decisions depend on: first what the events name, then what the rows that were read name in turn.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{Decider, Need, State};
use events::Timestamp;

use crate::commit::before;
use crate::delivery::Outcome;
use crate::ports::{Clock, Cost, FetchError, Ledger, Random};
use crate::wave::{Record, further_needs, with_sources};

/// How often rows are read again while the ledger is unavailable.
const FETCHES_MAX: u32 = 4;
/// Upper bound of the first wait before reading again; it doubles each time.
const FETCH_WAIT_MIN: Duration = Duration::from_millis(50);

/// What reads for a wave, until a deadline.
#[derive(Debug)]
pub(crate) struct Reader<'a, D, L, E> {
    pub(crate) decider: &'a D,
    pub(crate) ledger: &'a L,
    pub(crate) environment: &'a E,
    pub(crate) deadline: Timestamp,
}

/// What a wave is decided on.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Records with all that they need in the state.
    pub(crate) records: Vec<Record>,
    /// What they need.
    pub(crate) state: State,
    /// Records whose needs cannot be read.
    pub(crate) failed: Vec<(Record, Outcome)>,
    /// What the ledger spent.
    pub(crate) cost: Cost,
}

/// Names some of a record's needs.
type Needs = for<'a> fn(&'a Record) -> &'a [Need];

impl<D: Decider, L: Ledger, E: Clock + Random> Reader<'_, D, L, E> {
    /// Reads what records need. Those whose needs cannot be read fail, and no others.
    pub(crate) async fn read(&self, records: Vec<Record>) -> Reading {
        let mut reading = Reading { records, ..Reading::default() };
        self.fetch(&mut reading, |record| &record.needs).await;
        let now = self.environment.now();
        reading.state = std::mem::take(&mut reading.state).at(now);
        for mut record in std::mem::take(&mut reading.records) {
            match further_needs(self.decider, &record, &reading.state) {
                Ok(further) => {
                    record.further = further;
                    reading.records.push(record);
                }
                Err(outcome) => reading.failed.push((record, outcome)),
            }
        }
        self.fetch(&mut reading, |record| &record.further).await;
        reading
    }

    async fn fetch(&self, reading: &mut Reading, needs_of: Needs) {
        let mut failures = 0;
        loop {
            let needs: BTreeSet<Need> =
                reading.records.iter().flat_map(|record| needs_of(record).iter().cloned()).collect();
            if needs.is_empty() {
                return;
            }
            let error = match before(self.environment, self.deadline, self.ledger.fetch(&needs)).await {
                Some(Ok((state, cost))) => {
                    reading.cost += cost;
                    reading.state.absorb(state);
                    return;
                }
                Some(Err(error)) => error,
                None => FetchError::Unavailable("no answer before the invocation's deadline".into()),
            };
            reading.cost.calls += 1;
            let outcome = Outcome::Retry(with_sources(&error));
            let fails: Box<dyn Fn(&Record) -> bool> = match error {
                FetchError::NotARow { key, .. } => {
                    Box::new(move |record| needs_of(record).iter().any(|need| need.covers(&key)))
                }
                FetchError::Unavailable(_) => {
                    failures += 1;
                    let wait = self.environment.up_to(FETCH_WAIT_MIN * 2_u32.pow(failures));
                    if failures < FETCHES_MAX && self.environment.now() + wait < self.deadline {
                        self.environment.sleep(wait).await;
                        continue;
                    }
                    Box::new(move |record| !needs_of(record).is_empty())
                }
            };
            let (failed, others) = std::mem::take(&mut reading.records).into_iter().partition(|record| fails(record));
            let failed: Vec<Record> = failed;
            reading.records = others;
            reading.failed.extend(failed.into_iter().map(|record| (record, outcome.clone())));
        }
    }
}
