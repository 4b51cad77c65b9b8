//! The keys of which a node holds a copy for the whole run, under systems that choose them before
//! it: the same on every node (NuPS §3, AdaPM §A.5), or each node's own (HET-GMP §5.2).
//!
//! Not here: the choice, which needs to know how often each key is accessed
//! ([`crate::Builder::hot_keys`]).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::policy::Supply;
use adapm_core::{Key, NodeId};

use crate::error::BuildError;

/// The hot keys of all nodes.
#[derive(Clone, Debug)]
pub(crate) enum HotSets {
    Shared(HotKeys),
    /// By node.
    Own(Arc<[HotKeys]>),
}

impl HotSets {
    /// Returns the hot keys of `node`.
    pub(crate) fn of(&self, node: NodeId) -> HotKeys {
        match self {
            Self::Shared(keys) => keys.clone(),
            Self::Own(lists) => lists[node.index()].clone(),
        }
    }

    /// Returns the same; under the supply in which each of so many nodes has its own, with the
    /// `dense` ones among these.
    pub(crate) fn under(&self, supply: Supply, nodes: usize, dense: &Range<Key>) -> Self {
        if supply != Supply::Partition {
            return self.clone();
        }
        let of_node = |node| {
            let own = self.of(NodeId(node));
            let dense = (dense.start.0..dense.end.0).map(Key);
            HotKeys::new(own.as_slice().iter().copied().chain(dense))
        };
        Self::Own((0..nodes as u16).map(of_node).collect())
    }

    /// Checks that hot keys are keys before `end`, for as many nodes, and of use under a system
    /// with this supply.
    pub(crate) fn check(
        &self,
        end: Key,
        nodes: usize,
        supply: Supply,
        system: impl FnOnce() -> String,
    ) -> Result<(), BuildError> {
        if let Self::Own(lists) = self
            && lists.len() != nodes
        {
            return Err(BuildError::HotKeyLists { given: lists.len(), nodes });
        }
        let keys = self.sets().iter().map(HotKeys::as_slice);
        match keys.clone().filter_map(<[Key]>::last).max() {
            Some(key) if *key >= end => Err(BuildError::UnknownHotKey { key: *key, end }),
            Some(_) => match self {
                Self::Shared(keys) if !supply.has_hot_keys() => {
                    Err(BuildError::NoHotKeys { system: system(), hot: keys.0.len() })
                }
                Self::Own(_) if supply != Supply::Partition => {
                    Err(BuildError::HotKeysByNode { system: system() })
                }
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Returns each set once.
    pub(crate) fn sets(&self) -> &[HotKeys] {
        match self {
            Self::Shared(keys) => std::slice::from_ref(keys),
            Self::Own(lists) => lists,
        }
    }
}

impl fmt::Display for HotSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.sets().iter().map(HotKeys::to_string).collect();
        f.write_str(&texts.join(", "))
    }
}

/// A set of keys, ascending; printed with its size and a digest that tells sets apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HotKeys(Arc<[Key]>);

impl HotKeys {
    /// Creates the set of these keys, in any order; some may come twice.
    pub(crate) fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let mut keys: Vec<Key> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        Self(keys.into())
    }

    /// Returns the keys in order.
    pub(crate) fn as_slice(&self) -> &[Key] {
        &self.0
    }

    /// Returns `keys` without those of this set.
    pub(crate) fn cold_of<'a>(&self, keys: &'a [Key]) -> Cow<'a, [Key]> {
        if self.0.is_empty() {
            return Cow::Borrowed(keys);
        }
        let is_cold = |key: &Key| self.0.binary_search(key).is_err();
        Cow::Owned(keys.iter().copied().filter(is_cold).collect())
    }
}

impl fmt::Display for HotKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // FNV-1a over the keys: each process computes it alike.
        let fold = |digest: u64, key: &Key| (digest ^ key.0).wrapping_mul(FNV_PRIME);
        let digest = self.0.iter().fold(FNV_OFFSET, fold);
        write!(f, "{} ({digest:016x})", self.0.len())
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_hot_is_left_out() {
        let hot = HotKeys::new([Key(7), Key(2), Key(7)]);
        assert_eq!(hot.as_slice(), [Key(2), Key(7)]);
        let keys = [Key(9), Key(7), Key(1), Key(2)];
        assert_eq!(*hot.cold_of(&keys), [Key(9), Key(1)]);
        assert_eq!(*HotKeys::default().cold_of(&keys), keys);
    }

    #[test]
    fn the_text_tells_sets_apart() {
        let text = |keys: &[u64]| HotKeys::new(keys.iter().copied().map(Key)).to_string();
        assert!(text(&[3, 4]).starts_with("2 ("));
        assert_eq!(text(&[3, 4]), text(&[4, 3]));
        assert_ne!(text(&[3, 4]), text(&[3, 5]));
    }
}
