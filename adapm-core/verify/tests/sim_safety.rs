//! Random programs on random clusters under random faults: no order of events breaks an invariant.
//!
//! A failure prints one line with its seed and the command that runs it again, step by step. More
//! seeds: `ADAPM_SEEDS=200000 cargo test --release -p adapm-verify --test sim_safety`.

use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use adapm_core::{Instant, NodeId};
use adapm_verify::sim::checked::{Conditions, Finding, Report, Run};
use adapm_verify::sim::{Coverage, Fact, Failure, FaultKind};

const SEEDS: u64 = 2_000;
const SEEDS_WITH_LOSS: u64 = 300;
const SEEDS_WITH_SLOW_LINKS: u64 = 500;
const THREADS: usize = 2;

#[test]
fn random_programs_under_faults_keep_every_invariant() {
    let totals = run_all(SEEDS, Run::new, "one_seed");
    // Fewer runs need not meet every situation.
    if totals.runs < SEEDS {
        return;
    }
    let ends = [FaultKind::Vanish, FaultKind::Mute];
    for fault in FaultKind::ALL.into_iter().filter(|fault| !ends.contains(fault)) {
        for fact in Fact::ALL {
            assert_ne!(totals.coverage.count(fault, fact), 0, "no {fault:?} ever met {fact:?}");
        }
    }
    assert!(totals.set_histories > 100, "hardly any set was judged with replication off");
}

/// Runs with a node that vanishes: its peers give it up after the dead time of silence, and not
/// before.
#[test]
fn survivors_of_a_loss_keep_every_invariant() {
    let totals = run_all(SEEDS_WITH_LOSS, Run::with_loss, "one_seed_with_loss");
    if totals.runs < SEEDS_WITH_LOSS {
        return;
    }
    // No node leaves while nodes vanish.
    for fact in Fact::ALL.into_iter().filter(|fact| *fact != Fact::LeaveWaits) {
        assert_ne!(
            totals.coverage.count(FaultKind::Vanish, fact),
            0,
            "no node that vanished ever met {fact:?}"
        );
    }
}

/// Runs with a node that stops working while its links live: nodes that wait for it give it up, and
/// no other.
#[test]
fn whoever_waits_for_a_mute_node_gives_it_up() {
    let totals = run_all(SEEDS_WITH_LOSS, mute, "one_seed_with_a_mute_node");
    if totals.runs < SEEDS_WITH_LOSS {
        return;
    }
    for fact in Fact::ALL.into_iter().filter(|fact| *fact != Fact::LeaveWaits) {
        assert_ne!(
            totals.coverage.count(FaultKind::Mute, fact),
            0,
            "no mute node ever met {fact:?}"
        );
    }
}

/// Runs with slow links, cut links and a stopped node, all at once: no live node is given up, and
/// everything ends.
#[test]
fn nobody_is_given_up_over_slow_links_that_are_cut() {
    let totals = run_all(SEEDS_WITH_SLOW_LINKS, slow_links, "one_seed_with_slow_links");
    let met = |fault, fact| totals.coverage.count(fault, fact);
    if totals.runs >= SEEDS_WITH_SLOW_LINKS {
        for fault in [FaultKind::Reset, FaultKind::Pause] {
            assert!(
                met(fault, Fact::Unacknowledged) > totals.runs / 2,
                "hardly any {fault:?} met what was under way"
            );
        }
    }
}

/// Runs with a link on which handshakes and small packets pass and large ones do not, or on which
/// bytes pass and packets do not: traffic over it ends with a loss, in bounded time.
#[test]
fn ends_of_a_dead_link_give_each_other_up() {
    let seeds = number("ADAPM_SEEDS").unwrap_or(SEEDS_WITH_LOSS);
    let (mut lost, mut longest) = (0, Instant::ZERO);
    for seed in 0..seeds {
        match dead_link(seed).run() {
            // Nothing large had to pass.
            Ok(report) => longest = longest.max(report.time),
            Err(failure) if is_loss(&failure) => lost += 1,
            Err(failure) => panic!("seed {seed}: {failure}"),
        }
    }
    println!(
        "counts: {lost} of {seeds} clusters over dead links end with a loss; the longest other took {longest:?}"
    );
    assert!(10 * lost > 8 * seeds, "hardly any link was needed");
}

/// Whether a run ended because a node was given up.
fn is_loss(failure: &Failure<Finding>) -> bool {
    matches!(failure, Failure::Violation(Finding::GivenUp { .. }))
}

