//! Going over the training cells of many rows in their order, generated ahead by several threads if they are generated.
//!
//! ```text
//!   thread 0   block 0   block 2   ...  \
//!                                        >  the caller: 0, 1, 2, ...
//!   thread 1   block 1   block 3   ...  /
//! ```
//!
//! The caller sees the same cells in the same order for any number of threads.

use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use adapm_transport::threads::spawn_scoped;

use crate::mf::cell::Cell;
use crate::mf::residuals::Residuals;
use crate::run::task::Tell;

/// Several passes over the training cells of the same rows.
pub(crate) struct Sweep<'a> {
    pub(crate) residuals: &'a Residuals<'a>,
    pub(crate) rows: Range<u32>,
    /// Threads that generate.
    pub(crate) threads: usize,
    /// Passes in all.
    pub(crate) passes: u64,
    /// Is told of rows, of those of all passes.
    pub(crate) tell: &'a Tell<'a>,
}

impl Sweep<'_> {
    /// Passes all cells, row by row, ascending. It is pass number `pass`, from 0.
    pub(crate) fn pass(&self, pass: u64, mut each: impl FnMut(Cell)) {
        let Range { start, end } = self.rows;
        let rows = u64::from(end - start);
        let block = self.block_rows();
        let blocks = (start..end).step_by(block as usize);
        let mut told = Instant::now();
        let mut tell = |block_end: u32| {
            if told.elapsed() >= TELLING {
                told = Instant::now();
                (self.tell)(pass * rows + u64::from(block_end - start), self.passes * rows);
            }
        };
        let threads = self.threads.min(blocks.len());
        if threads < 2 || !self.residuals.are_generated() {
            for rows in blocks.map(|start| start..end.min(start.saturating_add(block))) {
                self.residuals.for_each(rows.clone(), &mut each);
                tell(rows.end);
            }
            return;
        }
        thread::scope(|scope| {
            let rows = |start: u32| start..end.min(start.saturating_add(block));
            let generate = |thread| {
                let (sender, receiver) = sync_channel(BLOCKS_AHEAD);
                let own = blocks.clone().skip(thread).step_by(threads);
                let generate = move || {
                    for rows in own.map(rows) {
                        let mut cells = Vec::new();
                        self.residuals.for_each(rows.clone(), |cell| cells.push(cell));
                        // Who takes them may have panicked.
                        if sender.send(cells).is_err() {
                            return;
                        }
                    }
                };
                // What no thread can be had for is done here, when it is its turn.
                spawn_scoped(scope, "adapm sweep", generate).ok().map(|_| receiver)
            };
            let receivers: Vec<_> = (0..threads).map(generate).collect();
            for (at, rows) in blocks.clone().map(rows).enumerate() {
                match &receivers[at % threads] {
                    Some(receiver) => {
                        let cells = receiver.recv().expect("each block is generated");
                        cells.into_iter().for_each(&mut each);
                    }
                    None => self.residuals.for_each(rows.clone(), &mut each),
                }
                tell(rows.end);
            }
        });
    }

    fn block_rows(&self) -> u32 {
        let mean = self.residuals.len() / u64::from(self.residuals.rows()).max(1);
        (BLOCK_CELLS / mean.max(1)).max(1) as u32
    }
}

/// Cells of a block, about; fewer rows than that.
const BLOCK_CELLS: u64 = 1 << 16;
/// Blocks that a thread may be ahead.
const BLOCKS_AHEAD: usize = 2;
/// How often is told how far it is.
const TELLING: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::planted::PlantedConfig;
    use crate::mf::ratings::Ratings;

    #[test]
    fn any_number_of_threads_passes_the_same_cells_in_order() {
        let config = PlantedConfig { rows: 200_000, columns: 50, cells: 300_000, ..PlantedConfig::default() };
        let ratings = Ratings::planted(config).expect("valid");
        let residuals = Residuals::new(&ratings, Vec::new());
        let rows = 1_000..190_001;
        let mut expected = Vec::new();
        residuals.for_each(rows.clone(), |cell| expected.push(cell));
        for threads in [1, 2, 3, 100] {
            let sweep =
                Sweep { residuals: &residuals, rows: rows.clone(), threads, passes: 1, tell: &|_, _| {} };
            let mut seen = Vec::new();
            sweep.pass(0, |cell| seen.push(cell));
            assert!(seen == expected, "{threads}");
        }
    }
}
