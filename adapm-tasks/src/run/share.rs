//! How an evaluation is shared out: which worker examines which items, and where its answers go.

use std::ops::Range;

use crate::run::board::Board;
use crate::run::crew::Seat;
use crate::run::parameters::Parameters;
use crate::run::task::Examination;

/// What is found out about each item, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answers<A> {
    items: Vec<A>,
    /// Items that one worker examines together, at most.
    batch: usize,
}

impl<A: Clone + Default> Answers<A> {
    /// Nothing is examined.
    pub(crate) fn none() -> Self {
        Self { items: Vec::new(), batch: 1 }
    }

    /// No answer yet to what `examination` examines.
    pub(crate) fn to(examination: &impl Examination<Answer = A>) -> Self {
        Self { items: vec![A::default(); examination.items()], batch: examination.batch() }
    }

    /// All answers, in order.
    pub(crate) fn items(&self) -> &[A] {
        &self.items
    }

    /// All answers, in order.
    pub(crate) fn into_items(self) -> Vec<A> {
        self.items
    }

    /// Which items one of `workers` workers examines: every `workers`-th batch, batches being smaller where items are few, so
    /// that few workers have none.
    fn places(&self, worker: usize, workers: usize) -> impl Iterator<Item = Range<usize>> + use<A> {
        places(self.items.len(), self.batch, worker, workers)
    }

    /// The answers of `workers` among `all`, worker by worker.
    pub(crate) fn of(&self, workers: Range<usize>, all: usize) -> impl Iterator<Item = &A> {
        workers.flat_map(move |worker| self.places(worker, all)).flat_map(|place| &self.items[place])
    }

    /// Takes over the answers of `workers` among `all`; `None` if they are not as many as these have items.
    pub(crate) fn take(&mut self, workers: Range<usize>, all: usize, told: &[A]) -> Option<()> {
        let mut rest = told;
        for worker in workers {
            for place in self.places(worker, all) {
                let told = rest.split_off(..place.len())?;
                self.items[place].clone_from_slice(told);
            }
        }
        rest.is_empty().then_some(())
    }
}

/// One worker's share in an evaluation.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a, E> {
    pub(crate) examination: &'a E,
    pub(crate) seat: Seat,
    /// Number of this phase, for stopping it.
    pub(crate) phase: u64,
}

impl<E: Examination> Share<'_, E> {
    /// Examines this worker's batches and writes the answers to their places on the board. Leaves early if told to stop.
    pub(crate) fn examine<P: Parameters>(
        self,
        examiner: &mut E::Examiner,
        parameters: &mut P,
        board: &Board<'_, E>,
    ) -> Result<(), P::Error> {
        board.reset(self.seat.index);
        let (split, all) = (self.examination.split(), self.examination.items() as u64);
        let places = board.verdicts().answers.places(self.seat.number, self.seat.all);
        let (mut answers, mut done) = (Vec::new(), 0);
        for place in places {
            if board.must_stop(self.phase) {
                return Ok(());
            }
            answers.clear();
            self.examination.examine(examiner, place.clone(), parameters, &mut answers)?;
            assert_eq!(answers.len(), place.len(), "a task gives an answer for each item");
            done += place.len() as u64;
            board.verdicts().answers.items[place].clone_from_slice(&answers);
            board.tally(self.seat.index, done, 0.0);
            if self.seat.is_first() {
                board.observer.evaluating(split, board.estimate(all), all);
            }
        }
        Ok(())
    }
}

fn places(len: usize, batch: usize, worker: usize, workers: usize) -> impl Iterator<Item = Range<usize>> {
    let batch = batch.min(len.div_ceil(workers)).max(1);
    let starts = (worker * batch..len).step_by(workers * batch);
    starts.map(move |start| start..len.min(start + batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: usize = 512;

    #[test]
    fn the_places_of_all_workers_are_all_places_once() {
        for (len, workers) in [(0, 2), (1, 3), (7, 4), (2 * BATCH + 3, 2), (5 * BATCH, 3)] {
            let mut seen = vec![0; len];
            for place in (0..workers).flat_map(|worker| places(len, BATCH, worker, workers)) {
                assert!(place.len() <= BATCH);
                seen[place].iter_mut().for_each(|count| *count += 1);
            }
            assert!(seen.iter().all(|count| *count == 1), "{len} {workers}");
        }
        assert!((0..4).all(|worker| places(7, BATCH, worker, 4).next().is_some()), "each has some");
    }

    #[test]
    fn answers_go_where_the_worker_that_gave_them_has_its_items() {
        let whole = Answers { items: (0..23).collect::<Vec<u8>>(), batch: 3 };
        let mut taken = Answers { items: vec![u8::MAX; 23], batch: 3 };
        for workers in [0..2, 2..4] {
            let told: Vec<u8> = whole.of(workers.clone(), 4).copied().collect();
            assert_eq!(taken.clone().take(workers.clone(), 4, &told[1..]), None);
            assert_eq!(taken.clone().take(workers.clone(), 4, &[told.as_slice(), &[1]].concat()), None);
            assert_eq!(taken.take(workers, 4, &told), Some(()));
        }
        assert_eq!(taken, whole);
    }
}
