//! Training in tests as if nodes were processes: a state for each, on a cluster that is in this
//! process.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use adapm_core::NodeId;
use adapm_runtime::{Cluster, System};
use adapm_transport::threads;

use crate::run::checkpoints::{CheckpointFolder, Checkpointing, Resumed};
use crate::run::circle::{Place, places};
use crate::run::config::{Keep, Pacing, Split};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::inter::Inter;
use crate::run::managed::{ManagedSignaler, Setup};
use crate::run::observer::{Epoch, Observer};
use crate::run::peers::Peers;
use crate::run::session::{Job, Session};
use crate::run::settings::Settings;
use crate::run::state::{RunState, Verdicts};
use crate::run::task::{FiguresOf, Form, Task};
use crate::run::topology::{self, WorkerSlot};

pub(crate) const NODES: usize = 3;
pub(crate) const WORKERS: usize = 2;

/// The state of one process in the end.
pub(crate) struct Ended<F> {
    pub(crate) outcome: Result<Vec<Vec<f32>>, TaskError>,
    pub(crate) epochs: Vec<Epoch<F>>,
    pub(crate) best: Option<F>,
    pub(crate) chosen: Option<u32>,
    /// Figures on test, if they were evaluated where the parameters were trained.
    pub(crate) test: Option<F>,
    /// Exchanges of all.
    pub(crate) rounds: u64,
}

/// Returns a flag for each process.
pub(crate) fn flags() -> Vec<AtomicBool> {
    (0..NODES).map(|_| AtomicBool::new(false)).collect()
}

/// Trains with a state for each node; tasks, observers and flags are those of each. Tasks may
/// differ, which those of processes that have agreed do not. The parameters are wanted.
pub(crate) fn train_each<T: Task>(
    system: System,
    tasks: &[&T; NODES],
    settings: Settings<'_>,
    observers: &[&dyn Observer<FiguresOf<T>>; NODES],
    stops: &[AtomicBool],
) -> Vec<Ended<FiguresOf<T>>> {
    train_each_and(Keep::Best, system, tasks, settings, observers, stops)
}

/// As [`train_each`], with parameters that may be wanted.
pub(crate) fn train_each_and<T: Task>(
    keep: Keep,
    system: System,
    tasks: &[&T; NODES],
    settings: Settings<'_>,
    observers: &[&dyn Observer<FiguresOf<T>>; NODES],
    stops: &[AtomicBool],
) -> Vec<Ended<FiguresOf<T>>> {
    let stops: Vec<&AtomicBool> = stops.iter().collect();
    train_each_in(&[], (keep, system), tasks, settings, observers, &stops)
}

/// The checkpoints of a process, and what it goes on from.
type Kept<T> = (Checkpointing, Option<Resumed<FiguresOf<T>>>);

