//! Memory of a cluster, as far as it is known before: asked for and given back before anything
//! starts, as who has started cannot be refused any more.

use adapm_core::Value;
use adapm_core::layout::{Kind, Layout};
use adapm_transport::threads;

use crate::error::BuildError;

/// What the nodes of one process need.
pub(super) struct Need {
    /// Main copies, directories, engines and what each has of each peer.
    bytes: u128,
    /// Stacks of channel threads and workers.
    stacks: u128,
}

impl Need {
    /// The need of `here` of `nodes` nodes with so many channels and workers each, apart from their
    /// stores.
    pub(super) fn new(here: usize, nodes: usize, channels: usize, workers: usize) -> Self {
        let engines = here as u128 * channels as u128;
        Self {
            bytes: engines * (ENGINE_BYTES + nodes as u128 * PEER_BYTES),
            stacks: (engines + here as u128 * workers as u128) * STACK_BYTES,
        }
    }

    /// Adds main copies and directories that are kept in memory, for `here` of `nodes` nodes.
    pub(super) fn with_stores<V: Value>(mut self, layout: &Layout, here: usize, nodes: usize) -> Self {
        if layout.kind() == Kind::Dense {
            let values = layout.extents().iter().map(|extent| {
                let keys = u128::from(extent.keys.end.0 - extent.keys.start.0);
                keys * (extent.value_len * V::WIDTH + HEADER_BYTES) as u128
            });
            let directories = here as u128 * u128::from(layout.keys().end.0) * ENTRY_BYTES;
            self.bytes += directories + values.sum::<u128>() * here as u128 / nodes as u128;
        }
        self
    }

    /// Checks that it can be had.
    pub(super) fn check(self) -> Result<(), BuildError> {
        let bytes = self.bytes + self.stacks;
        let is_bounded = threads::address_space_left().is_some_and(|left| bytes > u128::from(left));
        let has_room =
            usize::try_from(self.bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if has_room && !is_bounded { Ok(()) } else { Err(BuildError::Memory { bytes }) }
    }
}

/// Memory of a main copy apart from its value (see `adapm_store::DenseStore`).
const HEADER_BYTES: usize = 16;

/// Memory of a directory for each key of the layout.
const ENTRY_BYTES: u128 = 8;

/// Memory of an engine with its thread, apart from its peers, about.
const ENGINE_BYTES: u128 = 80 << 10;

/// Memory of an engine and its endpoint for each node of the cluster, about.
const PEER_BYTES: u128 = 400;

/// Address space of a thread.
const STACK_BYTES: u128 = 2 << 20;
