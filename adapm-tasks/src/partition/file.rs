//! A partition in a file: made once, used by any run of the same data on as many nodes.
//!
//! ```text
//!   "adapmprt" | version u32 | task: text | keys u64 | nodes u64 | seed u64 | digest of the samples u64
//!   | samples u64 | homes u16 | parts of samples u16 | for each node: replicas u64, their keys u64 | checksum u64
//! ```
//!
//! Numbers, texts and the checksum are as in files of parameters ([`crate::run::file`]).
//!
//! Lengths of values are not in it: homes are the same for any dimension, unless that changes the
//! number of keys, as it does where dense layers have some.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapm_core::Key;
use adapm_transport::error::SystemError;

use crate::data::{DataError, bytes};
use crate::files;
use crate::partition::{PARTS_MAX, Partition};
use crate::run::file::{Checksum, Fault, Reader, Writer};

/// A partition of the keys and the training samples of a task, as `adapm partition` writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFile {
    pub(crate) task: String,
    pub(crate) nodes: usize,
    pub(crate) seed: u64,
    /// Digest of the samples with the keys that they access.
    pub(crate) samples: u64,
    pub(crate) home: Arc<[u16]>,
    pub(crate) sample: Arc<[u16]>,
    pub(crate) secondary: Vec<Vec<Key>>,
    /// The file that it was read from.
    path: PathBuf,
}

/// A file of a partition that cannot be read or used. Its text is one line: what, where, what to
/// do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The operating system refused.
    #[error("{}", files::unreadable(path, None, *error))]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: SystemError,
    },
    /// The file is none of ours.
    #[error("{path} is no partition of adapm; give a file written by adapm partition")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has another format version.
    #[error("{path} has format version {found}, this program reads {read}; {AGAIN}")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version that this program reads.
        read: u32,
    },
    /// The file is of another task.
    #[error("{path} is a partition of task {task}; give one of the task asked for")]
    OtherTask {
        /// The file.
        path: PathBuf,
        /// Name of the task it is of.
        task: String,
    },
    /// The file ends early.
    #[error("{path} ends early; {AGAIN}")]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// The bytes of the file contradict each other or their checksum.
    #[error("{path} is damaged; {AGAIN}")]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The partition is of other keys.
    #[error(
        "{path} is a partition of {given} keys, the run has {keys}; {AGAIN} and the flags of the run"
    )]
    OtherKeys {
        /// The file.
        path: PathBuf,
        /// Keys of the partition.
        given: u64,
        /// Keys of the run.
        keys: u64,
    },
    /// The partition is for another number of nodes.
    #[error("{path} is a partition for {given} nodes, the run has {nodes}; {AGAIN}")]
    OtherNodes {
        /// The file.
        path: PathBuf,
        /// Nodes of the partition.
        given: usize,
        /// Nodes of the run.
        nodes: usize,
    },
    /// The partition is of other training data.
    #[error(
        "{path} is a partition of other samples than the run trains on; {AGAIN} and the flags of the run"
    )]
    OtherSamples {
        /// The file.
        path: PathBuf,
    },
}

impl PartitionFile {
    /// Returns a partition of the samples with this digest.
    pub(crate) fn new(task: &str, seed: u64, samples: u64, partition: Partition) -> Self {
        let Partition { home, secondary, sample } = partition;
        let (task, nodes) = (task.to_owned(), secondary.len());
        let (home, sample, path) = (home.into(), sample.into(), PathBuf::new());
        Self { task, nodes, seed, samples, home, sample, secondary, path }
    }

