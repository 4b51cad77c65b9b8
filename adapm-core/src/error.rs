//! Errors whose type says who is to blame: the caller, the bytes, or a peer.
//!
//! State is unchanged on every error. The text is one line: what, where, what to do.

mod one_line;

use core::fmt;
use core::net::SocketAddr;

use crate::clock::Clock;
use crate::id::{ChannelId, Key, NodeId, WorkerId};

pub use one_line::OneLine;

/// A configuration that cannot work: the caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The layout has no key.
    NoKeys,
    /// The number of keys exceeds `u64`.
    KeysOverflow,
    /// A value length of 0, or above [`crate::Layout::VALUE_LEN_MAX`].
    ValueLen {
        /// First key with that length.
        key: Key,
        /// The length in elements.
        value_len: usize,
    },
    /// No node, or more than 65,535.
    Nodes {
        /// The number asked for.
        nodes: usize,
    },
    /// No worker, or more than 65,535.
    Workers {
        /// The number asked for, per node.
        workers: usize,
    },
    /// No channel, or a channel out of range.
    Channels {
        /// The number asked for.
        channels: usize,
    },
    /// A node id that the cluster does not have.
    NodeOutOfRange {
        /// The id.
        node: NodeId,
        /// The number of nodes.
        nodes: usize,
    },
    /// Some node could not be home of any key.
    MoreNodesThanKeys {
        /// The number of nodes.
        nodes: usize,
        /// The number of keys.
        keys: u64,
    },
    /// Messages could be larger than the largest frame.
    FrameBytes {
        /// Bytes of the largest message.
        bytes: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeys => f.write_str("layout has no keys: give at least one extent with a key"),
            Self::KeysOverflow => f.write_str("layout has more than 2^64 - 1 keys: use fewer"),
            Self::ValueLen { key, value_len } => {
                write!(f, "value length {value_len} at key {} is not in 1..={}", key.0, crate::value::LEN_MAX)
            }
            Self::Nodes { nodes } => write!(f, "{nodes} nodes: use 1 to 65535"),
            Self::Workers { workers } => write!(f, "{workers} workers per node: use 1 to 65535"),
            Self::Channels { channels } => write!(f, "{channels} channels: use at least 1"),
            Self::NodeOutOfRange { node, nodes } => {
                write!(f, "node {node} is not in a cluster of {nodes} nodes")
            }
            Self::MoreNodesThanKeys { nodes, keys } => {
                write!(f, "{nodes} nodes for {keys} keys: use at most as many nodes as keys")
            }
            Self::FrameBytes { bytes } => {
                write!(
                    f,
                    "messages would have up to {bytes} bytes, frames take {}: lower `block_bytes_max`",
                    crate::wire::FRAME_BYTES_MAX
                )
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// An operation or intent that cannot be done: the caller is to blame, or a peer was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpError {
    /// The layout has no such key.
    UnknownKey {
        /// The key.
        key: Key,
        /// The layout's keys are `0..end`.
        end: Key,
    },
    /// The key belongs to another channel's engine.
    OtherChannel {
        /// The key.
        key: Key,
        /// The engine that was asked.
        channel: ChannelId,
    },
    /// The values do not have the length of the keys' values together.
    ValueLen {
        /// Elements that the keys need.
        expected: usize,
        /// Elements given.
        given: usize,
    },
    /// An intent window that is empty or reversed.
    Window {
        /// First clock of the window.
        start: Clock,
        /// Clock behind the window.
        end: Clock,
    },
    /// The node has no such worker.
    UnknownWorker {
        /// The worker.
        worker: WorkerId,
    },
    /// A sample has fewer keys left than asked for.
    SampleExhausted {
        /// Keys left.
        left: usize,
        /// Keys asked for.
        asked: usize,
    },
    /// A sample of more keys than one may have.
    SampleSize {
        /// Keys asked for.
        asked: usize,
        /// The most there may be.
        max: usize,
    },
    /// A sample was handed to a worker that did not prepare it.
    ForeignSample {
        /// The node of the worker that did.
        node: NodeId,
        /// That worker.
        worker: WorkerId,
    },
    /// The sampling API was used on a cluster that was built without `sampling`.
    NoSampling,
    /// A node that was needed is gone.
    PeerLost {
        /// The node.
        node: NodeId,
        /// Where it was reached; the engine does not know, drivers may.
        address: Option<SocketAddr>,
    },
    /// A node that is no other node of the cluster was said to be lost.
    NotAPeer {
        /// The node.
        node: NodeId,
    },
    /// The cluster has been shut down.
    Ended,
}

impl OpError {
    /// That node was needed and is gone; its address is for the driver to add.
    #[must_use]
    pub const fn lost(node: NodeId) -> Self {
        Self::PeerLost { node, address: None }
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key, end } => {
                write!(
                    f,
                    "key {} is out of range: the layout has keys 0 to {}",
                    key.0,
                    end.0.saturating_sub(1)
                )
            }
            Self::OtherChannel { key, channel } => {
                write!(f, "key {} does not belong to channel {channel}: route it by Layout::channel", key.0)
            }
            Self::ValueLen { expected, given } => {
                write!(f, "wrong value length: the keys need {expected} elements, {given} given")
            }
            Self::Window { start, end } => {
                write!(
                    f,
                    "intent window {}..{} is empty or reversed: end must be after start",
                    start.0, end.0
                )
            }
            Self::UnknownWorker { worker } => write!(f, "worker {worker} does not exist on this node"),
            Self::SampleSize { asked, max } => {
                write!(f, "a sample of {asked} keys: prepare at most {max} at a time")
            }
            Self::SampleExhausted { left, asked } => {
                write!(f, "sample has {left} keys left, {asked} asked for: prepare a larger sample")
            }
            Self::ForeignSample { node, worker } => {
                write!(
                    f,
                    "sample was prepared by worker {} of node {} of this or another cluster: pull it there",
                    worker.0, node.0
                )
            }
            Self::NoSampling => f.write_str("no sampling was configured: call Builder::sampling"),
            Self::PeerLost { node, address } => {
                write!(f, "node {node}")?;
                address.map_or(Ok(()), |address| write!(f, " ({address})"))?;
                f.write_str(" was lost: start the cluster again")
            }
            Self::NotAPeer { node } => {
                write!(f, "node {node} is no peer: it is no other node of this cluster")
            }
            Self::Ended => f.write_str("the cluster has been shut down"),
        }
    }
}

