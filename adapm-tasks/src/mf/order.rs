//! In which order a worker visits its cells: a pure function of the seed.
//!
//! - `columnwise` (AdaPM App. C): its columns in random order, all cells of a column behind each other.
//! - `dsgd` (Gemulla et al., KDD'11; Lapse §4.1): as many blocks of columns as there are workers. In each sub-epoch every
//!   worker visits another block, so that no two workers update the same parameters; a barrier ends it. Which worker visits
//!   which block when is drawn anew each epoch; each visits each once. Within a block, column by column as above.
//! - `plain`: its cells in random order.
//!
//! What is visited is cut into chunks, which a loader announces and a worker trains on as one clock.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::mf::columns::Columns;
use crate::mf::part::Part;

/// Cells that are trained on together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    /// Cells of one column each, behind each other.
    pub(crate) runs: Vec<Run>,
    /// Rows of the cells, run by run.
    pub(crate) rows: Vec<u32>,
    /// Values of the cells.
    pub(crate) values: Vec<f32>,
}

/// Cells of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) column: u32,
    pub(crate) len: u32,
}

/// The visits of one worker.
#[derive(Debug)]
pub(crate) struct Visits {
    part: Part,
    random: Xoshiro256PlusPlus,
    /// Seed of what all workers draw alike.
    seed: u64,
    worker: usize,
    workers: usize,
    schedule: Schedule,
    /// Epochs that have begun.
    epochs: u32,
}

impl Visits {
    /// The visits of worker `worker` of `workers` (over all nodes).
    pub(crate) fn new(part: Part, seed: u64, worker: usize, workers: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..=worker).for_each(|_| random.jump());
        let schedule = Schedule::new(seed, 0, workers);
        Self { part, random, seed, worker, workers, schedule, epochs: 0 }
    }

    /// What is visited.
    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    /// Passes the chunks of a round to `take`, in order. `dsgd` has as many rounds an epoch as there are workers, others have
    /// one; they come in order, and round 0 begins an epoch.
    ///
    /// # Errors
    ///
    /// What `take` fails with.
    pub(crate) fn round<E>(
        &mut self,
        index: usize,
        take: &mut dyn FnMut(Chunk) -> Result<(), E>,
    ) -> Result<(), E> {
        if index == 0 {
            self.schedule = Schedule::new(self.seed, self.epochs, self.workers);
            self.epochs += 1;
        }
        let mut cutter = Cutter { chunk: Chunk::default(), take };
        match &mut self.part {
            Part::Columns { columns, own } => {
                own.shuffle(&mut self.random);
                own.iter().try_for_each(|column| cutter.add_column(columns, *column))?;
            }
            Part::Blocks { columns, blocks } => {
                let block = &mut blocks[self.schedule.block(self.worker, index)];
                block.shuffle(&mut self.random);
                block.iter().try_for_each(|column| cutter.add_column(columns, *column))?;
            }
            Part::Cells(cells) => {
                cells.shuffle(&mut self.random);
                cells.iter().try_for_each(|cell| cutter.add(cell.column, &[cell.row], &[cell.value]))?;
            }
        }
        cutter.flush()
    }
}

/// Which worker visits which block when, in one epoch of `dsgd`: a random Latin square.
#[derive(Clone, Debug)]
struct Schedule {
    blocks: Vec<usize>,
    shifts: Vec<usize>,
}

impl Schedule {
    fn new(seed: u64, epoch: u32, workers: usize) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Far from what the workers draw for themselves, by another seed.
        let seed = random.random::<u64>() ^ u64::from(epoch).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut permutation = || {
            let mut all: Vec<usize> = (0..workers).collect();
            all.shuffle(&mut random);
            all
        };
        Self { blocks: permutation(), shifts: permutation() }
    }

    fn block(&self, worker: usize, turn: usize) -> usize {
        self.blocks[(worker + self.shifts[turn]) % self.blocks.len()]
    }
}

/// Cuts what is visited into chunks.
struct Cutter<'a, E> {
    chunk: Chunk,
    take: &'a mut dyn FnMut(Chunk) -> Result<(), E>,
}