/// Opens the folder of each process, and reads what it goes on from.
pub(crate) fn open_each<T: Task>(
    folders: &[CheckpointFolder],
    task: &T,
    (peers, workers): (&[Peers<'_>], &[usize]),
) -> Vec<Result<Kept<T>, TaskError>> {
    let fingerprint = &RunFingerprint::of_test();
    let open = |node: usize| {
        let peers = &peers[node];
        let opened = folders[node].open(peers, (workers, fingerprint))?;
        let resumed = opened.read(task, (workers, fingerprint), peers, None)?;
        let tables = task.tables();
        let kept = Checkpointing::new(opened, tables, fingerprint.clone(), workers, peers);
        Ok((kept, resumed))
    };
    threads::map("process", 0..folders.len(), open)
}

/// Starts a cluster of all nodes, with what each goes on from, if it does.
fn cluster<T: Task>(
    task: &T,
    (system, seed): (System, u64),
    resumed: Vec<Option<&Resumed<FiguresOf<T>>>>,
) -> Cluster<f32> {
    let rows: Vec<_> = resumed.iter().map(|resumed| resumed.and_then(Resumed::take_rows)).collect();
    let first = task.initial();
    let initial = move |key, value: &mut [f32]| {
        let rows = &rows[topology::home(key, NODES)];
        if !rows.as_ref().is_some_and(|rows| rows.write(key, value)) {
            first(key, value);
        }
    };
    let plain = Setup::plain(system, (NODES, &[WORKERS; NODES]), Pacing::default(), seed, None);
    let setup = Setup { scheme: task.scheme(), ..plain };
    let distribution = task.sampling_distribution();
    let started = setup.start(&task.shape(), distribution.as_ref(), initial, &|_, _| {});
    started.expect("starts")
}

/// As [`train_each`], with parameters that may be wanted, and checkpoints in the folder of each, if
/// there are folders.
pub(crate) fn train_each_in<T: Task>(
    folders: &[CheckpointFolder],
    (keep, system): (Keep, System),
    tasks: &[&T; NODES],
    settings: Settings<'_>,
    observers: &[&dyn Observer<FiguresOf<T>>; NODES],
    stops: &[&AtomicBool],
) -> Vec<Ended<FiguresOf<T>>> {
    let places: Vec<Place> = places(NODES);
    let peers: Vec<Peers<'_>> = places.iter().map(|place| Peers::among(place)).collect();
    let kept = open_each(folders, tasks[0], (&peers, &[WORKERS; NODES]));
    let kept: Vec<Kept<T>> = kept.into_iter().map(|kept| kept.expect("opens")).collect();
    let resumed = |node: usize| kept.get(node).and_then(|(_, resumed)| resumed.as_ref());
    let task = tasks[0];
    let cluster = cluster(task, (system, settings.seed), (0..NODES).map(resumed).collect());
    let nodes = || (0..).map(NodeId).take(NODES);
    let stats: Vec<_> = nodes()
        .map(|node| {
            let cluster = &cluster;
            move || cluster.node_stats(node).expect("exists").into()
        })
        .collect();
    let states: Vec<RunState<'_, T::Evaluation>> = (0..NODES)
        .map(|n| RunState::new(vec![WORKERS; NODES], &peers[n], observers[n], stops[n], &stats[n]))
        .collect();
    for (resumed, state) in (0..).map(resumed).zip(&states).filter_map(|(of, to)| Some((of?, to))) {
        resumed.state.restore(resumed.chosen, &mut state.verdicts());
    }
    let valid = task.evaluation(Split::Valid, Form::Trained, None);
    let test = OnceLock::new();
    let job = |(node, state)| Job {
        task: tasks[node],
        settings,
        valid: valid.as_ref(),
        test: &test,
        keep,
        state,
        checkpoints: kept.get(node).map(|(checkpoints, _)| checkpoints),
        resumed: resumed(node),
    };
    let jobs: Vec<Job<'_, T>> = states.iter().enumerate().map(job).collect();
    let results = cluster.run(|worker| {
        let (node, index) = (worker.node().index(), worker.id().index());
        let slot = WorkerSlot::of(&[WORKERS; NODES], (node, index), true);
        let handle = worker.intent_handle();
        let localizes = system.localizes();
        let signaler = if localizes {
            ManagedSignaler::Localize(handle)
        } else {
            ManagedSignaler::Intent(handle)
        };
        Session::new(&jobs[node], slot, Inter::kept_by(None, worker)).run(signaler)
    });
    let mut results = results.expect("the cluster holds").into_iter();
    let outcomes: Vec<_> = (0..NODES)
        .map(|_| {
            let copies = topology::first_error(results.by_ref().take(WORKERS).collect());
            copies.map(|copies| copies.into_iter().map(|copies| copies.best).collect())
        })
        .collect();
    let rounds = places[0].rounds();
    drop(jobs);
    let ended = states.into_iter().zip(outcomes).map(|(state, outcome)| {
        let Verdicts { epochs, best, chosen, test, .. } = state.into_verdicts();
        let test = test.map(|(figures, _)| figures);
        Ended { outcome, epochs, best, chosen, test, rounds }
    });
    ended.collect()
}
