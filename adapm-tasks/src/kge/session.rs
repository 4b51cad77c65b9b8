//! A worker's life in a training run: epochs, evaluation of valid in between, a copy of its part of the best parameters.
//!
//! ```text
//!   quiesce | train a chunk ... | quiesce | first worker: epoch report | rank a share of valid | quiesce |
//!           first worker: is it the best? | quiesce | copy a part of the parameters | next epoch
//! ```
//!
//! A phase ends with a quiesce, which is a barrier too. Only the first worker decides, between two of them, and writes
//! the decision on the [`Board`]. If nodes are processes, the first worker of each decides the same from the same notes:
//!
//! ```text
//!   n0 w0:  ... quiesce | note, all notes, decide | quiesce ...
//!   n0 w1:  ... quiesce |                         | quiesce ... reads the decision
//!   n1 w0:  ... quiesce | note, all notes, decide | quiesce ...
//! ```
//!
//! A first worker has nothing to do between a quiesce and the exchange that could fail, and one that fails elsewhere gives
//! the reason at the exchange the others come to next: all reach it, or nobody waits.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Instant;

use crate::kge::board::Board;
use crate::kge::config::{Negatives, Split, TrainConfig};
use crate::kge::error::TaskError;
use crate::kge::filter::Filter;
use crate::kge::graph::Graph;
use crate::kge::independent::IndependentStep;
use crate::kge::loader::{Loader, pace};
use crate::kge::order::Order;
use crate::kge::parameters::{Announcer, Parameters, Shape};
use crate::kge::plan::{Chunk, Planner};
use crate::kge::rank::Ranker;
use crate::kge::recipe::{Recipe, StepError};
use crate::kge::report::{EpochReport, ManagerStats, Training};
use crate::kge::seat::Seat;
use crate::kge::share::Share;
use crate::kge::step::SharedStep;
use crate::metric::RankMetrics;

/// What all workers of a run know.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) config: &'a TrainConfig,
    pub(crate) shape: Shape,
    /// Filter of valid; `None` if valid is not evaluated.
    pub(crate) filter: Option<&'a Filter>,
    pub(crate) board: &'a Board<'a>,
    pub(crate) localizes: bool,
}

/// One worker of a run.
pub(crate) struct Session<'a, P: Parameters> {
    job: Job<'a>,
    seat: Seat,
    parameters: P,
    step: Step,
    ranker: Ranker,
    /// Copied parameters of this worker's keys ([`Seat::copied`]), without accumulators.
    part: Vec<f32>,
    /// Phases that have ended.
    phase: u64,
}

enum Step {
    Shared(SharedStep),
    Independent(IndependentStep),
}

