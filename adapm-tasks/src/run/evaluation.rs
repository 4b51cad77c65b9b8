//! Evaluation, on a cluster or on plain arrays: with parameters that stand still.

use std::sync::atomic::AtomicBool;

use adapm_core::Key;

use crate::run::arrays::Arrays;
use crate::run::board::Board;
use crate::run::crew::{self, Crew};
use crate::run::error::TaskError;
use crate::run::memory::{self, Need};
use crate::run::observer::{Observer, Work};
use crate::run::seat::Seat;
use crate::run::shape::Shape;
use crate::run::share::{Answers, Share};
use crate::run::stats::ManagerStats;
use crate::run::task::Examination;

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
    /// Judges the parameters that `initial` writes: on every node those that have their home there. Collective if nodes are
    /// processes.
    ///
    /// # Errors
    ///
    /// Parameters that cannot be laid out over the nodes, or a cluster that fails: in all processes if in one.
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
                share(crew.seat(&worker)).examine(&mut examination.examiner(), &mut worker, &board)?;
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
            let Ok(()) = share(Seat::ONLY).examine(&mut examination.examiner(), &mut arrays, &board);
            let is_cut = board.is_cut(0);
            (board.into_verdicts(), is_cut, ManagerStats::default())
        };
        let answers = if stopped { Vec::new() } else { verdicts.answers.into_items() };
        Ok(Evaluated { answers, stats, stopped })
    }
}
