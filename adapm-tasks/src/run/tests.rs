//! Runs of a task that counts: that nothing is lost, that all wait where they have to and decide
//! the same, and how all end.

mod accesses;
mod checkpoints;
mod count;
mod ending;
mod hosts;
mod patterns;

use std::num::NonZeroU32;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use adapm_core::NodeId;
use adapm_runtime::System;

use self::count::{BLOCKS, Count, Figures, SAMPLED};
use crate::run::config::{ClusterConfig, Config as _, ConfigError, Keep, Pacing, Split};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::harness::{Ended, NODES, WORKERS, flags, train_each};
use crate::run::hot::HotChoice;
use crate::run::observer::{Epoch, NoProgress, Observer};
use crate::run::peers::Peers;
use crate::run::settings::Settings;
use crate::run::task::Task;
use crate::run::topology::Topology;
use crate::run::training::{Started, Trained};
use crate::run::values::Values;

const EPOCHS: u32 = 4;

const SETTINGS: Settings<'static> = Settings {
    seed: 1,
    clock_every: NonZeroU32::MIN,
    epochs: EPOCHS,
    evaluate: true,
    valid_every: 1,
    patience: None,
    // Both that are sampled, and the first that is visited.
    hot: HotChoice::Most(3),
    inter: None,
    trace: None,
    partition: None,
};

/// Returns the nodes and workers of a system; plain arrays have one of each.
fn cluster(system: Option<System>) -> ClusterConfig {
    let (nodes, workers) = if system.is_some() { (NODES, WORKERS) } else { (1, 1) };
    let (nodes, workers) = (Some(nodes), Some(workers.into()));
    ClusterConfig { system, nodes, workers, ..ClusterConfig::default() }
}

/// Workers of all nodes of [`cluster`].
fn workers(system: Option<System>) -> usize {
    if system.is_some() { NODES * WORKERS } else { 1 }
}

/// Trains with all nodes in one process; the parameters are wanted.
fn train(task: &Count, system: Option<System>) -> Trained<Figures> {
    train_and(Keep::Best, task, cluster(system), &NoProgress, &AtomicBool::new(false))
}

fn train_and(
    keep: Keep,
    task: &Count,
    cluster: ClusterConfig,
    observer: &dyn Observer<Figures>,
    stop: &AtomicBool,
) -> Trained<Figures> {
    try_train(keep, task, cluster, observer, stop).expect("trains")
}

fn try_train(
    keep: Keep,
    task: &Count,
    cluster: ClusterConfig,
    observer: &dyn Observer<Figures>,
    stop: &AtomicBool,
) -> Result<Trained<Figures>, TaskError> {
    let (peers, nodes) = (&Peers::alone(), cluster.nodes.expect("is given"));
    let workers = &*cluster.workers.expect("are given").of_each(nodes);
    let (system, pacing) = (cluster.system, Pacing::default());
    let topology = Topology { system, nodes, workers, pacing, peers };
    let fingerprint = &RunFingerprint::of_test();
    let (checkpoints, survey) = (None, None);
    let started = Started { keep, topology, observer, stop, survey, checkpoints, fingerprint };
    started.train(&mut task.clone(), SETTINGS)
}

#[test]
fn a_clock_is_as_many_batches_as_the_task_says_unless_a_number_is_given() {
    let count = |batches| NonZeroU32::new(batches).expect("positive");
    for given in [None, Some(count(2))] {
        let pacing = Pacing { clock_every: given, ..Pacing::default() };
        let (system, nodes, workers, peers) = (None, 1, &[1][..], &Peers::alone());
        let topology = Topology { system, nodes, workers, pacing, peers };
        assert_eq!(topology.paced(count(5)).pacing.clock_every, given.or(Some(count(5))));
    }
    let config = crate::kge::TrainConfig::default();
    let settings = Settings::of(&config, 1, 1);
    assert!(
        settings.clock_every.get() > 1 && settings.clock_every.get() == config.batches_per_clock()
    );
}

