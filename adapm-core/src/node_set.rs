//! A small set of nodes: the few holders of a key fit inline, larger sets spill.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::id::NodeId;

const INLINE: usize = 6;

/// A set of nodes, kept sorted; up to 6 without allocation.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NodeSet {
    few: heapless::Vec<NodeId, INLINE, u8>,
    /// All nodes, if they do not fit inline. A pointer, since most of the sets that an owner keeps,
    /// one per key, have one or two nodes.
    #[expect(clippy::box_collection, reason = "a pointer is a third of a list")]
    many: Option<Box<Vec<NodeId>>>,
}

impl NodeSet {
    /// Returns the empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { few: heapless::Vec::new(), many: None }
    }

    /// Adds `node`. Returns true if it was absent.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let Err(at) = self.as_slice().binary_search(&node) else { return false };
        if let Some(many) = &mut self.many {
            many.insert(at, node);
        } else if self.few.insert(at, node).is_err() {
            let mut many = self.few.to_vec();
            many.insert(at, node);
            self.few.clear();
            self.many = Some(Box::new(many));
        }
        true
    }

    /// Removes `node`. Returns true if it was present.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let Ok(at) = self.as_slice().binary_search(&node) else { return false };
        let Some(many) = &mut self.many else {
            self.few.remove(at);
            return true;
        };
        many.remove(at);
        if many.len() <= INLINE {
            self.few.extend_from_slice(many).expect("a set this small fits inline");
            self.many = None;
        }
        true
    }

    /// Returns true if `node` is in the set.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.as_slice().binary_search(&node).is_ok()
    }

    /// Returns the nodes in ascending order.
    #[must_use]
    pub fn as_slice(&self) -> &[NodeId] {
        self.many.as_ref().map_or(&*self.few, |many| many.as_slice())
    }

    /// Returns an iterator over the nodes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.as_slice().iter().copied()
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::new();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_and_returns_inline() {
        let mut set = NodeSet::new();
        for node in [5, 1, 9, 3, 7, 2, 8, 0] {
            assert!(set.insert(NodeId(node)));
            assert!(!set.insert(NodeId(node)));
        }
        assert_eq!(set.iter().map(|n| n.0).collect::<Vec<_>>(), [0, 1, 2, 3, 5, 7, 8, 9]);
        for node in [0, 9, 5] {
            assert!(set.remove(NodeId(node)));
            assert!(!set.remove(NodeId(node)));
        }
        assert_eq!(set, [1, 2, 3, 7, 8].into_iter().map(NodeId).collect());
        assert!(set.contains(NodeId(3)) && !set.contains(NodeId(5)));
    }
}
