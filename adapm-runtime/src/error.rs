//! Why building or running a cluster fails; operations have [`adapm_core::error::OpError`].
//!
//! The variant says who is to blame: the caller, the system, another process, a peer. A lost node
//! is never the caller's fault, whatever call has noticed it. Texts are one line: what, where, what
//! to do. What lies behind an error is its source.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

use adapm_core::error::{ConfigError, DecodeError, OneLine, OpError, ProtocolError};
use adapm_core::transport::Loss;
use adapm_core::{ChannelId, NodeId, WorkerId};
#[cfg(feature = "tcp")]
use adapm_transport::error::PeerLoss;
#[cfg(feature = "tcp")]
use adapm_transport::group::GroupError;
#[cfg(feature = "tcp")]
use adapm_transport::net::NetError;
use adapm_transport::threads::Refusal;

use crate::sampling::SamplingError;

/// Why a cluster cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Numbers that cannot work.
    Config(ConfigError),
    /// Keys that cannot be sampled so.
    Sampling(SamplingError),
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
        /// Bytes needed by main copies, directories, engines and stacks of the nodes in this
        /// process.
        bytes: u128,
    },
    /// The group of processes cannot go on.
    #[cfg(feature = "tcp")]
    Group(GroupError),
    /// This process cannot open an endpoint for others.
    #[cfg(feature = "tcp")]
    Listen {
        /// Of which channel.
        channel: ChannelId,
        /// Why.
        error: NetError,
    },
    /// This process has no link to a peer; the message is the transport's.
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
    /// The operating system refused a thread.
    Thread(Refusal),
    /// A function that the builder was given panicked in a thread of its own; the panic's message
    /// went to standard error.
    Panicked {
        /// Which, or whose.
        what: String,
        /// With what it panicked.
        message: String,
    },
    /// The cluster failed before it was built.
    Run(RunError),
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Sampling(error) => Some(error),
            #[cfg(feature = "tcp")]
            Self::Group(error) => Some(error),
            #[cfg(feature = "tcp")]
            Self::Listen { error, .. } => Some(error),
            Self::Thread(refusal) => Some(refusal),
            Self::Run(error) => Some(error),
            Self::SparseFull
            | Self::Endpoints { .. }
            | Self::Memory { .. }
            | Self::Network { .. }
            | Self::Process { .. }
            | Self::Differs { .. }
            | Self::Panicked { .. } => None,
        }
    }
}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<SamplingError> for BuildError {
    fn from(error: SamplingError) -> Self {
        Self::Sampling(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Sampling(error) => error.fmt(f),
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
            #[cfg(feature = "tcp")]
            Self::Group(error) => error.fmt(f),
            #[cfg(feature = "tcp")]
            Self::Listen { channel, error } => write!(f, "channel {channel}: {error}"),
            Self::Network { message } => f.write_str(message),
            Self::Process { node, message } => write!(f, "node {node} cannot go on: {message}"),
            Self::Differs { node, ours, theirs } => {
                write!(f, "node {node} has {theirs}, this node has {ours}: give all nodes the same settings")
            }
            Self::Thread(refusal) => refusal.fmt(f),
            Self::Panicked { what, message } => write!(f, "{what} panicked: {}", OneLine(message)),
            Self::Run(error) => error.fmt(f),
        }
    }
}

/// Why a cluster did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The cluster has finished; its workers existed once.
    Finished,
    /// The cluster has not finished: values are on their way.
    Running,
    /// This process has no such worker.
    UnknownWorker {
        /// The node asked for.
        node: NodeId,
        /// The worker asked for.
        worker: WorkerId,
    },
    /// A worker was handed out before: it exists once.
    Taken {
        /// Its node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker that must end first has not.
    InUse {
        /// Its node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
    },
    /// An operation could not be done; its error says who is to blame.
    Op(OpError),
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
    #[cfg(feature = "tcp")]
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
    /// The work of a worker answered an error ([`crate::Cluster::try_run`]).
    WorkerFailed {
        /// The worker's node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
        /// The error's text.
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
            #[cfg(feature = "tcp")]
            BuildError::Group(GroupError::PeerLost(PeerLoss { node, address, loss })) => {
                Self::PeerLost { node, address, loss }
            }
            #[cfg(feature = "tcp")]
            BuildError::Group(error) => Self::Group(error),
            BuildError::Thread(refusal) => Self::Thread(refusal),
            BuildError::Run(error) => error,
            other => unreachable!("processes meet with these: {other:?}"),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Op(error) => Some(error),
            Self::Thread(refusal) => Some(refusal),
            #[cfg(feature = "tcp")]
            Self::Group(error) => Some(error),
            Self::Protocol { error, .. } => Some(error),
            Self::Frame { error, .. } => Some(error),
            Self::Finished
            | Self::Running
            | Self::UnknownWorker { .. }
            | Self::Taken { .. }
            | Self::InUse { .. }
            | Self::Process { .. }
            | Self::WorkerPanicked { .. }
            | Self::WorkerFailed { .. }
            | Self::Transport { .. }
            | Self::PeerLost { .. }
            | Self::ChannelPanicked { .. } => None,
        }
    }
}

impl From<OpError> for RunError {
    fn from(error: OpError) -> Self {
        Self::Op(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("the cluster has finished: build another one"),
            Self::Running => f.write_str("the cluster is running: wait until run or finish has returned"),
            Self::UnknownWorker { node, worker } => {
                write!(f, "this process has no worker {worker} of node {node}: ask for one of its own nodes")
            }
            Self::Taken { node, worker } => {
                write!(f, "worker {worker} of node {node} was handed out before: it exists once, so keep it")
            }
            Self::InUse { node, worker } => {
                write!(f, "worker {worker} of node {node} is in use: drop it before the cluster finishes")
            }
            Self::Op(error) => error.fmt(f),
            Self::Thread(refusal) => refusal.fmt(f),
            Self::Process { node, message } => write!(f, "node {node} cannot go on: {}", OneLine(message)),
            #[cfg(feature = "tcp")]
            Self::Group(error) => error.fmt(f),
            Self::WorkerPanicked { node, worker, message } => {
                write!(f, "worker {worker} of node {node} panicked: {}", OneLine(message))
            }
            Self::WorkerFailed { node, worker, message } => {
                write!(f, "worker {worker} of node {node} failed: {}", OneLine(message))
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

/// Why a cluster's work has no result ([`crate::Cluster::try_run`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryRunError<E> {
    /// The work of a worker answered an error, before anything else went wrong.
    Worker {
        /// The worker's node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
        /// The error.
        error: E,
    },
    /// The cluster failed: a worker panicked, a node was lost, or another of its reasons.
    Cluster(RunError),
}

impl<E: Error + 'static> Error for TryRunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Worker { error, .. } => Some(error),
            Self::Cluster(error) => Some(error),
        }
    }
}

impl<E> From<RunError> for TryRunError<E> {
    fn from(error: RunError) -> Self {
        Self::Cluster(error)
    }
}

impl<E: fmt::Display> fmt::Display for TryRunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker { node, worker, error } => write!(f, "worker {worker} of node {node}: {error}"),
            Self::Cluster(error) => error.fmt(f),
        }
    }
}

/// What a panic says.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message").to_owned()
}
