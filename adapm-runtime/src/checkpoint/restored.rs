//! What was read of a checkpoint: the rows that one process wants, found by their key.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, thread};

use adapm_core::{Key, Layout};
use adapm_transport::threads;

use super::error::{CheckpointError, Fault};
use super::rows::{BLOCK, FileInfo, RowsFile};
use super::{Checkpoint, hashes_of};
use crate::tables::Tables;

/// Rows that were read, each found by its key in constant time. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Restored {
    tables: Tables,
    rows: Arc<[Rows]>,
}

/// Those of one table.
#[derive(Debug)]
struct Rows {
    /// For each row of the table its place below, plus one; 0 if it was not read. Several threads
    /// write it, each for other rows, before anybody reads it.
    places: Vec<AtomicU32>,
    /// Rows that were read.
    count: u32,
    /// Parameters, and each state: the values of all rows that were read.
    parts: Vec<Values>,
}

#[derive(Debug)]
struct Values {
    /// Numbers a row.
    len: usize,
    values: Vec<f32>,
}

impl Checkpoint {
    /// Reads the rows of `tables` whose keys have their home on node `node` of `nodes`, and of
    /// these those that `keep` wants; with 0 of 1 all. Checks the tables, and what is read. Reads
    /// with as many threads as there are processors.
    ///
    /// Costs the memory of the rows, and 4 bytes for each row of the tables.
    ///
    /// # Errors
    /// Other tables ([`check`](Self::check)); a folder without the files of all parts; what cannot
    /// be read, or is damaged.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn read(
        &self,
        tables: &Tables,
        (node, nodes): (usize, usize),
        keep: &(dyn Fn(Key) -> bool + Sync),
    ) -> Result<Restored, CheckpointError> {
        assert!(node < nodes, "node {node} of {nodes}");
        if let Some(part) = (0..self.parts()).find(|part| self.rows_of(*part).is_none()) {
            return Err(self.lacks(part));
        }
        self.read_files(&self.manifest.files, tables, (node, nodes), keep)
    }

    /// Reads the rows that a part has written, as [`read`](Self::read) does: those that the part
    /// owned, wherever their home is.
    ///
    /// # Errors
    /// As [`read`](Self::read), and a part whose file is not here.
    pub fn read_part(
        &self,
        part: usize,
        tables: &Tables,
        keep: &(dyn Fn(Key) -> bool + Sync),
    ) -> Result<Restored, CheckpointError> {
        let file = self.file_of(part).ok_or_else(|| self.lacks(part))?;
        self.read_files(std::slice::from_ref(file), tables, (0, 1), keep)
    }

    fn lacks(&self, part: usize) -> CheckpointError {
        CheckpointError::new(&self.folder, Fault::Apart { part, parts: self.parts() })
    }

    fn read_files(
        &self,
        files: &[FileInfo],
        tables: &Tables,
        (node, nodes): (usize, usize),
        keep: &(dyn Fn(Key) -> bool + Sync),
    ) -> Result<Restored, CheckpointError> {
        self.check(tables)?;
        let paths: Vec<_> = files.iter().map(|info| self.folder.join(&info.name)).collect();
        let files = paths.iter().zip(files);
        let files = files.map(|(path, info)| RowsFile::open(path, info, &self.tables));
        let files: Vec<RowsFile<'_>> = files.collect::<Result<_, _>>()?;
        let find = |(table, file): (usize, usize)| {
            let file = &files[file];
            // Behind a table that has grown keys are others, and have other homes.
            let has_moved = tables.key(table, 0) != self.tables.key(table, 0);
            let is_here = |key: Key| Layout::home(key, nodes).index() == node && keep(key);
            if has_moved {
                Found::find(file, (table, tables), &hashes_of(0, 1), &is_here)
            } else {
                Found::find(file, (table, tables), &hashes_of(node, nodes), keep)
            }
        };
        let of_table = |table| (0..files.len()).map(move |file| (table, file));
        let all = (0..tables.as_slice().len()).flat_map(of_table);
        let mut found: Vec<Found<'_>> = share(all.collect(), find)?;
        let mut read: Vec<Rows> = tables.as_slice().iter().map(Rows::none).collect();
        for found in &mut found {
            found.first = read[found.table].count;
            read[found.table].count += found.count;
        }
        share(found.iter_mut().collect(), |found| {
            found.place(&read[found.table].places);
            Ok(())
        })?;
        let of_table = read.iter_mut().zip(found.chunk_by(|one, other| one.table == other.table));
        let pieces = of_table.flat_map(|(rows, found)| rows.pieces(found));
        share(pieces.collect(), Piece::read)?;
        Ok(Restored { tables: tables.clone(), rows: read.into() })
    }
}

