//! Simulated worlds: that they end right whatever goes wrong in them, that a seed is a run, and that the checks can fail.

mod sabotages;

use std::time::Duration;

use testkit::world::{Campaign, Sabotage, Slip, explained, run, traced};

/// Seeds of worlds that once ended wrong, a line each with what they found.
const REGRESSIONS: &str = include_str!("regressions.txt");

#[test]
fn two_thousand_worlds_end_right() {
    let results = Campaign { seeds: 0..2_000, time_max: Duration::MAX }.run(&[]);

    println!("{results}");
    if let Some(failure) = results.failures.first() {
        panic!("{}", explained(failure, &[]));
    }
    assert_eq!(results.worlds, 2_000);
}

#[test]
fn worlds_that_once_ended_wrong_end_right() {
    let seeds = REGRESSIONS.lines().filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "#");
    for seed in seeds {
        let seed = seed.parse().expect("a seed at the beginning of the line");
        if let Err(failure) = run(seed, &[]) {
            panic!("{}", explained(&failure, &[]));
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_to_the_byte() {
    for seed in 0..40 {
        let (first, second) = (traced(seed, &[]), traced(seed, &[]));
        assert_eq!(first, second, "seed {seed}");
        assert!(!first.1.lines().is_empty(), "seed {seed}");
    }
}

#[test]
fn a_failure_says_how_to_replay_it_and_what_happened() {
    let sabotages = [Sabotage::Frame(Slip::PositionBeforeSending)];
    let results = Campaign { seeds: 0..100, time_max: Duration::MAX }.run(&sabotages);
    let failure = results.failures.first().expect("a sabotage that is found");
    let explained = explained(failure, &sabotages);

    assert!(explained.contains(&format!("--seed {}", failure.seed)), "{explained}");
    assert!(failure.about.iter().any(|name| explained.contains(&format!("{name} published"))), "{explained}");
}

#[test]
fn worlds_are_not_alike() {
    let [one, other] = [1, 2].map(|seed| traced(seed, &[]).1);
    assert_ne!(one, other);
}
