//! The training cells of some rows, cut into tiles: groups of columns by ranges of rows, 8 bytes a
//! cell.
//!
//! ```text
//!             columns of about equal length
//!            group 0    group 1    group 2
//!   rows   +----------+----------+----------+
//!     |    |  tile    |          |  tile    |   a tile: at most CHUNK_ROWS rows with CHUNK_CELLS cells,
//!     v    +----------+  tile    |          |           in random order
//!          |  tile    |          +----------+
//!          |          +----------+  tile    |
//! ```
//!
//! A row that is in a tile has several cells there if its group has many columns of similar length,
//! so its vector is fetched and sent back for several cells at once. (Of the 100 k x 10 k matrix of
//! the benchmarks with 1 % of its cells known, a row has 1.1 cells in a group of 4 random columns,
//! 3.0 in one of 64 columns of like lengths, and more in one of 256.)
//!
//! # Sweep
//! The cells of many rows come in their order, generated ahead by several threads if they are
//! generated.
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
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::mf::cells::Cell;
use crate::mf::residuals::Residuals;
use crate::run::task::Tell;

/// A cell of a tile: the places of its row and its column in the lists of the tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Visit {
    pub(crate) row: u16,
    pub(crate) column: u16,
    pub(crate) value: f32,
}

/// The cells of one group of columns: its tiles, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Its columns, each once.
    columns: Vec<u32>,
    /// Rows of each tile, each once there, ascending.
    rows: Vec<u32>,
    /// Cells of each tile, in the order in which they are visited.
    cells: Vec<Visit>,
    /// Ends of the rows and of the cells of each tile.
    ends: Vec<(usize, usize)>,
}

/// Cells that are trained on together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'a> {
    pub(crate) columns: &'a [u32],
    pub(crate) rows: &'a [u32],
    pub(crate) cells: &'a [Visit],
}

impl Group {
    /// Rows of its cells; a row that several tiles have comes several times.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Its tiles, in ascending order of their rows.
    pub(crate) fn tiles(&self) -> impl Iterator<Item = Tile<'_>> {
        let mut start = (0, 0);
        self.ends.iter().map(move |end| {
            let (rows, cells) = (&self.rows[start.0..end.0], &self.cells[start.1..end.1]);
            start = *end;
            Tile { columns: &self.columns, rows, cells }
        })
    }

    /// Adds a cell whose row is not before that of the cell before.
    fn add(&mut self, row: u32, column: u16, value: f32, random: &mut Xoshiro256PlusPlus) {
        let (rows, cells) = self.ends.last().copied().unwrap_or((0, 0));
        let is_new = self.rows.len() == rows || self.rows.last() != Some(&row);
        let has_room = self.cells.len() - cells < CHUNK_CELLS;
        if !has_room || (is_new && self.rows.len() - rows == CHUNK_ROWS) {
            self.end_tile(random);
            return self.add(row, column, value, random);
        }
        if is_new {
            self.rows.push(row);
        }
        self.cells.push(Visit { row: (self.rows.len() - 1 - rows) as u16, column, value });
    }

    fn end_tile(&mut self, random: &mut Xoshiro256PlusPlus) {
        let (_, start) = self.ends.last().copied().unwrap_or((0, 0));
        // Neighbours that have neither row nor column in common are computed at once, where those
        // of one row wait for each other.
        self.cells[start..].shuffle(random);
        if self.cells.len() > start {
            self.ends.push((self.rows.len(), self.cells.len()));
        }
    }
}

/// Returns the number of cells of each column in the rows of `sweep`. Makes the first pass.
pub(crate) fn lengths(sweep: &Sweep<'_>) -> Vec<usize> {
    let mut lengths = vec![0; sweep.residuals.columns() as usize];
    sweep.pass(0, |cell| lengths[cell.column as usize] += 1);
    lengths
}

/// Deals the columns that have cells to `parts` parts of about equal numbers of cells, and of
/// columns: each, from the longest to the shortest, to the part with the fewest cells.
pub(crate) fn deal(lengths: &[usize], parts: usize) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> =
        (0..lengths.len() as u32).filter(|column| lengths[*column as usize] > 0).collect();
    order.sort_by_key(|column| std::cmp::Reverse(lengths[*column as usize]));
    let mut dealt = vec![Vec::new(); parts];
    let mut cells = vec![0; parts];
    for column in order {
        let least = (0..parts).min_by_key(|part| cells[*part]).unwrap_or(0);
        cells[least] += lengths[column as usize];
        dealt[least].push(column);
    }
    dealt
}

