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
use std::io::{self, Read as _, Seek as _, Write as _};
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use memmap2::{Mmap, MmapMut};

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
    kept: Kept,
    /// The start of each row's cells; also defined one past the last row.
    starts: Vec<usize>,
}

#[derive(Clone)]
enum Kept {
    Held(Vec<Cell>),
    Spilled(Arc<Mmap>),
}

impl Cells {
    /// Returns no cells of `rows` rows.
    pub(crate) fn none(rows: usize) -> Self {
        Self { kept: Kept::Held(Vec::new()), starts: vec![0; rows + 1] }
    }

    /// Returns the places of the cells of these rows.
    pub(crate) fn places(&self, rows: Range<u32>) -> Range<usize> {
        self.starts[rows.start as usize]..self.starts[rows.end as usize]
    }

    /// Returns true if they are in a file.
    #[cfg(any(test, feature = "cli"))]
    pub(crate) fn are_spilled(&self) -> bool {
        matches!(self.kept, Kept::Spilled(_))
    }
}

impl Deref for Cells {
    type Target = [Cell];

    fn deref(&self) -> &[Cell] {
        match &self.kept {
            Kept::Held(cells) => cells,
            Kept::Spilled(file) => bytemuck::cast_slice(file),
        }
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
#[derive(Debug)]
pub(crate) struct Gathering {
    /// The last ones; all if there is no file.
    held: Vec<Cell>,
    /// The others, in order.
    file: Option<File>,
    /// Cells in the file.
    written: usize,
    /// Cells held from which on they are appended to the file; `None`: never.
    held_max: Option<usize>,
    /// Why cells of the file are lost.
    lost: Option<io::Error>,
}

impl Gathering {
    /// Holds up to `held_max` cells in memory; with more, all are in a file in the end.
    pub(crate) fn new(held_max: usize) -> Self {
        Self { held_max: Some(held_max), ..Self::from(Vec::new()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.written + self.held.len()
    }

    pub(crate) fn push(&mut self, cell: Cell) {
        if self.held_max.is_some_and(|held_max| self.held.len() >= held_max) {
            self.spill();
        }
        self.held.push(cell);
    }

    /// Appends what is held to the file.
    fn spill(&mut self) {
        match self.append() {
            Ok(()) => {
                self.written += self.held.len();
                self.held = Vec::new();
                self.held_max = self.held_max.map(|held_max| held_max.min(APPENDED_CELLS));
            }
            Err(_) => self.hold(),
        }
    }

    fn append(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(bytemuck::cast_slice(&self.held))
    }

    /// Reads all into memory, where they stay.
    fn hold(&mut self) {
        let mut cells = vec![Cell::zeroed(); self.written];
        if let Some(mut file) = self.file.take() {
            let bytes = bytemuck::cast_slice_mut(&mut cells);
            self.lost = file.rewind().and_then(|()| file.read_exact(bytes)).err();
        }
        cells.append(&mut self.held);
        (self.held, self.written, self.held_max) = (cells, 0, None);
    }

    /// Gives all cells the indices of rows and columns that the preliminary ones stand for, and
    /// puts them in order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be read.
    pub(crate) fn in_order(mut self, rows: &[u32], columns: &[u32]) -> io::Result<Cells> {
        let rename = |cell: &Cell| Cell {
            row: rows[cell.row as usize],
            column: columns[cell.column as usize],
            value: cell.value,
        };
        if self.file.is_some() {
            self.spill();
        }
        if let Some(file) = &self.file {
            if let Ok(cells) = sort_file(file, rename, rows.len()) {
                return Ok(cells);
            }
            self.hold();
        }
        if let Some(error) = self.lost {
            return Err(error);
        }
        let mut cells = self.held;
        cells.iter_mut().for_each(|cell| *cell = rename(cell));
        cells.sort_by_key(|cell| (cell.row, cell.column));
        let starts = starts(cells.iter().copied(), rows.len());
        Ok(Cells { kept: Kept::Held(cells), starts })
    }
}

impl From<Vec<Cell>> for Gathering {
    /// Holds these and what is added to them.
    fn from(held: Vec<Cell>) -> Self {
        Self { held, file: None, written: 0, held_max: None, lost: None }
    }
}

/// Returns the renamed cells of a file in order, in another file.
///
/// # Errors
///
/// A file that cannot be written, as the disk is full, or mapped.
fn sort_file(file: &File, rename: impl Fn(&Cell) -> Cell, rows: usize) -> io::Result<Cells> {
    #[allow(unsafe_code, reason = "a file has to be mapped to be used as cells")]
    // SAFETY: the file has no name, so no other process opens it, and this one only reads it as
    // long as the map exists.
    let read = unsafe { Mmap::map(file)? };
    let renamed = || bytemuck::cast_slice(&read).iter().map(&rename);
    let starts = starts(renamed(), rows);
    let mut file = tempfile::tempfile()?;
    // What has been written has its place on the disk: the map cannot fail for want of it.
    io::copy(&mut io::repeat(0).take(read.len() as u64), &mut file)?;
    #[allow(unsafe_code, reason = "a file has to be mapped to be used as cells")]
    // SAFETY: the file has no name, and only this map of it exists.
    let mut map = unsafe { MmapMut::map_mut(&file)? };
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
    Ok(Cells { kept: Kept::Spilled(Arc::new(map.make_read_only()?)), starts })
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
/// Cells appended to the file at once.
const APPENDED_CELLS: usize = 1 << 16;
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
        Cells { kept: Kept::Held(cells), starts }
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
                gathered(&cells, held_max).in_order(&rows, &columns).expect("no file is broken")
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

    /// The same file, that can only be read.
    #[cfg(target_os = "linux")]
    fn read_only(file: File) -> File {
        use std::os::fd::AsRawFd as _;
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it is open")
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_spilled_is_held() {
        let cells = random(1_000);
        let same: Vec<u32> = (0..50).collect();
        let expected = gathered(&cells, 1_000).in_order(&same, &same).expect("there is no file");
        for failing_at in [150, 400, 999] {
            let mut gathering = Gathering::new(100);
            for (at, cell) in cells.iter().enumerate() {
                if at == failing_at {
                    gathering.file = gathering.file.take().map(read_only);
                }
                gathering.push(*cell);
            }
            let held = gathering.in_order(&same, &same).expect("the file can be read");
            assert!(held == expected && !held.are_spilled(), "{failing_at}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_has_lost_cells_is_an_error() {
        let mut gathering = gathered(&random(1_000), 100);
        let file = gathering.file.take().expect("cells were spilled");
        file.set_len(1_000).expect("it can be written");
        gathering.file = Some(read_only(file));
        let same: Vec<u32> = (0..50).collect();
        assert!(gathering.in_order(&same, &same).is_err());
    }
}
