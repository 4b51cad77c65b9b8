//! Matrix factorization: rank 1,000, 10 M x 1 M, Zipf 1.1, a billion cells, visited by column (AdaPM App. C).

use std::collections::{HashMap, HashSet};

use adapm_core::{Key, NodeId};
use adapm_verify::sim::Who;
use rand::RngExt as _;

use super::{Facts, Pattern, Work, distinct, settled_key, settled_layout};
use crate::measure::simulate::Chance;
use crate::measure::simulate::zipf::Ranks;

/// Rows, columns and cells (stated).
const ROWS: u64 = 10_000_000;
const COLUMNS: u64 = 1_000_000;
const CELLS: u64 = 1_000_000_000;
/// Exponent of rows and columns (stated), and how many first ranks are one: a row cannot have more cells than there are
/// columns, nor a column more than rows.
const EXPONENT: f64 = 1.1;
const FLAT_ROWS: u64 = 70;
const FLAT_COLUMNS: u64 = 10;
/// Bytes of a value with its AdaGrad part: the stated 163.9 GB over the stated 11.0 M keys.
const VALUE_BYTES: u64 = 16_000;
/// Data points of one step: fewer events than one a cell, still several steps a round.
const STEP: u64 = 16;
/// Time for a data point: as many multiplications a nanosecond as in the knowledge graph task (assumed).
const CELL_NANOS: u64 = 15_000;

/// Rows belong to nodes; a worker visits its part of one column after another.
pub(super) struct Mf {
    facts: Facts,
    nodes: usize,
    settled: bool,
    rows: Ranks,
    columns: Ranks,
    /// Column and cells left in it, of each worker.
    current: HashMap<Who, (u64, u64)>,
    /// Rows for which each node has signaled its lasting intent.
    seen: Vec<HashSet<u64>>,
}

impl Mf {
    pub(super) fn new(nodes: usize, settled: bool) -> Self {
        let facts = Facts {
            layout: settled_layout(),
            element_bytes: VALUE_BYTES,
            keys_per_key: 1,
            epoch_points: CELLS,
            points: STEP,
            clocks: STEP,
            sample_keys: 0,
            ahead: 32,
            warm_up: 64,
            measured: 64,
        };
        Self {
            facts,
            nodes,
            settled,
            rows: Ranks::new(ROWS, EXPONENT, FLAT_ROWS),
            columns: Ranks::new(COLUMNS, EXPONENT, FLAT_COLUMNS),
            current: HashMap::new(),
            seen: vec![HashSet::new(); nodes],
        }
    }

    /// A worker is found in a column as often as it has cells, somewhere in it; then it takes one as good as another.
    fn enter(&self, first: bool, chance: &mut Chance) -> (u64, u64) {
        loop {
            let column = if first { self.columns.draw(chance) } else { chance.random_range(0..COLUMNS) };
            let cells = self.columns.share(column) * CELLS as f64 / self.nodes as f64;
            let left = if first { cells * chance.random::<f64>() } else { cells };
            let left = (left + chance.random::<f64>()) as u64;
            if left > 0 {
                return (column, left);
            }
        }
    }

    fn row(&self, node: NodeId, chance: &mut Chance) -> (u64, Key) {
        let nodes = self.nodes as u64;
        let row = self.rows.draw(chance) / nodes * nodes + u64::from(node.0);
        let key =
            if self.settled { settled_key(COLUMNS + row, node, self.nodes) } else { Key(COLUMNS + row) };
        (row, key)
    }
}

impl Pattern for Mf {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, who: Who, chance: &mut Chance) -> Work {
        let (mut column, mut left) = match self.current.get(&who) {
            Some(current) => *current,
            None => self.enter(true, chance),
        };
        let (mut keys, mut lasting) = (Vec::new(), Vec::new());
        for _ in 0..STEP {
            if left == 0 {
                (column, left) = self.enter(false, chance);
            }
            left -= 1;
            keys.push(Key(column));
            let (row, key) = self.row(who.0, chance);
            keys.push(key);
            if self.seen[who.0.index()].insert(row) {
                lasting.push(key);
            }
        }
        self.current.insert(who, (column, left));
        Work { lasting: distinct(lasting), ..Work::of(keys, STEP * CELL_NANOS, chance) }
    }

    fn hot(&self) -> Vec<Key> {
        // Rows are accessed by one node, however often: replicating them would help nobody.
        let mean = 2.0 / (ROWS + COLUMNS) as f64;
        (0..self.columns.at_least(100.0 * mean)).map(Key).collect()
    }
}
