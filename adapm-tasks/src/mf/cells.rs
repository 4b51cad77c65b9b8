//! The cells of ratings that were read: in memory, or, if there are millions, in a temporary file.
//!
//! ```text
//!   file order      [ cells as they are read ]         held, then appended to a file
//!                      |            |
//!   ranges of rows  [ ~1 M cells | ~1 M cells | ... ]  each cell to the range of its row, in order
//!                      | sort       | sort
//!   by row, column  [ cells of row 0 | of row 1 | ... ]
//! ```
//!
//! A node needs cells of others only to read over them: for means, counts and digests, which all
//! nodes have to have alike. In a file they cost no memory that the system cannot take back. Every
//! step is stable, so the order is that of a stable sort in memory, also of repeated cells. A file
//! that cannot be written, as a disk is full, costs nothing but memory: the cells are held.
//!
//! Not here: the cells that a node trains on, which are its tiles.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::{Deref, Range};

use bytemuck::{Pod, Zeroable};

use crate::data::spill::{self, Kept};

/// A data point: the value of the matrix at a row and column. 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Cell {
    /// Index of the row.
    pub row: u32,
    /// Index of the column.
    pub column: u32,
    /// The observed value.
    pub value: f32,
}

/// Cells by row, then by column; repeated ones in the order of their lines.
#[derive(Clone)]
pub(crate) struct Cells {
    kept: Kept<Cell>,
    /// The start of each row's cells; also defined one past the last row.
    starts: Vec<usize>,
}

impl Cells {
    /// Returns no cells of `rows` rows.
    pub(crate) fn none(rows: usize) -> Self {
        Self { kept: Kept::from(Vec::new()), starts: vec![0; rows + 1] }
    }

    /// Returns the places of the cells of these rows.
    pub(crate) fn places(&self, rows: Range<u32>) -> Range<usize> {
        self.starts[rows.start as usize]..self.starts[rows.end as usize]
    }

    /// Returns true if they are in a file.
    #[cfg(any(test, feature = "cli"))]
    pub(crate) fn are_spilled(&self) -> bool {
        self.kept.is_spilled()
    }
}

impl Deref for Cells {
    type Target = [Cell];

    fn deref(&self) -> &[Cell] {
        &self.kept
    }
}

impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        **self == **other && self.starts == other.starts
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells of {} rows", self.len(), self.starts.len() - 1)
    }
}

/// Cells while they are read, with preliminary indices of rows and columns.
pub(crate) type Gathering = spill::Gathering<Cell>;

/// Gives all cells the indices of rows and columns that the preliminary ones stand for, and puts
/// them in order.
///
/// # Errors
///
/// A temporary file that cannot be read.
pub(crate) fn in_order(
    mut gathering: Gathering,
    rows: &[u32],
    columns: &[u32],
) -> io::Result<Cells> {
    let rename = |cell: &Cell| Cell {
        row: rows[cell.row as usize],
        column: columns[cell.column as usize],
        value: cell.value,
    };
    if let Some(file) = gathering.file()
        && let Ok(cells) = sort_file(file, rename, rows.len())
    {
        return Ok(cells);
    }
    let mut cells = gathering.into_held()?;
    cells.iter_mut().for_each(|cell| *cell = rename(cell));
    cells.sort_by_key(|cell| (cell.row, cell.column));
    let starts = starts(cells.iter().copied(), rows.len());
    Ok(Cells { kept: Kept::from(cells), starts })
}

/// Returns the renamed cells of a file in order, in another file.
///
/// # Errors
///
/// A file that cannot be written, as the disk is full, or mapped.
fn sort_file(file: &File, rename: impl Fn(&Cell) -> Cell, rows: usize) -> io::Result<Cells> {
    let read = spill::map(file)?;
    let renamed = || bytemuck::cast_slice(&read).iter().map(&rename);
    let starts = starts(renamed(), rows);
    let mut file = tempfile::tempfile()?;
    // What has been written has its place on the disk: the map cannot fail for want of it.
    io::copy(&mut io::repeat(0).take(read.len() as u64), &mut file)?;
    let mut map = spill::map_mut(&file)?;
    let cells: &mut [Cell] = bytemuck::cast_slice_mut(&mut map);
    // Rows are in one range if they start in the same stretch of places.
    let range_of = |row: usize| starts[row] / RANGE_CELLS;
    let mut ranges = vec![0..0; cells.len() / RANGE_CELLS + 1];
    for row in (0..rows).rev() {
        let range = &mut ranges[range_of(row)];
        *range = starts[row]..range.end.max(starts[row + 1]);
    }
    let mut ends: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    for cell in renamed() {
        let end = &mut ends[range_of(cell.row as usize)];
        cells[*end] = cell;
        *end += 1;
    }
    ranges.into_iter().for_each(|range| cells[range].sort_by_key(|cell| (cell.row, cell.column)));
    Ok(Cells { kept: Kept::spilled(map.make_read_only()?), starts })
}

/// Returns the start of each row's cells, also one past the last row.
fn starts(cells: impl Iterator<Item = Cell>, rows: usize) -> Vec<usize> {
    let mut starts = vec![0; rows + 1];
    cells.for_each(|cell| starts[cell.row as usize + 1] += 1);
    for row in 1..starts.len() {
        starts[row] += starts[row - 1];
    }
    starts
}

/// Cells that are held in memory: 48 MiB.
pub(crate) const HELD_CELLS_MAX: usize = 4 << 20;
/// Cells that are sorted at once.
const RANGE_CELLS: usize = 1 << 20;

#[cfg(test)]
pub(super) mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Returns cells that are in order already.
    pub(in crate::mf) fn cells_of(cells: Vec<Cell>, rows: usize) -> Cells {
        let starts = starts(cells.iter().copied(), rows);
        Cells { kept: Kept::from(cells), starts }
    }

    /// Cells of 50 rows, row 7 with most, and 20 columns: many repeated, each of another value.
    fn random(count: usize) -> Vec<Cell> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let cell = |at| {
            let row = if random.random() { 7 } else { random.random_range(0..50) };
            Cell { row, column: random.random_range(0..20), value: at as f32 }
        };
        (0..count).map(cell).collect()
    }

    fn gathered(cells: &[Cell], held_max: usize) -> Gathering {
        let mut gathering = Gathering::new(held_max);
        cells.iter().for_each(|cell| gathering.push(*cell));
        assert_eq!(gathering.len(), cells.len());
        gathering
    }

    #[test]
    fn cells_of_a_file_are_those_of_memory_bit_by_bit() {
        let rows: Vec<u32> = (0..50).map(|row| (row * 7 + 3) % 50).collect();
        let columns: Vec<u32> = (0..20).rev().collect();
        for count in [1, 2, 100, 5_000, 3 * RANGE_CELLS / 2] {
            let cells = random(count);
            let [held, spilled] = [count, count / 3].map(|held_max| {
                in_order(gathered(&cells, held_max), &rows, &columns).expect("no file is broken")
            });
            assert_eq!((held.are_spilled(), spilled.are_spilled()), (false, true));
            assert!(held == spilled, "{count}");
            assert!(held.windows(2).all(|two| {
                let [before, after] = [two[0], two[1]].map(|cell| (cell.row, cell.column));
                before < after || (before == after && two[0].value < two[1].value)
            }));
            for row in 0..50 {
                assert!(spilled[spilled.places(row..row + 1)].iter().all(|cell| cell.row == row));
            }
        }
    }
}
