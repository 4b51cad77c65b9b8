//! Configuration of a [`crate::engine::Engine`].

use core::fmt;

use crate::error::ConfigError;
use crate::home::HomeMap;
use crate::id::{ChannelId, NodeId};
use crate::layout::Layout;
use crate::value::Value;
use crate::wire::FRAME_BYTES_MAX;

/// The place of one protocol engine in its cluster, and its bounds.
///
/// None of the bounds is a knob that a user must turn.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeConfig {
    /// This node.
    pub node: NodeId,
    /// Number of nodes, at least 1.
    pub nodes: usize,
    /// The homes of keys, the same on all nodes. Defaults to [`HomeMap::scale`].
    pub homes: HomeMap,
    /// Number of workers of this node, at least 1.
    pub workers: usize,
    /// The channel that this engine runs.
    pub channel: ChannelId,
    /// Number of channels of every node, at least 1.
    pub channels: usize,
    /// Use locations learned from answers and grants for routing (AdaPM §B.2.3, Lapse §3.3).
    /// Defaults to true.
    pub location_caches: bool,
    /// Least time between the starts of two rounds, in nanoseconds. Defaults to 500 us.
    pub round_nanos_min: u64,
    /// Longest delay of a round that would carry few keys, from the start of the previous round, in
    /// nanoseconds; at most four times the least. Defaults to 2 ms.
    pub round_nanos_max: u64,
    /// Most bytes of one part of a message, heads included; a single larger value is still sent,
    /// alone. A response has two parts (answers, and what the owner adds); other messages have one.
    /// A part also has at most 30,000 entries. Defaults to 2 MiB.
    pub block_bytes_max: usize,
    /// Most intents and localizes granted at a time. Larger requests are answered in pieces: the
    /// requester processes one piece while the next is written, if the driver sends each output
    /// before it polls the next. 0 means 1. Defaults to 512.
    pub grants_max: usize,
    /// Most keys that a round examines to ask their owners for them, and, per peer, most deferred
    /// keys that it examines. The rest wait for the next round. 0 means 1. Defaults to 65,536.
    ///
    /// After so many keys, a round starts, ends and forgets no further signals.
    pub requests_max: usize,
    /// Most entries parked here per node; beyond that, the node gets `Retry`. Defaults to 65,536.
    pub parked_max: usize,
    /// Time after which a barrier or quiesce names the workers and nodes it waits for, in
    /// nanoseconds. Defaults to 5 s.
    pub barrier_report_nanos: u64,
    /// Time after which a peer counts as unresponsive if it owes an answer and has sent nothing, in
    /// nanoseconds; detected up to a third later. `None`, the default, means never. Must be much
    /// longer than a message takes, unless the driver reports slow links
    /// ([`crate::engine::Input::Heard`]).
    pub unresponsive_nanos: Option<u64>,
    /// Random numbers, different for each engine, from which the node's tickets are derived
    /// ([`crate::ticket`]). A node that knows them can forge answers to this one. Defaults to
    /// zeros.
    pub secret: [u64; 2],
}

impl NodeConfig {
    /// The default of `round_nanos_min`: 500 us.
    pub const ROUND_NANOS: u64 = 500_000;

    /// Creates the configuration of `node` among `nodes`, with `workers` workers, one channel, and
    /// default bounds.
    #[must_use]
    pub fn new(node: NodeId, nodes: usize, workers: usize) -> Self {
        Self {
            node,
            nodes,
            homes: HomeMap::scale(nodes),
            workers,
            channel: ChannelId(0),
            channels: 1,
            location_caches: true,
            round_nanos_min: Self::ROUND_NANOS,
            round_nanos_max: 4 * Self::ROUND_NANOS,
            block_bytes_max: 2 << 20,
            grants_max: 512,
            requests_max: 1 << 16,
            parked_max: 1 << 16,
            barrier_report_nanos: 5_000_000_000,
            unresponsive_nanos: None,
            secret: [0; 2],
        }
    }

