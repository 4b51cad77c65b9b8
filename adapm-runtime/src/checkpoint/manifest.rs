//! The manifest of a checkpoint: what it is of, and its files.
//!
//! JSON, whose last member is the CRC-32C of all bytes before it: of the manifest's own. The file
//! `latest` of a folder of checkpoints has the name of one and the checksum of that name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{CheckpointError, Fault};
use super::rows::{FileInfo, hex};
use crate::tables::{Table, Tables};

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The version of the form.
    pub(super) format: u32,
    /// The version of the program.
    pub(super) adapm: String,
    /// Of the tables, as far as keys and values are concerned.
    pub(super) layout: String,
    pub(super) tables: Vec<TableInfo>,
    /// Whose files they are, if other parts have theirs in other folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) apart: Option<Apart>,
    pub(super) files: Vec<FileInfo>,
    /// Names of other checkpoints of the folder that this one refers to.
    pub(super) needs: Vec<String>,
    /// Seconds since 1970.
    pub(super) time: u64,
    /// What a program adds, as JSON.
    pub(super) program: serde_json::Value,
}

/// Parts of a cluster that have a folder for themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Apart {
    /// Which these are, ascending, in the order of their files.
    pub(super) here: Vec<usize>,
    /// Parts of the cluster.
    pub(super) parts: usize,
}

/// A table, without what rows begin with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TableInfo {
    name: String,
    rows: u64,
    dim: usize,
    /// Names and numbers a row of what the optimizer keeps.
    state: Vec<(String, usize)>,
}

impl TableInfo {
    pub(super) fn of(table: &Table) -> Self {
        let state = table.state().iter().map(|state| (state.name.clone().into_owned(), state.len));
        let (rows, dim) = (table.rows(), table.dim());
        Self { name: table.name().to_owned(), rows, dim, state: state.collect() }
    }

    fn table(&self) -> Table {
        let table = Table::new(self.name.clone(), self.rows, self.dim);
        self.state.iter().fold(table, |table, (name, len)| table.with_state(name.clone(), *len))
    }
}

impl Manifest {
    /// Returns the bytes of the file.
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_string_pretty(self)?;
        // Without the end of the object.
        text.truncate(text.len() - "\n}".len());
        text.push_str(SUM);
        let sum = hex(crc32c::crc32c(text.as_bytes()));
        Ok(format!("{text}\"{sum}\"\n}}\n").into_bytes())
    }

    /// Reads the manifest at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, CheckpointError> {
        let refused = |fault| CheckpointError::new(path, fault);
        let bytes = fs::read(path).map_err(|error| refused(Fault::of(&error)))?;
        let damaged = || refused(Fault::Damaged("its checksum".to_owned()));
        let end = bytes.windows(SUM.len()).rposition(|window| window == SUM.as_bytes());
        let (text, sum) = bytes.split_at(end.ok_or_else(damaged)? + SUM.len());
        if sum != format!("\"{}\"\n}}\n", hex(crc32c::crc32c(text))).as_bytes() {
            return Err(damaged());
        }
        // Of a later version perhaps only this can be read.
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let Version { format } = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        if format != FORMAT {
            return Err(refused(Fault::Version { found: format, read: FORMAT }));
        }
        serde_json::from_slice(&bytes).map_err(|_| refused(Fault::Damaged("its text".to_owned())))
    }

    /// Returns the tables.
    pub(super) fn tables(&self, path: &Path) -> Result<Tables, CheckpointError> {
        let wrong = |what: String| CheckpointError::new(path, Fault::Damaged(what));
        let tables = Tables::new(self.tables.iter().map(TableInfo::table));
        let tables = tables.map_err(|error| wrong(error.to_string()))?;
        let layout = tables.layout().map_err(|error| wrong(error.to_string()))?;
        let fits = self.files.iter().all(|file| file.rows.len() == self.tables.len());
        if !fits || digest(&layout) != self.layout {
            return Err(wrong("its tables".to_owned()));
        }
        if let Some(Apart { here, parts }) = &self.apart
            && (here.len() != self.files.len()
                || !here.is_sorted_by(|one, next| one < next)
                || here.last().is_none_or(|last| last >= parts))
        {
            return Err(wrong("its parts".to_owned()));
        }
        for (at, table) in tables.as_slice().iter().enumerate() {
            let rows = self.files.iter().map(|file| file.rows[at]).fold(0, u64::saturating_add);
            if rows != table.rows() && (self.apart.is_none() || rows > table.rows()) {
                let (name, all) = (table.name(), table.rows());
                return Err(wrong(format!(
                    "{rows} of {all} rows of table {name} are in its files"
                )));
            }
        }
        Ok(tables)
    }
}

/// Returns the digest of a layout as text.
pub(super) fn digest(layout: &adapm_core::Layout) -> String {
    format!("{:016x}", layout.digest::<f32>())
}

/// Returns the bytes of `latest` for a checkpoint of this name.
pub(super) fn latest(name: &str) -> String {
    format!("{name} {}\n", hex(crc32c::crc32c(name.as_bytes())))
}

/// Returns the folder of the latest checkpoint; `None` if there is none yet.
pub(super) fn read_latest(folder: &Path) -> Result<Option<PathBuf>, CheckpointError> {
    let path = folder.join(LATEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CheckpointError::new(&path, Fault::of(&error))),
    };
    let name = text.split(' ').next().unwrap_or_default();
    if text != latest(name) || name.contains(['/', '.']) {
        return Err(CheckpointError::new(&path, Fault::Damaged("its checksum".to_owned())));
    }
    Ok(Some(folder.join(name)))
}

pub(super) const FORMAT: u32 = 1;
pub(super) const LATEST: &str = "latest";
pub(super) const MANIFEST: &str = "manifest.json";
/// Comes before the checksum.
const SUM: &str = ",\n  \"crc32c\": ";