    /// Reads a partition of `task`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of something else, or is damaged.
    pub fn load(path: &Path, task: &str) -> Result<Self, PartitionError> {
        let own = || path.to_path_buf();
        let bytes = bytes::read_binary(path).map_err(|error| match error {
            DataError::Unreadable { path, error } => PartitionError::Io { path, error },
            DataError::CutShort { path } => PartitionError::Truncated { path },
            _ => PartitionError::Corrupt { path: own() },
        })?;
        let partition = Self::read(task, &bytes).map_err(|fault| match fault {
            Fault::Foreign => PartitionError::Foreign { path: own() },
            Fault::Version { found, read } => PartitionError::Version { path: own(), found, read },
            Fault::Task(task) => PartitionError::OtherTask { path: own(), task },
            Fault::Truncated => PartitionError::Truncated { path: own() },
            Fault::Corrupt => PartitionError::Corrupt { path: own() },
        })?;
        Ok(Self { path: own(), ..partition })
    }

    fn read(task: &str, bytes: &[u8]) -> Result<Self, Fault> {
        let mut reader = Reader::of_kind((MAGIC, VERSION), task.as_bytes(), bytes)?;
        let (keys, nodes) = (reader.count()?, reader.count()?);
        let (seed, digest, samples) = (reader.count()?, reader.count()?, reader.count()?);
        if nodes == 0 || nodes > PARTS_MAX as u64 {
            return Err(Fault::Corrupt);
        }
        let (home, sample) = (reader.shorts(keys)?, reader.shorts(samples)?);
        let is_node = |part: &u16| u64::from(*part) < nodes;
        let mut secondary = Vec::new();
        for _ in 0..nodes {
            let count = reader.count()?;
            if count > reader.left() as u64 / 8 {
                return Err(Fault::Truncated);
            }
            let replicas = (0..count).map(|_| reader.count().map(Key));
            secondary.push(replicas.collect::<Result<Vec<Key>, _>>()?);
        }
        reader.finish()?;
        let is_sound = |(node, keys): (usize, &Vec<Key>)| {
            let is_far = |key: &Key| home.get(key.0 as usize).is_some_and(|h| *h != node as u16);
            keys.is_sorted_by(|one, other| one < other) && keys.iter().all(is_far)
        };
        let are_nodes = home.iter().chain(&sample).all(is_node);
        if !are_nodes || !secondary.iter().enumerate().all(is_sound) {
            return Err(Fault::Corrupt);
        }
        Ok(Self::new(task, seed, digest, Partition { home, secondary, sample }))
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Errors of `file`.
    pub(crate) fn write_to(&self, file: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = Writer::of_kind((MAGIC, VERSION), self.task.as_bytes(), file)?;
        let counts = [
            self.home.len() as u64,
            self.nodes as u64,
            self.seed,
            self.samples,
            self.sample.len() as u64,
        ];
        counts.into_iter().try_for_each(|count| writer.count(count))?;
        writer.shorts(&self.home)?;
        writer.shorts(&self.sample)?;
        for keys in &self.secondary {
            writer.count(keys.len() as u64)?;
            keys.iter().try_for_each(|key| writer.count(key.0))?;
        }
        writer.finish().map(drop)
    }

    /// Checks that this is a partition of so many keys for so many nodes.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub(crate) fn check(&self, keys: u64, nodes: usize) -> Result<(), PartitionError> {
        let path = || self.path.clone();
        let given = self.home.len() as u64;
        if given != keys {
            return Err(PartitionError::OtherKeys { path: path(), given, keys });
        }
        if self.nodes != nodes {
            return Err(PartitionError::OtherNodes { path: path(), given: self.nodes, nodes });
        }
        Ok(())
    }

    /// Checks that this is a partition of the samples with this digest.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub(crate) fn check_samples(&self, digest: u64) -> Result<(), PartitionError> {
        let other = || PartitionError::OtherSamples { path: self.path.clone() };
        if self.samples == digest { Ok(()) } else { Err(other()) }
    }

    /// Returns the home of each key.
    pub(crate) fn homes(&self) -> Arc<[u16]> {
        Arc::clone(&self.home)
    }

    /// Returns the keys of others that each node replicates, ascending.
    pub(crate) fn replicas(&self) -> &[Vec<Key>] {
        &self.secondary
    }

    /// Returns the node of each sample.
    pub(crate) fn nodes_of_samples(&self) -> &[u16] {
        &self.sample
    }

    /// Returns a number that differs between partitions that differ.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Checksum::default();
        [self.samples, self.seed].into_iter().for_each(|word| digest.add(&word.to_le_bytes()));
        self.home.iter().chain(&*self.sample).for_each(|part| digest.add(&part.to_le_bytes()));
        for keys in &self.secondary {
            digest.add(&(keys.len() as u64).to_le_bytes());
            keys.iter().for_each(|key| digest.add(&key.0.to_le_bytes()));
        }
        digest.sum()
    }
}

