//! What a worker does beside training and evaluating: meetings of all workers, at which checkpoints
//! are written (`checkpoints`); and the end of a run, where the chosen parameters are copied, or
//! evaluated where they are.
//!
//! | in the end | wanted | else |
//! | --- | --- | --- |
//! | an earlier epoch is chosen | copied after it | the same, and evaluated elsewhere |
//! | the last epoch is chosen, or none | copied | evaluated where they are, on test |
//! | the run was stopped | copied, if no epoch is chosen | nothing |
//! | no epoch is complete | nothing | nothing |
//!
//! If those at the end are wanted as well, and are others than those of the chosen epoch, they are
//! copied besides.

use std::time::Instant;

use adapm_runtime::checkpoint::Part;
use adapm_runtime::trace::Tracer;

use super::{Checkpointing, Job, Meeting, Resumed, Session};
use crate::run::checkpoints::Seat;
use crate::run::config::{Keep, Split};
use crate::run::error::TaskError;
use crate::run::observer::{ManagerStats, Work};
use crate::run::parameters::Snapshot;
use crate::run::queue::Round;
use crate::run::state::{Answers, Share};
use crate::run::task::{Evaluation, Form, Task};

impl<T, P> Session<'_, T, P>
where
    T: Task,
    P: Snapshot,
    TaskError: From<P::Error>,
{
    /// Takes up what a run that goes on begins with: decisions are taken over, the copy of the best
    /// parameters and the place of the next meeting are this worker's. Hands over what was read
    /// here and has its home elsewhere.
    pub(super) fn take_up(&mut self) -> Result<(), TaskError> {
        let (slot, task) = (self.slot, self.job.task);
        let first = self.first_round();
        let mut batch = 0;
        if let Some(resumed) = self.job.resumed {
            let of = |number| Some(resumed.seat(number)).filter(|seat| round_of(seat) == first);
            batch = (0..slot.all).filter_map(of).map(|seat| seat.batches).max().unwrap_or(0);
            if let Some(best) = resumed.take_best() {
                let shape = task.best_shape();
                for key in slot.copied(shape.keys()) {
                    let begin = self.copies.best.len();
                    self.copies.best.resize(begin + shape.len_of(key), 0.0);
                    let is_there = best.write(key, &mut self.copies.best[begin..]);
                    assert!(is_there, "what workers take was there when it was read");
                }
            }
        }
        let plan = |checkpoints: &Checkpointing| checkpoints.first_plan(first, batch).next;
        self.meeting = self.job.checkpoints.and_then(plan);
        if self.job.resumed.is_some_and(Resumed::hands_over) { self.hand_over() } else { Ok(()) }
    }

    /// Sets parameters that this process has read and that have their home elsewhere: this worker
    /// its share of them. All have done so in the end.
    fn hand_over(&mut self) -> Result<(), TaskError> {
        let (slot, shape, state) = (self.slot, self.job.task.shape(), self.job.state);
        if slot.is_first() {
            state.observer.working(Work::Settling, 0, 0);
        }
        if let Some(rows) = self.job.resumed.and_then(Resumed::take_elsewhere) {
            let len_of = |key| shape.len_of(key);
            self.parameters.hand_over(slot.range(shape.keys()), &rows, &len_of)?;
        }
        self.parameters.quiesce()?;
        if slot.is_first() {
            // Training is counted from here on.
            state.verdicts().trained = Some(state.stats());
        }
        Ok(())
    }

    /// Returns the first round that any worker goes through.
    pub(super) fn first_round(&self) -> Round {
        self.job.resumed.map_or(Round { epoch: 1, index: 0 }, Resumed::first)
    }

    /// Returns true if this worker meets the others before its next batch of a round.
    pub(super) fn meets(&self, round: Round) -> bool {
        let is_here = |meeting: Meeting| self.seat.batches >= meeting.batch;
        self.meets_in(round) && self.meeting.is_some_and(is_here)
    }

    /// Returns true if workers meet in this round.
    pub(super) fn meets_in(&self, round: Round) -> bool {
        let Round { epoch, index } = round;
        self.meeting.is_some_and(|meeting| (meeting.epoch, meeting.index) == (epoch, index))
    }

    /// Meets all other workers; `is_at_end`: this one has done its batches of the round, or has
    /// left it. Writes a checkpoint if that is decided.
    pub(super) fn meet(&mut self, is_at_end: bool) -> Result<(), TaskError> {
        let Some(checkpoints) = self.job.checkpoints else { return Ok(()) };
        let began = Instant::now();
        checkpoints.post(self.slot.index, self.seat, is_at_end);
        self.parameters.quiesce()?;
        if self.slot.is_first() {
            self.decide(Some(self.phase))?;
        }
        self.parameters.quiesce()?;
        let plan = checkpoints.plan();
        self.meeting = plan.next;
        if plan.writes { self.write(began) } else { Ok(()) }
    }

    /// Writes a last checkpoint, if anything has changed since the one before, and waits for it.
    /// All workers do that, wherever they are.
    pub(super) fn record_end(&mut self, is_stopped: bool) -> Result<(), TaskError> {
        let Some(checkpoints) = self.job.checkpoints else { return Ok(()) };
        let (state, began) = (self.job.state, Instant::now());
        if state.has_failed() {
            return Ok(());
        }
        self.meeting = None;
        checkpoints.post(self.slot.index, self.seat, true);
        self.parameters.quiesce()?;
        if self.slot.is_first() {
            // Parts of a folder meet by names: none begins the last one while another has not ended
            // the one before.
            checkpoints.wait(state, is_stopped.then_some(began));
            self.decide(None)?;
        }
        self.parameters.quiesce()?;
        if checkpoints.plan().writes {
            self.write(began)?;
        }
        if self.slot.is_first() {
            // None leaves before it is complete.
            checkpoints.wait(state, is_stopped.then_some(began));
            checkpoints.conclude(state.peers, state.observer)?;
        }
        Ok(self.parameters.quiesce()?)
    }

    /// Decides for all, by the first worker of each process; `phase`: of a meeting.
    fn decide(&self, phase: Option<u64>) -> Result<(), TaskError> {
        let Some(checkpoints) = self.job.checkpoints else { return Ok(()) };
        let decided = checkpoints.decide(self.job.task, self.job.state, phase);
        if decided.is_err() {
            self.job.state.give_up(self.phase);
        }
        decided
    }

    /// Copies this worker's part of the parameters, as all workers do, and hands it over.
    fn write(&mut self, began: Instant) -> Result<(), TaskError> {
        let Some(checkpoints) = self.job.checkpoints else { return Ok(()) };
        let keys = self.slot.copied(self.job.task.shape().keys());
        let best = checkpoints.saves_best().then(|| Part::new(keys, self.copies.best.clone()));
        let all = self.parameters.snapshot(checkpoints.room(self.slot.index))?;
        if self.slot.is_first() {
            checkpoints.note_pause(began.elapsed().as_secs_f64());
        }
        checkpoints.submit(self.slot.index, best, all);
        Ok(())
    }

    /// Ends the run, which may have been cut short. All workers of all processes do the same here.
    pub(super) fn end(&mut self, is_cut: bool) -> Result<(), TaskError> {
        let state = self.job.state;
        let (chosen, done) = {
            let verdicts = state.verdicts();
            (verdicts.chosen, verdicts.epochs.last().map_or(0, |epoch| epoch.epoch))
        };
        let is_trained = self.job.settings.epochs == 0 || done > 0;
        // Before an epoch is complete there are no parameters worth keeping.
        let keep = self.job.keep;
        if state.has_failed() || (keep != Keep::Nothing && !is_trained) {
            return Ok(());
        }
        if keep == Keep::BestAndLast && chosen.is_some_and(|epoch| is_cut || epoch < done) {
            // No worker decides before all have looked.
            self.end_phase()?;
            state.verdicts().has_last = true;
            self.copies.last = self.copy(Vec::new())?;
        }
        if keep != Keep::Nothing {
            if chosen.is_none() {
                self.end_phase()?;
                self.copies.best = self.copy(Vec::new())?;
            }
            return Ok(());
        }
        if is_cut || chosen.is_some_and(|epoch| epoch < self.job.settings.epochs) {
            return Ok(());
        }
        self.test()
    }

    /// Evaluates test with the parameters as they stand.
    fn test(&mut self) -> Result<(), TaskError> {
        let Job { task, settings, test, .. } = self.job;
        let evaluation = || {
            let best = self.job.state.verdicts().best.clone();
            task.evaluation(Split::Test, Form::Trained, best.as_ref())
        };
        let Some(evaluation) = test.get_or_init(|| settings.evaluate.then(evaluation).flatten())
        else {
            return Ok(());
        };
        let (state, began) = (self.job.state, Instant::now());
        if self.slot.is_first() {
            // What is traced is training.
            settings.trace.into_iter().for_each(Tracer::end);
            state.verdicts().answers = Answers::to(evaluation);
        }
        self.end_phase()?;
        let share = Share { evaluation, slot: self.slot, phase: self.phase };
        share.evaluate(&mut evaluation.evaluator(), &mut self.parameters, state)?;
        self.parameters.quiesce()?;
        if self.slot.is_first() {
            state.conclude(self.phase, ManagerStats::default(), true)?;
            if !state.is_cut(self.phase) {
                let mut verdicts = state.verdicts();
                let figures = evaluation.figures(verdicts.answers.items());
                verdicts.test = Some((figures, began.elapsed().as_secs_f64()));
            }
        }
        self.end_phase().map(drop)
    }

    /// Pulls the best parameters of this worker's keys, in blocks, into the room of an earlier
    /// copy, without what the optimizer keeps. Tells how far it is.
    pub(super) fn copy(&mut self, mut part: Vec<f32>) -> Result<Vec<f32>, TaskError> {
        let (shape, kept) = (self.job.task.shape(), self.job.task.best_shape());
        let (state, slot) = (self.job.state, self.slot);
        let own = || slot.copied(shape.keys());
        part.clear();
        // A vector that grew as it likes would take up to twice the room.
        part.reserve_exact(own().map(|key| kept.len_of(key)).sum());
        state.reset(slot.index);
        let (mut keys, mut values, mut told, mut done) =
            (Vec::new(), Vec::new(), Instant::now(), 0);
        let mut all = own().peekable();
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
                part.extend_from_slice(&value[..kept.len_of(*key)]);
                rest = behind;
            }
            done += keys.len() as u64;
            state.tally(slot.index, done, 0.0);
            if slot.is_first() && told.elapsed().as_millis() >= super::PROGRESS_MILLIS {
                told = Instant::now();
                let done = state.estimate_by_process(shape.keys());
                state.observer.working(Work::Copying, done, shape.keys());
            }
        }
        Ok(part)
    }
}

fn round_of(seat: &Seat) -> Round {
    Round { epoch: seat.epoch, index: seat.index }
}

/// Floats that are pulled at once for a copy.
const COPY_FLOATS: usize = 1 << 18;
