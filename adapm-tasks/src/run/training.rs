//! Training, on a cluster or on plain arrays, with the figures on test in the end; and evaluation,
//! with parameters that stand still.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use adapm_core::Key;
use adapm_runtime::trace::Tracer;

use crate::run::agreement::Agreed;
use crate::run::board::{Answers, Board, Share, Verdicts};
use crate::run::config::{Settings, Split};
use crate::run::crew::{self, Crew, Seat};
use crate::run::error::TaskError;
use crate::run::managed::{Announcement, Arrays, Kept, PIECE_FLOATS, Setup};
use crate::run::memory::{self, Need};
use crate::run::observer::{Epoch, ManagerStats, Observer, Work};
use crate::run::parameters::{Shape, Unannounced};
use crate::run::session::{Job, Session};
use crate::run::task::{Examination, FiguresOf, Form, Task, Tell};

/// A training run on which all processes have agreed.
pub(crate) struct Run<'a, T: Task> {
    pub(crate) task: &'a T,
    pub(crate) settings: Settings<'a>,
    pub(crate) agreed: Agreed,
    pub(crate) crew: Crew<'a>,
    pub(crate) observer: &'a dyn Observer<FiguresOf<T>>,
    pub(crate) stop: &'a AtomicBool,
}

/// Result of a training run, complete or stopped: the same in all processes, but for `values`.
pub(crate) struct Trained<F> {
    /// Every finished epoch.
    pub(crate) epochs: Vec<Epoch<F>>,
    /// The epoch whose parameters were kept: best on valid; without evaluation the last; 0 =
    /// initial values.
    pub(crate) chosen_epoch: u32,
    /// Figures on test with the kept parameters; `None` without evaluation, without such data, or
    /// if stopped.
    pub(crate) test: Option<F>,
    /// Seconds of the evaluation of test.
    pub(crate) test_seconds: f64,
    /// The manager's counts of training, evaluation not counted.
    pub(crate) stats: ManagerStats,
    /// The kept parameters in key order, if node 0 wants them and an epoch is complete; on node 0
    /// only if nodes are processes.
    pub(crate) values: Option<Arc<Vec<f32>>>,
    /// The stop flag ended the run early.
    pub(crate) stopped: bool,
    /// Nodes that took part.
    pub(crate) nodes: usize,
    /// Workers per node that took part.
    pub(crate) workers: usize,
}

/// What each worker of this process copied of the chosen parameters, and what was decided.
type Copied<E> = (Vec<Vec<f32>>, Verdicts<E>);

impl<T: Task> Run<'_, T> {
    /// Trains, evaluates test, and brings the parameters together. Raising the stop flag ends it
    /// within a unit, with the results so far. Collective if nodes are processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, training that diverges, data that cannot
    /// be read, or a cluster that fails: in all processes if in one.
    pub(crate) fn train(&self) -> Result<Trained<FiguresOf<T>>, TaskError> {
        self.crew.check(&self.task.shape())?;
        let copied = self.epochs()?;
        self.conclude(copied)
    }

    /// Trains.
    fn epochs(&self) -> Result<Copied<T::Examination>, TaskError> {
        let Self { task, settings, crew, observer, stop, .. } = *self;
        let examination = || task.examination(Split::Valid, Form::Trained, None);
        let valid = settings.evaluate.then(examination).flatten();
        let (test, keeps) = (&OnceLock::new(), self.agreed.checkpoint);
        let job = |board| Job { task, settings, valid: valid.as_ref(), test, keeps, board };
        let tell: &Tell<'_> = &|done, all| observer.working(Work::Initializing, done, all);
        let (shape, draws, initial) = (task.shape(), task.draws(), task.initial());
        let is_copied = keeps || valid.is_some();
        memory::check(crew, Need::of(crew, &shape, &task.kept(), is_copied))?;

        let Some(setup) = crew.setup(settings.seed) else {
            let board = Board::new(1, crew.peers, observer, stop, &ManagerStats::default);
            let arrays = Arrays::fill(shape, draws, settings.seed, &*initial, tell);
            let part = Session::new(&job(&board), Seat::ONLY, arrays).run(Unannounced)?;
            return Ok((vec![part], board.into_verdicts()));
        };
        let trace = settings.trace;
        let setup = Setup { scheme: task.scheme(), trace, ..setup };
        let initial = move |key, value: &mut [f32]| initial(key, value);
        let cluster = setup.start(&shape, draws.as_ref(), initial, tell)?;
        let stats = || cluster.stats().into();
        let board = Board::new(crew.here(), crew.peers, observer, stop, &stats);
        let job = job(&board);
        let results = cluster.run(|worker| {
            let handle = worker.intent_handle();
            let localizes = setup.system.localizes();
            let announcer = if localizes {
                Announcement::Localize(handle)
            } else {
                Announcement::Intent(handle)
            };
            Session::new(&job, crew.seat(&worker), worker).run(announcer)
        });
        // The cluster that evaluates test is another one.
        trace.into_iter().for_each(Tracer::end);
        let parts = crew::first_error(results?)?;
        Ok((parts, board.into_verdicts()))
    }

    /// Evaluates the chosen parameters on test, and puts the results together.
    fn conclude(
        &self,
        (parts, verdicts): Copied<T::Examination>,
    ) -> Result<Trained<FiguresOf<T>>, TaskError> {
        let Self { task, settings, agreed, crew, observer, stop } = *self;
        // What one process has seen of the flag counts for all.
        let stopped = crew.peers.share(Ok(stop.load(Ordering::Relaxed)))?.contains(&true);
        let last = verdicts.epochs.last();
        let mut trained = Trained {
            chosen_epoch: verdicts.chosen.or(last.map(|epoch| epoch.epoch)).unwrap_or(0),
            test: None,
            test_seconds: 0.0,
            stats: last.map_or(ManagerStats::default(), |epoch| epoch.stats),
            epochs: verdicts.epochs,
            values: None,
            stopped,
            nodes: crew.nodes,
            workers: crew.workers,
        };
        if let Some((figures, seconds)) = verdicts.test {
            // What is raised behind the last figure stops nothing.
            (trained.test, trained.test_seconds, trained.stopped) = (Some(figures), seconds, false);
            return Ok(trained);
        }
        if !agreed.checkpoint && verdicts.chosen.is_none_or(|epoch| epoch == settings.epochs) {
            // There was nothing to examine, or no time for it, and no copy is wanted.
            return Ok(trained);
        }
        if settings.epochs > 0 && trained.epochs.is_empty() {
            // Stopped before there was anything to keep.
            return Ok(trained);
        }
        let kept = Kept::new(task.kept(), parts, crew.peers);
        let began = Instant::now();
        let examination = || task.examination(Split::Test, Form::Kept, verdicts.best.as_ref());
        let test = (settings.evaluate && !stopped).then(examination).flatten();
        if let Some(examination) = &test {
            let evaluation = Evaluation { examination, shape: task.kept(), crew, observer, stop };
            let evaluated = evaluation.run(kept.initial())?;
            trained.test = (!evaluated.stopped).then(|| examination.figures(&evaluated.answers));
            trained.test_seconds = began.elapsed().as_secs_f64();
            trained.stopped = evaluated.stopped;
        }
        if agreed.checkpoint {
            trained.values = kept.gather(crew.peers, PIECE_FLOATS, &|done, all| {
                observer.working(Work::Copying, done, all)
            })?;
        }
        Ok(trained)
    }
}

