//! Who trains on which cells: rows belong to nodes, columns to their workers; or rows to workers.
//!
//! | order | a worker has |
//! | --- | --- |
//! | `columnwise` | of the rows of its node, some columns |
//! | `dsgd` | its own rows, in as many blocks of columns as there are workers |
//! | `plain` | its own rows |

use std::sync::{Arc, OnceLock};

use crate::mf::cell::Cell;
use crate::mf::columns::{Columns, row_bounds};
use crate::mf::config::Order;
use crate::mf::ratings::Ratings;

/// How ratings are divided among workers. What several workers of a process need is made once, by the first that asks.
#[derive(Debug)]
pub(crate) struct Division<'a> {
    ratings: &'a Ratings,
    order: Order,
    nodes: usize,
    /// Of each node.
    workers: usize,
    /// Bounds of the rows of nodes, or of workers.
    bounds: OnceLock<Vec<u32>>,
    /// By node: its columns, and which of them its workers have.
    columns: Vec<OnceLock<Dealt>>,
}

/// Columns, and which of them each of several workers has.
type Dealt = (Arc<Columns>, Vec<Vec<u32>>);

/// What a worker trains on.
#[derive(Debug)]
pub(crate) enum Part {
    /// Some columns of the rows of the node.
    Columns { columns: Arc<Columns>, own: Vec<u32> },
    /// The columns of its rows, in blocks.
    Blocks { columns: Columns, blocks: Vec<Vec<u32>> },
    /// The cells of its rows.
    Cells(Vec<Cell>),
}

impl<'a> Division<'a> {
    pub(crate) fn new(ratings: &'a Ratings, order: Order, nodes: usize, workers: usize) -> Self {
        let columns = (0..nodes).map(|_| OnceLock::new()).collect();
        Self { ratings, order, nodes, workers, bounds: OnceLock::new(), columns }
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
    /// Costs 8 bytes a cell and 8 a column: of the node for `columnwise`, of the worker for `dsgd`; 12 bytes a cell for
    /// `plain`. Nothing of other nodes is kept.
    pub(crate) fn part(&self, worker: usize) -> Part {
        let ratings = self.ratings;
        if self.order == Order::Columnwise {
            let bounds = self.bounds.get_or_init(|| row_bounds(ratings, self.nodes));
            let (node, index) = (worker / self.workers, worker % self.workers);
            let (columns, dealt) = self.columns[node].get_or_init(|| {
                let columns = Columns::of(ratings, bounds[node]..bounds[node + 1]);
                let dealt = columns.deal(self.workers);
                (Arc::new(columns), dealt)
            });
            return Part::Columns { columns: Arc::clone(columns), own: dealt[index].clone() };
        }
        let all = self.workers();
        let bounds = self.bounds.get_or_init(|| row_bounds(ratings, all));
        let rows = bounds[worker]..bounds[worker + 1];
        if self.order == Order::Plain {
            let mut cells = Vec::with_capacity(ratings.cells_in(rows.clone()) as usize);
            ratings.for_each(rows, |cell| cells.push(cell));
            return Part::Cells(cells);
        }
        let columns = Columns::of(ratings, rows);
        let mut blocks = vec![Vec::new(); all];
        columns.occupied().for_each(|column| blocks[column as usize % all].push(column));
        Part::Blocks { columns, blocks }
    }
}

impl Part {
    /// Which of `all` rows occur, ascending.
    pub(crate) fn rows(&self, all: u32) -> Vec<u32> {
        let mut occurs = vec![false; all as usize];
        let mut mark = |columns: &Columns, own: &[u32]| {
            let rows = own.iter().flat_map(|column| columns.cells_of(*column).0);
            rows.for_each(|row| occurs[*row as usize] = true);
        };
        match self {
            Self::Columns { columns, own } => mark(columns, own),
            Self::Blocks { columns, blocks } => blocks.iter().for_each(|own| mark(columns, own)),
            Self::Cells(cells) => cells.iter().for_each(|cell| occurs[cell.row as usize] = true),
        }
        (0..all).filter(|row| occurs[*row as usize]).collect()
    }
}
