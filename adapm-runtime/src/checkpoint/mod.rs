//! Checkpoints: the tables of a cluster on a disk, so that a program can go on from there, on any
//! number of nodes.
//!
//! ```text
//! checkpoints/
//!   latest                            the name of the last complete one: what commits it
//!   step-0000012000/
//!     manifest.json                   tables, files with their checksums, what the program adds
//!     rows-000-of-004.safetensors     of one part of the cluster, sorted by home (see Layout::home_hash)
//!   step-0000012500.partial/          being written
//! ```
//!
//! # Writing
//! All workers call [`Worker::checkpoint`](crate::Worker::checkpoint): everything pushed is
//! applied, nobody pushes, all nodes are frozen, and each worker copies its part of the main copies
//! on its node ([`Worker::snapshot`](crate::Worker::snapshot)). Training goes on while a thread of
//! each node writes its file, brings it to the disk, and leaves a report. Once all reports are
//! there, that of node 0 writes the manifest, gives the folder its name, and replaces `latest`: at
//! any moment the last complete checkpoint is readable. The last two are kept.
//!
//! ```
//! # use adapm_runtime::prelude::*;
//! use adapm_runtime::checkpoint::{Checkpoint, Checkpoints};
//! use adapm_runtime::tables::{Table, Tables};
//!
//! # let folder = std::env::temp_dir().join(format!("adapm-doc-{}", std::process::id()));
//! let tables = Tables::new([Table::new("rows", 1_000, 8)])?;
//! let checkpoints = Checkpoints::new(&folder, &tables)?;
//! let cluster = tables.builder()?.nodes(2).workers(2).build()?;
//! cluster.try_run(|mut worker| {
//!     worker.push(&[Key(7)], &[1.0; 8])?;
//!     worker.checkpoint(&checkpoints, 1, r#"{"epoch": 1}"#)
//! })?;
//! checkpoints.wait()?;
//! # drop(cluster);
//!
//! // Another program, on another number of nodes.
//! let found = Checkpoint::latest(&folder)?.expect("one was written");
//! assert_eq!(found.program(), r#"{"epoch":1}"#);
//! let rows = found.read(&tables, (0, 1), &|_| true)?;
//! let cluster = tables.builder()?.restore(&rows).build()?;
//! let mut row = [0.0; 8];
//! cluster.read(&[Key(7)], &mut row)?;
//! assert_eq!(row, [4.0; 8]);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The copies are a cut: no update is in it half, or missing while a later one of the same worker
//! is in (each worker quiesces before, and no worker goes on before all have copied). Each row is
//! in it once: while nodes are frozen no main copy moves.
//!
//! # Folders apart
//! Parts may be in several folders, such as one for each host ([`Writer::among`]). Each folder has
//! a manifest of its own, which says whose files are there. A checkpoint is complete once it is so
//! in all folders: that is known to the program alone, which says at the next save what stays
//! ([`Keeps::Only`]). It is read part by part ([`Checkpoint::read_part`]). [`Sign`] tells which
//! processes see the same folder.
//!
//! # Reading
//! [`Checkpoint::read`] reads what is at home on one of any number of nodes, by positioned reads of
//! one slice of each tensor, and checks what it reads.
//! [`Builder::restore`](crate::Builder::restore) takes it for initial values. A byte that has
//! changed is an error that names the file and the tensor.
//!
//! Not here: what a program has to know to go on, such as its place in the data. It gives that as
//! text ([`Save::program`]).

mod cluster;
mod disk;
mod error;
mod manifest;
mod owner;
mod part;
mod restored;
mod rows;
#[cfg(all(test, not(adapm_loom)))]
mod tests;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tables::Tables;
use error::Fault;
use manifest::{MANIFEST, Manifest};
use rows::{FileInfo, RowsFile};

pub use cluster::Checkpoints;
pub use error::CheckpointError;
pub use owner::{Owner, Sign};
pub use part::Part;
pub use restored::Restored;
pub use writer::{Keeps, Place, Save, Saved, Writer};

/// A checkpoint that is complete.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    tables: Tables,
    manifest: Arc<Manifest>,
}

impl Checkpoint {
    /// Checks that checkpoints in `folder` can have all rows of these tables: fewer than 2^32 of
    /// each. To be called before anything is trained. Looks at no file.
    ///
    /// # Errors
    /// The first table that has more.
    pub fn check_rows(folder: &Path, tables: &Tables) -> Result<(), CheckpointError> {
        rows::check(tables).map_err(|fault| CheckpointError::new(folder, fault))
    }

