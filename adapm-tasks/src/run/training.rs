//! Training, on a cluster or on plain arrays, with the figures on test in the end; and evaluation,
//! with parameters that stand still.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use adapm_core::Key;
use adapm_core::policy::Supply;
use adapm_runtime::trace::Tracer;

use crate::partition::PartitionFile;
use crate::run::checkpoints::{CheckpointFolder, Checkpointing, Resumed};
use crate::run::config::{self, ConfigError, Keep, Split};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::hot::{self, Hot, HotChoice};
use crate::run::inter::Inter;
use crate::run::managed::{Arrays, BestParameters, ManagedSignaler, PIECE_FLOATS, Setup};
use crate::run::memory;
use crate::run::observer::{ManagerStats, Observer, Work};
use crate::run::parameters::{NoSignaler, Parameters, Shape};
use crate::run::report::{EvalReport, TrainReport};
use crate::run::session::{Copies, Job, Session};
use crate::run::settings::Settings;
use crate::run::shortage::Need;
use crate::run::state::{Answers, RunState, Share, Verdicts};
use crate::run::stored::Stored;
use crate::run::survey::{self, Survey};
use crate::run::task::{Evaluation, FiguresOf, Form, Task, Tell};
use crate::run::topology::{self, Topology, WorkerSlot};
use crate::run::traced;
use crate::run::values::Values;

/// A run on which all processes have agreed.
pub(crate) struct Started<'a, F> {
    /// Parameters that node 0 keeps.
    pub(crate) keep: Keep,
    pub(crate) topology: Topology<'a>,
    pub(crate) observer: &'a dyn Observer<F>,
    pub(crate) stop: &'a AtomicBool,
    /// Asked for instead of training.
    pub(crate) survey: Option<&'a Survey>,
    /// Where the run has its checkpoints, if it has any.
    pub(crate) checkpoints: Option<&'a CheckpointFolder>,
    /// What all mean by the run.
    pub(crate) fingerprint: &'a RunFingerprint,
}

