//! Random schedules over all policies, including a random one: no order of steps breaks an
//! invariant.
//!
//! A failure prints one line with its seed and the command that runs it again, step by step. More
//! seeds: `ADAPM_SEEDS=200000 cargo test -p adapm-core --test properties`.

use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use adapm_core::layout::Kind as LayoutKind;
use adapm_core::slot::State;
use adapm_verify::Setup;
use adapm_verify::flight::Kind;
use adapm_verify::network::{Pairs, STATES};
use adapm_verify::random::{self, STEPS};

const SEEDS: u64 = 5_000;
/// Number of seeds for each of the kinds that differ from the first in one thing.
const SEEDS_OF_A_KIND: u64 = 2_000;
const THREADS: usize = 2;

/// A constructor of the cluster of a seed.
type MakeSetup = fn(u64) -> Setup;

#[test]
fn random_schedules_keep_every_invariant() {
    assert_pairs(&run_all(SEEDS, random::setup, "one_seed"));
}

/// Nodes vanish with their messages in flight, survivors learn of it at any later moment, and all
/// claims that can hold do: every operation of theirs ends, no innocent node is blamed, none of
/// their updates is lost or doubled.
#[test]
fn survivors_of_a_loss_keep_every_invariant() {
    run_all(SEEDS_OF_A_KIND, random::setup_with_losses, "one_seed_with_losses");
}

/// Workers take back signals, or some of their keys, before and after they were acted on.
#[test]
fn signals_taken_back_keep_every_invariant() {
    run_all(SEEDS_OF_A_KIND, random::setup_with_take_backs, "one_seed_with_take_backs");
}

/// Workers wait for each other at ticks, under every system that bounds how far they are apart: no
/// read is staler than the bound, and nobody waits who may go on.
#[test]
fn bounded_workers_keep_every_invariant() {
    run_all(SEEDS_OF_A_KIND / 2, random::setup_with_ticks, "one_seed_with_ticks");
}

#[test]
fn bounded_survivors_of_a_loss_keep_every_invariant() {
    let make = random::setup_with_ticks_and_losses;
    run_all(SEEDS_OF_A_KIND / 4, make, "one_seed_with_ticks_and_losses");
}

/// Runs all schedules, prints those that fail, and counts arrivals of entries by kind and state.
fn run_all(seeds: u64, make: MakeSetup, again: &str) -> Pairs {
    let seeds = number("ADAPM_SEEDS").unwrap_or(seeds);
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let pairs = Mutex::new(Pairs::default());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut met = Pairs::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    if let Err(failure) = run(make(seed), seed, &mut met) {
                        failures.lock().expect("no thread panics").push((seed, failure));
                    }
                }
                pairs.lock().expect("no thread panics").merge(&met);
            });
        }
    });
    let pairs = pairs.into_inner().expect("no thread panics");
    println!(
        "{seeds} schedules of {STEPS} steps; how often which entry met which state of its key:\n{pairs}"
    );
    let mut failures = failures.into_inner().expect("no thread panics");
    failures.sort();
    for (seed, failure) in &failures {
        println!(
            "ADAPM_SEED={seed} cargo test -p adapm-core --test properties -- --exact {again} --nocapture # {failure}"
        );
    }
    assert_eq!(failures.len(), 0, "schedules that break an invariant");
    pairs
}

/// Prints one schedule step by step: that of `ADAPM_SEED`.
#[test]
fn one_seed() {
    tell_seed(random::setup);
}

/// Does the same with nodes that vanish.
#[test]
fn one_seed_with_losses() {
    tell_seed(random::setup_with_losses);
}

/// Does the same with signals that are taken back.
#[test]
fn one_seed_with_take_backs() {
    tell_seed(random::setup_with_take_backs);
}

/// Does the same with workers that wait at ticks.
#[test]
fn one_seed_with_ticks() {
    tell_seed(random::setup_with_ticks);
}

/// Does the same with both.
#[test]
fn one_seed_with_ticks_and_losses() {
    tell_seed(random::setup_with_ticks_and_losses);
}

fn tell_seed(make: MakeSetup) {
    let seed = number("ADAPM_SEED");
    let setup = make(seed.unwrap_or_default());
    let result = random::tell(setup, seed.unwrap_or_default(), STEPS, move |line| {
        if seed.is_some() {
            println!("{line}");
        }
    });
    assert_eq!(result, Ok(()));
}

/// Checks that the schedules are large enough to count.
#[test]
fn schedules_have_three_nodes_two_workers_eight_keys() {
    let (mut sparse, mut channels, mut tables) = (0, 0, 0);
    for seed in 0..SEEDS {
        let setup = random::setup(seed);
        assert!(
            setup.nodes >= 3 && setup.workers >= 2 && setup.keys().count() >= 8 && STEPS >= 200
        );
        sparse += usize::from(setup.layout.kind() == LayoutKind::Sparse);
        channels += usize::from(setup.channel.1 > 1);
        tables += usize::from(setup.table.is_some());
        let losses = random::setup_with_losses(seed).losses;
        assert!(losses >= 1 && losses < setup.nodes);
    }
    assert!(
        sparse >= 1_000 && channels >= 1_000 && tables >= 1_000,
        "{sparse} of {SEEDS} are sparse, {channels} have channels, {tables} a table of homes"
    );
}

fn run(setup: Setup, seed: u64, pairs: &mut Pairs) -> Result<(), String> {
    let run = || random::run(setup, seed, STEPS, pairs);
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|violation| violation.to_string()),
        Err(_) => Err(String::from("panicked")),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}

/// Checks that every listed pair of (state, message entry) has occurred, and no impossible one.
fn assert_pairs(pairs: &Pairs) {
    use State::{Main, None, Releasing, Replica, Requested};
    for kind in Kind::ALL {
        let (listed, possible): (&[State], &[State]) = match kind {
            Kind::Delta | Kind::SetEntry | Kind::Release => (&[Main], &[]),
            Kind::Intent => (&[None, Requested, Main, Replica], &[Releasing]),
            Kind::Localize => (&[None, Requested, Main, Replica, Releasing], &[]),
            Kind::GrantReplica | Kind::GrantOwner | Kind::GrantRemote | Kind::RetryIntent => {
                (&[Requested], &[])
            }
            Kind::Refresh | Kind::HandOver => (&[Replica], &[]),
            Kind::ForwardIntent | Kind::ForwardLocalize => {
                (&[None, Requested, Main], &[Replica, Releasing])
            }
            Kind::Pull | Kind::Push => (&[None, Requested, Replica, Main, Releasing], &[]),
            Kind::Set => (&[None, Requested, Replica, Main], &[Releasing]),
            Kind::ForwardPull | Kind::ForwardPush => {
                (&[None, Requested, Main], &[Replica, Releasing])
            }
            Kind::ForwardSet => (&[None, Main], &[Requested, Replica, Releasing]),
            Kind::AnswerPull | Kind::AnswerDone | Kind::RetryOperation => (&[None], &[]),
            Kind::Residence => (&[None, Requested], &[Replica, Main, Releasing]),
        };
        for state in STATES {
            let count = pairs.count(state, kind);
            if listed.contains(&state) {
                assert_ne!(
                    count, 0,
                    "no {kind:?} ever met {state:?}: the schedules have become too tame"
                );
            } else if !possible.contains(&state) {
                assert_eq!(count, 0, "a {kind:?} met {state:?}, which cannot be");
            }
        }
    }
}