impl<E> Cutter<'_, E> {
    fn add_column(&mut self, columns: &Columns, column: u32) -> Result<(), E> {
        let (rows, values) = columns.cells_of(column);
        self.add(column, rows, values)
    }

    /// Adds cells of a column, in as many runs and chunks as they need.
    fn add(&mut self, column: u32, mut rows: &[u32], mut values: &[f32]) -> Result<(), E> {
        while !rows.is_empty() {
            let room = CHUNK_CELLS - self.chunk.rows.len();
            let len = rows.len().min(room).min(RUN_CELLS);
            self.chunk.runs.push(Run { column, len: len as u32 });
            self.chunk.rows.extend_from_slice(&rows[..len]);
            self.chunk.values.extend_from_slice(&values[..len]);
            (rows, values) = (&rows[len..], &values[len..]);
            if len == room {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Ends a chunk, if one has begun.
    fn flush(&mut self) -> Result<(), E> {
        if self.chunk.rows.is_empty() { Ok(()) } else { (self.take)(std::mem::take(&mut self.chunk)) }
    }
}

/// Cells of a chunk: announcing and handing it over cost little per cell, and its keys are soon needed.
pub(crate) const CHUNK_CELLS: usize = 1024;
/// Cells of a run: the values of its rows are pulled together, and stay in the nearest caches until they are pushed.
pub(crate) const RUN_CELLS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::config::Order;
    use crate::mf::part::Division;
    use crate::mf::planted::PlantedConfig;
    use crate::mf::ratings::Ratings;

    type Visited = (u32, u32, u32);

    fn ratings() -> Ratings {
        let config = PlantedConfig { rows: 90, columns: 40, cells: 900, ..PlantedConfig::default() };
        Ratings::planted(config).expect("valid")
    }

    fn visits(order: Order, nodes: usize, workers: usize) -> Vec<Visits> {
        let ratings = ratings();
        let division = Division::new(&ratings, order, nodes, workers);
        let all = division.workers();
        assert_eq!(division.rounds(), if order == Order::Dsgd { all } else { 1 });
        (0..all).map(|worker| Visits::new(division.part(worker), 5, worker, all)).collect()
    }

    /// The chunks of the next epoch, round by round.
    fn rounds(visits: &mut Visits) -> Vec<Vec<Chunk>> {
        let rounds = if matches!(visits.part(), Part::Blocks { .. }) { visits.workers } else { 1 };
        let mut round = |index| {
            let mut chunks = Vec::new();
            let taken: Result<(), ()> = visits.round(index, &mut |chunk| {
                assert_eq!(chunk.runs.iter().map(|run| run.len as usize).sum::<usize>(), chunk.rows.len());
                assert!((1..=CHUNK_CELLS).contains(&chunk.rows.len()));
                chunks.push(chunk);
                Ok(())
            });
            assert_eq!(taken, Ok(()));
            chunks
        };
        (0..rounds).map(&mut round).collect()
    }

    fn chunks(visits: &mut Visits) -> Vec<Chunk> {
        rounds(visits).concat()
    }

    fn visited(chunks: &[Chunk]) -> Vec<Visited> {
        let of_chunk = |chunk: &Chunk| {
            let columns = chunk.runs.iter().flat_map(|run| vec![run.column; run.len as usize]);
            let cells = columns.zip(&chunk.rows).zip(&chunk.values);
            cells.map(|((column, row), value)| (*row, column, value.to_bits())).collect::<Vec<_>>()
        };
        chunks.iter().flat_map(of_chunk).collect()
    }

    #[test]
    fn every_order_visits_each_cell_once_an_epoch_and_another_way_in_the_next() {
        let mut expected = Vec::new();
        ratings().for_each(0..90, |cell| expected.push((cell.row, cell.column, cell.value.to_bits())));
        expected.sort_unstable();
        for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
            for (nodes, workers) in [(1, 1), (2, 1), (2, 3), (1, 50)] {
                let mut all = visits(order, nodes, workers);
                let are_few = all.len() < 8;
                let mut epoch = || all.iter_mut().flat_map(|visits| visited(&chunks(visits))).collect();
                let (mut first, mut second): (Vec<Visited>, Vec<Visited>) = (epoch(), epoch());
                assert!(!are_few || first != second, "the same in both");
                for epoch in [&mut first, &mut second] {
                    epoch.sort_unstable();
                    assert!(*epoch == expected, "{order:?} {nodes} {workers}");
                }
            }
        }
    }

    #[test]
    fn columnwise_gives_rows_to_nodes_and_columns_to_workers() {
        let mut all = visits(Order::Columnwise, 2, 2);
        let cells: Vec<Vec<Visited>> = all.iter_mut().map(|visits| visited(&chunks(visits))).collect();
        let distinct = |worker: usize, of: fn(&Visited) -> u32| {
            let mut found: Vec<u32> = cells[worker].iter().map(of).collect();
            found.dedup();
            let runs = found.len();
            found.sort_unstable();
            found.dedup();
            (runs, found)
        };
        for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            let rows = [a, b].map(|worker| distinct(worker, |cell| cell.0).1);
            assert!(rows[0].iter().all(|row| rows[1].binary_search(row).is_err()), "rows of other nodes");
        }
        for (a, b) in [(0, 1), (2, 3)] {
            let [(runs, first), (_, second)] = [a, b].map(|worker| distinct(worker, |cell| cell.1));
            assert_eq!(runs, first.len(), "all cells of a column behind each other");
            assert!(first.iter().all(|column| second.binary_search(column).is_err()), "one node's workers");
        }
        let mut rows: Vec<u32> = cells[0].iter().map(|cell| cell.0).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(all[0].part().rows(90), rows);
    }

    #[test]
    fn in_a_sub_epoch_no_two_workers_of_dsgd_meet() {
        let workers = 4;
        let mut all = visits(Order::Dsgd, 2, 2);
        for _ in 0..3 {
            let sub_epochs: Vec<Vec<Vec<Visited>>> = all
                .iter_mut()
                .map(|visits| rounds(visits).iter().map(|chunks| visited(chunks)).collect())
                .collect();
            for turn in 0..workers {
                let mut owners = [None; 40];
                for (worker, parts) in sub_epochs.iter().enumerate() {
                    for (_, column, _) in &parts[turn] {
                        let owner = owners[*column as usize].get_or_insert(worker);
                        assert_eq!(*owner, worker, "column {column} in turn {turn}");
                    }
                }
            }
        }
    }

    #[test]
    fn schedules_are_latin_squares_and_differ_between_epochs() {
        for workers in [1, 2, 5] {
            let schedule = Schedule::new(7, 0, workers);
            for fixed in 0..workers {
                let by_turn = (0..workers).map(|turn| schedule.block(fixed, turn));
                let by_worker = (0..workers).map(|worker| schedule.block(worker, fixed));
                for mut blocks in [by_turn.collect::<Vec<_>>(), by_worker.collect()] {
                    blocks.sort_unstable();
                    assert!(blocks.into_iter().eq(0..workers));
                }
            }
        }
        let first = Schedule::new(7, 0, 5);
        assert!((1..4).any(|epoch| Schedule::new(7, epoch, 5).blocks != first.blocks));
    }

    #[test]
    fn a_long_column_is_cut_and_a_refused_chunk_ends_the_visit() {
        let mut taken = 0;
        let mut take = |chunk: Chunk| {
            taken += 1;
            assert!(chunk.runs.iter().all(|run| run.len as usize <= RUN_CELLS));
            if taken < 2 { Ok(()) } else { Err(()) }
        };
        let mut cutter = Cutter { chunk: Chunk::default(), take: &mut take };
        let (rows, values) = (vec![0; 5 * CHUNK_CELLS], vec![0.0; 5 * CHUNK_CELLS]);
        assert_eq!(cutter.add(3, &rows, &values), Err(()));
        assert_eq!(taken, 2);
    }
}
