//! The division of cells among workers, and the order of their visits: a pure function of the seed,
//! the epoch and the round.
//!
//! - `columnwise` (AdaPM App. C): its columns group by group, the groups in random order.
//! - `dsgd` (Gemulla et al., KDD'11; Lapse §4.1): as many blocks of columns as there are workers.
//!   In each sub-epoch every worker visits another block, so that no two workers update the same
//!   parameters; a barrier ends it. Which worker visits which block when is drawn anew each epoch;
//!   each visits each once. Within a block, group by group as above.
//! - `plain`: its cells in random order.
//!
//! Visits come in chunks, for which a loader signals intent and which a worker trains on as one
//! clock: for the first two the [tiles](crate::mf::tiles) of a group.
//!
//! # Departure
//! The papers' programs visit one column after the other. Cells of one column, or row, can only be
//! computed one after the other, and each of them needs a row of its own. Those of a tile share
//! rows and columns, and go in random order.
//!
//! # Parts
//! Rows belong to nodes, columns to their workers; or rows to workers.
//!
//! | order | a worker has |
//! | --- | --- |
//! | `columnwise` | of the rows of its node, some columns |
//! | `dsgd` | its own rows, in as many blocks of columns as there are workers |
//! | `plain` | its own rows |

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rand::seq::SliceRandom;

use crate::mf::cells::Cell;
use crate::mf::config::Order;
use crate::mf::residuals::Residuals;
use crate::mf::tiles::{CHUNK_ROWS, Group, Sweep, Tile, Visit, cut, deal, lengths, row_bounds};
use crate::run::WorkerSlot;
use crate::run::queue::Round;
use crate::run::random;
use crate::run::task::Tell;

/// Cells that are trained on together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    /// Columns, each once; there may be some without cells.
    pub(crate) columns: Vec<u32>,
    /// Rows of the cells, each once.
    pub(crate) rows: Vec<u32>,
    /// The cells in their order.
    pub(crate) cells: Vec<Visit>,
}

impl Chunk {
    fn of(tile: Tile<'_>) -> Self {
        Self {
            columns: tile.columns.to_vec(),
            rows: tile.rows.to_vec(),
            cells: tile.cells.to_vec(),
        }
    }

    /// Returns a chunk of any cells, at most [`CHUNK_ROWS`].
    pub(crate) fn gather(cells: &[Cell]) -> Self {
        let mut chunk = Self::default();
        let (mut rows, mut columns) = (Places::default(), Places::default());
        for cell in cells {
            chunk.cells.push(Visit {
                row: place(&mut rows, cell.row, &mut chunk.rows),
                column: place(&mut columns, cell.column, &mut chunk.columns),
                value: cell.value,
            });
        }
        chunk
    }
}

/// Places of vectors in a list.
type Places = HashMap<u32, u16, FixedState>;

/// Returns the place of `vector` in the list, to which it is added if it is new.
fn place(places: &mut Places, vector: u32, list: &mut Vec<u32>) -> u16 {
    match places.entry(vector) {
        Entry::Occupied(entry) => *entry.get(),
        Entry::Vacant(entry) => {
            list.push(vector);
            *entry.insert(list.len() as u16 - 1)
        }
    }
}

/// The visits of one worker.
#[derive(Debug)]
pub(crate) struct Visits {
    part: Part,
    seed: u64,
    worker: usize,
    workers: usize,
}

impl Visits {
    /// Returns the visits of worker `worker` of `workers` (over all nodes).
    pub(crate) fn new(part: Part, seed: u64, worker: usize, workers: usize) -> Self {
        Self { part, seed, worker, workers }
    }

