//! What building or running a cluster can refuse; operations have [`adapm_core::error::OpError`].

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;

use adapm_core::error::{ConfigError, DecodeError, OneLine, OpError, ProtocolError};
use adapm_core::transport::Loss;
use adapm_core::{ChannelId, Key, NodeId, WorkerId};
use adapm_transport::group::{GroupError, PeerLoss};
use adapm_transport::threads::Refusal;

use crate::sampling::Scheme;

/// A cluster that cannot be built: the caller is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Numbers that cannot work.
    Config(ConfigError),
    /// The keys to sample from are no keys of the layout, or none.
    SampleKeys {
        /// First key of the range.
        start: Key,
        /// Key behind the range.
        end: Key,
        /// The layout's keys are `0..keys_end`.
        keys_end: Key,
    },
    /// The keys to sample from differ in value length.
    SampleLens {
        /// The first key with another length than the range's first.
        key: Key,
    },
    /// A pool that cannot be drawn.
    SamplePool {
        /// Draws of a pool.
        size: u32,
        /// Uses of each.
        reuse: u32,
    },
    /// A sparse layout cannot be replicated in full: nobody knows which keys will exist.
    SparseFull,
    /// A transport did not come with one endpoint per node of this process.
    Endpoints {
        /// The channel.
        channel: ChannelId,
        /// Endpoints given.
        given: usize,
        /// Endpoints needed.
        nodes: usize,
    },
    /// A cluster that cannot be kept in this process's memory.
    Memory {
        /// Bytes needed by main copies, directories, engines and stacks of the nodes in this process.
        bytes: u128,
    },
    /// The group of processes cannot go on.
    Group(GroupError),
    /// This process cannot open an endpoint, or has no link to a peer; the message is the transport's.
    Network {
        /// One line.
        message: String,
    },
    /// Another process of the group cannot go on.
    Process {
        /// Its node.
        node: NodeId,
        /// Why, in one line.
        message: String,
    },
    /// Another process of the group has other settings.
    Differs {
        /// Its node.
        node: NodeId,
        /// This process's setting, with its name.
        ours: String,
        /// The other's.
        theirs: String,
    },
    /// Another number of nodes than the group has.
    GroupNodes {
        /// Nodes asked for.
        nodes: usize,
        /// Nodes of the group.
        group: usize,
    },
    /// The operating system refused a thread.
    Thread(Refusal),
    /// A function that the builder was given panicked in a thread of its own; the panic's message went to standard error.
    Panicked {
        /// Which, or whose.
        what: String,
        /// With what it panicked.
        message: String,
    },
}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::SampleKeys { start, end, keys_end } => {
                write!(
                    f,
                    "cannot sample from keys {}..{}: use a range that is not empty within 0..{}",
                    start.0, end.0, keys_end.0
                )
            }
            Self::SampleLens { key } => {
                write!(f, "cannot sample from keys of several value lengths: key {} differs", key.0)
            }
            Self::SamplePool { size, reuse } => {
                write!(
                    f,
                    "cannot sample from pools of {size} keys used {reuse} times: use 1 to {} keys, once or more",
                    Scheme::POOL_SIZE_MAX
                )
            }
            Self::SparseFull => f.write_str("system full needs a dense layout: use Layout::dense"),
            Self::Endpoints { channel, given, nodes } => {
                write!(
                    f,
                    "transport of channel {channel} has {given} endpoints: give one for each of {nodes} nodes of this process"
                )
            }
            Self::Memory { bytes } => {
                write!(
                    f,
                    "the cluster needs {:.1} GiB of memory here, which cannot be had: use fewer nodes or workers, fewer keys, \
                     shorter values, more processes, or Layout::sparse",
                    *bytes as f64 / f64::from(1 << 30)
                )
            }
            Self::Group(error) => error.fmt(f),
            Self::Network { message } => f.write_str(message),
            Self::Process { node, message } => write!(f, "node {node} cannot go on: {message}"),
            Self::Differs { node, ours, theirs } => {
                write!(f, "node {node} has {theirs}, this node has {ours}: give all nodes the same settings")
            }
            Self::GroupNodes { nodes, group } => {
                write!(f, "{nodes} nodes in a group of {group}: leave the number to the group")
            }
            Self::Thread(refusal) => refusal.fmt(f),
            Self::Panicked { what, message } => write!(f, "{what} panicked: {}", OneLine(message)),
        }
    }
}