/// Parameters that are to be judged: how, of which shape, by whom.
pub(crate) struct Evaluation<'a, E: Examination> {
    pub(crate) examination: &'a E,
    pub(crate) shape: Shape,
    pub(crate) crew: Crew<'a>,
    pub(crate) observer: &'a dyn Observer<E::Figures>,
    pub(crate) stop: &'a AtomicBool,
}

/// Result of an evaluation, the same in all processes.
pub(crate) struct Evaluated<A> {
    /// Of all items, in order; none if stopped.
    pub(crate) answers: Vec<A>,
    /// The manager's counts.
    pub(crate) stats: ManagerStats,
    /// The stop flag ended the evaluation early.
    pub(crate) stopped: bool,
}

impl<E: Examination> Evaluation<'_, E> {
    /// Judges the parameters that `initial` writes: on every node those that have their home there.
    /// Collective if nodes are processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, or a cluster that fails: in all processes
    /// if in one.
    pub(crate) fn run(
        self,
        initial: impl Fn(Key, &mut [f32]) + Send + Sync + 'static,
    ) -> Result<Evaluated<E::Answer>, TaskError> {
        let Self { examination, shape, crew, observer, stop } = self;
        crew.check(&shape)?;
        memory::check(crew, Need::of(crew, &shape, &shape, false))?;
        let share = |seat| Share { examination, seat, phase: 0 };
        let answers = Answers::to(examination);
        let tell = &|done, all| observer.working(Work::Initializing, done, all);

        let (verdicts, stopped, stats) = if let Some(setup) = crew.setup(0) {
            let cluster = setup.start(&shape, None, initial, tell)?;
            let stats = || cluster.stats().into();
            let board = Board::new(crew.here(), crew.peers, observer, stop, &stats);
            board.verdicts().answers = answers;
            let results = cluster.run(|mut worker| {
                share(crew.seat(&worker)).examine(
                    &mut examination.examiner(),
                    &mut worker,
                    &board,
                )?;
                // Each stays until all are done: what it owns is asked for.
                Ok(worker.quiesce()?)
            })?;
            crew::first_error(results)?;
            let totals = board.conclude(0, board.stats(), true)?;
            let is_cut = board.is_cut(0);
            (board.into_verdicts(), is_cut, totals.stats)
        } else {
            let board = Board::new(1, crew.peers, observer, stop, &ManagerStats::default);
            board.verdicts().answers = answers;
            let mut arrays = Arrays::fill(shape, None, 0, initial, tell);
            let Ok(()) =
                share(Seat::ONLY).examine(&mut examination.examiner(), &mut arrays, &board);
            let is_cut = board.is_cut(0);
            (board.into_verdicts(), is_cut, ManagerStats::default())
        };
        let answers = if stopped { Vec::new() } else { verdicts.answers.into_items() };
        Ok(Evaluated { answers, stats, stopped })
    }
}