/// Rows of one table in one file that are wanted.
struct Found<'f> {
    file: &'f RowsFile<'f>,
    table: usize,
    places: Range<usize>,
    /// Which rows are there, until they have their places.
    rows: Vec<u32>,
    /// Whether each is wanted; empty if all are.
    mask: Vec<bool>,
    /// How many are, and how many of the table those of the files before have.
    count: u32,
    first: u32,
}

impl<'f> Found<'f> {
    fn find(
        file: &'f RowsFile<'f>,
        (table, tables): (usize, &Tables),
        hashes: &Range<u128>,
        keep: &dyn Fn(Key) -> bool,
    ) -> Result<Self, CheckpointError> {
        let (places, rows) = file.find(table, hashes)?;
        let wanted = |row: &u32| tables.key(table, u64::from(*row)).is_some_and(keep);
        let (mask, count) = if rows.iter().all(wanted) {
            (Vec::new(), rows.len())
        } else {
            let mask: Vec<bool> = rows.iter().map(wanted).collect();
            let count = mask.iter().filter(|wanted| **wanted).count();
            (mask, count)
        };
        // A table has fewer than 2^32 rows.
        Ok(Self { file, table, places, rows, mask, count: count as u32, first: 0 })
    }

    /// Gives the rows their places among those that are read.
    fn place(&mut self, places: &[AtomicU32]) {
        let rows = mem::take(&mut self.rows);
        let wanted = |at: &usize| self.mask.is_empty() || self.mask[*at];
        for (at, place) in (0..rows.len()).filter(wanted).zip(self.first + 1..) {
            places[rows[at] as usize].store(place, Ordering::Relaxed);
        }
    }

    /// Returns its places in pieces of so many rows of the file.
    fn chunks(&self, rows: usize) -> impl Iterator<Item = Range<usize>> {
        let Range { start, end } = self.places;
        let bounds = (start / rows * rows..end).step_by(rows);
        bounds.map(move |at| at.max(start) - start..(at + rows).min(end) - start)
    }

    /// Returns which rows at these places among its own are wanted; `None` if all are.
    fn mask(&self, places: &Range<usize>) -> Option<&[bool]> {
        if self.mask.is_empty() { None } else { self.mask.get(places.clone()) }
    }
}

/// One part of some of them, which one thread reads, and where to.
struct Piece<'f> {
    found: &'f Found<'f>,
    part: usize,
    /// Numbers a row.
    len: usize,
    /// Among the places of `found`.
    places: Range<usize>,
    /// Of the rows that are wanted.
    into: &'f mut [f32],
}

impl Rows {
    fn none(table: &crate::tables::Table) -> Self {
        let lens = [table.dim()].into_iter().chain(table.state().iter().map(|state| state.len));
        let parts = lens.map(|len| Values { len, values: Vec::new() }).collect();
        let rows = usize::try_from(table.rows()).unwrap_or(0);
        let places = (0..rows).map(|_| AtomicU32::new(0)).collect();
        Self { places, count: 0, parts }
    }

