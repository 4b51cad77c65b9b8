//! What was read of a checkpoint: the rows that one process wants, found by their key.

use std::sync::Arc;

use adapm_core::{Key, Layout};

use super::error::CheckpointError;
use super::rows::RowsFile;
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
    /// For each row of the table its place below, plus one; 0 if it was not read.
    places: Vec<u32>,
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
    /// these those that `keep` wants; with 0 of 1 all. Checks the tables, and what is read.
    ///
    /// Costs the memory of the rows, and 4 bytes for each row of the tables.
    ///
    /// # Errors
    /// Other tables ([`check`](Self::check)); what cannot be read, or is damaged.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn read(
        &self,
        tables: &Tables,
        (node, nodes): (usize, usize),
        keep: &dyn Fn(Key) -> bool,
    ) -> Result<Restored, CheckpointError> {
        assert!(node < nodes, "node {node} of {nodes}");
        self.check(tables)?;
        let hashes = hashes_of(node, nodes);
        let mut read: Vec<Rows> = tables.as_slice().iter().map(Rows::none).collect();
        for info in &self.manifest.files {
            let path = self.folder.join(&info.name);
            let file = RowsFile::open(&path, info, &self.tables)?;
            for (table, rows) in read.iter_mut().enumerate() {
                // Behind a table that has grown keys are others, and have other homes.
                let has_moved = tables.key(table, 0) != self.tables.key(table, 0);
                if has_moved {
                    let is_here = |key: Key| Layout::home(key, nodes).index() == node && keep(key);
                    rows.add(&file, (table, tables), &hashes_of(0, 1), &is_here)?;
                } else {
                    rows.add(&file, (table, tables), &hashes, keep)?;
                }
            }
        }
        Ok(Restored { tables: tables.clone(), rows: read.into() })
    }
}

impl Rows {
    fn none(table: &crate::tables::Table) -> Self {
        let lens = [table.dim()].into_iter().chain(table.state().iter().map(|state| state.len));
        let parts = lens.map(|len| Values { len, values: Vec::new() }).collect();
        let places = vec![0; usize::try_from(table.rows()).unwrap_or(0)];
        Self { places, count: 0, parts }
    }

    fn add(
        &mut self,
        file: &RowsFile<'_>,
        (table, tables): (usize, &Tables),
        hashes: &std::ops::Range<u128>,
        keep: &dyn Fn(Key) -> bool,
    ) -> Result<(), CheckpointError> {
        let (places, rows) = file.find(table, hashes)?;
        let wanted = |row: &u64| tables.key(table, *row).is_some_and(keep);
        let mask: Vec<bool> = rows.iter().map(wanted).collect();
        let count = mask.iter().filter(|kept| **kept).count();
        for (row, _) in rows.iter().zip(&mask).filter(|(_, kept)| **kept) {
            self.count += 1;
            self.places[*row as usize] = self.count;
        }
        self.parts.iter_mut().for_each(|of| of.values.reserve_exact(count * of.len));
        let (mut running, mut seen) = (0, 0);
        file.values(table, &places, &mut |part, floats| {
            if part != running {
                (running, seen) = (part, 0);
            }
            let Values { len, values } = &mut self.parts[part];
            if count == mask.len() {
                return values.extend_from_slice(floats);
            }
            // A piece may begin within a row.
            for float in floats {
                if mask[seen / *len] {
                    values.push(*float);
                }
                seen += 1;
            }
        })
    }
}

impl Restored {
    /// Writes the value of a key, if it was read: true then, else it is left as it is.
    ///
    /// # Panics
    /// If `value` is not as long as a row of the key's table.
    pub fn write(&self, key: Key, value: &mut [f32]) -> bool {
        let Some((table, row)) = self.tables.locate(key) else { return false };
        let Rows { places, parts, .. } = &self.rows[table];
        let Some(place) = (places[row as usize] as usize).checked_sub(1) else { return false };
        let mut rest = value;
        for Values { len, values } in parts {
            let (part, behind) = rest.split_at_mut(*len);
            part.copy_from_slice(&values[place * len..(place + 1) * len]);
            rest = behind;
        }
        assert!(rest.is_empty(), "a value is as long as a row of its table");
        true
    }

    /// Returns the number of rows that were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.iter().map(|rows| u64::from(rows.count)).sum()
    }
}
