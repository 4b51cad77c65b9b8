//! Meetings of all workers, at which checkpoints are written (`checkpoints`): where they are, and
//! what a worker does there.

use std::time::Instant;

use super::Session;
use crate::run::checkpoints::Seat;
use crate::run::error::TaskError;
use crate::run::observer::Work;
use crate::run::parameters::Parameters;
use crate::run::queue::Round;
use crate::run::task::Task;

impl<T, P> Session<'_, T, P>
where
    T: Task,
    P: Parameters,
    TaskError: From<P::Error>,
{
    /// Takes up what a run that goes on begins with: decisions are taken over, the copy of the best
    /// parameters and the place of the next meeting are this worker's.
    pub(super) fn take_up(&mut self) {
        let (slot, task) = (self.slot, self.job.task);
        let first = self.first_round();
        let mut batch = 0;
        if let Some(resumed) = self.job.resumed {
            let of = |number| Some(resumed.seat(number)).filter(|seat| round_of(seat) == first);
            batch = (0..slot.all).filter_map(of).map(|seat| seat.batches).max().unwrap_or(0);
            if let Some(best) = &resumed.best {
                let shape = task.best_shape();
                for key in slot.copied(shape.keys()) {
                    let begin = self.copies.best.len();
                    self.copies.best.resize(begin + shape.len_of(key), 0.0);
                    best.write(key, &mut self.copies.best[begin..]);
                }
            }
        }
        let plan = |checkpoints: &super::Checkpointing| checkpoints.first_plan(first, batch).next;
        self.meeting = self.job.checkpoints.and_then(plan);
    }

    /// Returns the first round that any worker goes through.
    pub(super) fn first_round(&self) -> Round {
        self.job.resumed.map_or(Round { epoch: 1, index: 0 }, super::Resumed::first)
    }

    /// Returns true if this worker meets the others before its next batch of a round.
    pub(super) fn meets(&self, round: Round) -> bool {
        let is_here = |meeting: super::Meeting| self.seat.batches >= meeting.batch;
        self.meets_in(round) && self.meeting.is_some_and(is_here)
    }

    /// Returns true if workers meet in this round.
    pub(super) fn meets_in(&self, round: Round) -> bool {
        let Round { epoch, index } = round;
        self.meeting.is_some_and(|meeting| (meeting.epoch, meeting.index) == (epoch, index))
    }

    /// Meets all other workers; `is_at_end`: this one has done its batches of the round, or has left
    /// it. Writes a checkpoint if that is decided.
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
        if plan.writes { self.write(began, false) } else { Ok(()) }
    }

    /// Writes a last checkpoint, if anything has changed since the one before, and waits for it. All
    /// workers do that, wherever they are.
    pub(super) fn record_end(&mut self) -> Result<(), TaskError> {
        let Some(checkpoints) = self.job.checkpoints else { return Ok(()) };
        let (state, began) = (self.job.state, Instant::now());
        if state.has_failed() {
            return Ok(());
        }
        self.meeting = None;
        checkpoints.post(self.slot.index, self.seat, true);
        self.parameters.quiesce()?;
        if self.slot.is_first() {
            self.decide(None)?;
        }
        self.parameters.quiesce()?;
        if checkpoints.plan().writes {
            self.write(began, true)?;
        }
        if self.slot.is_first() {
            // None leaves before it is complete.
            checkpoints.wait(state.observer);
            state.peers.share(Ok(()))?;
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

    /// Copies the parameters of this worker's keys, and hands them over. `is_last`: it tells how far
    /// it is, as training is over.
    fn write(&mut self, began: Instant, is_last: bool) -> Result<(), TaskError> {
        let Some(checkpoints) = self.job.checkpoints else { return Ok(()) };
        let best = checkpoints.saves_best().then(|| self.copies.best.clone());
        let shape = self.job.task.shape();
        let work = is_last.then_some(Work::Checkpointing);
        let values = self.copy_as(Vec::new(), &shape, work)?;
        let keys = self.slot.copied(shape.keys()).collect();
        // Nobody pushes before all have copied.
        self.parameters.quiesce()?;
        if self.slot.is_first() {
            checkpoints.note_pause(began.elapsed().as_secs_f64());
        }
        checkpoints.submit(self.slot.index, keys, best, values);
        Ok(())
    }
}

fn round_of(seat: &Seat) -> Round {
    Round { epoch: seat.epoch, index: seat.index }
}