    /// Makes room for what was found, and returns what is to be read into which part of it.
    fn pieces<'f>(&'f mut self, found: &'f [Found<'f>]) -> Vec<Piece<'f>> {
        let mut pieces = Vec::new();
        for (part, Values { len, values }) in self.parts.iter_mut().enumerate() {
            let len = *len;
            *values = vec![0.0; self.count as usize * len];
            let mut rest = values.as_mut_slice();
            for found in found {
                for places in found.chunks(rows_at_once(len)) {
                    let (all, mask) = (places.len(), found.mask(&places));
                    let kept = mask.map_or(all, |mask| mask.iter().filter(|it| **it).count());
                    let into = rest.split_off_mut(..kept * len).expect("room for all rows");
                    if !into.is_empty() {
                        pieces.push(Piece { found, part, len, places, into });
                    }
                }
            }
        }
        pieces
    }
}

impl Piece<'_> {
    fn read(self) -> Result<(), CheckpointError> {
        let Found { file, table, places, .. } = self.found;
        let (of, first) = ((*table, self.part), places.start + self.places.start);
        let Some(mask) = self.found.mask(&self.places) else {
            return file.values(of, first, self.into);
        };
        let mut all = vec![0.0; self.places.len() * self.len];
        file.values(of, first, &mut all)?;
        let rows = all.chunks_exact(self.len).zip(mask).filter(|(_, is_wanted)| **is_wanted);
        let into = self.into.chunks_exact_mut(self.len);
        into.zip(rows).for_each(|(into, (row, _))| into.copy_from_slice(row));
        Ok(())
    }
}

/// Returns how many rows with so many numbers each one thread reads at once: such that they end
/// where a block of the file ends.
fn rows_at_once(len: usize) -> usize {
    let bytes = len.max(1) * size_of::<f32>();
    // Of the smallest number of blocks in which no row is cut: `BLOCK` is a power of two.
    let whole = BLOCK >> bytes.trailing_zeros().min(BLOCK.ilog2());
    whole * (BYTES_AT_ONCE / (whole * bytes)).max(1)
}

/// Does `work` for all parts, by as many threads as there are processors; returns the results in
/// order. Nothing more is begun once something has failed.
fn share<P: Send, R: Send>(
    parts: Vec<P>,
    work: impl Fn(P) -> Result<R, CheckpointError> + Sync,
) -> Result<Vec<R>, CheckpointError> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let has_failed = AtomicBool::new(false);
    let parts = Mutex::new(parts.into_iter().enumerate());
    let own = |_| {
        let mut done = Vec::new();
        while !has_failed.load(Ordering::Relaxed) {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, part)) = next else { break };
            let result = work(part);
            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((at, result));
        }
        done
    };
    let done = threads::map("adapm checkpoint", 0..workers, own);
    let mut done: Vec<_> = done.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

impl Restored {
    /// Writes the value of a key, if it was read: true then, else it is left as it is.
    ///
    /// # Panics
    /// If `value` is not as long as a row of the key's table.
    pub fn write(&self, key: Key, value: &mut [f32]) -> bool {
        let Some((table, place)) = self.place(key) else { return false };
        let mut rest = value;
        for Values { len, values } in &self.rows[table].parts {
            let (part, behind) = rest.split_at_mut(*len);
            part.copy_from_slice(&values[place * len..(place + 1) * len]);
            rest = behind;
        }
        assert!(rest.is_empty(), "a value is as long as a row of its table");
        true
    }

    /// Returns true if the value of a key was read.
    #[must_use]
    pub fn has(&self, key: Key) -> bool {
        self.place(key).is_some()
    }

    /// Returns the number of rows that were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.iter().map(|rows| u64::from(rows.count)).sum()
    }

    /// Returns the table of a key, and the place of its row among those that were read.
    fn place(&self, key: Key) -> Option<(usize, usize)> {
        let (table, row) = self.tables.locate(key)?;
        let place = self.rows[table].places[row as usize].load(Ordering::Relaxed) as usize;
        Some((table, place.checked_sub(1)?))
    }
}

/// Bytes that one thread reads at once, unless whole blocks take more.
const BYTES_AT_ONCE: usize = 8 * BLOCK;
