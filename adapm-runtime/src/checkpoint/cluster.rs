//! Checkpoints of a cluster without a run of a task: what its workers share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapm_core::{Layout, NodeId};

use super::writer::{Keeps, Place, Save, Saved, Writer};
use super::{Checkpoint, CheckpointError, Owner, Restored};
use crate::builder::Builder;
use crate::tables::Tables;

/// The checkpoints of a cluster's tables in a folder, as one process writes them.
pub struct Checkpoints {
    folder: PathBuf,
    tables: Tables,
    writers: Mutex<Writers>,
}

#[derive(Default)]
struct Writers {
    /// Of the nodes of this process.
    by_node: BTreeMap<NodeId, Arc<Writer>>,
    /// The folder is held, or cannot be.
    begun: Option<Result<Owner, CheckpointError>>,
}

impl Checkpoints {
    /// Returns the checkpoints in `folder`, which all nodes see, of a cluster with these tables.
    /// Nothing is made before the first one is written.
    ///
    /// # Errors
    /// Tables with too many rows ([`Checkpoint::check_rows`]).
    pub fn new(folder: impl AsRef<Path>, tables: &Tables) -> Result<Self, CheckpointError> {
        let (folder, tables) = (folder.as_ref().to_path_buf(), tables.clone());
        Checkpoint::check_rows(&folder, &tables)?;
        Ok(Self { folder, tables, writers: Mutex::default() })
    }

    /// Returns true while this process writes a checkpoint, or waits for what others write of it.
    pub fn is_busy(&self) -> bool {
        self.writers().by_node.values().any(|writer| writer.is_busy())
    }

    /// Waits until no checkpoint is being written; returns the last one that was, if there is one
    /// since the last call: committed, if node 0 is in this process.
    ///
    /// # Errors
    /// The first of this process's nodes that could not write it.
    pub fn wait(&self) -> Result<Option<Saved>, CheckpointError> {
        let writers = self.writers();
        if let Some(Err(error)) = &writers.begun {
            return Err(error.clone());
        }
        writers.by_node.values().for_each(|writer| writer.wait());
        let ended = writers.by_node.values().filter_map(|writer| writer.take_outcome());
        ended.collect::<Result<Vec<Saved>, _>>().map(|saved| saved.into_iter().next())
    }

    /// Takes the folder, once.
    pub(crate) fn begin(&self) {
        let take = || {
            let latest = Checkpoint::latest(&self.folder)?;
            let owner = Owner::take(&self.folder)?;
            owner.begin(latest.as_ref()).map(|()| owner)
        };
        self.writers().begun.get_or_insert_with(take);
    }

    /// Returns true if the folder cannot be taken: nothing is written then.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.writers().begun, Some(Err(_)))
    }

    /// Checks what a program adds.
    ///
    /// # Panics
    /// If it is no JSON.
    pub(crate) fn check(&self, program: &str) {
        assert!(serde_json::from_str::<serde_json::Value>(program).is_ok(), "{program} is no JSON");
    }

    /// Returns the layout of the tables; `None` if they have no keys.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.tables.layout().ok()
    }

    /// Returns what is saved at a step.
    pub(crate) fn save(&self, step: u64, program: &str) -> Save {
        let (tables, needs, program) = (self.tables.clone(), Vec::new(), program.to_owned());
        let (name, keeps, is_awaited) = (format!("step-{step:010}"), Keeps::Latest, false);
        Save { name, tables, needs, program, keeps, is_awaited }
    }

    /// Returns the writer of a node.
    pub(crate) fn writer(&self, node: NodeId, nodes: usize, workers: usize) -> Arc<Writer> {
        let place = Place { part: node.index(), parts: nodes, workers };
        let new = || Arc::new(Writer::new(&self.folder, place));
        Arc::clone(self.writers().by_node.entry(node).or_insert_with(new))
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Builder<f32, S> {
    /// Sets initial values: rows that were read from a checkpoint, and of keys that are not among
    /// them those that were set before.
    #[must_use]
    pub fn restore(self, rows: &Restored) -> Self {
        let rows = rows.clone();
        self.initial_before(move |key, value| rows.write(key, value))
    }
}
