//! Runs that are stopped and go on: they end as one that was not stopped, whatever the system, and
//! wherever workers are.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use adapm_runtime::System;

use super::count::{BLOCKS, Count, Figures, Stopper};
use super::{EPOCHS, NODES, SETTINGS, cluster, train, workers};
use crate::run::checkpoints::CheckpointFolder;
use crate::run::config::{ClusterConfig, Keep, Pacing};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::observer::{NoProgress, Observer, Resumption, Training};
use crate::run::peers::Peers;
use crate::run::settings::Settings;
use crate::run::topology::Topology;
use crate::run::training::{Started, Trained};
use crate::run::values::Values;

/// The folder of a run, which goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("adapm-run-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn begun(&self, every: f64) -> CheckpointFolder {
        CheckpointFolder::new(&self.0).every(every)
    }

    fn resumed(&self, every: f64) -> CheckpointFolder {
        CheckpointFolder::resumed(&self.0, None).every(every)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Trains in a folder; the best and the last parameters are wanted.
fn train_in(
    folder: &CheckpointFolder,
    task: &Count,
    cluster: ClusterConfig,
    settings: Settings<'_>,
    fingerprint: &RunFingerprint,
    observer: &dyn Observer<Figures>,
) -> Result<Trained<Figures>, TaskError> {
    let (peers, nodes) = (&Peers::alone(), cluster.nodes.expect("is given"));
    let workers = &*cluster.workers.expect("are given").of_each(nodes);
    let (system, pacing) = (cluster.system, Pacing::default());
    let topology = Topology { system, nodes, workers, pacing, peers };
    let never = AtomicBool::new(false);
    let stop = task.stopper.as_ref().map_or(&never, |stopper| &stopper.flag);
    let (keep, survey, checkpoints) = (Keep::BestAndLast, None, Some(folder));
    let started = Started { keep, topology, observer, stop, survey, checkpoints, fingerprint };
    started.train(&mut task.clone(), settings)
}

fn plain(
    folder: &CheckpointFolder,
    task: &Count,
    cluster: ClusterConfig,
) -> Result<Trained<Figures>, TaskError> {
    train_in(folder, task, cluster, SETTINGS, &RunFingerprint::of_test(), &NoProgress)
}

/// Values of blocks, and how many samples were drawn: where a sample may be of any key that is
/// here, which ones depends on time.
fn counted(values: Option<&Values>) -> Option<(Vec<f32>, f32)> {
    let (blocks, sampled) = values?.in_memory()?.split_at(BLOCKS as usize);
    Some((blocks.to_vec(), sampled.iter().sum()))
}

/// What has to be the same however often a run was stopped.
fn outcome(trained: &Trained<Figures>) -> impl PartialEq + std::fmt::Debug + use<> {
    let epochs =
        trained.epochs.iter().map(|epoch| (epoch.epoch, epoch.loss, epoch.examples, epoch.valid));
    let epochs: Vec<_> = epochs.collect();
    let [best, last] = [&trained.checkpoint, &trained.last].map(|values| counted(values.as_ref()));
    (epochs, trained.chosen_epoch, best, last, trained.test)
}

#[test]
fn a_run_that_is_stopped_again_and_again_ends_as_one_that_was_not() {
    let systems =
        [None, Some(System::Adapm), Some(System::Classic), Some(System::Full), Some(System::Lapse)];
    for system in systems {
        for idle in [None, Some(1)].into_iter().filter(|idle| idle.is_none() || system.is_some()) {
            // The second epoch is the best one.
            let task = Count { target: Some(400.0), idle, ..Count::new(workers(system)) };
            let whole = {
                let folder = Folder::new(&format!("whole-{system:?}-{idle:?}"));
                plain(&folder.begun(1e9), &task, cluster(system)).expect("trains")
            };
            assert_eq!(whole.epochs.len(), EPOCHS as usize);
            for batches in [7, 23, 61] {
                let folder = Folder::new(&format!("stopped-{system:?}-{idle:?}-{batches}"));
                let stopped = || Count { stopper: Some(Stopper::after(batches)), ..task.clone() };
                // Some checkpoints are written between, the last one when it stops.
                let first = plain(&folder.begun(0.01), &stopped(), cluster(system));
                let (mut ended, mut runs) = (first.expect("trains"), 1);
                while ended.stopped {
                    let on = plain(&folder.resumed(0.01), &stopped(), cluster(system));
                    (ended, runs) = (on.expect("goes on"), runs + 1);
                    assert!(runs < 200, "it never ends");
                }
                assert!(runs > 1, "it was stopped");
                assert_eq!(outcome(&ended), outcome(&whole), "{system:?} {idle:?} {batches}");
            }
        }
    }
}

#[test]
fn workers_that_meet_at_every_batch_train_as_those_that_never_meet() {
    let system = Some(System::Adapm);
    for idle in [None, Some(0), Some(3)] {
        let task = Count { idle, target: Some(400.0), ..Count::new(workers(system)) };
        let folder = Folder::new(&format!("meet-{idle:?}"));
        let met = plain(&folder.begun(0.0), &task, cluster(system)).expect("trains");
        let never = train(&task, system);
        assert_eq!(
            met.epochs.iter().map(|e| e.loss).collect::<Vec<_>>(),
            never.epochs.iter().map(|e| e.loss).collect::<Vec<_>>()
        );
        assert_eq!(counted(met.checkpoint.as_ref()), counted(never.checkpoint.as_ref()));
    }
}

#[test]
fn a_run_that_has_ended_goes_on_with_more_epochs_only() {
    let (folder, system) = (Folder::new("more"), Some(System::Adapm));
    let task = Count { rate: Some(1.0), ..Count::new(workers(system)) };
    let ended = plain(&folder.begun(1e9), &task, cluster(system)).expect("trains");
    let again = plain(&folder.resumed(1e9), &task, cluster(system)).expect("is over");
    assert_eq!(outcome(&again), outcome(&ended));
    let more = Settings { epochs: EPOCHS + 2, ..SETTINGS };
    let fingerprint = &RunFingerprint::of_test();
    let on = train_in(&folder.resumed(1e9), &task, cluster(system), more, fingerprint, &NoProgress);
    let on = on.expect("goes on");
    assert_eq!(on.epochs.len(), EPOCHS as usize + 2);
    assert_eq!(on.epochs[EPOCHS as usize].examples, ended.epochs[0].examples);
}

/// Keeps where a run goes on.
#[derive(Default)]
struct Told(Mutex<Vec<Resumption>>);

impl Observer<Figures> for Told {
    fn resumed(&self, from: &Resumption) {
        self.0.lock().expect("nobody panics").push(from.clone());
    }
}

#[test]
fn other_workers_do_an_epoch_again_or_leave_its_rest_out_whichever_is_nearer() {
    let (two, three) = (
        ClusterConfig { nodes: Some(1), workers: Some(2.into()), ..cluster(Some(System::Adapm)) },
        ClusterConfig { nodes: Some(1), workers: Some(3.into()), ..cluster(Some(System::Adapm)) },
    );
    let task = |workers, batches: u64| Count {
        rate: Some(1.0),
        stopper: (batches > 0).then(|| Stopper::after(batches)),
        ..Count::new(workers)
    };
    // An epoch of two workers has 60 batches, one of three 90.
    for (batches, epoch, is_again) in [(70, 2, true), (110, 3, false)] {
        let folder = Folder::new(&format!("others-{batches}"));
        let stopped = plain(&folder.begun(1e9), &task(2, batches), two.clone()).expect("trains");
        assert!(stopped.stopped);
        let told = Told::default();
        let fingerprint = &RunFingerprint::of_test();
        let on = train_in(
            &folder.resumed(1e9),
            &task(3, 0),
            three.clone(),
            SETTINGS,
            fingerprint,
            &told,
        );
        let on = on.expect("goes on");
        let told = told.0.into_inner().expect("nobody panics");
        let [from] = &told[..] else { panic!("it goes on once: {told:?}") };
        assert!(from.has_others && from.epoch == epoch && from.done == 0, "{from:?}");
        let (again, left_out) = (from.again, from.left_out);
        assert_eq!((again > 0, left_out > 0), (is_again, !is_again), "{from:?}");
        assert_eq!(on.epochs.len(), EPOCHS as usize, "no epoch is missing in what is reported");
        let examples: Vec<u64> = on.epochs.iter().map(|epoch| epoch.examples).collect();
        let expected =
            if is_again { vec![60, 90, 90, 90] } else { vec![60, 60 - left_out, 90, 90] };
        assert_eq!(examples, expected);
    }
}

#[test]
fn other_workers_end_an_epoch_that_was_done_but_not_evaluated() {
    let of = |workers: usize| ClusterConfig {
        nodes: Some(1),
        workers: Some(workers.into()),
        ..cluster(Some(System::Adapm))
    };
    let task = |workers, stopper| Count {
        rate: Some(1.0),
        target: Some(120.0),
        stopper,
        ..Count::new(workers)
    };
    // Two epochs of two workers, of 60 batches each: it stops while the second is evaluated.
    let folder = Folder::new("unevaluated");
    let stopped = plain(&folder.begun(1e9), &task(2, Some(Stopper::after(120))), of(2));
    let stopped = stopped.expect("trains");
    assert!(stopped.stopped && stopped.epochs.last().is_some_and(|epoch| epoch.valid.is_none()));
    let on = plain(&folder.resumed(1e9), &task(3, None), of(3)).expect("goes on");
    let examples: Vec<u64> = on.epochs.iter().map(|epoch| epoch.examples).collect();
    assert_eq!(examples, [60, 60, 90, 90]);
    let [second, ..] = &on.epochs[1..] else { panic!("an epoch is missing") };
    assert_eq!((second.loss, on.chosen_epoch), (1.0, 2), "it is evaluated, and the best");
}

#[test]
fn nothing_is_written_where_nothing_has_changed() {
    let (folder, system) = (Folder::new("unchanged"), Some(System::Adapm));
    let task = Count { rate: Some(1.0), ..Count::new(workers(system)) };
    plain(&folder.begun(1e9), &task, cluster(system)).expect("trains");
    let written = || {
        let names = std::fs::read_dir(folder.0.join("checkpoints")).expect("is there");
        let mut names: Vec<_> = names.map(|entry| entry.expect("is there").file_name()).collect();
        names.sort();
        names
    };
    let before = written();
    plain(&folder.resumed(0.0), &task, cluster(system)).expect("is over");
    assert_eq!(written(), before);
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let (folder, system) = (Folder::new("refused"), Some(System::Adapm));
    let task = Count { rate: Some(1.0), ..Count::new(workers(system)) };
    let with = |folder: &CheckpointFolder, fingerprint: &RunFingerprint| {
        let trained = train_in(folder, &task, cluster(system), SETTINGS, fingerprint, &NoProgress);
        trained.map(drop).map_err(|error| error.to_string())
    };
    let usual = RunFingerprint::of_test();
    let error = with(&folder.resumed(1e9), &usual).expect_err("there is nothing");
    assert!(
        error.ends_with("there is no checkpoint to go on from; start the run with --out"),
        "{error}"
    );
    with(&folder.begun(1e9), &usual).expect("trains");
    let error = with(&folder.resumed(1e9), &usual.clone().with("dim", "3")).expect_err("dim");
    assert!(
        error.contains("the run there has --dim none, this one 3; give what it had"),
        "{error}"
    );
    with(&folder.resumed(1e9), &usual.clone().with("learning_rate", "3")).expect("may change");
    // Another run has its checkpoints there meanwhile.
    let peers = Peers::alone();
    let workers = &cluster(system).workers.expect("are given").of_each(NODES);
    let opened =
        folder.resumed(1e9).open(&peers, (workers, &usual)).map_err(|error| error.to_string());
    let error = with(&folder.resumed(1e9), &usual).expect_err("it is taken");
    assert!(error.contains("another run has its checkpoints there; wait until it ends"), "{error}");
    drop(opened);
    with(&folder.resumed(1e9), &usual).expect("it is free again");
    let latest = folder.0.join("checkpoints/latest");
    let text = std::fs::read_to_string(&latest).expect("is there");
    std::fs::write(&latest, text.replace('0', "1")).expect("can be written");
    let error = with(&folder.resumed(1e9), &usual).expect_err("it is damaged");
    assert!(error.contains("latest is damaged") && !error.contains('\n'), "{error}");
}

#[test]
fn tables_with_too_many_rows_are_refused_before_training() {
    let (folder, system) = (Folder::new("rows"), Some(System::Adapm));
    let task = Count { unused: 1 << 32, ..Count::new(workers(system)) };
    let error = plain(&folder.begun(1e9), &task, cluster(system)).map(drop).expect_err("too many");
    let error = error.to_string();
    assert!(
        error.contains("checkpoints: table unused has 4294967296 rows, a checkpoint"),
        "{error}"
    );
    assert!(!folder.0.exists(), "nothing is made");
}

/// Counts how often training begins, and how often there is news of it.
#[derive(Default)]
struct Begun(Mutex<(u32, u32)>);

impl Observer<Figures> for Begun {
    fn begins(&self) {
        let mut told = self.0.lock().expect("nobody panics");
        assert_eq!(told.1, 0, "it began before");
        told.0 += 1;
    }

    fn training(&self, _: &Training) {
        self.0.lock().expect("nobody panics").1 += 1;
    }
}

#[test]
fn training_begins_once_and_not_where_nothing_is_left_to_do() {
    let (folder, system) = (Folder::new("begins"), Some(System::Adapm));
    let task = Count { rate: Some(1.0), ..Count::new(workers(system)) };
    for (folder, begins) in [(folder.begun(1e9), 1), (folder.resumed(1e9), 0)] {
        let (begun, fingerprint) = (Begun::default(), RunFingerprint::of_test());
        let trained = train_in(&folder, &task, cluster(system), SETTINGS, &fingerprint, &begun);
        trained.expect("trains");
        assert_eq!(begun.0.into_inner().expect("nobody panics").0, begins);
    }
}

#[test]
fn a_run_that_fails_keeps_the_checkpoint_before() {
    let (folder, system) = (Folder::new("fails"), Some(System::Adapm));
    let mends = Count { rate: Some(1.0), ..Count::new(workers(system)) };
    // Stopped before, as what is written while it trains may come too late.
    let stopped = Count { stopper: Some(Stopper::after(7)), ..mends.clone() };
    plain(&folder.begun(1e9), &stopped, cluster(system)).expect("trains");
    let fails = Count { diverges: Some(1), ..mends.clone() };
    let error = plain(&folder.resumed(0.0), &fails, cluster(system)).map(drop);
    let error = error.expect_err("diverges");
    assert!(error.to_string().starts_with("training diverged"), "{error}");
    let on = plain(&folder.resumed(1e9), &mends, cluster(system)).expect("goes on");
    assert_eq!(on.epochs.len(), EPOCHS as usize);
    let whole = train(&mends, system);
    assert_eq!(counted(on.checkpoint.as_ref()), counted(whole.checkpoint.as_ref()));
}
