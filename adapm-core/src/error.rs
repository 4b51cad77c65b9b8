//! Errors whose type says who is to blame: the caller, the bytes, or a peer.
//!
//! State is unchanged on every error. The text is one line: problem, place, remedy; [`OneLine`]
//! embeds text of other origin in it.

use core::fmt::{self, Display, Write};
use core::net::SocketAddr;

use crate::clock::{Clock, Tick};
use crate::id::{ChannelId, Key, NodeId, WorkerId};
use crate::value::LEN_MAX;
use crate::wire::{FRAME_BYTES_MAX, PROTOCOL_VERSION};

/// A configuration that cannot work: the caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The layout has no key.
    #[error("layout has no keys: give at least one extent with a key")]
    NoKeys,
    /// The number of keys exceeds `u64`.
    #[error("layout has more than 2^64 - 1 keys: use fewer")]
    KeysOverflow,
    /// A value length of 0, or above [`crate::Layout::VALUE_LEN_MAX`].
    #[error("value length {value_len} at key {} is not in 1..={LEN_MAX}", key.0)]
    ValueLen {
        /// First key with that length.
        key: Key,
        /// The length in elements.
        value_len: usize,
    },
    /// No node, or more than 65,535.
    #[error("{nodes} nodes: use 1 to 65535")]
    Nodes {
        /// The number asked for.
        nodes: usize,
    },
    /// No worker, or more than 65,535.
    #[error("{workers} workers per node: use 1 to 65535")]
    Workers {
        /// The number asked for, per node.
        workers: usize,
    },
    /// No channel, or a channel out of range.
    #[error("{channels} channels: use at least 1")]
    Channels {
        /// The number asked for.
        channels: usize,
    },
    /// A node id that the cluster does not have.
    #[error("node {node} is not in a cluster of {nodes} nodes")]
    NodeOutOfRange {
        /// The id.
        node: NodeId,
        /// The number of nodes.
        nodes: usize,
    },
    /// More nodes than keys: some node would not be the home of any key.
    #[error("{nodes} nodes for {keys} keys: use at most as many nodes as keys")]
    MoreNodesThanKeys {
        /// The number of nodes.
        nodes: usize,
        /// The number of keys.
        keys: u64,
    },
    /// A table of homes names a node that the cluster does not have.
    #[error("home of key {} is node {home}, which is not in a cluster of {nodes} nodes", key.0)]
    Home {
        /// The first such key.
        key: Key,
        /// Its home.
        home: NodeId,
        /// The number of nodes.
        nodes: usize,
    },
    /// A map of homes is of another number of nodes.
    #[error("homes are of {given} nodes, not of the {nodes} of the cluster: give a map of these")]
    HomesOfNodes {
        /// The map's number of nodes.
        given: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// A table of homes is of another number of keys.
    #[error("homes are of {given} keys, not of the {keys} of the layout: give a home for each")]
    HomesOfKeys {
        /// Entries of the table.
        given: u64,
        /// The number of keys.
        keys: u64,
    },
    /// Messages could be larger than the largest frame.
    #[error(
        "messages would have up to {bytes} bytes, frames take {FRAME_BYTES_MAX}: lower `block_bytes_max`"
    )]
    FrameBytes {
        /// Bytes of the largest message.
        bytes: usize,
    },
}

/// An operation or intent that cannot be done: the caller is to blame, or a peer was lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// The layout has no such key.
    #[error("key {} is out of range: the layout has keys 0 to {}", key.0, end.0.saturating_sub(1))]
    UnknownKey {
        /// The key.
        key: Key,
        /// The layout's keys are `0..end`.
        end: Key,
    },
    /// The key belongs to another channel's engine.
    #[error("key {} does not belong to channel {channel}: route it by Layout::channel", key.0)]
    OtherChannel {
        /// The key.
        key: Key,
        /// The engine that was asked.
        channel: ChannelId,
    },
    /// A copy of all keys needs a dense layout, and a checkpoint that of its tables.
    #[error("the cluster has another layout than a checkpoint needs: build it by Tables::builder")]
    Layout,
    /// The values do not have the length of the keys' values together.
    #[error("wrong value length: the keys need {expected} elements, {given} given")]
    ValueLen {
        /// Elements that the keys need.
        expected: usize,
        /// Elements given.
        given: usize,
    },
    /// The value of a key is not a parameter with the state of the update rule behind it.
    #[error(
        "key {} has a value of {value_len} elements, which does not fit the update rule: use dim + \
         state_len(dim)",
        key.0
    )]
    RuleLen {
        /// The key.
        key: Key,
        /// Elements of its value.
        value_len: usize,
    },
    /// The step of an update rule is infinite or NaN. Nothing was pushed to the key.
    #[error("the step of key {} is not finite: check the gradient, or lower the learning rate", key.0)]
    NotFinite {
        /// The key.
        key: Key,
    },
    /// An intent window that is empty or reversed.
    #[error("intent window {}..{} is empty or reversed: end must be after start", start.0, end.0)]
    Window {
        /// First clock of the window.
        start: Clock,
        /// Clock after the window.
        end: Clock,
    },
    /// A tick below an earlier one of the same worker, or of a worker that has ended.
    #[error("tick {tick} of worker {worker} is behind {last}: ticks only rise")]
    TickBack {
        /// The worker.
        worker: WorkerId,
        /// The tick.
        tick: Tick,
        /// The worker's last tick.
        last: Tick,
    },
    /// The node has no such worker.
    #[error("worker {worker} does not exist on this node")]
    UnknownWorker {
        /// The worker.
        worker: WorkerId,
    },
    /// A sample has fewer keys left than asked for.
    #[error("sample has {left} keys left, {asked} asked for: prepare a larger sample")]
    SampleExhausted {
        /// Keys left.
        left: usize,
        /// Keys asked for.
        asked: usize,
    },
    /// A sample of more keys than allowed.
    #[error("a sample of {asked} keys: prepare at most {max} at a time")]
    SampleSize {
        /// Keys asked for.
        asked: usize,
        /// The maximum number of keys.
        max: usize,
    },
    /// A sample was given to a worker that did not prepare it.
    #[error(
        "sample was prepared by worker {} of node {} of this or another cluster: pull it there", worker.0, node.0
    )]
    ForeignSample {
        /// The node of the worker that prepared it.
        node: NodeId,
        /// The worker that prepared it.
        worker: WorkerId,
    },
    /// The sampling API was used on a cluster that was built without `sampling`.
    #[error("no sampling was configured: call Builder::sampling")]
    NoSampling,
    /// A node that was needed is gone.
    #[error("node {node}{} was lost: start the cluster again", InBrackets(*address))]
    PeerLost {
        /// The node.
        node: NodeId,
        /// Its address; unknown to the engine, but drivers may know it.
        address: Option<SocketAddr>,
    },
    /// A node reported as lost is not another node of the cluster.
    #[error("node {node} is not another node of this cluster")]
    NotAPeer {
        /// The node.
        node: NodeId,
    },
    /// A localize under a system whose main copies stay where they are.
    #[error(
        "main copies stay where they are under this system: localize under adapm, lapse or nups"
    )]
    Immovable,
    /// The cluster has been shut down.
    #[error("the cluster has been shut down")]
    Ended,
}

