//! The record of a snapshot: what each worker has copied of the main copies of its node while all
//! nodes are frozen.

use std::collections::{BTreeMap, BTreeSet};

use adapm_core::id::Key;

use crate::digits::Seen;
use crate::oracle::NodeWorker;

/// A snapshot under way.
#[derive(Default)]
pub(crate) struct Cut {
    /// Workers that have copied.
    copied: BTreeSet<NodeWorker>,
    copies: BTreeMap<Key, Vec<Seen>>,
}

/// What a worker does next in its snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It waits at the tick behind the quiesce.
    Tick,
    /// It freezes its node.
    Freeze,
    /// It waits until all are frozen: a barrier that leads to no tick, for which changes would have
    /// to leave.
    Meet,
    /// It freezes its node again, for what was on its way, and copies its part once it is.
    Copy,
    /// It waits until all have copied.
    MeetAgain,
    /// It lets its node go on.
    Thaw,
}

impl Stage {
    /// Returns what comes behind, `None` if that is all.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::Tick => Some(Self::Freeze),
            Self::Freeze => Some(Self::Meet),
            Self::Meet => Some(Self::Copy),
            Self::Copy => Some(Self::MeetAgain),
            Self::MeetAgain => Some(Self::Thaw),
            Self::Thaw => None,
        }
    }
}

impl Cut {
    /// Records what a worker has copied, whose node is frozen.
    pub(crate) fn note_copied(&mut self, who: NodeWorker, copies: Vec<(Key, Seen)>) {
        self.copied.insert(who);
        for (key, seen) in copies {
            self.copies.entry(key).or_default().push(seen);
        }
    }

    /// Records that the worker keeps its node frozen no longer.
    pub(crate) fn note_thawed(&mut self, who: NodeWorker) {
        self.copied.remove(&who);
        if self.copied.is_empty() {
            self.copies.clear();
        }
    }

    /// Returns the number of workers that have copied, and have not thawed their nodes.
    pub(crate) fn workers(&self) -> usize {
        self.copied.len()
    }

    /// Returns the copies of a key.
    pub(crate) fn copies(&self, key: Key) -> &[Seen] {
        self.copies.get(&key).map_or(&[], Vec::as_slice)
    }
}