    /// Opens the last complete checkpoint of a folder; `None` if there is none. Reads its manifest.
    ///
    /// # Errors
    /// What cannot be read, or is damaged.
    pub fn latest(folder: &Path) -> Result<Option<Self>, CheckpointError> {
        manifest::read_latest(folder)?.map(|path| Self::open(&path)).transpose()
    }

    /// Opens the checkpoint in a folder of its own. Reads its manifest.
    ///
    /// # Errors
    /// What cannot be read, or is damaged.
    pub fn open(folder: &Path) -> Result<Self, CheckpointError> {
        let path = folder.join(MANIFEST);
        let manifest = Manifest::read(&path)?;
        let tables = manifest.tables(&path)?;
        Ok(Self { folder: folder.to_path_buf(), tables, manifest: Arc::new(manifest) })
    }

    /// Returns the complete checkpoints of a folder, by name.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none() && path.join(MANIFEST).is_file() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the name: that of the folder.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the number of bytes of all files of rows.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the number of parts that wrote it.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.manifest.apart.as_ref().map_or(self.manifest.files.len(), |apart| apart.parts)
    }

    /// Returns the parts whose files are in this folder, ascending: all, unless hosts have folders
    /// of their own.
    #[must_use]
    pub fn here(&self) -> Vec<usize> {
        let all = || (0..self.manifest.files.len()).collect();
        self.manifest.apart.as_ref().map_or_else(all, |apart| apart.here.clone())
    }

    /// Returns true if other parts have their files in other folders.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.manifest.apart.is_some()
    }

    /// Returns the rows of each table that the file of a part has; `None` if it is not here.
    #[must_use]
    pub fn rows_of(&self, part: usize) -> Option<&[u64]> {
        self.file_of(part).map(|file| &*file.rows)
    }

    fn file_of(&self, part: usize) -> Option<&FileInfo> {
        let at = self.here().iter().position(|here| *here == part)?;
        self.manifest.files.get(at)
    }

    /// Returns when it was written, in seconds since 1970.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.manifest.time
    }

    /// Returns the names of other checkpoints of the same folder that it refers to.
    #[must_use]
    pub fn needs(&self) -> &[String] {
        &self.manifest.needs
    }

    /// Returns what the program has added, as JSON.
    #[must_use]
    pub fn program(&self) -> String {
        self.manifest.program.to_string()
    }

    /// Checks that tables can be restored from this checkpoint: the same ones, which may have more
    /// rows.
    ///
    /// # Errors
    /// The first that differs.
    pub fn check(&self, tables: &Tables) -> Result<(), CheckpointError> {
        let other = |what: String| Err(CheckpointError::new(&self.folder, Fault::Other(what)));
        let (own, wanted) = (self.tables.as_slice(), tables.as_slice());
        if own.len() != wanted.len() {
            return other(format!("{} tables, {} are wanted", own.len(), wanted.len()));
        }
        for (own, wanted) in own.iter().zip(wanted) {
            let alike = own.name() == wanted.name()
                && own.dim() == wanted.dim()
                && own.state() == wanted.state()
                && own.rows() <= wanted.rows();
            if !alike {
                return other(format!("table {own:?}, {wanted:?} is wanted"));
            }
        }
        Ok(())
    }

    /// Reads all of it, and compares all checksums.
    ///
    /// # Errors
    /// The first file and tensor that is damaged.
    pub fn verify(&self) -> Result<(), CheckpointError> {
        for info in &self.manifest.files {
            RowsFile::open(&self.folder.join(&info.name), info, &self.tables)?.verify()?;
        }
        Ok(())
    }
}

/// Returns the range of hashes ([`Layout::home_hash`]) of the keys at home on one of `nodes` nodes.
fn hashes_of(node: usize, nodes: usize) -> std::ops::Range<u128> {
    // The first upper half with which `node` is the home.
    let first = |node: usize| ((node as u128) << 32).div_ceil(nodes as u128) << 32;
    debug_assert!(node < nodes && nodes <= usize::from(u16::MAX) + 1);
    first(node)..first(node + 1)
}

/// The end of the name of a folder that is being written.
const PARTIAL: &str = "partial";