#[test]
fn what_bounds_workers_is_one_and_clocks_are_counted_for_it() {
    let pacing = |bound, clock_every| {
        let clock_every = NonZeroU32::new(clock_every);
        Pacing { bound, clock_every, ..Pacing::default() }
    };
    let [adapm, bsp] = [System::Adapm, System::Bsp].map(Some);
    let refused = |pacing: Pacing, system| pacing.check(system).err();
    assert_eq!(refused(pacing(Some(1), 0), None), Some(ConfigError::BoundWithoutSystem));
    let two = ConfigError::TwoBounds { system: System::Bsp };
    assert_eq!(refused(pacing(Some(1), 0), bsp), Some(two));
    for system in [None, adapm] {
        assert_eq!(refused(pacing(None, 4), system), Some(ConfigError::ClockWithoutBound));
        assert_eq!(refused(pacing(None, 0), system), None);
    }
    assert_eq!(refused(pacing(None, 4), bsp), None);
    assert_eq!(refused(pacing(Some(0), 4), adapm), None);
}

/// Rates of the epochs up to `epoch`: each is twice that before.
fn rates(epoch: u32) -> f64 {
    f64::from(2_u32.pow(epoch) - 1)
}

fn losses(epochs: &[Epoch<Figures>]) -> Vec<f64> {
    epochs.iter().map(|epoch| epoch.loss).collect()
}

#[test]
fn every_system_counts_all_and_sees_what_was_counted_in_the_rounds_before() {
    for system in System::ALL.into_iter().map(Some).chain([None]) {
        let workers = workers(system);
        let mut task = Count::new(workers);
        task.idle = (workers > 1).then_some(4);
        let batches = task.examples() as f64;
        // Closest in the second epoch of four.
        let target = rates(2) * batches + 1.0;
        task.target = Some(target);
        let trained = train(&task, system);
        // A count that was missing would be in the loss, and in the rate of the next epoch.
        assert_eq!(losses(&trained.epochs), [1.0, 2.0, 4.0, 8.0], "{system:?}");
        for (number, epoch) in (1..).zip(&trained.epochs) {
            let rates = rates(number) * batches;
            let distance = (rates - target).abs();
            let expected = Figures { rates, samples: f64::from(number) * batches, distance };
            assert_eq!(
                (epoch.valid, epoch.examples),
                (Some(expected), task.examples()),
                "{system:?}"
            );
        }
        assert_eq!(trained.chosen_epoch, 2, "{system:?}");
        assert_eq!(trained.test, trained.epochs[1].valid, "{system:?}");
        let values = trained.checkpoint.expect("asked for");
        assert_eq!(values.len() as u64, BLOCKS + SAMPLED);
        assert_eq!(sum(&values), (rates(2) + 2.0) * batches, "{system:?}");
    }
}

#[test]
fn values_that_overflow_are_not_kept_though_every_update_was_finite() {
    for system in [Some(System::Adapm), None] {
        let task = Count { rate: Some(f32::MAX), ..Count::new(workers(system)) };
        let stop = AtomicBool::new(false);
        let trained = try_train(Keep::Best, &task, cluster(system), &NoProgress, &stop);
        let error = trained.expect_err("the sums are infinite").to_string();
        let expected = TaskError::ValueNotFinite { key: 0, name: "block 0".to_owned() };
        assert_eq!(error, expected.to_string(), "{system:?}");
    }
}

#[test]
fn without_anything_to_evaluate_the_last_epoch_is_kept() {
    let task = Count::new(NODES * WORKERS);
    let trained = train(&task, Some(System::Adapm));
    assert!(trained.test.is_none() && trained.epochs.iter().all(|epoch| epoch.valid.is_none()));
    assert_eq!(trained.chosen_epoch, EPOCHS);
    let sum = sum(&trained.checkpoint.expect("asked for"));
    assert_eq!(sum, (rates(EPOCHS) + f64::from(EPOCHS)) * task.examples() as f64);
}

fn sum(values: &Values) -> f64 {
    f64::from(values.in_memory().expect("they were trained").iter().sum::<f32>())
}

