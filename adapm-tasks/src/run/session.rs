//! A worker's session in a training run: epochs, evaluation of valid in between, a copy of its part
//! of the best parameters.
//!
//! ```text
//!   quiesce | train a batch ... | quiesce | first worker: epoch report | evaluate a share of valid | quiesce |
//!           first worker: is it the best? | quiesce | copy a part of the parameters | next epoch
//! ```
//!
//! A copy takes memory, and is made only if it is needed: because a later epoch may be worse, or
//! because the parameters are wanted. In the end test is evaluated where the parameters are, if
//! they are the chosen ones (`ending`).
//!
//! If an epoch has several rounds, all workers quiesce between two of them, also one that has left
//! the phase early.
//!
//! A phase ends with a quiesce, which is a barrier too. Only the first worker decides, between two
//! of them, and writes the decision on the [`RunState`]. If nodes are processes, the first worker
//! of each decides the same from the same summaries:
//!
//! ```text
//!   n0 w0:  ... quiesce | summary, all summaries, decide | quiesce ...
//!   n0 w1:  ... quiesce |                         | quiesce ... reads the decision
//!   n1 w0:  ... quiesce | summary, all summaries, decide | quiesce ...
//! ```
//!
//! A first worker has nothing to do between a quiesce and the exchange that could fail, and one
//! that fails elsewhere gives the reason at the exchange the others come to next: all reach it, or
//! none waits.

mod ending;

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::error::OpError;
use adapm_core::{Clock, Key};
use adapm_transport::threads;

use crate::run::checkpoints::{Checkpointing, Meeting, Resumed, Seat};
use crate::run::config::Keep;
use crate::run::error::TaskError;
use crate::run::observer::{Epoch, ManagerStats, Training, Work};
use crate::run::parameters::{IntentSignaler, Parameters, Snapshot};
use crate::run::queue::{self, Batches, Counted, Cursor, Queue, Round};
use crate::run::settings::Settings;
use crate::run::state::{Answers, RunState, Share};
use crate::run::task::{Batch, Course, Evaluation, FiguresOf, StepError, Task};
use crate::run::topology::WorkerSlot;

/// The state that all workers of a run share.
pub(crate) struct Job<'a, T: Task> {
    pub(crate) task: &'a T,
    pub(crate) settings: Settings<'a>,
    /// The evaluation of valid; `None` if there is none.
    pub(crate) valid: Option<&'a T::Evaluation>,
    /// The evaluation of test with the parameters that are trained, if there is one; made when
    /// first needed.
    pub(crate) test: &'a OnceLock<Option<T::Evaluation>>,
    /// The parameters that are wanted.
    pub(crate) keep: Keep,
    pub(crate) state: &'a RunState<'a, T::Evaluation>,
    /// Checkpoints, if the run has any.
    pub(crate) checkpoints: Option<&'a Checkpointing>,
    /// What a run that goes on begins with.
    pub(crate) resumed: Option<&'a Resumed<FiguresOf<T>>>,
}

/// A batch of a task, with samples of these parameters.
type Taken<T, P> = Counted<<T as Task>::Batch<<P as Parameters>::Sample>>;

/// One worker of a run.
pub(crate) struct Session<'a, T: Task, P> {
    job: &'a Job<'a, T>,
    slot: WorkerSlot,
    parameters: P,
    worker_state: T::WorkerState,
    copies: Copies,
    /// Phases that have ended.
    phase: u64,
    /// The place in the data, and what is done of the epoch.
    seat: Seat,
    /// Where all workers meet next.
    meeting: Option<Meeting>,
}

/// Copies of the parameters of a worker's keys ([`WorkerSlot::copied`]); none if they are not
/// needed any more.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Of the chosen epoch.
    pub(crate) best: Vec<f32>,
    /// As they were at the end.
    pub(crate) last: Vec<f32>,
}

