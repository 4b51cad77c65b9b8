//! Who trains on which cells: rows belong to nodes, columns to their workers; or rows to workers.
//!
//! | order | a worker has |
//! | --- | --- |
//! | `columnwise` | of the rows of its node, some columns |
//! | `dsgd` | its own rows, in as many blocks of columns as there are workers |
//! | `plain` | its own rows |

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::mf::cell::Cell;
use crate::mf::config::Order;
use crate::mf::residuals::Residuals;
use crate::mf::sweep::Sweep;
use crate::mf::tiles::{Group, cut, deal, lengths, row_bounds};
use crate::run::task::Tell;

/// How ratings are divided among workers. What several workers of a process need is made once, by the first that asks.
#[derive(Debug)]
pub(crate) struct Division<'a> {
    residuals: &'a Residuals<'a>,
    order: Order,
    nodes: usize,
    /// Of each node.
    workers: usize,
    /// Seed of the order of cells within tiles.
    seed: u64,
    /// Bounds of the rows of nodes, or of workers.
    bounds: OnceLock<Vec<u32>>,
    /// By node: the cells of its workers.
    cells: Vec<OnceLock<Blocks>>,
}

/// Groups of columns, block by block.
type Blocks = Arc<Vec<Vec<Group>>>;

/// What a worker trains on.
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
        nodes: usize,
        workers: usize,
        seed: u64,
    ) -> Self {
        let cells = (0..nodes).map(|_| OnceLock::new()).collect();
        Self { residuals, order, nodes, workers, seed, bounds: OnceLock::new(), cells }
    }

    /// Workers of all nodes.
    pub(crate) fn workers(&self) -> usize {
        self.nodes * self.workers
    }

    /// Parts of an epoch between which workers wait for each other.
    pub(crate) fn rounds(&self) -> usize {
        if self.order == Order::Dsgd { self.workers() } else { 1 }
    }

    /// The part of a worker, by its number among those of all nodes.
    ///
    /// Costs 8 bytes a cell, and 4 bytes a row for each group of columns it has cells in: for `columnwise` once for the workers
    /// of a node; 12 bytes a cell for `plain`. Nothing of other nodes is kept.
    ///
    /// Goes over the cells twice, and tells how far it is. What the workers of a node share is made by as many threads.
    pub(crate) fn part(&self, worker: usize, tell: &Tell<'_>) -> Part {
        let (residuals, seed) = (self.residuals, self.seed);
        let sweep = |rows, threads| Sweep { residuals, rows, threads, passes: 2, tell };
        if self.order == Order::Columnwise {
            let bounds = self.bounds.get_or_init(|| row_bounds(residuals, self.nodes));
            let (node, index) = (worker / self.workers, worker % self.workers);
            let cells = self.cells[node].get_or_init(|| {
                let sweep = sweep(bounds[node]..bounds[node + 1], self.workers);
                let lengths = lengths(&sweep);
                Arc::new(cut(&sweep, &lengths, deal(&lengths, self.workers), seed))
            });
            return Part::Blocks { all: Arc::clone(cells), own: index..index + 1 };
        }
        let all = self.workers();
        let bounds = self.bounds.get_or_init(|| row_bounds(residuals, all));
        let rows = bounds[worker]..bounds[worker + 1];
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
    /// Which of `all` rows occur, ascending.
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