impl<F> Started<'_, F> {
    /// Trains, evaluates test, and brings the parameters together in key order. Raising the stop
    /// flag ends it within a batch, with the results so far. Collective if nodes are processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, training that diverges, data that cannot
    /// be read, or a cluster that fails: in all processes if in one.
    pub(crate) fn train<T>(
        &self,
        task: &mut T,
        settings: Settings<'_>,
    ) -> Result<Trained<F>, TaskError>
    where
        T: Task<Evaluation: Evaluation<Figures = F>>,
        F: Clone + Send,
    {
        self.topology.check(&task.shape())?;
        if let Some(folder) = self.checkpoints {
            folder.check_rows(&task.tables())?;
        }
        if let Some(survey) = self.survey {
            let (keys, nodes) = (task.shape().keys(), self.topology.nodes);
            memory::check(self.topology, Need::of_partition(keys, nodes))?;
            survey.take(task)?;
            return Ok(self.not_begun(settings.epochs));
        }
        let Some(Parts { file, seconds }) = self.parts(task, settings)? else {
            return Ok(self.not_begun(settings.epochs));
        };
        file.iter().for_each(|file| task.deal_by(file));
        let settings = Settings { partition: file.as_ref(), ..settings };
        let topology = self.topology.paced(settings.clock_every);
        let run = TrainingRun { task, settings, started: &Self { topology, ..*self } };
        let copied = run.epochs()?;
        Ok(TrainReport { partition_seconds: seconds, ..run.conclude(copied)? })
    }

    /// Returns the partition of what `task` trains on: a given one, or one that is made here, if
    /// the system needs one and the task has samples. `None` if the run was stopped meanwhile.
    /// Collective.
    ///
    /// # Errors
    ///
    /// A given one that is of something else, data that cannot be partitioned, or too little memory
    /// for it.
    fn parts(&self, task: &impl Task, settings: Settings<'_>) -> Result<Option<Parts>, TaskError> {
        let Self { topology, observer, stop, .. } = *self;
        let Topology { system, nodes, peers, .. } = topology;
        if let Some(given) = settings.partition {
            survey::check(given, task, nodes)?;
            return Ok(Some(Parts { file: Some(Arc::clone(given)), seconds: None }));
        }
        let needs_one = system.is_some_and(|system| system.supply() == Supply::Partition);
        if !needs_one || nodes == 1 {
            return Ok(Some(Parts::default()));
        }
        let keys = task.shape().keys();
        memory::check(topology, Need::of_partition(keys, nodes))?;
        observer.working(Work::Dividing, 0, 0);
        let began = Instant::now();
        let mut file = None;
        let made = survey::partition(task, nodes, settings.seed, stop).map(|made| {
            file = made.map(Arc::new);
            stop.load(Ordering::Relaxed)
        });
        let seconds = began.elapsed().as_secs_f64();
        // What one process has seen of the flag counts for all.
        if peers.share(made)?.contains(&true) {
            return Ok(None);
        }
        if let Some(file) = &file {
            let replicas = file.replicas().iter().map(Vec::len).max().unwrap_or(0);
            observer.partitioned(replicas as u64, keys, seconds);
        }
        Ok(Some(Parts { seconds: file.is_some().then_some(seconds), file }))
    }

    /// Returns the report of training that was stopped before its first epoch.
    fn not_begun(&self, epochs_max: u32) -> Trained<F> {
        TrainReport {
            epochs_max,
            selects: false,
            own: (),
            partition_seconds: None,
            chosen_epoch: 0,
            test: None,
            test_seconds: 0.0,
            stats: ManagerStats::default(),
            epochs: Vec::new(),
            checkpoint: None,
            last: None,
            stopped: true,
            nodes: self.topology.nodes,
            workers: self.topology.printed(),
        }
    }

    /// Evaluates a model of which these are the values, of the keys of `shape` in order. Each
    /// process reads those that have their home in it, once all together have checked the file.
    /// Returns what [`evaluate`](Self::evaluate) does.
    ///
    /// # Errors
    ///
    /// As [`evaluate`](Self::evaluate), and values that cannot be read.
    pub(crate) fn evaluate_saved<E: Evaluation<Figures = F>>(
        &self,
        evaluation: &E,
        shape: Shape,
        values: &Values,
    ) -> Result<(EvalReport<F>, Vec<E::Answer>), TaskError>
    where
        F: Clone + Send,
    {
        let peers = self.topology.peers;
        let share = values.sum_up_share(peers.node(), peers.processes());
        let shares = peers.share(share.map_err(TaskError::from))?;
        peers.share(values.compare_shares(&shares).map_err(TaskError::from))?;
        let stored = Arc::new(Stored::new(shape.clone(), values.clone()));
        let (initial, nodes) = (Arc::clone(&stored), self.topology.nodes);
        let initial = move |key, value: &mut [f32]| initial.write(nodes, key, value);
        self.evaluate(evaluation, shape, initial, || Ok(stored.written()?))
    }

    /// Evaluates the parameters that `initial` writes: on every node those that have their home
    /// there. `written` tells whether it could write all of them, once it has. Returns the answers
    /// of all items, in order, none if stopped; the report is without figures. Collective if nodes
    /// are processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, or written, or a cluster that fails: in
    /// all processes if in one.
    fn evaluate<E: Evaluation<Figures = F>>(
        &self,
        evaluation: &E,
        shape: Shape,
        initial: impl Fn(Key, &mut [f32]) + Send + Sync + 'static,
        written: impl FnOnce() -> Result<(), TaskError>,
    ) -> Result<(EvalReport<F>, Vec<E::Answer>), TaskError>
    where
        F: Clone + Send,
    {
        let Self { topology, .. } = *self;
        topology.check(&shape)?;
        memory::check(topology, Need::of(topology, &shape, &shape, 0))?;
        let began = Instant::now();
        let (verdicts, stopped, stats) = self.answer(evaluation, &shape, initial, written)?;
        let report = EvalReport {
            figures: None,
            seconds: began.elapsed().as_secs_f64(),
            stats,
            stopped,
            nodes: topology.nodes,
            workers: topology.printed(),
            own: (),
        };
        Ok((report, if stopped { Vec::new() } else { verdicts.answers.into_items() }))
    }

    /// Answers for all items; returns true if stopped before, and the manager's counts.
    fn answer<E: Evaluation<Figures = F>>(
        &self,
        evaluation: &E,
        shape: &Shape,
        initial: impl Fn(Key, &mut [f32]) + Send + Sync + 'static,
        written: impl FnOnce() -> Result<(), TaskError>,
    ) -> Result<(Verdicts<E>, bool, ManagerStats), TaskError>
    where
        F: Clone + Send,
    {
        let Self { topology, observer, stop, .. } = *self;
        let share = |slot| Share { evaluation, slot, phase: 0 };
        let answers = Answers::to(evaluation);
        let tell = &|done, all| observer.working(Work::Initializing, done, all);
        let Some(setup) = Setup::of(topology, 0) else {
            let state =
                RunState::new(vec![1], topology.peers, observer, stop, &ManagerStats::default);
            state.verdicts().answers = answers;
            let mut arrays = Arrays::fill(shape.clone(), None, initial, tell);
            written()?;
            let Ok(()) =
                share(WorkerSlot::ONLY).evaluate(&mut evaluation.evaluator(), &mut arrays, &state);
            let is_cut = state.is_cut(0);
            return Ok((state.into_verdicts(), is_cut, ManagerStats::default()));
        };
        let cluster = setup.start(shape, None, initial, tell)?;
        topology.peers.share(written())?;
        let stats = || cluster.stats().into();
        let state = RunState::new(topology.by_process(), topology.peers, observer, stop, &stats);
        state.verdicts().answers = answers;
        let results = cluster.run(|worker| {
            let (slot, mut worker) = (topology.slot(&worker), Inter::kept_by(None, worker));
            share(slot).evaluate(&mut evaluation.evaluator(), &mut worker, &state)?;
            // Each stays until all are done: what it owns is asked for.
            Ok(worker.quiesce()?)
        })?;
        topology::first_error(results)?;
        let totals = state.conclude(0, state.stats(), true)?;
        let is_cut = state.is_cut(0);
        Ok((state.into_verdicts(), is_cut, totals.stats))
    }
}