/// Trains as one process a node; node 1 gets the task `odd`.
fn train_apart(
    task: &Count,
    odd: &Count,
    observers: &[&dyn Observer<Figures>; NODES],
    stops: &[AtomicBool],
) -> Vec<Ended<Figures>> {
    train_each(System::Adapm, &[task, odd, task], SETTINGS, observers, stops)
}

/// Counts that are evaluated, and best in the second epoch.
fn count() -> Count {
    let task = Count::new(NODES * WORKERS);
    Count { target: Some(rates(2) * task.examples() as f64 + 1.0), ..task }
}

#[test]
fn all_processes_decide_the_same_and_have_all_of_the_best_epoch_together() {
    let task = count();
    let ended = train_apart(&task, &task, &[&NoProgress; NODES], &flags());
    for process in &ended {
        assert_eq!(losses(&process.epochs), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!((process.chosen, process.best), (Some(2), process.epochs[1].valid));
        assert!(process.epochs.iter().zip(&ended[0].epochs).all(|(a, b)| a.valid == b.valid));
        // Training and evaluation of each epoch; rounds need none.
        assert_eq!(process.rounds, 2 * u64::from(EPOCHS));
    }
    let parts = ended.into_iter().flat_map(|process| process.outcome.expect("trained")).flatten();
    let sum: f64 = parts.map(f64::from).sum();
    assert_eq!(sum, (rates(2) + 2.0) * task.examples() as f64);
}

/// Raises its flag when the first epoch is over.
struct Stopper<'a>(&'a AtomicBool);

impl Observer<Figures> for Stopper<'_> {
    fn epoch(&self, _: &Epoch<Figures>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_stop_in_one_process_ends_all_in_the_same_epoch_with_the_best_so_far() {
    let (task, stops) = (count(), flags());
    let stopper = Stopper(&stops[1]);
    for process in train_apart(&task, &task, &[&NoProgress, &stopper, &NoProgress], &stops) {
        assert_eq!((process.epochs.len(), process.chosen), (1, Some(1)));
        assert!(process.outcome.is_ok());
    }
    assert!(!stops[0].load(Ordering::Relaxed) && !stops[2].load(Ordering::Relaxed));
}

/// Returns the errors of all processes; node 1 trains the task `odd`.
fn ends(odd: &Count) -> Vec<String> {
    let ended = train_apart(&count(), odd, &[&NoProgress; NODES], &flags());
    ended.into_iter().map(|process| process.outcome.expect_err("one fails").to_string()).collect()
}

#[test]
fn a_number_that_is_none_in_one_process_ends_all_with_where_it_came_from() {
    // The first of the two workers of node 1, at its first batch of the second epoch, with the rate
    // of that epoch.
    let odd = Count { diverges: Some(WORKERS), ..count() };
    let step = BLOCKS * odd.batches;
    let expected = TaskError::NotFinite {
        key: WORKERS as u64,
        name: format!("block {WORKERS}"),
        step,
        learning_rate: 2.0,
    };
    assert_eq!(ends(&odd), vec![expected.to_string(); NODES]);
}

#[test]
fn data_that_one_process_cannot_load_ends_all() {
    let odd = Count { unreadable: Some(WORKERS + 1), ..count() };
    let own = ConfigError::NothingToTrain.to_string();
    let elsewhere = TaskError::Elsewhere { node: NodeId(1), reason: own.clone() }.to_string();
    assert_eq!(ends(&odd), [elsewhere.clone(), own, elsewhere]);
}

/// Panics in the middle of an evaluation.
struct Panics;

impl Observer<Figures> for Panics {
    fn evaluating(&self, _: Split, _: u64, _: u64) {
        panic::panic_any("of the test");
    }
}

#[test]
fn a_panic_in_one_process_leaves_no_other_waiting() {
    let task = count();
    let train = || train_apart(&task, &task, &[&NoProgress, &Panics, &NoProgress], &flags()).len();
    let payload =
        panic::catch_unwind(AssertUnwindSafe(train)).expect_err("the panic comes out in the end");
    // As the error of the run that says which worker it was.
    let told = payload.downcast_ref::<String>().expect("a text");
    assert!(told.contains("WorkerPanicked") && told.contains("of the test"), "{told}");
}
