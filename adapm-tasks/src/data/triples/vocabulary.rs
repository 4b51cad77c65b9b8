//! Names while files are read: each has the index of its first appearance.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::kge::Names;

/// The names of entities or relations while files are read.
#[derive(Default)]
pub(crate) struct Vocabulary {
    names: Names,
    index: HashTable<u32>,
    /// Files choose the names, so not they decide where names collide.
    hasher: RandomState,
}

impl Vocabulary {
    /// The index of a name, which is added if it is new; `None` once there are 2^32 names.
    pub(super) fn index_of(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(index) = self.find(name) {
            return Some(index);
        }
        let index = u32::try_from(self.names.len()).ok()?;
        self.names.push(name);
        let Self { names, index: table, hasher } = self;
        let hash = |index: &u32| hasher.hash_one(names.bytes(*index as usize).unwrap_or_default());
        table.insert_unique(hasher.hash_one(name), index, hash);
        Some(index)
    }

    /// The index of a name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let is_it = |index: &u32| self.names.bytes(*index as usize) == Some(name);
        self.index.find(self.hasher.hash_one(name), is_it).copied()
    }

    /// The names by index.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The names by index, and nothing else.
    pub(crate) fn into_names(self) -> Names {
        self.names
    }
}
