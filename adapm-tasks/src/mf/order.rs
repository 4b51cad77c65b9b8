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
//!
//! Under a partition a row belongs to the node where it lies, or to one of its workers: a cell
//! whose row and column lie on two nodes costs as much on either, so no other would do better.

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
use crate::partition::PartitionFile;
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
    partition: Option<Arc<PartitionFile>>,
    /// Of nodes for `columnwise`, else of workers.
    rows: OnceLock<Rows>,
    /// By node: the cells of its workers.
    cells: Vec<OnceLock<Blocks>>,
}

/// The rows of each node, or of each worker.
#[derive(Debug)]
enum Rows {
    /// Ranges, by their bounds.
    Ranges(Vec<u32>),
    /// By row, whose it is.
    Listed(Vec<u16>),
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
        Self { residuals, order, workers, seed, partition: None, rows: OnceLock::new(), cells }
    }

    /// Gives rows to the nodes where `partition` puts them.
    pub(crate) fn deal_by(&mut self, partition: &Arc<PartitionFile>) {
        self.partition = Some(Arc::clone(partition));
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
        let rows = self.rows.get_or_init(|| self.divide());
        let sweep = |part: usize, threads| {
            let (rows, only) = match rows {
                Rows::Ranges(bounds) => (bounds[part]..bounds[part + 1], None),
                Rows::Listed(of) => (0..residuals.rows(), Some((&of[..], part as u16))),
            };
            Sweep { residuals, rows, only, threads, passes: 2, tell }
        };
        if self.order == Order::Columnwise {
            let WorkerSlot { node, id: index, of_node, .. } = slot;
            let cells = self.cells[node].get_or_init(|| {
                let sweep = sweep(node, of_node);
                let lengths = lengths(&sweep);
                Arc::new(cut(&sweep, &lengths, deal(&lengths, of_node), seed))
            });
            return Part::Blocks { all: Arc::clone(cells), own: index..index + 1 };
        }
        let (all, sweep) = (self.workers(), sweep(slot.number, 1));
        if self.order == Order::Plain {
            let mut cells = Vec::with_capacity(sweep.cells() as usize);
            Sweep { passes: 1, ..sweep }.pass(0, |cell| cells.push(cell));
            return Part::Cells(cells);
        }
        let lengths = lengths(&sweep);
        let mut blocks = vec![Vec::new(); all];
        let occupied = (0..residuals.columns()).filter(|column| lengths[*column as usize] > 0);
        occupied.for_each(|column| blocks[column as usize % all].push(column));
        Part::Blocks { all: Arc::new(cut(&sweep, &lengths, blocks, seed)), own: 0..all }
    }

    /// Divides the rows: in about equal numbers of cells, or as the partition says.
    fn divide(&self) -> Rows {
        let Self { residuals, workers, .. } = self;
        let of_nodes = self.order == Order::Columnwise;
        let Some(partition) = &self.partition else {
            let ones = vec![1; self.workers()];
            return Rows::Ranges(row_bounds(residuals, if of_nodes { workers } else { &ones }));
        };
        // A node's workers take turns.
        let mut given = vec![0; workers.len()];
        let owner = |node: &u16| {
            let index = usize::from(*node);
            let turn = given[index] % workers[index];
            given[index] += 1;
            if of_nodes { *node } else { (workers[..index].iter().sum::<usize>() + turn) as u16 }
        };
        Rows::Listed(partition.home.iter().take(residuals.rows() as usize).map(owner).collect())
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
mod tests;