impl<'a, T, P> Session<'a, T, P>
where
    T: Task,
    P: Snapshot,
    TaskError: From<P::Error>,
{
    pub(crate) fn new(job: &'a Job<'a, T>, slot: WorkerSlot, parameters: P) -> Self {
        Self {
            job,
            slot,
            parameters,
            worker_state: job.task.worker_state(),
            copies: Copies::default(),
            phase: 0,
            seat: job.resumed.map_or(Seat::START, |resumed| resumed.seat(slot.number)),
            meeting: None,
        }
    }

    /// Runs through the run and returns the copies of the parameters that are needed behind it.
    pub(crate) fn run<A>(self, signaler: A) -> Result<Copies, TaskError>
    where
        A: IntentSignaler<Sample = P::Sample> + Send,
    {
        let (peers, is_first) = (self.job.state.peers, self.slot.is_first());
        // The worker has ended before the others are notified: they may have to pass a barrier,
        // which it would hold up.
        let live = move || self.live(signaler);
        if is_first { peers.told_of(live) } else { live() }
    }

    fn live<A>(mut self, mut signaler: A) -> Result<Copies, TaskError>
    where
        A: IntentSignaler<Sample = P::Sample> + Send,
    {
        self.take_up()?;
        signaler.skip_samples(self.seat.samples);
        let (task, epochs) = (self.job.task, self.job.settings.epochs);
        let state = self.job.state;
        let loader =
            task.loader(self.slot, &|done, all| state.observer.working(Work::Dividing, done, all));
        let (queue, batches) = queue::queue(task.prefetch_depth());
        let Seat { epoch, index, batches: batch, .. } = self.seat;
        let batch = usize::try_from(batch).unwrap_or(usize::MAX);
        let start = Cursor { round: Round { epoch, index }, batch, clock: Clock(0) };
        let parts = Mutex::new(Some((loader, signaler, queue)));
        let take = || parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        let load = || {
            let (loader, signaler, queue) = take().expect("they are taken once");
            load(task, start, epochs, loader, signaler, queue);
        };
        thread::scope(|scope| {
            let name = format!("adapm loader {}", self.slot.index);
            if let Err(refusal) = threads::spawn_scoped(scope, name, load) {
                // The worker leaves its first phase by that, as it does if loading fails: so all
                // get to know.
                let (.., queue) = take().expect("nobody else took them");
                queue.fail(TaskError::Thread(refusal));
            }
            self.epochs(batches)
        })?;
        Ok(std::mem::take(&mut self.copies))
    }

    /// Runs all epochs. Takes the queue, so that the loader ends when this does.
    fn epochs(&mut self, mut batches: Batches<T::Batch<P::Sample>>) -> Result<(), TaskError> {
        let first = self.first_round();
        // A run that has ended by itself does so again.
        let begins_epoch = self.job.resumed.is_some_and(Resumed::begins_epoch);
        let is_over = first.epoch > 1 && begins_epoch && self.is_over(first.epoch - 1);
        let epochs = if is_over { 0 } else { self.job.settings.epochs };
        for epoch in first.epoch..=epochs {
            if epoch == first.epoch && self.slot.is_first() {
                self.job.state.observer.working(Work::Settling, 0, 0);
            }
            // All have copied what they wanted to, and what was signaled meanwhile and is due has
            // been acted on.
            self.parameters.quiesce()?;
            self.parameters.settle()?;
            if self.slot.is_first() {
                let stats = self.job.state.stats();
                let mut verdicts = self.job.state.verdicts();
                let ended = verdicts.trained;
                let before = ended.map_or(stats.placed(), |ended| stats.placed_since(&ended));
                let earlier = self.job.resumed.filter(|_| epoch == first.epoch);
                let earlier = earlier.map_or(Duration::ZERO, Resumed::earlier);
                let now = Instant::now();
                verdicts.started = Some((now.checked_sub(earlier).unwrap_or(now), before));
                drop(verdicts);
                self.mark(&format!("epoch {epoch}"));
            }
            self.end_phase()?;
            if epoch == first.epoch && self.slot.is_first() {
                self.job.state.observer.begins();
            }
            self.train(epoch, &mut batches)?;
            self.parameters.quiesce()?;
            if self.slot.is_first() {
                self.conclude_training(epoch)?;
            }
            let is_cut = self.end_phase()?;
            if is_cut || self.select(epoch)? {
                self.record_end(true)?;
                return self.end(true);
            }
            self.seat = self.seat.at(epoch + 1, 0);
            // All read the same: no worker adds an epoch before all have begun the next one.
            if self.is_over(epoch) {
                break;
            }
        }
        self.record_end(false)?;
        self.end(false)
    }

    /// Returns true if training ends after this epoch, before the epochs that are asked for are
    /// done.
    fn is_over(&self, epoch: u32) -> bool {
        let Job { task, settings, valid, state, .. } = *self.job;
        let verdicts = state.verdicts();
        if task.is_over(&verdicts.epochs) {
            return true;
        }
        let is_looked_at = valid.is_none() || self.due(epoch).is_some();
        let Some(patience) = settings.patience.filter(|_| is_looked_at) else { return false };
        let progress = if valid.is_some() { verdicts.chosen } else { best_loss(&verdicts.epochs) };
        epoch.saturating_sub(progress.unwrap_or(0)) >= patience
    }

    /// Ends a phase: all workers have come here, and everything pushed is applied everywhere.
    /// Returns true if a worker left the phase early.
    fn end_phase(&mut self) -> Result<bool, TaskError> {
        self.parameters.quiesce()?;
        self.phase += 1;
        Ok(self.job.state.is_cut(self.phase - 1))
    }

    /// Trains on this worker's part of the data.
    fn train(
        &mut self,
        epoch: u32,
        batches: &mut Batches<T::Batch<P::Sample>>,
    ) -> Result<(), TaskError> {
        let state = self.job.state;
        let first = self.first_round();
        let first = if first.epoch == epoch { first.index } else { 0 };
        state.tally(self.slot.index, self.seat.done, f64::from_bits(self.seat.loss));
        let losses: Vec<f64> = {
            let epochs = &state.verdicts().epochs;
            self.job.task.prepare(&mut self.worker_state, epochs);
            epochs.iter().map(|epoch| epoch.loss).collect()
        };
        let (mut told, mut goes_on) = (Instant::now(), true);
        for index in first..self.job.task.rounds() {
            if index > first {
                self.parameters.quiesce()?;
                self.parameters.settle()?;
            }
            let round = Round { epoch, index };
            let timed = self.job.checkpoints.filter(|_| self.slot.is_first());
            timed.iter().for_each(|checkpoints| checkpoints.begin_round());
            let is_whole = index > first || self.seat.batches == 0;
            // Of a run that goes on, some workers may have been further.
            if goes_on && index >= self.seat.index {
                if index > self.seat.index {
                    self.seat = Seat { index, batches: 0, ..self.seat };
                }
                goes_on = self.train_round(round, batches, &losses, &mut told)?;
            }
            while self.meets_in(round) {
                self.meet(true)?;
            }
            timed.iter().for_each(|checkpoints| checkpoints.end_round(index, is_whole && goes_on));
        }
        Ok(())
    }

    /// Trains on this worker's part of a round. Returns true if it has come to its end.
    fn train_round(
        &mut self,
        round: Round,
        batches: &mut Batches<T::Batch<P::Sample>>,
        losses: &[f64],
        told: &mut Instant,
    ) -> Result<bool, TaskError> {
        let state = self.job.state;
        let mut next = match self.next(round, batches) {
            Ok(next) => next,
            Err(error) => return self.leave(error),
        };
        loop {
            if self.meets(round) {
                self.meet(next.is_none())?;
            }
            let Some(Counted { mut batch, samples }) = next.take() else { return Ok(true) };
            next = match self.next(round, batches) {
                Ok(next) => next,
                Err(error) => return self.leave(error),
            };
            if state.must_stop(self.phase) {
                return Ok(false);
            }
            let learning_rate = self.learning_rate(round.epoch, losses);
            let (task, worker_state) = (self.job.task, &mut self.worker_state);
            let loss =
                match task.train(worker_state, &mut batch, learning_rate, &mut self.parameters) {
                    Ok(loss) => loss,
                    Err(StepError::NotFinite(key)) => {
                        let (name, step) = (task.name_of(key), batch.clock().0);
                        return self.leave(TaskError::NotFinite {
                            key: key.0,
                            name,
                            step,
                            learning_rate,
                        });
                    }
                    Err(StepError::Access(error)) => return self.leave(error.into()),
                };
            self.seat.add(batch.examples(), loss, samples);
            state.tally(self.slot.index, self.seat.done, f64::from_bits(self.seat.loss));
            if self.slot.is_first() && told.elapsed().as_millis() >= PROGRESS_MILLIS {
                *told = Instant::now();
                self.tell(round.epoch);
            }
        }
    }

    /// Takes the next batch of a round, and settles on its sample one step before it is trained on.
    fn next(
        &mut self,
        round: Round,
        batches: &mut Batches<T::Batch<P::Sample>>,
    ) -> Result<Option<Taken<T, P>>, TaskError> {
        let mut next = batches.next_counted(round)?;
        if let Some(sample) = next.as_mut().and_then(|next| next.batch.sample()) {
            self.parameters.choose_sample(sample)?;
        }
        Ok(next)
    }

    /// Leaves training for a reason: an operation that failed ends this worker, anything else ends
    /// the run for all together, where this phase ends.
    fn leave(&self, error: TaskError) -> Result<bool, TaskError> {
        let state = self.job.state;
        if matches!(error, TaskError::Access(_)) {
            state.cut(self.phase);
            return Err(error);
        }
        state.fail(self.phase, self.slot.index, error);
        Ok(false)
    }

    fn learning_rate(&self, epoch: u32, losses: &[f64]) -> f32 {
        let Job { task, settings, state, .. } = self.job;
        let examples = task.examples();
        let done = state.estimate(examples);
        task.learning_rate(&Course { epoch, epochs: settings.epochs, done, examples, losses })
    }

    /// Reports the progress of training to the observer, as far as this process knows it.
    fn tell(&self, epoch: u32) {
        let state = self.job.state;
        let (done, loss) = state.totals();
        // A loss that is evaluated at the end of an epoch is not known before.
        let mean =
            if self.job.task.judged().is_some() { f64::NAN } else { loss / done.max(1) as f64 };
        self.tell_of(epoch, state.estimate(self.job.task.examples()), mean);
    }

    fn tell_of(&self, epoch: u32, done: u64, loss: f64) {
        let state = self.job.state;
        let started = state.verdicts().started;
        let before = started.map_or(ManagerStats::default(), |(_, before)| before);
        state.observer.training(&Training {
            epoch,
            epochs: self.job.settings.epochs,
            may_end_early: self.job.task.may_end_early() || self.job.settings.patience.is_some(),
            done,
            total: self.job.task.examples(),
            loss,
            seconds: started.map_or(0.0, |(at, _)| at.elapsed().as_secs_f64()),
            stats: state.stats().since(&before),
        });
    }

    /// Ends an epoch's training: by the first worker, between two barriers. Reports it if it is
    /// complete.
    fn conclude_training(&self, epoch: u32) -> Result<(), TaskError> {
        let state = self.job.state;
        let stats = state.stats();
        let (at, before) =
            state.verdicts().started.unwrap_or((Instant::now(), ManagerStats::default()));
        let seconds = at.elapsed().as_secs_f64();
        let totals = state.conclude(self.phase, stats.since(&before), false)?;
        if state.is_cut(self.phase) {
            return Ok(());
        }
        let loss = totals.loss / self.job.task.judged().unwrap_or(totals.done).max(1) as f64;
        self.tell_of(epoch, totals.done, loss);
        let mut verdicts = state.verdicts();
        verdicts.trained = Some(stats);
        let so_far = verdicts.epochs.last().map_or(ManagerStats::default(), |last| last.stats);
        verdicts.epochs.push(Epoch {
            epoch,
            seconds,
            loss,
            examples: totals.done,
            valid: None,
            evaluation_seconds: 0.0,
            stats: so_far.plus(&totals.stats),
            epoch_stats: totals.stats,
        });
        match self.due(epoch) {
            Some(evaluation) => verdicts.answers = Answers::to(evaluation),
            None => state.observer.epoch(verdicts.epochs.last().expect("pushed above")),
        }
        Ok(())
    }

    /// Marks in the trace, if there is one, what begins.
    fn mark(&self, what: &str) {
        self.job.settings.trace.iter().for_each(|tracer| tracer.mark(what));
    }

    /// Returns the evaluation that is due after this epoch.
    fn due(&self, epoch: u32) -> Option<&'a T::Evaluation> {
        let settings = self.job.settings;
        let is_due = epoch == settings.epochs || epoch.is_multiple_of(settings.valid_every);
        self.job.valid.filter(|_| is_due)
    }

    /// Evaluates valid if that is due, and copies the parameters if they are the best so far.
    /// Returns true if a worker left early.
    fn select(&mut self, epoch: u32) -> Result<bool, TaskError> {
        let state = self.job.state;
        let Some(evaluation) = self.due(epoch) else { return Ok(false) };
        let began = Instant::now();
        if self.slot.is_first() {
            self.mark(evaluation.split().name());
        }
        let share = Share { evaluation, slot: self.slot, phase: self.phase };
        share.evaluate(&mut evaluation.evaluator(), &mut self.parameters, state)?;
        self.parameters.quiesce()?;
        if self.slot.is_first() {
            self.conclude_evaluation(epoch, evaluation, began)?;
        }
        if self.end_phase()? {
            return Ok(true);
        }
        let chosen = state.verdicts().chosen;
        // After the last epoch the parameters stay as they are.
        if chosen == Some(epoch)
            && (self.job.keep != Keep::Nothing
                || self.job.checkpoints.is_some()
                || epoch < self.job.settings.epochs)
        {
            let before = std::mem::take(&mut self.copies.best);
            self.copies.best = self.copy(before)?;
        }
        Ok(false)
    }

    /// Ends an evaluation that began at `began`: by the first worker, between two barriers. Decides
    /// whether the epoch is the best so far.
    fn conclude_evaluation(
        &self,
        epoch: u32,
        evaluation: &T::Evaluation,
        began: Instant,
    ) -> Result<(), TaskError> {
        let state = self.job.state;
        state.conclude(self.phase, ManagerStats::default(), true)?;
        if state.is_cut(self.phase) {
            return Ok(());
        }
        let mut verdicts = state.verdicts();
        let figures = evaluation.figures(verdicts.answers.items());
        if verdicts.best.as_ref().is_none_or(|best| self.job.task.is_better(&figures, best)) {
            (verdicts.best, verdicts.chosen) = (Some(figures.clone()), Some(epoch));
        }
        let report = verdicts.epochs.last_mut().expect("the epoch was reported");
        (report.valid, report.evaluation_seconds) = (Some(figures), began.elapsed().as_secs_f64());
        state.observer.epoch(report);
        Ok(())
    }
}

