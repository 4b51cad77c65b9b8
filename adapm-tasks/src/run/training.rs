//! Training, on a cluster or on plain arrays, with the figures on test in the end; and evaluation,
//! with parameters that stand still.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use adapm_core::Key;
use adapm_runtime::trace::Tracer;

use crate::run::config::{Settings, Split};
use crate::run::consistency::RunFlags;
use crate::run::error::TaskError;
use crate::run::managed::{Arrays, BestParameters, ManagedSignaler, PIECE_FLOATS, Setup};
use crate::run::memory;
use crate::run::observer::{Epoch, ManagerStats, Observer, Work};
use crate::run::parameters::{NoSignaler, Shape};
use crate::run::session::{Job, Session};
use crate::run::shortage::Need;
use crate::run::state::{Answers, RunState, Share, Verdicts};
use crate::run::task::{Evaluation, FiguresOf, Form, Task, Tell};
use crate::run::topology::{self, Topology, WorkerSlot};

/// A training run on which all processes have agreed.
pub(crate) struct Run<'a, T: Task> {
    pub(crate) task: &'a T,
    pub(crate) settings: Settings<'a>,
    pub(crate) agreed: RunFlags,
    pub(crate) topology: Topology<'a>,
    pub(crate) observer: &'a dyn Observer<FiguresOf<T>>,
    pub(crate) stop: &'a AtomicBool,
}

/// Result of a training run, complete or stopped: the same in all processes, but for `values`.
pub(crate) struct Trained<F> {
    /// Every finished epoch.
    pub(crate) epochs: Vec<Epoch<F>>,
    /// The epoch of the best parameters: best on valid; without evaluation the last; 0 =
    /// initial values.
    pub(crate) chosen_epoch: u32,
    /// Figures on test with the best parameters; `None` without evaluation, without such data, or
    /// if stopped.
    pub(crate) test: Option<F>,
    /// Seconds of the evaluation of test.
    pub(crate) test_seconds: f64,
    /// The manager's counts of training, evaluation not counted.
    pub(crate) stats: ManagerStats,
    /// The best parameters in key order, if node 0 keeps them and an epoch is complete; on node 0
    /// only if nodes are processes.
    pub(crate) values: Option<Arc<Vec<f32>>>,
    /// The stop flag ended the run early.
    pub(crate) stopped: bool,
    /// Nodes that took part.
    pub(crate) nodes: usize,
    /// Workers per node that took part.
    pub(crate) workers: usize,
}

/// The copies of the chosen parameters by each worker of this process, and the decisions.
type Copied<E> = (Vec<Vec<f32>>, Verdicts<E>);

impl<T: Task> Run<'_, T> {
    /// Trains, evaluates test, and brings the parameters together. Raising the stop flag ends it
    /// within a batch, with the results so far. Collective if nodes are processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, training that diverges, data that cannot
    /// be read, or a cluster that fails: in all processes if in one.
    pub(crate) fn train(&self) -> Result<Trained<FiguresOf<T>>, TaskError> {
        self.topology.check(&self.task.shape())?;
        let copied = self.epochs()?;
        self.conclude(copied)
    }

    /// Trains.
    fn epochs(&self) -> Result<Copied<T::Evaluation>, TaskError> {
        let Self { task, settings, topology, observer, stop, .. } = *self;
        let evaluation = || task.evaluation(Split::Valid, Form::Trained, None);
        let valid = settings.evaluate.then(evaluation).flatten();
        let (test, keeps) = (&OnceLock::new(), self.agreed.checkpoint);
        let job = |state| Job { task, settings, valid: valid.as_ref(), test, keeps, state };
        let tell: &Tell<'_> = &|done, all| observer.working(Work::Initializing, done, all);
        let (shape, distribution, initial) =
            (task.shape(), task.sampling_distribution(), task.initial());
        let is_copied = keeps || valid.is_some();
        memory::check(topology, Need::of(topology, &shape, &task.best_shape(), is_copied))?;

        let Some(setup) = Setup::of(topology, settings.seed) else {
            let state = RunState::new(1, topology.peers, observer, stop, &ManagerStats::default);
            let arrays = Arrays::fill(shape, distribution, settings.seed, &*initial, tell);
            let part = Session::new(&job(&state), WorkerSlot::ONLY, arrays).run(NoSignaler)?;
            return Ok((vec![part], state.into_verdicts()));
        };
        let trace = settings.trace;
        let setup = Setup { scheme: task.scheme(), trace, ..setup };
        let initial = move |key, value: &mut [f32]| initial(key, value);
        let cluster = setup.start(&shape, distribution.as_ref(), initial, tell)?;
        let stats = || cluster.stats().into();
        let state = RunState::new(topology.here(), topology.peers, observer, stop, &stats);
        let job = job(&state);
        let results = cluster.run(|worker| {
            let handle = worker.intent_handle();
            let localizes = setup.system.localizes();
            let signaler = if localizes {
                ManagedSignaler::Localize(handle)
            } else {
                ManagedSignaler::Intent(handle)
            };
            Session::new(&job, topology.slot(&worker), worker).run(signaler)
        });
        // The cluster that evaluates test is another one.
        trace.into_iter().for_each(Tracer::end);
        let parts = topology::first_error(results?)?;
        Ok((parts, state.into_verdicts()))
    }

    /// Evaluates the chosen parameters on test, and puts the results together.
    fn conclude(
        &self,
        (parts, verdicts): Copied<T::Evaluation>,
    ) -> Result<Trained<FiguresOf<T>>, TaskError> {
        let Self { task, settings, agreed, topology, observer, stop } = *self;
        // What one process has seen of the flag counts for all.
        let stopped = topology.peers.share(Ok(stop.load(Ordering::Relaxed)))?.contains(&true);
        let last = verdicts.epochs.last();
        let mut trained = Trained {
            chosen_epoch: verdicts.chosen.or(last.map(|epoch| epoch.epoch)).unwrap_or(0),
            test: None,
            test_seconds: 0.0,
            stats: last.map_or(ManagerStats::default(), |epoch| epoch.stats),
            epochs: verdicts.epochs,
            values: None,
            stopped,
            nodes: topology.nodes,
            workers: topology.workers,
        };
        if let Some((figures, seconds)) = verdicts.test {
            // A stop requested after the last figure stops nothing.
            (trained.test, trained.test_seconds, trained.stopped) = (Some(figures), seconds, false);
            return Ok(trained);
        }
        if !agreed.checkpoint && verdicts.chosen.is_none_or(|epoch| epoch == settings.epochs) {
            // There was nothing to evaluate, or no time for it, and no copy is wanted.
            return Ok(trained);
        }
        if settings.epochs > 0 && trained.epochs.is_empty() {
            // Stopped before there was anything to keep.
            return Ok(trained);
        }
        let best = BestParameters::new(task.best_shape(), parts, topology.peers);
        let began = Instant::now();
        let evaluation = || task.evaluation(Split::Test, Form::Best, verdicts.best.as_ref());
        let test = (settings.evaluate && !stopped).then(evaluation).flatten();
        if let Some(evaluation) = &test {
            let run =
                EvaluationRun { evaluation, shape: task.best_shape(), topology, observer, stop };
            let evaluated = run.run(best.initial())?;
            trained.test = (!evaluated.stopped).then(|| evaluation.figures(&evaluated.answers));
            trained.test_seconds = began.elapsed().as_secs_f64();
            trained.stopped = evaluated.stopped;
        }
        if agreed.checkpoint {
            trained.values = best.gather(topology.peers, PIECE_FLOATS, &|done, all| {
                observer.working(Work::Copying, done, all)
            })?;
        }
        Ok(trained)
    }
}

