//! How ranking is shared out: which worker ranks which triples.

use std::ops::Range;

use crate::kge::board::Board;
use crate::kge::config::Split;
use crate::kge::filter::Filter;
use crate::kge::graph::Triple;
use crate::kge::parameters::Parameters;
use crate::kge::rank::{BATCH, Ranker};
use crate::kge::report::Stage;
use crate::kge::seat::Seat;

/// One worker's share in ranking a split.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    pub(crate) split: Split,
    pub(crate) triples: &'a [Triple],
    pub(crate) filter: &'a Filter,
    pub(crate) seat: Seat,
    /// Number of this phase, for stopping it.
    pub(crate) phase: u64,
}

impl Share<'_> {
    /// Ranks this worker's batches and writes the ranks to their places on the board, which has two for each triple.
    /// Leaves early if told to stop.
    pub(crate) fn rank<P: Parameters>(
        self,
        ranker: &mut Ranker,
        parameters: &mut P,
        board: &Board<'_>,
    ) -> Result<(), P::Error> {
        board.reset(self.seat.index);
        let all = 2 * self.triples.len();
        let mut ranks = Vec::new();
        let mut done = 0;
        for place in places(all, self.seat.number, self.seat.all) {
            if board.must_stop(self.phase) {
                return Ok(());
            }
            ranks.clear();
            let triples = &self.triples[place.start / 2..place.end / 2];
            ranker.rank(triples, self.filter, parameters, &mut ranks)?;
            board.verdicts().ranks[place].copy_from_slice(&ranks);
            done += ranks.len() as u64;
            board.tally(self.seat.index, done, 0.0);
            if self.seat.is_first() {
                let all = all as u64;
                board.progress.stage(Stage::Evaluating(self.split, board.estimate(all), all));
            }
        }
        Ok(())
    }
}

/// Where the ranks of one of `workers` workers are, of `len` ranks, two for each triple: every `workers`-th batch of
/// triples, batches being small enough that every worker has one.
pub(crate) fn places(len: usize, worker: usize, workers: usize) -> impl Iterator<Item = Range<usize>> {
    let batch = 2 * BATCH.min((len / 2).div_ceil(workers)).max(1);
    let starts = (worker * batch..len).step_by(workers * batch);
    starts.map(move |start| start..len.min(start + batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_all_workers_are_all_places_once() {
        for (len, workers) in [(0, 2), (2, 3), (14, 4), (4 * BATCH + 6, 2), (10 * BATCH, 3)] {
            let mut seen = vec![0; len];
            for place in (0..workers).flat_map(|worker| places(len, worker, workers)) {
                assert!(place.start % 2 == 0 && place.len() % 2 == 0 && place.len() <= 2 * BATCH);
                seen[place].iter_mut().for_each(|count| *count += 1);
            }
            assert!(seen.iter().all(|count| *count == 1), "{len} {workers}");
        }
        assert!((0..4).all(|worker| places(14, worker, 4).next().is_some()), "each has one");
    }
}