    /// Makes this the configuration of engine `channel` of `channels`.
    #[must_use]
    pub fn on_channel(mut self, channel: ChannelId, channels: usize) -> Self {
        self.channel = channel;
        self.channels = channels;
        self
    }

    /// Checks the configuration against a layout.
    ///
    /// # Errors
    /// If there is no node, worker or channel, an id is out of range, there are more nodes than
    /// keys, or the homes are of another cluster or layout.
    pub fn check(&self, layout: &Layout) -> Result<(), ConfigError> {
        if self.nodes == 0 || self.nodes > usize::from(u16::MAX) {
            return Err(ConfigError::Nodes { nodes: self.nodes });
        }
        if self.workers == 0 || self.workers > usize::from(u16::MAX) {
            return Err(ConfigError::Workers { workers: self.workers });
        }
        if self.channels == 0 || self.channel.index() >= self.channels {
            return Err(ConfigError::Channels { channels: self.channels });
        }
        if self.node.index() >= self.nodes {
            return Err(ConfigError::NodeOutOfRange { node: self.node, nodes: self.nodes });
        }
        let keys = layout.keys().end.0;
        if self.nodes as u64 > keys {
            return Err(ConfigError::MoreNodesThanKeys { nodes: self.nodes, keys });
        }
        self.homes.check(layout, self.nodes)
    }

    /// Returns the size of the largest frame of an engine over `layout` with values of type `V`, in
    /// bytes.
    ///
    /// ```
    /// use adapm_core::wire::FRAME_BYTES_MAX;
    /// use adapm_core::{Layout, NodeId, config::NodeConfig};
    /// let longest = Layout::dense(&[(2, Layout::VALUE_LEN_MAX)])?;
    /// assert!(NodeConfig::new(NodeId(0), 2, 1).frame_bytes_max::<f64>(&longest) <= FRAME_BYTES_MAX);
    /// # Ok::<(), adapm_core::error::ConfigError>(())
    /// ```
    #[must_use]
    pub fn frame_bytes_max<V: Value>(&self, layout: &Layout) -> usize {
        let longest = layout.extents().iter().map(|extent| extent.value_len).max().unwrap_or(0);
        let longest = longest.saturating_mul(size_of::<V>());
        // One key has at most a delta and a set in a request, and one value in each part of a
        // response.
        let parts = self.block_bytes_max.max(longest.saturating_add(HEAD_BYTES)).saturating_mul(2);
        // A barrier names nodes that are missing, each in 3 bytes.
        parts.saturating_add(LISTS_BYTES).max(LISTS_BYTES + 3 * self.nodes)
    }

    /// Returns the most bytes that the head of a message with `entries` entries takes.
    #[must_use]
    pub fn head_bytes_max(entries: usize) -> usize {
        LISTS_BYTES + entries * HEAD_BYTES
    }

    /// Checks that no message can exceed the largest frame.
    ///
    /// # Errors
    /// If one could.
    pub fn check_frames<V: Value>(&self, layout: &Layout) -> Result<(), ConfigError> {
        let bytes = self.frame_bytes_max::<V>(layout);
        if bytes > FRAME_BYTES_MAX { Err(ConfigError::FrameBytes { bytes }) } else { Ok(()) }
    }
}

/// Bytes of a head apart from its entries: version, variant, origin, hops, flags and list lengths.
pub(crate) const LISTS_BYTES: usize = 128;
/// Most bytes of an entry in a head: key, version, counter and ticket as varints, two bytes of
/// flags or a node.
pub(crate) const HEAD_BYTES: usize = 40;
/// Most entries of one part of a message. In memory, an entry without a value may take 17 bytes
/// more than twice its size in a frame; two parts together take at most
/// [`SPARE_BYTES`](crate::wire::SPARE_BYTES).
pub(crate) const ENTRIES_MAX: usize = 30_000;

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {} of {}", self.node, self.nodes, self.channel, self.channels)
    }
}