/// Cuts the cells of the rows of `sweep` into groups, for each of `parts`, which are columns that
/// have cells, no column twice. Goes over the cells once, in the second pass; they come to lie
/// where they stay.
pub(crate) fn cut(
    sweep: &Sweep<'_>,
    lengths: &[usize],
    parts: Vec<Vec<u32>>,
    seed: u64,
) -> Vec<Vec<Group>> {
    let (mut groups, mut counts) = (Vec::new(), Vec::new());
    // Of each column its group and its place there.
    let mut places = vec![(0_u32, 0_u16); lengths.len()];
    for mut columns in parts {
        columns.sort_by_key(|column| std::cmp::Reverse(lengths[*column as usize]));
        let before = groups.len();
        // Parts of few columns have several groups too: the order of groups differs from epoch to
        // epoch.
        for columns in columns.chunks((columns.len() / GROUPS_MIN).clamp(1, GROUP_COLUMNS)) {
            for (place, column) in (0..).zip(columns) {
                places[*column as usize] = (groups.len() as u32, place);
            }
            let cells = columns.iter().map(|column| lengths[*column as usize]).sum();
            let (columns, cells) = (columns.to_vec(), Vec::with_capacity(cells));
            groups.push(Group { columns, cells, ..Group::default() });
        }
        counts.push(groups.len() - before);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(sweep.rows.start) << 32);
    sweep.pass(1, |cell| {
        let (group, column) = places[cell.column as usize];
        groups[group as usize].add(cell.row, column, cell.value, &mut random);
    });
    for group in &mut groups {
        group.end_tile(&mut random);
        group.rows.shrink_to_fit();
        group.ends.shrink_to_fit();
    }
    let mut groups = groups.into_iter();
    counts.into_iter().map(|count| groups.by_ref().take(count).collect()).collect()
}

/// Cuts the rows into contiguous ranges with about equal numbers of cells for each of their
/// `workers`: their bounds, one more than ranges.
pub(crate) fn row_bounds(residuals: &Residuals<'_>, workers: &[usize]) -> Vec<u32> {
    let (total, parts) = (u128::from(residuals.len()), workers.len());
    let all: usize = workers.iter().sum();
    let mut bounds = vec![0];
    let mut until = workers[0];
    let mut before: u64 = 0;
    for row in 0..residuals.rows() {
        if bounds.len() >= parts {
            break;
        }
        before += residuals.cells_in(row..row + 1);
        while bounds.len() < parts && u128::from(before) * all as u128 >= total * until as u128 {
            until += workers[bounds.len()];
            bounds.push(row + 1);
        }
    }
    bounds.resize(parts + 1, residuals.rows());
    bounds
}

/// Several passes over the training cells of the same rows.
pub(crate) struct Sweep<'a> {
    pub(crate) residuals: &'a Residuals<'a>,
    pub(crate) rows: Range<u32>,
    /// By row, whose it is, and whose cells alone are passed; `None`: those of all of `rows`.
    pub(crate) only: Option<(&'a [u16], u16)>,
    /// Threads that generate.
    pub(crate) threads: usize,
    /// Passes in all.
    pub(crate) passes: u64,
    /// Receives the number of rows done, and of those in all passes together.
    pub(crate) tell: &'a Tell<'a>,
}