    /// Returns the part to visit.
    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    /// Passes the chunks of a round to `take`, in order, but for the first `skipped`. `dsgd` has as
    /// many rounds an epoch as there are workers, others have one.
    ///
    /// # Errors
    ///
    /// What `take` fails with.
    pub(crate) fn round<E>(
        &self,
        Round { epoch, index }: Round,
        skipped: usize,
        take: &mut dyn FnMut(Chunk) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { part, seed, worker, workers } = self;
        let place = [VISITING, *worker as u64, epoch.into(), index.into()];
        let mut random = random::generator(*seed, place);
        match part {
            Part::Blocks { all, own } => {
                let turn = match own.len() {
                    1 => 0,
                    _ => Schedule::new(*seed, epoch, *workers).block(*worker, index as usize),
                };
                let groups = &all[own.start + turn];
                let mut order: Vec<usize> = (0..groups.len()).collect();
                order.shuffle(&mut random);
                let tiles = order.into_iter().flat_map(|group| groups[group].tiles());
                tiles.skip(skipped).map(Chunk::of).try_for_each(take)
            }
            Part::Cells(cells) => {
                // A copy in order is faster than cells that are looked up one by one.
                let mut cells = cells.clone();
                cells.shuffle(&mut random);
                cells.chunks(CHUNK_ROWS).skip(skipped).map(Chunk::gather).try_for_each(take)
            }
        }
    }
}

/// The schedule of blocks in one epoch of `dsgd`, worker by worker: a random Latin square.
#[derive(Clone, Debug)]
struct Schedule {
    blocks: Vec<usize>,
    shifts: Vec<usize>,
}

impl Schedule {
    fn new(seed: u64, epoch: u32, workers: usize) -> Self {
        let mut random = random::generator(seed, [SCHEDULE, epoch.into()]);
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

/// The division of ratings among workers. State that several workers of a process share is made
/// once, by the first that needs it.
#[derive(Debug)]
pub(crate) struct Division<'a> {
    residuals: &'a Residuals<'a>,
    order: Order,
    /// Of each node.
    workers: Vec<usize>,
    /// Seed of the order of cells within tiles.
    seed: u64,
    /// Bounds of the rows of nodes, or of workers.
    bounds: OnceLock<Vec<u32>>,
    /// By node: the cells of its workers.
    cells: Vec<OnceLock<Blocks>>,
}

/// Groups of columns, block by block.
type Blocks = Arc<Vec<Vec<Group>>>;

/// The part of a worker.
#[derive(Debug)]
pub(crate) enum Part {
    /// Of blocks of columns those in a range: one of the blocks of its node, or all of its own.
    Blocks { all: Blocks, own: Range<usize> },
    /// The cells of its rows.
    Cells(Vec<Cell>),
}

impl<'a> Division<'a> {
    pub(crate) fn new(
        residuals: &'a Residuals<'a>,
        order: Order,
        workers: &[usize],
        seed: u64,
    ) -> Self {
        let cells = workers.iter().map(|_| OnceLock::new()).collect();
        let workers = workers.to_vec();
        Self { residuals, order, workers, seed, bounds: OnceLock::new(), cells }
    }

    /// Workers of all nodes.
    pub(crate) fn workers(&self) -> usize {
        self.workers.iter().sum()
    }

    /// Parts of an epoch between which workers wait for each other.
    pub(crate) fn rounds(&self) -> usize {
        if self.order == Order::Dsgd { self.workers() } else { 1 }
    }

