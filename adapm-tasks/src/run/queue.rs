//! The queue between a loader thread and its worker.
//!
//! The queue bounds how far ahead a loader is: it signals intent for a batch, then queues it, so
//! intent comes as many batches before the use as the queue holds (AdaPM §3, Fig. 2). The loader
//! runs on through the ends of rounds and epochs, so that the first batches of one are as early as
//! any.
//!
//! A worker gives room back in lots: woken for every batch, a loader that is done with one in no
//! time would interrupt some worker each time.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};

use adapm_core::Clock;
use adapm_core::error::OpError;

use crate::run::error::TaskError;

/// A part of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The epoch, from 1.
    pub epoch: u32,
    /// The round of the epoch, from 0.
    pub index: u32,
}

/// A place in the order of a worker's data, at which a loader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cursor {
    /// The round.
    pub round: Round,
    /// Batches of the round before the first one that is loaded.
    pub batch: usize,
    /// The worker's clock at that batch: it depends on the batches before it.
    pub clock: Clock,
}

impl Cursor {
    /// The first batch of a run.
    pub(crate) const START: Self =
        Self { round: Round { epoch: 1, index: 0 }, batch: 0, clock: Clock(0) };
}

/// The loader's end.
#[derive(Debug)]
pub struct Queue<U> {
    sender: Sender<Loaded<U>>,
    /// Batches that may be sent, besides the next one, before there is more room.
    room: Cell<usize>,
    /// Receives a message for each lot of batches that was taken.
    taken: Receiver<()>,
    lot: usize,
    round: Round,
    /// Samples prepared since the last batch.
    samples: Cell<u64>,
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct Batches<U> {
    receiver: Receiver<Loaded<U>>,
    taken: Sender<()>,
    lot: usize,
    /// Batches taken of the running lot.
    of_lot: usize,
    /// The first batch of a round to come.
    next: Option<(Round, Counted<U>)>,
}

/// A batch, and the samples that were prepared for it.
#[derive(Debug, PartialEq)]
pub(crate) struct Counted<U> {
    pub(crate) batch: U,
    pub(crate) samples: u64,
}

/// A batch with its round, or why there is none.
type Loaded<U> = Result<(Round, Counted<U>), TaskError>;

/// The reason why a loader ends early.
#[derive(Debug)]
#[non_exhaustive]
pub enum Over {
    /// The worker takes no more.
    Left,
    /// Loading failed.
    Failed(TaskError),
}

impl From<OpError> for Over {
    fn from(error: OpError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<TaskError> for Over {
    fn from(error: TaskError) -> Self {
        Self::Failed(error)
    }
}

/// Returns a queue for a loader that is `prefetch_depth` batches ahead, and three quarters of that
/// before it goes on.
pub(crate) fn queue<U>(depth: usize) -> (Queue<U>, Batches<U>) {
    let (sender, receiver) = channel();
    let (taken, given_back) = channel();
    let lot = (depth / 4).max(1);
    let room = Cell::new(depth.saturating_sub(1));
    let (round, samples) = (Cursor::START.round, Cell::new(0));
    let queue = Queue { sender, room, taken: given_back, lot, round, samples };
    (queue, Batches { receiver, taken, lot, of_lot: 0, next: None })
}

impl<U> Queue<U> {
    /// Hands over the next batch of the running round, then waits until there is room for one more:
    /// so the loader signals intent for none that would have to wait.
    ///
    /// # Errors
    ///
    /// The worker takes no more.
    pub fn send(&self, batch: U) -> Result<(), Over> {
        let counted = Counted { batch, samples: self.samples.take() };
        self.sender.send(Ok((self.round, counted))).map_err(|_| Over::Left)?;
        while self.room.get() == 0 {
            self.taken.recv().map_err(|_| Over::Left)?;
            self.room.set(self.lot);
        }
        self.room.set(self.room.get() - 1);
        Ok(())
    }

    /// Counts a sample of the next batch.
    pub(crate) fn count_sample(&self) {
        self.samples.set(self.samples.get() + 1);
    }

    /// Loads all rounds of all epochs from `start` on by `load`, which returns the clock after
    /// their last batch, or until it is over.
    pub(crate) fn fill(
        mut self,
        start: Cursor,
        epochs: u32,
        rounds: u32,
        mut load: impl FnMut(Cursor, &Self) -> Result<Clock, Over>,
    ) {
        let (first, mut cursor) = (start.round, start);
        for epoch in first.epoch..=epochs {
            let from = if epoch == first.epoch { first.index } else { 0 };
            for index in from..rounds {
                self.round = Round { epoch, index };
                cursor.round = self.round;
                match load(cursor, &self) {
                    Ok(clock) => cursor = Cursor { batch: 0, clock, ..cursor },
                    Err(Over::Left) => return,
                    Err(Over::Failed(error)) => return self.fail(error),
                }
            }
        }
    }
}

impl<U> Queue<U> {
    /// Reports to the worker, after the batches that were loaded, why no more come.
    pub(crate) fn fail(self, error: TaskError) {
        // A worker that is gone knows better why.
        let _ = self.sender.send(Err(error));
    }
}

impl<U> Batches<U> {
    /// Returns the next batch of `round` without its count.
    #[cfg(test)]
    pub(crate) fn next(&mut self, round: Round) -> Result<Option<U>, TaskError> {
        Ok(self.next_counted(round)?.map(|counted| counted.batch))
    }

    /// Returns the next batch of `round`; `None` at its end. Rounds are asked for in order, each to
    /// its end.
    ///
    /// # Errors
    ///
    /// Why loading failed.
    pub(crate) fn next_counted(&mut self, round: Round) -> Result<Option<Counted<U>>, TaskError> {
        let (of, batch) = match self.next.take() {
            Some(next) => next,
            None => match self.receiver.recv() {
                Ok(loaded) => {
                    self.give_back();
                    loaded?
                }
                Err(_) => return Ok(None),
            },
        };
        if of == round {
            return Ok(Some(batch));
        }
        self.next = Some((of, batch));
        Ok(None)
    }

    fn give_back(&mut self) {
        self.of_lot += 1;
        if self.of_lot == self.lot {
            self.of_lot = 0;
            // A loader that is done needs no room.
            let _ = self.taken.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const ROUNDS: [Round; 4] = [
        Round { epoch: 1, index: 0 },
        Round { epoch: 1, index: 1 },
        Round { epoch: 2, index: 0 },
        Round { epoch: 2, index: 1 },
    ];

    #[test]
    fn units_come_round_by_round_also_where_one_has_none() {
        let (queue, mut batches) = queue(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                queue.fill(Cursor::START, 2, 2, |cursor, queue| {
                    let batches = if cursor.round == ROUNDS[1] { 0 } else { 3 };
                    let first = 10 * cursor.round.epoch;
                    (first..first + batches).try_for_each(|batch| queue.send(batch))?;
                    Ok(cursor.clock)
                });
            });
            let mut of = |round| {
                std::iter::from_fn(|| batches.next(round).expect("loading does not fail"))
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                ROUNDS.map(&mut of),
                [vec![10, 11, 12], vec![], vec![20, 21, 22], vec![20, 21, 22]]
            );
            assert_eq!(of(ROUNDS[3]), [0_u32; 0]);
        });
    }

    #[test]
    fn loading_begins_at_a_cursor_and_goes_on_with_the_clock_that_it_ends_at() {
        let (queue, mut batches) = queue(100);
        let start = Cursor { round: ROUNDS[1], batch: 2, clock: Clock(12) };
        queue.fill(start, 2, 2, |cursor, queue| {
            queue.send(cursor)?;
            Ok(cursor.clock + 5)
        });
        let expected = [
            start,
            Cursor { round: ROUNDS[2], batch: 0, clock: Clock(17) },
            Cursor { round: ROUNDS[3], batch: 0, clock: Clock(22) },
        ];
        for cursor in expected {
            assert_eq!(batches.next(cursor.round).expect("was loaded"), Some(cursor));
            assert_eq!(batches.next(cursor.round).expect("is over"), None);
        }
    }

    #[test]
    fn a_loader_that_fails_says_so_behind_what_it_has_loaded() {
        let (queue, mut batches) = queue(8);
        queue.fill(Cursor::START, 1, 1, |_, queue| {
            queue.send(1)?;
            Err(OpError::NoSampling.into())
        });
        assert_eq!(batches.next(ROUNDS[0]).expect("was loaded"), Some(1));
        assert!(matches!(batches.next(ROUNDS[0]), Err(TaskError::Access(OpError::NoSampling))));
        assert_eq!(batches.next(ROUNDS[0]).expect("is told once"), None);
    }

    #[test]
    fn a_loader_ends_when_its_worker_takes_no_more() {
        let (queue, batches) = queue(1);
        drop(batches);
        queue.fill(Cursor::START, u32::MAX, 1, |cursor, queue| {
            queue.send(1)?;
            Ok(cursor.clock)
        });
    }
}
