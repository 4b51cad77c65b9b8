//! The ends of runs whose parameters are not wanted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use adapm_runtime::System;

use super::count::{Count, Figures};
use super::{EPOCHS, SETTINGS, cluster, rates, train, train_and, workers};
use crate::run::circle::places;
use crate::run::config::{Keep, Pacing, Split};
use crate::run::consistency::RunFingerprint;
use crate::run::harness::{NODES, WORKERS, flags, train_each_and};
use crate::run::observer::{NoProgress, Observer, Work};
use crate::run::peers::Peers;
use crate::run::task::Task;
use crate::run::topology::Topology;
use crate::run::training::Started;

/// Returns a count that is best in epoch `best`.
fn best_in(best: u32, workers: usize) -> Count {
    let task = Count::new(workers);
    Count { target: Some(rates(best) * task.examples() as f64 + 1.0), ..task }
}

#[test]
fn the_figures_on_test_are_those_of_the_chosen_epoch_whether_or_not_the_parameters_are_wanted() {
    for system in System::ALL.into_iter().map(Some).chain([None]) {
        let workers = workers(system);
        let unselected = Count { has_valid: false, ..best_in(2, workers) };
        for (task, chosen) in
            [(best_in(2, workers), 2), (best_in(EPOCHS, workers), EPOCHS), (unselected, EPOCHS)]
        {
            let wanted = train(&task, system);
            let stop = AtomicBool::new(false);
            let unwanted = train_and(Keep::Nothing, &task, cluster(system), &NoProgress, &stop);
            assert_eq!(
                (wanted.chosen_epoch, unwanted.chosen_epoch),
                (chosen, chosen),
                "{system:?}"
            );
            assert!(unwanted.test.is_some() && !unwanted.stopped, "{system:?}");
            assert_eq!(wanted.test, unwanted.test, "{system:?}");
            assert!(wanted.checkpoint.is_some() && unwanted.checkpoint.is_none());
        }
    }
}

#[test]
fn all_processes_have_the_same_figures_on_test_and_copy_nothing() {
    let task = Count { has_valid: false, ..best_in(2, NODES * WORKERS) };
    let observers: [&dyn Observer<Figures>; NODES] = [&NoProgress; NODES];
    let tasks = &[&task; NODES];
    let ended = train_each_and(Keep::Nothing, System::Adapm, tasks, SETTINGS, &observers, &flags());
    for process in &ended {
        let rates = rates(EPOCHS) * task.examples() as f64;
        assert_eq!(process.test.map(|figures| figures.rates), Some(rates));
        assert_eq!(process.test, ended[0].test);
        let parts = process.outcome.as_ref().expect("trained");
        assert!(parts.iter().all(|part| part.capacity() == 0));
    }
}

/// Raises its flag in the middle of an evaluation of test.
struct StopInTest<'a>(&'a AtomicBool);

impl Observer<Figures> for StopInTest<'_> {
    fn evaluating(&self, split: Split, _: u64, _: u64) {
        if split == Split::Test {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_on_test_leaves_no_figures_and_says_so() {
    for has_valid in [true, false] {
        // One worker, which has more batches than one.
        let task = Count { has_valid, ..best_in(EPOCHS, 1) };
        let (stop, mut cluster) = (AtomicBool::new(false), cluster(Some(System::Adapm)));
        (cluster.nodes, cluster.workers) = (Some(1), Some(1.into()));
        let trained = train_and(Keep::Nothing, &task, cluster, &StopInTest(&stop), &stop);
        assert_eq!((trained.test, trained.stopped), (None, true));
        assert_eq!((trained.epochs.len(), trained.chosen_epoch), (EPOCHS as usize, EPOCHS));
    }
}

/// Raises its flag while a partition is made.
struct StopInParts<'a>(&'a AtomicBool);

impl Observer<Figures> for StopInParts<'_> {
    fn working(&self, work: Work, _: u64, _: u64) {
        if work == Work::Dividing {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_stop_in_one_process_while_it_partitions_ends_all_before_the_first_epoch() {
    let (places, stops, task) = (places(NODES), flags(), Count::new(NODES * WORKERS));
    let train = |node: usize| {
        let (peers, stop) = (&Peers::among(&places[node]), &stops[node]);
        let (system, workers) = (Some(System::HetGmp { staleness: 0 }), &[WORKERS; NODES]);
        let topology = Topology { system, nodes: NODES, workers, pacing: Pacing::default(), peers };
        let stopper = StopInParts(stop);
        let observer: &dyn Observer<Figures> = if node == 1 { &stopper } else { &NoProgress };
        let (fingerprint, checkpoints) = (&RunFingerprint::of_test(), None);
        let (keep, survey) = (Keep::Best, None);
        let started = Started { keep, topology, observer, stop, survey, checkpoints, fingerprint };
        started.train(&mut task.clone(), SETTINGS).expect("a stop is no failure")
    };
    thread::scope(|scope| {
        let train = &train;
        let processes: Vec<_> = (0..NODES).map(|node| scope.spawn(move || train(node))).collect();
        for process in processes {
            let trained = process.join().expect("no panic");
            assert!(trained.stopped && trained.epochs.is_empty() && trained.checkpoint.is_none());
        }
    });
    assert!(!stops[0].load(Ordering::Relaxed) && !stops[2].load(Ordering::Relaxed));
}