const MAGIC: &[u8] = b"adapmprt";
const VERSION: u32 = 1;
const AGAIN: &str = "make it again with adapm partition";

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> (PartitionFile, Vec<u8>) {
        let partition = Partition {
            home: vec![0, 2, 1, 0],
            secondary: vec![vec![Key(1), Key(2)], vec![], vec![Key(3)]],
            sample: vec![2, 2, 0, 1, 1],
        };
        let partition = PartitionFile::new("mf", 7, 99, partition);
        let mut bytes = Vec::new();
        partition.write_to(&mut bytes).expect("memory takes all bytes");
        (partition, bytes)
    }

    #[test]
    fn what_is_written_is_read_and_damage_anywhere_is_seen() {
        let (partition, bytes) = written();
        assert_eq!(PartitionFile::read("mf", &bytes), Ok(partition));
        for at in 0..bytes.len() {
            assert!(PartitionFile::read("mf", &bytes[..at]).is_err(), "cut at {at}");
            for bit in [1, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= bit;
                assert!(PartitionFile::read("mf", &changed).is_err(), "changed at {at}");
            }
        }
        let longer = [bytes.clone(), vec![0]].concat();
        assert_eq!(PartitionFile::read("mf", &longer), Err(Fault::Corrupt));
        assert_eq!(PartitionFile::read("kge", &bytes), Err(Fault::Task("mf".to_owned())));
    }

    #[test]
    fn a_file_whose_parts_contradict_each_other_is_damaged_though_its_checksum_fits() {
        let bad = [
            (vec![0, 3], vec![vec![], vec![]], vec![0]),
            (vec![0, 1], vec![vec![], vec![]], vec![2]),
            (vec![0, 1], vec![vec![Key(0)], vec![]], vec![0]),
            (vec![0, 1, 1], vec![vec![Key(2), Key(1)], vec![]], vec![0]),
            (vec![0, 1], vec![vec![Key(2)], vec![]], vec![0]),
            (vec![], vec![], vec![]),
        ];
        for (home, secondary, sample) in bad {
            let file = PartitionFile::new("wv", 1, 1, Partition { home, secondary, sample });
            let mut bytes = Vec::new();
            file.write_to(&mut bytes).expect("memory takes all bytes");
            assert_eq!(PartitionFile::read("wv", &bytes), Err(Fault::Corrupt), "{file:?}");
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        let (partition, bytes) = written();
        // Keys and samples, and the replicas of the first node.
        let parts = 2 * (partition.home.len() + partition.sample.len());
        let head = MAGIC.len() + 4 + 4 + 2;
        for at in [head, head + 32, head + 40 + parts] {
            let mut changed = bytes.clone();
            changed[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            assert_eq!(PartitionFile::read("mf", &changed), Err(Fault::Truncated), "at {at}");
        }
    }

    #[test]
    fn a_partition_of_something_else_is_refused() {
        let (partition, _) = written();
        assert_eq!(partition.check(4, 3), Ok(()));
        let text = |result: Result<(), PartitionError>| result.expect_err("another").to_string();
        assert!(text(partition.check(5, 3)).contains("of 4 keys, the run has 5;"));
        assert!(text(partition.check(4, 2)).contains("for 3 nodes, the run has 2;"));
        assert!(text(partition.check_samples(98)).contains("of other samples"));
        assert_eq!(partition.check_samples(99), Ok(()));
    }
}