#[test]
fn what_a_failure_says_makes_it_no_loss() {
    let (survivor, peer) = (NodeId(0), NodeId(1));
    let given_up = Finding::GivenUp { survivor, peer };
    let delivered = Finding::Delivery(given_up.to_string());
    assert!(is_loss(&Failure::Violation(given_up)));
    assert!(!is_loss(&Failure::Violation(delivered)));
}

/// A constructor of the run of a seed.
type Make = fn(u64) -> Run;

/// The sums over all runs.
#[derive(Default)]
struct Totals {
    runs: u64,
    coverage: Coverage,
    operations: u64,
    events: u64,
    set_histories: u64,
    set_accesses: u64,
}

impl Totals {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.coverage.merge(&report.coverage);
        self.operations += report.operations;
        self.events += report.events;
        self.set_histories += report.set_histories;
        self.set_accesses = self.set_accesses.max(report.set_accesses);
    }
}

/// Runs all seeds, prints those that fail, and counts faults by the situations that they struck.
fn run_all(seeds: u64, make: Make, again: &str) -> Totals {
    let seeds = number("ADAPM_SEEDS").unwrap_or(seeds);
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let totals = Mutex::new(Totals::default());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    let mut report = Report::default();
                    if let Err(failure) = run(&make(seed), &mut report) {
                        failures.lock().expect("no thread panics").push((seed, failure));
                    }
                    totals.lock().expect("no thread panics").add(&report);
                }
            });
        }
    });
    let totals = totals.into_inner().expect("no thread panics");
    let Totals { coverage, operations, events, set_histories, set_accesses, .. } = &totals;
    let faults = coverage.faults();
    println!(
        "counts: {seeds} clusters, {operations} operations and {faults} faults, {events} events; {set_histories} histories of keys \
         that were set, of {set_accesses} accesses at most, searched for an order; which fault met what:\n{coverage}"
    );
    let mut failures = failures.into_inner().expect("no thread panics");
    failures.sort();
    for (seed, failure) in &failures {
        println!(
            "ADAPM_SEED={seed} cargo test -p adapm-verify --test sim_safety -- --exact {again} --nocapture # {failure}"
        );
    }
    assert_eq!(failures.len(), 0, "runs that break an invariant");
    totals
}

fn run(run: &Run, report: &mut Report) -> Result<(), String> {
    let result = panic::catch_unwind(AssertUnwindSafe(|| run.run_into(report)));
    result.map_err(|_| String::from("panicked"))?.map_err(|failure| failure.to_string())?;
    // The least size of a run that counts.
    let setup = &run.setup;
    let counts = setup.nodes >= 3
        && setup.workers >= 2
        && setup.keys().count() >= 8
        && report.operations >= 500
        && report.coverage.faults() >= 3;
    if counts { Ok(()) } else { Err(format!("too small to count: {report}")) }
}

/// Prints one run step by step: that of `ADAPM_SEED`.
#[test]
fn one_seed() {
    tell_seed(Run::new);
}

/// Does the same with slow links.
#[test]
fn one_seed_with_slow_links() {
    tell_seed(slow_links);
}

fn slow_links(seed: u64) -> Run {
    Run::under(seed, Conditions::SlowLinks)
}

/// Does the same with a mute node.
#[test]
fn one_seed_with_a_mute_node() {
    tell_seed(mute);
}

fn mute(seed: u64) -> Run {
    Run::under(seed, Conditions::Mute)
}

/// Does the same with a node that vanishes.
#[test]
fn one_seed_with_loss() {
    tell_seed(Run::with_loss);
}

/// Does the same with a dead link, over which a loss is how most runs end.
#[test]
fn one_seed_with_a_dead_link() {
    match tell(dead_link) {
        Err(failure) if !is_loss(&failure) => panic!("{failure}"),
        end => println!("{end:?}"),
    }
}

fn dead_link(seed: u64) -> Run {
    Run::under(seed, Conditions::DeadLink)
}

fn tell_seed(make: Make) {
    match tell(make) {
        Ok(report) => println!("{report}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn tell(make: Make) -> Result<Report, Failure<Finding>> {
    let seed = number("ADAPM_SEED");
    let mut run = make(seed.unwrap_or_default());
    run.tells = seed.is_some();
    if run.tells {
        println!("{}", run.describe());
    }
    run.run()
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}