impl Sweep<'_> {
    /// Returns the number of cells that a pass has.
    pub(crate) fn cells(&self) -> u64 {
        let rows = self.rows.clone().filter(|row| self.has(*row));
        rows.map(|row| self.residuals.cells_in(row..row + 1)).sum()
    }

    fn has(&self, row: u32) -> bool {
        self.only.is_none_or(|(of, own)| of[row as usize] == own)
    }

    /// Passes all cells, row by row, ascending. It is pass number `pass`, from 0.
    pub(crate) fn pass(&self, pass: u64, mut each: impl FnMut(Cell)) {
        let Range { start, end } = self.rows;
        let mut each = |cell: Cell| {
            if self.has(cell.row) {
                each(cell);
            }
        };
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

/// Cells of a tile: announcing and handing it over cost little per cell, and what is fetched for it
/// is soon sent back.
pub(crate) const CHUNK_CELLS: usize = 4096;
/// Rows of a tile: their vectors and those of the columns stay in a core's own cache from pull to
/// push.
pub(crate) const CHUNK_ROWS: usize = 1024;
/// Columns of a group.
pub(crate) const GROUP_COLUMNS: usize = 256;
/// Groups of a part, if it has as many columns.
const GROUPS_MIN: usize = 16;

/// Cells of a block, about; fewer rows than that.
const BLOCK_CELLS: u64 = 1 << 16;
/// Blocks that a thread may be ahead.
const BLOCKS_AHEAD: usize = 2;
/// The interval of progress reports.
const TELLING: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::mf::ratings::Ratings;
    use crate::mf::synthetic::SyntheticConfig;

    fn ratings(rows: u32, columns: u32, cells: u64) -> Ratings {
        Ratings::synthetic(SyntheticConfig { rows, columns, cells, ..SyntheticConfig::default() })
            .expect("valid")
    }

    fn sweep<'a>(residuals: &'a Residuals<'a>, rows: Range<u32>) -> Sweep<'a> {
        Sweep { residuals, rows, only: None, threads: 2, passes: 2, tell: &|_, _| {} }
    }

    #[test]
    fn tiles_have_the_cells_of_their_rows_and_columns_each_once() {
        let ratings = ratings(3_000, 700, 90_000);
        let residuals = Residuals::new(&ratings, Vec::new());
        let rows = 500..2_900;
        let sweep = sweep(&residuals, rows.clone());
        let lengths = lengths(&sweep);
        let parts = deal(&lengths, 2);
        let groups = cut(&sweep, &lengths, parts.clone(), 1);
        let mut expected = Vec::new();
        residuals
            .for_each(rows, |cell| expected.push((cell.row, cell.column, cell.value.to_bits())));
        let mut found = Vec::new();
        for (part, groups) in parts.iter().zip(&groups) {
            assert!(groups.len() >= GROUPS_MIN);
            for tile in groups.iter().flat_map(Group::tiles) {
                assert!(tile.rows.is_sorted_by(|a, b| a < b) && tile.rows.len() <= CHUNK_ROWS);
                assert!(
                    (1..=CHUNK_CELLS).contains(&tile.cells.len())
                        && tile.columns.len() <= GROUP_COLUMNS
                );
                assert!(tile.columns.iter().all(|column| part.contains(column)));
                found.extend(tile.cells.iter().map(|cell| {
                    let (row, column) =
                        (tile.rows[usize::from(cell.row)], tile.columns[usize::from(cell.column)]);
                    (row, column, cell.value.to_bits())
                }));
            }
        }
        assert!(!found.is_sorted(), "in random order");
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected);
    }

    #[test]
    fn a_tile_ends_where_its_cells_or_its_rows_are_enough() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let ends = |group: &mut Group, random: &mut Xoshiro256PlusPlus| {
            group.end_tile(random);
            group.end_tile(random);
            group.tiles().map(|tile| (tile.rows.len(), tile.cells.len())).collect::<Vec<_>>()
        };
        let mut long = Group::default();
        (0..CHUNK_CELLS + 3).for_each(|_| long.add(7, 0, 1.0, &mut random));
        assert_eq!(ends(&mut long, &mut random), [(1, CHUNK_CELLS), (1, 3)]);
        let mut sparse = Group::default();
        (0..CHUNK_ROWS as u32 + 1).for_each(|row| sparse.add(row, 0, 1.0, &mut random));
        assert_eq!(ends(&mut sparse, &mut random), [(CHUNK_ROWS, CHUNK_ROWS), (1, 1)]);
        assert_eq!(ends(&mut Group::default(), &mut random), []);
    }

    #[test]
    fn columns_are_dealt_once_and_evenly() {
        let ratings = ratings(60, 40, 500);
        let lengths = lengths(&sweep(&Residuals::new(&ratings, Vec::new()), 0..60));
        let dealt = deal(&lengths, 3);
        let mut all: Vec<u32> = dealt.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..40).filter(|column| lengths[*column as usize] > 0)));
        for part in &dealt {
            let cells: usize = part.iter().map(|column| lengths[*column as usize]).sum();
            assert!((160..=174).contains(&cells), "{cells}");
        }
    }

    #[test]
    fn rows_are_cut_where_the_cells_are() {
        let ratings = ratings(60, 40, 500);
        let residuals = Residuals::new(&ratings, Vec::new());
        for parts in [1, 2, 4, 7, 100] {
            let bounds = row_bounds(&residuals, &vec![2; parts]);
            assert!(bounds.is_sorted() && bounds.len() == parts + 1);
            assert_eq!((bounds[0], bounds[parts]), (0, 60));
            let most = bounds.windows(2).map(|two| residuals.cells_in(two[0]..two[1])).max();
            assert!(most.expect("a part") <= 500 / parts as u64 + 30, "{parts}");
        }
        let bounds = row_bounds(&residuals, &[3, 1, 1]);
        for (rows, share) in bounds.windows(2).zip([300, 100, 100]) {
            let cells = residuals.cells_in(rows[0]..rows[1]);
            assert!(cells.abs_diff(share) <= 30, "{cells} {share}");
        }
    }

    #[test]
    fn any_number_of_threads_passes_the_same_cells_in_order() {
        let config = SyntheticConfig {
            rows: 200_000,
            columns: 50,
            cells: 300_000,
            ..SyntheticConfig::default()
        };
        let ratings = Ratings::synthetic(config).expect("valid");
        let residuals = Residuals::new(&ratings, Vec::new());
        let rows = 1_000..190_001;
        let mut expected = Vec::new();
        residuals.for_each(rows.clone(), |cell| expected.push(cell));
        for threads in [1, 2, 3, 100] {
            let sweep = Sweep {
                residuals: &residuals,
                rows: rows.clone(),
                only: None,
                threads,
                passes: 1,
                tell: &|_, _| {},
            };
            let mut seen = Vec::new();
            sweep.pass(0, |cell| seen.push(cell));
            assert!(seen == expected, "{threads}");
        }
    }
}