/// Parameters that are to be evaluated: their shape, the evaluation, and the workers that take
/// part.
pub(crate) struct EvaluationRun<'a, E: Evaluation> {
    pub(crate) evaluation: &'a E,
    pub(crate) shape: Shape,
    pub(crate) topology: Topology<'a>,
    pub(crate) observer: &'a dyn Observer<E::Figures>,
    pub(crate) stop: &'a AtomicBool,
}

/// Result of an evaluation, the same in all processes.
pub(crate) struct Evaluated<A> {
    /// The answers of all items, in order; none if stopped.
    pub(crate) answers: Vec<A>,
    /// The manager's counts.
    pub(crate) stats: ManagerStats,
    /// The stop flag ended the evaluation early.
    pub(crate) stopped: bool,
}

impl<E: Evaluation> EvaluationRun<'_, E> {
    /// Evaluates the parameters that `initial` writes: on every node those that have their home
    /// there. Collective if nodes are processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, or a cluster that fails: in all processes
    /// if in one.
    pub(crate) fn run(
        self,
        initial: impl Fn(Key, &mut [f32]) + Send + Sync + 'static,
    ) -> Result<Evaluated<E::Answer>, TaskError> {
        let Self { evaluation, shape, topology, observer, stop } = self;
        topology.check(&shape)?;
        memory::check(topology, Need::of(topology, &shape, &shape, false))?;
        let share = |slot| Share { evaluation, slot, phase: 0 };
        let answers = Answers::to(evaluation);
        let tell = &|done, all| observer.working(Work::Initializing, done, all);

        let (verdicts, stopped, stats) = if let Some(setup) = Setup::of(topology, 0) {
            let cluster = setup.start(&shape, None, initial, tell)?;
            let stats = || cluster.stats().into();
            let state = RunState::new(topology.here(), topology.peers, observer, stop, &stats);
            state.verdicts().answers = answers;
            let results = cluster.run(|mut worker| {
                share(topology.slot(&worker)).evaluate(
                    &mut evaluation.evaluator(),
                    &mut worker,
                    &state,
                )?;
                // Each stays until all are done: what it owns is asked for.
                Ok(worker.quiesce()?)
            })?;
            topology::first_error(results)?;
            let totals = state.conclude(0, state.stats(), true)?;
            let is_cut = state.is_cut(0);
            (state.into_verdicts(), is_cut, totals.stats)
        } else {
            let state = RunState::new(1, topology.peers, observer, stop, &ManagerStats::default);
            state.verdicts().answers = answers;
            let mut arrays = Arrays::fill(shape, None, 0, initial, tell);
            let Ok(()) =
                share(WorkerSlot::ONLY).evaluate(&mut evaluation.evaluator(), &mut arrays, &state);
            let is_cut = state.is_cut(0);
            (state.into_verdicts(), is_cut, ManagerStats::default())
        };
        let answers = if stopped { Vec::new() } else { verdicts.answers.into_items() };
        Ok(Evaluated { answers, stats, stopped })
    }
}
