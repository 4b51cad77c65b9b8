//! Checkpoints by the workers of a cluster, without a run of a task.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapm_core::error::OpError;
use adapm_core::store::Store;
use adapm_core::{Key, NodeId};

use super::rows::Part;
use super::writer::{Place, Save, Saved, Writer};
use super::{CheckpointError, Restored};
use crate::builder::Builder;
use crate::tables::Tables;
use crate::worker::Worker;

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
    /// The folder is ready, or cannot be made so.
    begun: Option<Result<(), CheckpointError>>,
}

impl Checkpoints {
    /// Returns the checkpoints in `folder`, which all nodes see, of a cluster with these tables.
    /// Nothing is made before the first one is written.
    #[must_use]
    pub fn new(folder: impl AsRef<Path>, tables: &Tables) -> Self {
        let (folder, tables) = (folder.as_ref().to_path_buf(), tables.clone());
        Self { folder, tables, writers: Mutex::default() }
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

    /// Makes the folder ready, once.
    fn begin(&self, writer: &Writer) {
        let mut writers = self.writers();
        if writers.begun.is_none() {
            writers.begun = Some(writer.begin(false));
        }
    }

    fn writer(&self, node: NodeId, nodes: usize, workers: usize) -> Arc<Writer> {
        let place = Place { part: node.index(), parts: nodes, workers };
        let new = || Arc::new(Writer::new(&self.folder, place));
        Arc::clone(self.writers().by_node.entry(node).or_insert_with(new))
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store<Value = f32>> Worker<f32, S> {
    /// Takes part in a checkpoint: blocks until all workers of all nodes that have not ended have
    /// called this and have copied their keys. Then all go on, while the checkpoint `step` is
    /// written, and becomes the latest once it is complete ([`Checkpoints::wait`]). `program` is
    /// kept with it; that of node 0 counts.
    ///
    /// Costs two quiesces, and a pull of every key by one worker of its home.
    ///
    /// # Errors
    /// The cluster has failed, or has other keys than the tables. That a checkpoint cannot be
    /// written fails no worker.
    ///
    /// # Panics
    /// If `program` is no JSON.
    pub fn checkpoint(
        &mut self,
        checkpoints: &Checkpoints,
        step: u64,
        program: &str,
    ) -> Result<(), OpError> {
        assert!(serde_json::from_str::<serde_json::Value>(program).is_ok(), "{program} is no JSON");
        self.quiesce()?;
        let (node, id, nodes) = (self.node(), self.id(), self.nodes());
        let workers = self.workers();
        let writer = checkpoints.writer(node, nodes, workers);
        if node == NodeId(0) && id.index() == 0 {
            checkpoints.begin(&writer);
        }
        let tables = checkpoints.tables.clone();
        let bound = |index: usize| tables.keys() as u128 * index as u128 / workers as u128;
        let own = bound(id.index()) as u64..bound(id.index() + 1) as u64;
        let mut part = Part::default();
        part.keys.extend(own.map(Key).filter(|key| self.home(*key) == node));
        let len_of =
            |key: &Key| tables.locate(*key).map_or(0, |at| tables.as_slice()[at.0].row_len());
        for keys in part.keys.chunks(KEYS_AT_ONCE) {
            let begin = part.values.len();
            part.values.resize(begin + keys.iter().map(len_of).sum::<usize>(), 0.0);
            self.pull(keys, &mut part.values[begin..])?;
        }
        // Nobody pushes before all have copied.
        self.quiesce()?;
        let (needs, program) = (Vec::new(), program.to_owned());
        let name = format!("step-{step:08}");
        writer.submit(id.index(), &Save { name, tables, needs, program, is_latest: true }, part);
        Ok(())
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

/// Keys that are pulled at once.
const KEYS_AT_ONCE: usize = 1 << 14;