impl<T: Task, P> Drop for Session<'_, T, P> {
    /// A worker that panics ends the run: the others would train on without its part of the data.
    fn drop(&mut self) {
        if thread::panicking() {
            self.job.state.fail(self.phase, self.slot.index, TaskError::Panicked);
        }
    }
}

/// Runs the loader of a worker from `start` to the end of a run.
pub(crate) fn load<T: Task, A: IntentSignaler>(
    task: &T,
    start: Cursor,
    epochs: u32,
    mut loader: T::Loader,
    mut signaler: A,
    queue: Queue<T::Batch<A::Sample>>,
) {
    queue.fill(start, epochs, task.rounds(), |start, queue| {
        task.load(&mut loader, start, &mut Counting { signaler: &mut signaler, queue }, queue)
    });
}

/// A signaler whose samples are counted, for the place of a worker in its draws.
struct Counting<'a, A, U> {
    signaler: &'a mut A,
    queue: &'a Queue<U>,
}

impl<A: IntentSignaler, U> IntentSignaler for Counting<'_, A, U> {
    type Sample = A::Sample;

    fn signal_intent(&mut self, keys: &[Key], clocks: Range<Clock>) -> Result<(), OpError> {
        self.signaler.signal_intent(keys, clocks)
    }

    fn skip_samples(&mut self, samples: u64) {
        self.signaler.skip_samples(samples);
    }

    fn prepare_sample(&mut self, n: usize, clocks: Range<Clock>) -> Result<A::Sample, OpError> {
        self.queue.count_sample();
        self.signaler.prepare_sample(n, clocks)
    }
}

/// Returns the epoch with the least loss, the first of several; `None` if no loss is a number.
fn best_loss<F>(epochs: &[Epoch<F>]) -> Option<u32> {
    let losses = epochs.iter().filter(|epoch| !epoch.loss.is_nan());
    losses.min_by(|a, b| a.loss.total_cmp(&b.loss)).map(|epoch| epoch.epoch)
}

const PROGRESS_MILLIS: u128 = 200;
