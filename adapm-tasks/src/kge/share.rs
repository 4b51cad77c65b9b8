//! How ranking is shared out: which worker ranks which triples.

use crate::kge::board::Board;
use crate::kge::config::Split;
use crate::kge::filter::Filter;
use crate::kge::graph::Triple;
use crate::kge::parameters::Parameters;
use crate::kge::rank::{BATCH, Ranker};
use crate::kge::report::Stage;

/// One worker's share in ranking a split.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    pub(crate) split: Split,
    pub(crate) triples: &'a [Triple],
    pub(crate) filter: &'a Filter,
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    /// Number of this phase, for stopping it.
    pub(crate) phase: u64,
}

impl Share<'_> {
    /// Ranks every `workers`-th batch and writes the ranks to their places on the board, which has two for each triple.
    /// Leaves early if told to stop.
    pub(crate) fn rank<P: Parameters>(
        self,
        ranker: &mut Ranker,
        parameters: &mut P,
        board: &Board<'_>,
    ) -> Result<(), P::Error> {
        board.reset(self.worker);
        // Batches small enough that every worker has one.
        let batch = BATCH.min(self.triples.len().div_ceil(self.workers)).max(1);
        let mut ranks = Vec::new();
        let mut done = 0;
        for (index, triples) in self.triples.chunks(batch).enumerate().skip(self.worker).step_by(self.workers)
        {
            if board.must_stop(self.phase) {
                return Ok(());
            }
            ranks.clear();
            ranker.rank(triples, self.filter, parameters, &mut ranks)?;
            board.verdicts().ranks[2 * index * batch..][..ranks.len()].copy_from_slice(&ranks);
            done += ranks.len() as u64;
            board.tally(self.worker, done, 0.0);
            if self.worker == 0 {
                let (done, _) = board.totals();
                board.progress.stage(Stage::Evaluating(self.split, done, 2 * self.triples.len() as u64));
            }
        }
        Ok(())
    }
}
