//! What cannot work is refused before anything is started.

use adapm_core::config::NodeConfig;
use adapm_core::error::ConfigError;
use adapm_core::layout::Kind;
use adapm_core::policy::System;
use adapm_core::store::Store;
use adapm_core::{ChannelId, NodeId, Value};
use adapm_transport::threads;

use super::{Builder, Decisions};
use crate::error::BuildError;
use crate::processes::Terms;
use crate::sampling::Scheme;

impl<V, S> Builder<V, S>
where
    V: Value,
    S: Store<Value = V> + Send + Sync + 'static,
{
    /// Checks what needs no other process.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        if let (Some(group), Some(nodes)) = (&self.group, self.told_nodes)
            && nodes != group.nodes()
        {
            return Err(BuildError::GroupNodes { nodes, group: group.nodes() });
        }
        let channels = self.channels.unwrap_or(1);
        // Which channel is asked for does not matter: the numbers are the same for all.
        NodeConfig::new(self.only.unwrap_or(NodeId(0)), self.nodes, self.workers)
            .on_channel(ChannelId(0), channels)
            .check(&self.layout)?;
        if channels > usize::from(u16::MAX) {
            return Err(ConfigError::Channels { channels }.into());
        }
        self.check_sampling()?;
        self.check_memory(if self.group.is_some() || self.only.is_some() { 1 } else { self.nodes })?;
        if self.is_full() && self.layout.kind() == Kind::Sparse {
            return Err(BuildError::SparseFull);
        }
        Ok(())
    }

    /// What the processes of a group must have alike.
    pub(super) fn terms(&self) -> Terms {
        let system = match &self.decisions {
            Decisions::System(system) => system.name(),
            Decisions::Custom(_) => "a custom policy",
        };
        vec![
            ("keys", self.layout.keys().end.0.to_string()),
            ("layout", format!("{:016x}", self.layout.digest::<V>())),
            ("workers", self.workers.to_string()),
            ("system", system.to_owned()),
            ("location caches", self.location_caches.to_string()),
            ("sampling", format!("{:?}", self.sampling)),
        ]
    }

    pub(super) fn is_full(&self) -> bool {
        matches!(self.decisions, Decisions::System(System::Full))
    }

    fn check_sampling(&self) -> Result<(), BuildError> {
        let Some(sampling) = &self.sampling else { return Ok(()) };
        let (start, end) = (sampling.keys.start, sampling.keys.end);
        let keys_end = self.layout.keys().end;
        if start >= end || end > keys_end {
            return Err(BuildError::SampleKeys { start, end, keys_end });
        }
        if let Scheme::Pool { size, reuse } = sampling.scheme
            && (size == 0 || size > Scheme::POOL_SIZE_MAX || reuse == 0)
        {
            return Err(BuildError::SamplePool { size, reuse });
        }
        let len = self.layout.value_len(start);
        match self.layout.extents().iter().find(|extent| {
            extent.keys.start < end && start < extent.keys.end && Some(extent.value_len) != len
        }) {
            None => Ok(()),
            Some(extent) => Err(BuildError::SampleLens { key: extent.keys.start }),
        }
    }

    /// Checks that `here` of the nodes can be had at all: main copies, directories, what each has of each other, and threads.
    /// Asks for the memory and gives it back, as whoever has started cannot be refused any more.
    fn check_memory(&self, here: usize) -> Result<(), BuildError> {
        let (channels, nodes) = (self.channels.unwrap_or(1), self.nodes as u128);
        let engines = here as u128 * channels as u128;
        let bytes = self.store_bytes(here) + engines * (ENGINE_BYTES + nodes * PEER_BYTES);
        let stacks = (engines + here as u128 * self.workers as u128) * STACK_BYTES;
        let is_bounded = threads::address_space_left().is_some_and(|left| bytes + stacks > u128::from(left));
        let room =
            usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
        if room && !is_bounded { Ok(()) } else { Err(BuildError::Memory { bytes: bytes + stacks }) }
    }

    /// Memory of main copies and directories of `here` of the nodes, as far as this crate knows.
    fn store_bytes(&self, here: usize) -> u128 {
        if !self.in_memory || self.layout.kind() == Kind::Sparse {
            return 0;
        }
        let values = self.layout.extents().iter().map(|extent| {
            let keys = u128::from(extent.keys.end.0 - extent.keys.start.0);
            keys * (extent.value_len * V::WIDTH + HEADER_BYTES) as u128
        });
        let directories = here as u128 * u128::from(self.layout.keys().end.0) * ENTRY_BYTES;
        directories + values.sum::<u128>() * here as u128 / self.nodes as u128
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