    /// Returns the part of the worker in `slot`.
    ///
    /// Costs 8 bytes a cell, and 4 bytes a row for each group of columns it has cells in: for
    /// `columnwise` once for the workers of a node; 12 bytes a cell for `plain`, and as many while
    /// they are visited. Nothing of other nodes is kept.
    ///
    /// Goes over the cells twice, and reports its progress. What the workers of a node share is
    /// made by as many threads.
    pub(crate) fn part(&self, slot: WorkerSlot, tell: &Tell<'_>) -> Part {
        let (residuals, seed) = (self.residuals, self.seed);
        let sweep = |rows, threads| Sweep { residuals, rows, threads, passes: 2, tell };
        if self.order == Order::Columnwise {
            let bounds = self.bounds.get_or_init(|| row_bounds(residuals, &self.workers));
            let WorkerSlot { node, id: index, of_node, .. } = slot;
            let cells = self.cells[node].get_or_init(|| {
                let sweep = sweep(bounds[node]..bounds[node + 1], of_node);
                let lengths = lengths(&sweep);
                Arc::new(cut(&sweep, &lengths, deal(&lengths, of_node), seed))
            });
            return Part::Blocks { all: Arc::clone(cells), own: index..index + 1 };
        }
        let all = self.workers();
        let bounds = self.bounds.get_or_init(|| row_bounds(residuals, &vec![1; all]));
        let rows = bounds[slot.number]..bounds[slot.number + 1];
        if self.order == Order::Plain {
            let mut cells = Vec::with_capacity(residuals.cells_in(rows.clone()) as usize);
            Sweep { passes: 1, ..sweep(rows, 1) }.pass(0, |cell| cells.push(cell));
            return Part::Cells(cells);
        }
        let sweep = sweep(rows, 1);
        let lengths = lengths(&sweep);
        let mut blocks = vec![Vec::new(); all];
        let occupied = (0..residuals.columns()).filter(|column| lengths[*column as usize] > 0);
        occupied.for_each(|column| blocks[column as usize % all].push(column));
        Part::Blocks { all: Arc::new(cut(&sweep, &lengths, blocks, seed)), own: 0..all }
    }
}

impl Part {
    /// Returns the rows, of `all`, that occur, ascending.
    pub(crate) fn rows(&self, all: u32) -> Vec<u32> {
        let mut occurs = vec![false; all as usize];
        match self {
            Self::Blocks { all, own } => {
                let rows = all[own.clone()].iter().flatten().flat_map(Group::rows);
                rows.for_each(|row| occurs[*row as usize] = true);
            }
            Self::Cells(cells) => cells.iter().for_each(|cell| occurs[cell.row as usize] = true),
        }
        (0..all).filter(|row| occurs[*row as usize]).collect()
    }
}

/// Purposes of generators.
const VISITING: u64 = 1;
const SCHEDULE: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::config::Order;
    use crate::mf::ratings::Ratings;
    use crate::mf::residuals::Residuals;
    use crate::mf::synthetic::SyntheticConfig;
    use crate::mf::tiles::CHUNK_CELLS;

    type Visited = (u32, u32, u32);

    fn ratings() -> Ratings {
        let config =
            SyntheticConfig { rows: 90, columns: 40, cells: 900, ..SyntheticConfig::default() };
        Ratings::synthetic(config).expect("valid")
    }

    fn visits(order: Order, workers: &[usize]) -> Vec<Visits> {
        let ratings = ratings();
        let residuals = Residuals::new(&ratings, Vec::new());
        let division = Division::new(&residuals, order, workers, 5);
        let all = division.workers();
        assert_eq!(division.rounds(), if order == Order::Dsgd { all } else { 1 });
        let visits =
            |slot: WorkerSlot| Visits::new(division.part(slot, &|_, _| {}), 5, slot.number, all);
        WorkerSlot::all_of(workers, true).map(visits).collect()
    }

    /// Returns the chunks of an epoch, round by round.
    fn rounds(visits: &Visits, epoch: u32) -> Vec<Vec<Chunk>> {
        let rounds = match visits.part() {
            Part::Blocks { own, .. } => own.len(),
            Part::Cells(_) => 1,
        };
        let round = |index| {
            let mut chunks = Vec::new();
            let round = Round { epoch, index: index as u32 };
            let taken: Result<(), ()> = visits.round(round, 0, &mut |chunk| {
                assert!(!chunk.cells.is_empty());
                chunks.push(chunk);
                Ok(())
            });
            assert_eq!(taken, Ok(()));
            chunks
        };
        (0..rounds).map(round).collect()
    }

    fn chunks(visits: &Visits, epoch: u32) -> Vec<Chunk> {
        rounds(visits, epoch).concat()
    }

    fn visited(chunks: &[Chunk]) -> Vec<Visited> {
        let of_chunk = |chunk: &Chunk| {
            let cell = |cell: &Visit| {
                let (row, column) =
                    (chunk.rows[usize::from(cell.row)], chunk.columns[usize::from(cell.column)]);
                (row, column, cell.value.to_bits())
            };
            chunk.cells.iter().map(cell).collect::<Vec<_>>()
        };
        chunks.iter().flat_map(of_chunk).collect()
    }

