//! Equal seeds give equal runs, event by event: otherwise a failure could not be reproduced.

use std::collections::BTreeSet;
use std::thread;

use adapm_verify::sim::checked::{Report, Run};

const SEEDS: u64 = 30;

fn reports(make: fn(u64) -> Run) -> Vec<Report> {
    (0..SEEDS)
        .map(|seed| make(seed).run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}")))
        .collect()
}

#[test]
fn a_seed_gives_the_same_run_on_every_thread() {
    for make in [Run::new, Run::with_loss] {
        let elsewhere = thread::spawn(move || reports(make));
        let here = reports(make);
        assert_eq!(here, elsewhere.join().expect("no panic"));
    }
}

#[test]
fn different_seeds_give_different_runs() {
    let traces: BTreeSet<u64> = reports(Run::new).iter().map(|report| report.trace).collect();
    assert_eq!(traces.len(), SEEDS as usize);
}