/// The partition by which a task is trained.
#[derive(Default)]
struct Parts {
    file: Option<Arc<PartitionFile>>,
    /// Of its making, if it was made here.
    seconds: Option<f64>,
}

/// The result of training, with the best parameters in key order.
pub(crate) type Trained<F> = TrainReport<F, Values>;

/// Returns the function that writes the values with which training begins, or goes on.
fn starting_values<T: Task>(
    task: &T,
    resumed: Option<&Resumed<FiguresOf<T>>>,
) -> impl Fn(Key, &mut [f32]) + Send + Sync + 'static {
    let (first, rows) = (task.initial(), resumed.and_then(Resumed::take_rows));
    move |key, value| {
        let is_restored = rows.as_ref().is_some_and(|rows| rows.write(key, value));
        if !is_restored {
            first(key, value);
        }
    }
}

/// The checkpoints of a run, and what it goes on from.
type Kept<F> = (Option<Checkpointing>, Option<Resumed<F>>);

/// A task in training.
struct TrainingRun<'a, T: Task> {
    task: &'a T,
    settings: Settings<'a>,
    started: &'a Started<'a, FiguresOf<T>>,
}

/// The copies that each worker of this process has made, the decisions, and true if there was
/// something to select on.
type Copied<E> = (Vec<Copies>, Verdicts<E>, bool);