    #[test]
    fn every_order_visits_each_cell_once_an_epoch_and_another_way_in_the_next() {
        let mut expected = Vec::new();
        let ratings = ratings();
        Residuals::new(&ratings, Vec::new())
            .for_each(0..90, |cell| expected.push((cell.row, cell.column, cell.value.to_bits())));
        expected.sort_unstable();
        for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
            for workers in [&[1][..], &[1, 1], &[3, 3], &[50], &[1, 4, 2]] {
                let all = visits(order, workers);
                let are_few = all.len() < 8;
                let epoch = |epoch| {
                    let of_all = all.iter().flat_map(|visits| visited(&chunks(visits, epoch)));
                    of_all.collect::<Vec<Visited>>()
                };
                let [mut first, mut second] = [1, 2].map(epoch);
                assert!(!are_few || first != second, "the same in both");
                for epoch in [&mut first, &mut second] {
                    epoch.sort_unstable();
                    assert!(*epoch == expected, "{order:?} {workers:?}");
                }
            }
        }
    }

    #[test]
    fn columnwise_gives_rows_to_nodes_and_columns_to_workers() {
        let all = visits(Order::Columnwise, &[2, 2]);
        let cells: Vec<Vec<Visited>> =
            all.iter().map(|visits| visited(&chunks(visits, 1))).collect();
        let distinct = |worker: usize, of: fn(&Visited) -> u32| {
            let mut found: Vec<u32> = cells[worker].iter().map(of).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            let rows = [a, b].map(|worker| distinct(worker, |cell| cell.0));
            assert!(
                rows[0].iter().all(|row| rows[1].binary_search(row).is_err()),
                "rows of other nodes"
            );
        }
        for (a, b) in [(0, 1), (2, 3)] {
            let [first, second] = [a, b].map(|worker| distinct(worker, |cell| cell.1));
            assert!(
                first.iter().all(|column| second.binary_search(column).is_err()),
                "one node's workers"
            );
        }
        assert_eq!(all[0].part().rows(90), distinct(0, |cell| cell.0));
    }

    #[test]
    fn in_a_sub_epoch_no_two_workers_of_dsgd_meet() {
        let workers = 4;
        let all = visits(Order::Dsgd, &[2; 2]);
        for epoch in 1..=3 {
            let sub_epochs: Vec<Vec<Vec<Visited>>> = all
                .iter()
                .map(|visits| rounds(visits, epoch).iter().map(|chunks| visited(chunks)).collect())
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
            let schedule = Schedule::new(7, 1, workers);
            for fixed in 0..workers {
                let by_turn = (0..workers).map(|turn| schedule.block(fixed, turn));
                let by_worker = (0..workers).map(|worker| schedule.block(worker, fixed));
                for mut blocks in [by_turn.collect::<Vec<_>>(), by_worker.collect()] {
                    blocks.sort_unstable();
                    assert!(blocks.into_iter().eq(0..workers));
                }
            }
        }
        let first = Schedule::new(7, 1, 5);
        assert!((2..5).any(|epoch| Schedule::new(7, epoch, 5).blocks != first.blocks));
    }

    #[test]
    fn any_cells_make_a_chunk_that_has_each_row_and_column_once_and_a_refused_chunk_ends_the_visit()
    {
        for order in [Order::Columnwise, Order::Plain] {
            let ratings = Ratings::synthetic(SyntheticConfig::default()).expect("valid");
            let residuals = Residuals::new(&ratings, Vec::new());
            let part = Division::new(&residuals, order, &[1], 5).part(WorkerSlot::ONLY, &|_, _| {});
            let (visits, mut taken) = (Visits::new(part, 5, 0, 1), 0);
            let refused = visits.round(Round { epoch: 1, index: 0 }, 0, &mut |chunk| {
                taken += 1;
                for list in [&chunk.rows, &chunk.columns] {
                    let mut distinct = list.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), list.len());
                }
                assert!(chunk.cells.len() <= CHUNK_CELLS && chunk.rows.len() <= CHUNK_ROWS);
                if taken < 2 { Ok(()) } else { Err(()) }
            });
            assert_eq!((refused, taken), (Err(()), 2));
        }
    }
}