impl std::error::Error for BuildError {}

/// Why a cluster did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// `run` was called before: workers exist once.
    AlreadyRun,
    /// The cluster is running.
    Running,
    /// The caller asked for something that cannot be.
    Caller(OpError),
    /// The operating system refused a worker thread; no worker of this process has worked.
    Thread(Refusal),
    /// Another process of the group cannot go on.
    Process {
        /// Its node.
        node: NodeId,
        /// Why, in one line.
        message: String,
    },
    /// The group of processes cannot go on.
    Group(GroupError),
    /// A worker panicked; the panic's message went to standard error.
    WorkerPanicked {
        /// The worker's node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
        /// With what it panicked.
        message: String,
    },
    /// A peer broke the protocol, as seen by `node`.
    Protocol {
        /// Who noticed.
        node: NodeId,
        /// What happened.
        error: ProtocolError,
    },
    /// A frame could not be decoded.
    Frame {
        /// Who received it.
        node: NodeId,
        /// Who sent it.
        from: NodeId,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// A transport failed; the message is the transport's.
    Transport {
        /// Whose endpoint.
        node: NodeId,
        /// Of which channel.
        channel: ChannelId,
        /// One line.
        message: String,
    },
    /// A node that is needed is gone; the operations of workers answer [`OpError::PeerLost`].
    PeerLost {
        /// The node that was noticed first to be gone.
        node: NodeId,
        /// Where it was reached, if it has an address.
        address: Option<SocketAddr>,
        /// Why it is lost.
        loss: Loss,
    },
    /// A channel thread panicked; its message went to standard error.
    ChannelPanicked {
        /// Whose.
        node: NodeId,
        /// Which.
        channel: ChannelId,
    },
}

impl RunError {
    /// Why processes that met to go on cannot.
    pub(crate) fn of_meeting(error: BuildError) -> Self {
        match error {
            BuildError::Process { node, message } => Self::Process { node, message },
            BuildError::Group(GroupError::PeerLost(PeerLoss { node, address, loss })) => {
                Self::PeerLost { node, address, loss }
            }
            BuildError::Group(error) => Self::Group(error),
            BuildError::Thread(refusal) => Self::Thread(refusal),
            other => unreachable!("processes meet with these: {other:?}"),
        }
    }
}

/// What a panic says.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message").to_owned()
}

impl From<OpError> for RunError {
    fn from(error: OpError) -> Self {
        Self::Caller(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRun => f.write_str("the cluster has run: build another one"),
            Self::Running => f.write_str("the cluster is running: wait until run returns"),
            Self::Caller(error) => error.fmt(f),
            Self::Thread(refusal) => refusal.fmt(f),
            Self::Process { node, message } => write!(f, "node {node} cannot go on: {}", OneLine(message)),
            Self::Group(error) => error.fmt(f),
            Self::WorkerPanicked { node, worker, message } => {
                write!(f, "worker {worker} of node {node} panicked: {}", OneLine(message))
            }
            Self::Protocol { node, error } => write!(f, "node {node}: {error}"),
            Self::Frame { node, from, error } => write!(f, "node {node}, frame of node {from}: {error}"),
            Self::Transport { node, channel, message } => {
                write!(f, "transport of node {node}, channel {channel}: {message}")
            }
            Self::PeerLost { node, address, loss } => {
                write!(f, "node {node}")?;
                address.map_or(Ok(()), |address| write!(f, " ({address})"))?;
                write!(f, " was lost: {loss}; start the cluster again")
            }
            Self::ChannelPanicked { node, channel } => {
                write!(f, "the thread of channel {channel} of node {node} panicked: see its message above")
            }
        }
    }
}

impl std::error::Error for RunError {}