impl<T: Task> TrainingRun<'_, T> {
    /// Trains.
    fn epochs(&self) -> Result<Copied<T::Evaluation>, TaskError> {
        let Self { task, settings, started } = *self;
        let Started { keep, topology, observer, stop, .. } = *started;
        let evaluation = || task.evaluation(Split::Valid, Form::Trained, None);
        let valid = settings.evaluate.then(evaluation).flatten();
        let test = &OnceLock::new();
        let tell: &Tell<'_> = &|done, all| observer.working(Work::Initializing, done, all);
        let (shape, distribution) = (task.shape(), task.sampling_distribution());
        let traced = settings.trace.map_or(Ok(()), |tracer| traced::check(tracer, shape.keys()));
        traced.map_err(ConfigError::UnknownKey)?;
        let hot = self.hot_keys(&shape)?;
        let inter = settings.inter.map(|staleness| {
            let frequencies = task.frequencies().ok_or(ConfigError::InterUnknown)?;
            Ok::<_, TaskError>(Inter::new(staleness, frequencies, &task.dense_keys()))
        });
        let inter = inter.transpose()?;
        self.check_memory(&hot, valid.is_some())?;
        let homes = settings.partition.map(|partition| partition.homes());
        let (checkpoints, resumed) = self.checkpoints(homes.as_ref())?;
        let (checkpoints, resumed) = (checkpoints.as_ref(), resumed.as_ref());
        let initial = starting_values(task, resumed);
        let job = |state| Job {
            task,
            settings,
            valid: valid.as_ref(),
            test,
            keep,
            state,
            checkpoints,
            resumed,
        };

        let Some(setup) = Setup::of(topology, settings.seed) else {
            let state =
                RunState::new(vec![1], topology.peers, observer, stop, &ManagerStats::default);
            self.take_over(resumed, &state)?;
            let arrays = Arrays::fill(shape, distribution, initial, tell);
            let signaler = NoSignaler::new(settings.seed);
            let part = Session::new(&job(&state), WorkerSlot::ONLY, arrays).run(signaler)?;
            return Ok((vec![part], state.into_verdicts(), valid.is_some()));
        };
        let trace = settings.trace;
        let (scheme, dense) = (task.scheme(), task.dense_keys());
        let setup = Setup { scheme, trace, hot, dense, homes, ..setup };
        let localizes = setup.system.localizes();
        let cluster = setup.start(&shape, distribution.as_ref(), initial, tell)?;
        let stats = || cluster.stats().into();
        let state = RunState::new(topology.by_process(), topology.peers, observer, stop, &stats);
        self.take_over(resumed, &state)?;
        let job = job(&state);
        let results = cluster.run(|worker| {
            let handle = worker.intent_handle();
            let signaler = if localizes {
                ManagedSignaler::Localize(handle)
            } else {
                ManagedSignaler::Intent(handle)
            };
            let (slot, worker) = (topology.slot(&worker), Inter::kept_by(inter.as_ref(), worker));
            Session::new(&job, slot, worker).run(signaler)
        });
        // The cluster that evaluates test is another one.
        trace.into_iter().for_each(Tracer::end);
        let parts = topology::first_error(results?)?;
        Ok((parts, state.into_verdicts(), valid.is_some()))
    }

    /// Checks that there is memory for training with these hot keys. Collective.
    fn check_memory(&self, hot: &Hot, selects: bool) -> Result<(), TaskError> {
        let Self { task, started, .. } = *self;
        let Started { keep, topology, checkpoints, .. } = *started;
        let copies = match keep {
            Keep::Nothing => u64::from(selects),
            Keep::Best => 1,
            Keep::BestAndLast => 1 + u64::from(selects),
        };
        let shape = task.shape();
        let need = Need::of(topology, &shape, &task.best_shape(), copies);
        let need = need.with_hot(topology, &shape, hot);
        let copied = checkpoints.map(|_| &shape);
        memory::check(topology, need.with_checkpoint(topology, copied))
    }

    /// Opens the folder of checkpoints, and reads what the run goes on from. Collective.
    fn checkpoints(&self, homes: Option<&Arc<[u16]>>) -> Result<Kept<FiguresOf<T>>, TaskError> {
        let Self { task, started, .. } = *self;
        let Started { topology: Topology { workers, peers, .. }, observer, .. } = *started;
        let Some(folder) = started.checkpoints else { return Ok((None, None)) };
        let fingerprint = started.fingerprint;
        let opened = folder.open(peers, (workers, fingerprint))?;
        observer.opened(opened.leads());
        let resumed = opened.read(task, (workers, fingerprint), peers, homes)?;
        if let Some(resumed) = &resumed {
            observer.resumed(&resumed.told());
        }
        let checkpointing =
            Checkpointing::new(opened, task.tables(), fingerprint.clone(), workers, peers);
        Ok((Some(checkpointing), resumed))
    }

    /// Takes over what had been decided before the run goes on.
    fn take_over(
        &self,
        resumed: Option<&Resumed<FiguresOf<T>>>,
        state: &RunState<'_, T::Evaluation>,
    ) -> Result<(), TaskError> {
        let Some(resumed) = resumed else { return Ok(()) };
        resumed.state.restore(resumed.chosen, &mut state.verdicts());
        if !self.task.restore(&resumed.state.kept) {
            return Err(resumed.unknown().into());
        }
        if resumed.has_left_out() {
            state.verdicts().epochs.last().iter().for_each(|epoch| state.observer.epoch(epoch));
        }
        Ok(())
    }

    /// Returns the keys that nodes are to hold for the whole run, and tells the observer how many
    /// they are; none where the system has no such keys.
    fn hot_keys(&self, shape: &Shape) -> Result<Hot, TaskError> {
        let Started { topology, observer, .. } = *self.started;
        let Some(system) = topology.system else { return Ok(Hot::none()) };
        if system.supply() == Supply::Partition {
            let replicas = self.settings.partition.map(|partition| partition.replicas().to_vec());
            return Ok(replicas.map_or_else(Hot::none, Hot::ByNode));
        }
        if !system.has_hot_keys() {
            return Ok(Hot::none());
        }
        let keys = shape.keys();
        let choice = self.settings.hot;
        if let HotChoice::Most(count) = choice {
            config::whole("replicate", count, 1, keys)?;
        }
        let frequencies = || self.task.frequencies();
        let hot = hot::choose(choice, keys, frequencies).map_err(ConfigError::from)?;
        observer.replicating(hot.len() as u64, keys);
        Ok(Hot::Shared(hot))
    }

    /// Evaluates the chosen parameters on test, and puts the results together.
    fn conclude(
        &self,
        (parts, verdicts, selects): Copied<T::Evaluation>,
    ) -> Result<Trained<FiguresOf<T>>, TaskError> {
        let Self { task, settings, started } = *self;
        let Started { keep, topology, observer, stop, .. } = *started;
        let (best, last): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|Copies { best, last }| (best, last)).unzip();
        let best = BestParameters::new(task.best_shape(), best, topology.peers);
        let last = || BestParameters::new(task.best_shape(), last, topology.peers);
        let last = verdicts.has_last.then(last);
        let copies = [Some(&best), last.as_ref()].into_iter().flatten();
        let infinite = copies.filter_map(BestParameters::find_not_finite).next();
        let checked = infinite.map_or(Ok(()), |key| {
            Err(TaskError::ValueNotFinite { key: key.0, name: task.name_of(key) })
        });
        // What one process has seen of the flag, or among its values, counts for all.
        let stopped = checked.map(|()| stop.load(Ordering::Relaxed));
        let stopped = topology.peers.share(stopped)?.contains(&true);
        let ended = verdicts.epochs.last();
        let mut trained = TrainReport {
            epochs_max: settings.epochs,
            selects,
            own: (),
            partition_seconds: None,
            chosen_epoch: verdicts.chosen.or(ended.map(|epoch| epoch.epoch)).unwrap_or(0),
            test: None,
            test_seconds: 0.0,
            stats: ended.map_or(ManagerStats::default(), |epoch| epoch.stats),
            epochs: verdicts.epochs,
            checkpoint: None,
            last: None,
            stopped,
            nodes: topology.nodes,
            workers: topology.printed(),
        };
        if let Some((figures, seconds)) = verdicts.test {
            // A stop requested after the last figure stops nothing.
            (trained.test, trained.test_seconds, trained.stopped) = (Some(figures), seconds, false);
            return Ok(trained);
        }
        if keep == Keep::Nothing && verdicts.chosen.is_none_or(|epoch| epoch == settings.epochs) {
            // There was nothing to evaluate, or no time for it, and no copy is wanted.
            return Ok(trained);
        }
        if settings.epochs > 0 && trained.epochs.is_empty() {
            // Stopped before there was anything to keep.
            return Ok(trained);
        }
        let began = Instant::now();
        let evaluation = || task.evaluation(Split::Test, Form::Best, verdicts.best.as_ref());
        let test = (settings.evaluate && !stopped).then(evaluation).flatten();
        if let Some(evaluation) = &test {
            let (evaluated, answers) =
                started.evaluate(evaluation, task.best_shape(), best.initial(), || Ok(()))?;
            trained.test = (!evaluated.stopped).then(|| evaluation.figures(&answers));
            trained.test_seconds = began.elapsed().as_secs_f64();
            trained.stopped = evaluated.stopped;
        }
        let tell: &Tell<'_> = &|done, all| observer.working(Work::Copying, done, all);
        if keep != Keep::Nothing {
            trained.checkpoint = best.gather(topology.peers, PIECE_FLOATS, tell)?;
        }
        if let Some(last) = last {
            trained.last = last.gather(topology.peers, PIECE_FLOATS, tell)?;
        }
        Ok(trained)
    }
}
