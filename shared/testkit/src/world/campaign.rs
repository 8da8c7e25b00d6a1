//! Many worlds, one after the other on every core, and what is said of those that do not end right.

use std::fmt;
use std::ops::{AddAssign, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Failure, Sabotage, Summary, run, traced};

/// Lines of a trace that are shown of a world whose failure is about all of it.
const LAST_LINES: usize = 40;

/// Which worlds to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Campaign {
    /// The worlds' seeds.
    pub seeds: Range<u64>,
    /// After this time no more worlds are started.
    pub time_max: Duration,
}

/// What a campaign came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// How many worlds were run.
    pub worlds: u64,
    /// What happened in them in all.
    pub total: Summary,
    /// Those that did not end right, by seed.
    pub failures: Vec<Failure>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Campaign {
    /// Runs the worlds on all cores, until all are run, the time is up or some have failed.
    pub fn run(&self, sabotages: &[Sabotage]) -> Results {
        let began = Instant::now();
        let next = AtomicU64::new(self.seeds.start);
        let results =
            Mutex::new(Results { worlds: 0, total: Summary::default(), failures: Vec::new(), elapsed: Duration::ZERO });
        let work = || {
            let mut own = (0, Summary::default(), Vec::new());
            while began.elapsed() < self.time_max && own.2.is_empty() {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.seeds.end {
                    break;
                }
                own.0 += 1;
                match run(seed, sabotages) {
                    Ok(summary) => own.1 += summary,
                    Err(failure) => {
                        // Nobody needs to go on; what is under way ends.
                        next.store(self.seeds.end, Ordering::Relaxed);
                        own.2.push(failure);
                    }
                }
            }
            if let Ok(mut results) = results.lock() {
                results.worlds += own.0;
                results.total += own.1;
                results.failures.extend(own.2);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.failures.sort_by_key(|failure| failure.seed);
        results.elapsed = began.elapsed();
        results
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.events += other.events;
        self.messages += other.messages;
        self.outcomes += other.outcomes;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, events, messages, outcomes } = self;
        write!(formatter, "{events} events, {messages} messages, {outcomes} outcomes, {steps} steps")
    }
}

impl fmt::Display for Results {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worlds, total, failures, elapsed } = self;
        let seconds = elapsed.as_secs_f64();
        write!(formatter, "{worlds} worlds in {seconds:.1} s, {} ended wrong: {total}", failures.len())
    }
}

/// Returns what is to be said of a failure: the seed, the command that replays it, and the trace of what it is about.
pub fn explained(failure: &Failure, sabotages: &[Sabotage]) -> String {
    let (_, trace) = traced(failure.seed, sabotages);
    let mut lines = trace.about(&failure.about);
    if lines.is_empty() {
        lines = trace.lines().iter().rev().take(LAST_LINES).rev().map(String::as_str).collect();
    }
    let replay = format!("cargo run -p testkit -- --seed {}", failure.seed);
    format!("{failure}\nreplay: {replay}\n{}", lines.join("\n"))
}