impl<'a, P> Session<'a, P>
where
    P: Parameters,
    P::Sample: Send,
    TaskError: From<P::Error>,
{
    pub(crate) fn new(job: Job<'a>, seat: Seat, parameters: P) -> Self {
        let recipe = Recipe::new(job.config, job.shape);
        let step = match job.config.negatives {
            Negatives::Shared => Step::Shared(SharedStep::new(recipe)),
            Negatives::Independent => Step::Independent(IndependentStep::new(recipe)),
        };
        let ranker = Ranker::new(recipe.model, job.shape, recipe.reciprocal);
        Self { job, seat, parameters, step, ranker, part: Vec::new(), phase: 0 }
    }

    /// Lives through the run and returns the chosen parameters of this worker's keys.
    pub(crate) fn run<A>(self, announcer: A) -> Result<Vec<f32>, TaskError>
    where
        A: Announcer<Sample = P::Sample> + Send,
    {
        let (peers, is_first) = (self.job.board.peers, self.seat.is_first());
        // The worker is gone when others are told: they may have to pass a barrier, which it would hold up.
        let live = move || self.live(announcer);
        if is_first { peers.told_of(live) } else { live() }
    }

    fn live<A>(mut self, announcer: A) -> Result<Vec<f32>, TaskError>
    where
        A: Announcer<Sample = P::Sample> + Send,
    {
        let job = self.job;
        let recipe = Recipe::new(job.config, job.shape);
        let inverse_offset = recipe.reciprocal.then_some(job.graph.relations.len() as u64);
        let planner = Planner { shape: job.shape, negatives: job.config.negatives, inverse_offset };
        let (chunk, ahead) = pace(job.config, job.localizes);
        let order = Order::new(job.config.seed, job.graph.train.len(), self.seat.number, self.seat.all);
        let sides = if job.config.negatives == Negatives::Independent { 2 } else { 1 };
        let sampled = sides * recipe.negatives;
        let train = job.graph.train.as_slice();
        let loader = Loader { train, order, planner, epochs: job.config.epochs, chunk, sampled };
        let chunks = loader.chunks();
        // The loader holds the chunk behind those in the queue.
        let (sender, receiver) = sync_channel(ahead.saturating_sub(1));
        thread::scope(|scope| {
            scope.spawn(move || loader.run(announcer, &sender));
            self.epochs(chunks, receiver)
        })?;
        Ok(std::mem::take(&mut self.part))
    }

    /// Runs all epochs. Takes the queue, so that the loader ends when this does.
    #[expect(clippy::needless_pass_by_value, reason = "dropping the queue ends the loader")]
    fn epochs(&mut self, chunks: usize, queue: Receiver<Chunk<P::Sample>>) -> Result<(), TaskError> {
        let config = self.job.config;
        for epoch in 1..=config.epochs {
            // All have copied what they wanted to, and what was announced meanwhile and is due has been acted on.
            self.parameters.quiesce()?;
            self.parameters.settle()?;
            if self.seat.is_first() {
                let stats = self.job.board.stats();
                self.job.board.verdicts().started = Some((Instant::now(), stats));
                self.mark(&format!("epoch {epoch}"));
            }
            self.end_phase()?;
            self.train(epoch, chunks, &queue)?;
            self.parameters.quiesce()?;
            if self.seat.is_first() {
                self.conclude_training(epoch)?;
            }
            let is_cut = self.end_phase()?;
            if is_cut || self.select(epoch)? {
                break;
            }
        }
        self.keep_something()
    }

    /// Ends a phase: all workers have come here, and everything pushed is applied everywhere. Tells whether some worker left
    /// the phase early.
    fn end_phase(&mut self) -> Result<bool, TaskError> {
        self.parameters.quiesce()?;
        self.phase += 1;
        Ok(self.job.board.is_cut(self.phase - 1))
    }

    /// Trains on this worker's part of the data.
    fn train(
        &mut self,
        epoch: u32,
        chunks: usize,
        queue: &Receiver<Chunk<P::Sample>>,
    ) -> Result<(), TaskError> {
        let board = self.job.board;
        board.reset(self.seat.index);
        let (mut done, mut loss, mut told) = (0, 0.0, Instant::now());
        let mut chunks = queue.iter().take(chunks);
        let mut next = self.choose(chunks.next())?;
        while let Some(mut chunk) = next.take() {
            next = self.choose(chunks.next())?;
            if board.must_stop(self.phase) {
                return Ok(());
            }
            let clock = chunk.clock;
            let outcome = match &mut self.step {
                Step::Shared(step) => step.train(&mut chunk, &mut self.parameters),
                Step::Independent(step) => step.train(&mut chunk, &mut self.parameters),
            };
            loss += match outcome {
                Ok(loss) => loss,
                Err(StepError::NotFinite(key)) => {
                    // The run ends for all together, where this phase ends.
                    let learning_rate = self.job.config.learning_rate;
                    let error = TaskError::NotFinite { key: key.0, step: clock.0, learning_rate };
                    board.fail(self.phase, self.seat.index, error);
                    return Ok(());
                }
                Err(StepError::Access(error)) => {
                    board.cut(self.phase);
                    return Err(error.into());
                }
            };
            done += chunk.positives.len() as u64;
            board.tally(self.seat.index, done, loss);
            if self.seat.is_first() && told.elapsed().as_millis() >= PROGRESS_MILLIS {
                told = Instant::now();
                self.tell(epoch);
            }
        }
        Ok(())
    }

    /// Settles on the negatives of a chunk one step before it is trained on.
    fn choose(&mut self, chunk: Option<Chunk<P::Sample>>) -> Result<Option<Chunk<P::Sample>>, TaskError> {
        let Some(mut chunk) = chunk else { return Ok(None) };
        self.parameters.choose_sample(&mut chunk.sample)?;
        Ok(Some(chunk))
    }

    /// Tells the observer how far training is, as far as this process knows.
    fn tell(&self, epoch: u32) {
        let board = self.job.board;
        let (done, loss) = board.totals();
        let mean = loss / done.max(1) as f64;
        self.tell_of(epoch, board.estimate(self.job.graph.train.len() as u64), mean);
    }

    fn tell_of(&self, epoch: u32, done: u64, loss: f64) {
        let board = self.job.board;
        let started = board.verdicts().started;
        board.progress.training(&Training {
            epoch,
            epochs: self.job.config.epochs,
            done,
            total: self.job.graph.train.len() as u64,
            loss,
            seconds: started.map_or(0.0, |(at, _)| at.elapsed().as_secs_f64()),
            stats: board.stats(),
        });
    }

    /// Ends an epoch's training: by the first worker, between two barriers. Reports it if it is complete.
    fn conclude_training(&self, epoch: u32) -> Result<(), TaskError> {
        let board = self.job.board;
        let stats = board.stats();
        let (at, before) = board.verdicts().started.unwrap_or((Instant::now(), ManagerStats::default()));
        let seconds = at.elapsed().as_secs_f64();
        let totals = board.conclude(self.phase, stats.since(&before), false)?;
        if board.is_cut(self.phase) {
            return Ok(());
        }
        let loss = totals.loss / totals.done.max(1) as f64;
        self.tell_of(epoch, totals.done, loss);
        let mut verdicts = board.verdicts();
        let so_far = verdicts.epochs.last().map_or(ManagerStats::default(), |last| last.stats);
        verdicts.epochs.push(EpochReport {
            epoch,
            seconds,
            loss,
            triples: totals.done,
            valid: None,
            evaluation_seconds: 0.0,
            stats: so_far.plus(&totals.stats),
            epoch_stats: totals.stats,
        });
        let is_due = self.is_due(epoch);
        verdicts.ranks.clear();
        verdicts.ranks.resize(if is_due { 2 * self.job.graph.valid.len() } else { 0 }, Default::default());
        if !is_due {
            board.progress.epoch(verdicts.epochs.last().expect("pushed above"));
        }
        Ok(())
    }

    /// Says in the trace, if there is one, what begins.
    fn mark(&self, what: &str) {
        self.job.config.trace.iter().for_each(|tracer| tracer.mark(what));
    }

    fn is_due(&self, epoch: u32) -> bool {
        let config = self.job.config;
        let due = epoch == config.epochs || epoch.is_multiple_of(config.valid_every);
        self.job.filter.is_some() && due
    }

    /// Evaluates valid if that is due, and copies the parameters if they are the best so far. Tells whether some worker
    /// left early.
    fn select(&mut self, epoch: u32) -> Result<bool, TaskError> {
        let job = self.job;
        let Some(filter) = job.filter.filter(|_| self.is_due(epoch)) else { return Ok(false) };
        let began = Instant::now();
        if self.seat.is_first() {
            self.mark("valid");
        }
        let triples = job.graph.valid.as_slice();
        let share = Share { split: Split::Valid, triples, filter, seat: self.seat, phase: self.phase };
        share.rank(&mut self.ranker, &mut self.parameters, job.board)?;
        self.parameters.quiesce()?;
        if self.seat.is_first() {
            self.conclude_ranking(epoch, began)?;
        }
        if self.end_phase()? {
            return Ok(true);
        }
        let chosen = job.board.verdicts().chosen;
        if chosen == Some(epoch) {
            self.copy()?;
        }
        Ok(false)
    }

    /// Ends an evaluation that began at `began`: by the first worker, between two barriers. Decides whether the epoch is
    /// the best so far.
    fn conclude_ranking(&self, epoch: u32, began: Instant) -> Result<(), TaskError> {
        let board = self.job.board;
        board.conclude(self.phase, ManagerStats::default(), true)?;
        if board.is_cut(self.phase) {
            return Ok(());
        }
        let mut verdicts = board.verdicts();
        let metrics = RankMetrics::of(&verdicts.ranks);
        if verdicts.best.is_none_or(|best| metrics.mrr > best) {
            (verdicts.best, verdicts.chosen) = (Some(metrics.mrr), Some(epoch));
        }
        let report = verdicts.epochs.last_mut().expect("the epoch was reported");
        (report.valid, report.evaluation_seconds) = (Some(metrics), began.elapsed().as_secs_f64());
        board.progress.epoch(report);
        Ok(())
    }

    /// Copies the current parameters if none were chosen.
    fn keep_something(&mut self) -> Result<(), TaskError> {
        if self.job.board.has_failed() || self.job.board.verdicts().chosen.is_some() {
            return Ok(());
        }
        // Nobody chooses before all have looked.
        self.end_phase()?;
        self.copy()
    }

    /// Pulls the parameters of this worker's keys, in blocks.
    fn copy(&mut self) -> Result<(), TaskError> {
        let shape = self.job.shape;
        self.part.clear();
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let mut all = self.seat.copied(shape.keys()).peekable();
        while all.peek().is_some() {
            keys.clear();
            let mut floats = 0;
            while let Some(key) = all.next_if(|_| floats < COPY_FLOATS) {
                floats += shape.len_of(key);
                keys.push(key);
            }
            values.resize(floats, 0.0);
            self.parameters.pull(&keys, &mut values)?;
            let mut rest = values.as_slice();
            for key in &keys {
                let (value, behind) = rest.split_at(shape.len_of(*key));
                self.part.extend_from_slice(&value[..value.len() / 2]);
                rest = behind;
            }
        }
        Ok(())
    }
}

impl<P: Parameters> Drop for Session<'_, P> {
    /// A worker that panics ends the run: the others would train on without its part of the data.
    fn drop(&mut self) {
        if thread::panicking() {
            self.job.board.fail(self.phase, self.seat.index, TaskError::Panicked);
        }
    }
}

const PROGRESS_MILLIS: u128 = 200;

/// Floats that are pulled at once for a copy.
const COPY_FLOATS: usize = 1 << 18;

#[cfg(test)]
mod tests;