impl OpError {
    /// Creates the error for a lost node; the driver may add its address.
    #[must_use]
    pub const fn lost(node: NodeId) -> Self {
        Self::PeerLost { node, address: None }
    }
}

/// A message that breaks the protocol: the peer is to blame. Nothing of the message has been
/// applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("node {peer} broke the protocol: {fault}")]
pub struct ProtocolError {
    /// The peer that sent the message.
    pub peer: NodeId,
    /// The fault.
    pub fault: Fault,
}

/// The fault of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The cluster has no such node, or a node wrote to itself.
    #[error("it names node {0}, which is not valid here")]
    UnknownNode(NodeId),
    /// The layout has no such key, or it belongs to another channel.
    #[error("it names key {}, which is not of this layout and channel", .0.0)]
    UnknownKey(Key),
    /// A key list is not strictly ascending, or lists that belong together differ in length.
    #[error("its key lists are not in order")]
    Malformed,
    /// The value block does not have the length that the key lists need.
    #[error("its values have {given} bytes where its keys need {expected}")]
    BlockLen {
        /// Bytes needed.
        expected: usize,
        /// Bytes received.
        given: usize,
    },
    /// The message cannot occur in the state this node is in for that key.
    #[error("its message is impossible for key {} in its state here", .0.0)]
    Impossible(Key),
    /// The message cannot occur in the state this node is in.
    #[error("its message is impossible in the state of this node")]
    Unexpected,
    /// A counter or version above its bound.
    #[error("it gives key {} a counter out of range", .0.0)]
    Counter(Key),
}

/// Bytes that are not a frame: their writer is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The head ends too early, or is not a message.
    #[error("frame head is cut short or holds no message")]
    Head,
    /// Bytes are left after the head.
    #[error("frame head has bytes after its message")]
    Trailing,
    /// A frame of another protocol version.
    #[error("frame has protocol version {given}, this node speaks {PROTOCOL_VERSION}")]
    Version {
        /// The version received.
        given: u8,
    },
    /// A frame larger than the bound.
    #[error("frame of {bytes} bytes is larger than the bound")]
    TooLarge {
        /// Bytes received or announced.
        bytes: usize,
    },
    /// A frame full of entries so small that they would take more than twice its bytes of memory.
    #[error("frame of {bytes} bytes would take {needed} bytes of memory, more than the bound")]
    TooDense {
        /// Bytes received.
        bytes: usize,
        /// Bytes of memory that the lists would take.
        needed: usize,
    },
}

/// The refusal of an input by [`crate::engine::Engine::handle_input`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The caller is to blame.
    #[error(transparent)]
    Caller(#[from] OpError),
    /// A peer is to blame.
    #[error(transparent)]
    Peer(#[from] ProtocolError),
    /// The layout is dense, and this engine is the home of a key that has no main copy: the driver
    /// is to blame.
    #[error("key {} has no main copy at its home here: call Engine::populate before the first input", key.0)]
    NotPopulated {
        /// The first such key.
        key: Key,
    },
}

/// A wrapper that shows `T`, a foreign text, in one line: control characters are escaped,
/// everything else is unchanged. A terminal would interpret line ends and escape sequences.
///
/// ```
/// use adapm_core::error::OneLine;
/// assert_eq!(OneLine("a\nb\u{1b}[2J").to_string(), "a\\nb\\u{1b}[2J");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OneLine<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        if c.is_control() { write!(self.0, "{}", c.escape_default()) } else { self.0.write_char(c) }
    }
}

/// An address after the name of its node: ` (10.0.0.7:4157)`, or nothing.
///
/// ```
/// use adapm_core::error::InBrackets;
///
/// assert_eq!(InBrackets(Some(7)).to_string(), " (7)");
/// assert_eq!(InBrackets(None::<u8>).to_string(), "");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InBrackets<T>(pub Option<T>);

impl<T: Display> Display for InBrackets<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |inner| write!(f, " ({inner})"))
    }
}