impl core::error::Error for OpError {}

/// A message that breaks the protocol: the peer is to blame. Nothing of the message has been applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtocolError {
    /// The peer that sent the message.
    pub peer: NodeId,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The cluster has no such node, or a node wrote to itself.
    UnknownNode(NodeId),
    /// The layout has no such key, or it belongs to another channel.
    UnknownKey(Key),
    /// A key list is not strictly ascending, or lists that belong together differ in length.
    Malformed,
    /// The value block does not have the length that the key lists need.
    BlockLen {
        /// Bytes needed.
        expected: usize,
        /// Bytes received.
        given: usize,
    },
    /// The message cannot occur in the state this node is in for that key.
    Impossible(Key),
    /// The message cannot occur in the state this node is in.
    Unexpected,
    /// A counter or version above its bound.
    Counter(Key),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} broke the protocol: ", self.peer)?;
        match &self.fault {
            Fault::UnknownNode(node) => write!(f, "it names node {node}, which cannot be meant"),
            Fault::UnknownKey(key) => {
                write!(f, "it names key {}, which is not of this layout and channel", key.0)
            }
            Fault::Malformed => f.write_str("its key lists are not in order"),
            Fault::BlockLen { expected, given } => {
                write!(f, "its values have {given} bytes where its keys need {expected}")
            }
            Fault::Impossible(key) => {
                write!(f, "its message is impossible for key {} in its state here", key.0)
            }
            Fault::Unexpected => f.write_str("its message is impossible in the state of this node"),
            Fault::Counter(key) => write!(f, "it gives key {} a counter out of range", key.0),
        }
    }
}

impl core::error::Error for ProtocolError {}

/// Bytes that are no frame: whoever wrote them is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The head ends too early, or holds something that is no message.
    Head,
    /// Bytes are left behind the head.
    Trailing,
    /// A frame of another protocol version.
    Version {
        /// The version received.
        given: u8,
    },
    /// A frame larger than the bound.
    TooLarge {
        /// Bytes received or announced.
        bytes: usize,
    },
    /// A frame full of entries so small that they would take more than twice its bytes of memory.
    TooDense {
        /// Bytes received.
        bytes: usize,
        /// Bytes of memory that the lists would take.
        needed: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("frame head is cut short or holds no message"),
            Self::Trailing => f.write_str("frame head has bytes behind its message"),
            Self::Version { given } => {
                write!(
                    f,
                    "frame has protocol version {given}, this node speaks {}",
                    crate::wire::PROTOCOL_VERSION
                )
            }
            Self::TooLarge { bytes } => write!(f, "frame of {bytes} bytes is larger than the bound"),
            Self::TooDense { bytes, needed } => {
                write!(f, "frame of {bytes} bytes would take {needed} bytes of memory, more than the bound")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// What [`crate::engine::Engine::handle_input`] refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputError {
    /// The caller is to blame.
    Caller(OpError),
    /// A peer is to blame.
    Peer(ProtocolError),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller(error) => error.fmt(f),
            Self::Peer(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for InputError {}

impl From<OpError> for InputError {
    fn from(error: OpError) -> Self {
        Self::Caller(error)
    }
}

impl From<ProtocolError> for InputError {
    fn from(error: ProtocolError) -> Self {
        Self::Peer(error)
    }
}
