//! Errors of building and running a cluster; operations have [`adapm_core::error::OpError`].
//!
//! The variant shows who is to blame: the caller, the system, another process or a peer. A lost
//! node is never the caller's fault, whichever call noticed it. Texts are one line: the fault, its
//! place, the remedy. The underlying error is the source.

use std::any::Any;
use std::net::SocketAddr;

use adapm_core::error::{ConfigError, DecodeError, OneLine, OpError, ProtocolError};
use adapm_core::transport::Loss;
use adapm_core::{ChannelId, Key, NodeId, WorkerId};
use adapm_transport::error::PeerLoss;
#[cfg(feature = "tcp")]
use adapm_transport::group::GroupError;
#[cfg(feature = "tcp")]
use adapm_transport::net::NetError;
use adapm_transport::threads::SpawnError;

use crate::sampling::SamplingError;

/// Errors of building a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Invalid numbers.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Lists of hot keys that are not one for each node.
    #[error("{given} lists of hot keys for {nodes} nodes: give one for each, or one set for all")]
    HotKeyLists {
        /// Lists given.
        given: usize,
        /// Nodes of the cluster.
        nodes: usize,
    },
    /// A list of numbers of workers that is not one for each node.
    #[error(
        "{given} numbers of workers for {nodes} nodes: give one for each, or one number for all"
    )]
    WorkerList {
        /// Numbers given.
        given: usize,
        /// Nodes of the cluster.
        nodes: usize,
    },
    /// Invalid sampling settings.
    #[error("{0}")]
    Sampling(#[from] SamplingError),
    /// A sparse layout, which cannot be replicated in full: the set of keys is unknown.
    #[error("system full needs a dense layout: use Layout::dense")]
    SparseFull,
    /// A bound for a system that has one of its own.
    #[error("system {system} has a bound of its own: leave out the other")]
    TwoBounds {
        /// The system.
        system: String,
    },
    /// A hot key that the layout does not have.
    #[error("hot key {} is not one of 0..{}: give keys of the layout", key.0, end.0)]
    UnknownHotKey {
        /// The key.
        key: Key,
        /// End of the layout's keys, which start at 0.
        end: Key,
    },
    /// Dense keys that the layout does not have.
    #[error("dense keys {}..{} are not within 0..{}: give keys of the layout", start.0, end.0, keys_end.0)]
    DenseKeys {
        /// The first key.
        start: Key,
        /// The one behind the last.
        end: Key,
        /// End of the layout's keys, which start at 0.
        keys_end: Key,
    },
    /// Hot keys of each node under a system whose nodes have none of their own.
    #[error(
        "hot keys by node under system {system}, whose nodes have none of their own: use het-gmp, or leave them out"
    )]
    HotKeysByNode {
        /// The system.
        system: String,
    },
    /// Hot keys of all nodes under a system that has none that are the same for all.
    #[error(
        "{hot} hot keys for all nodes under system {system}, which has none: use nups or parallax, or leave them out"
    )]
    NoHotKeys {
        /// The system.
        system: String,
        /// Keys given.
        hot: usize,
    },
    /// A transport without exactly one endpoint per node of this process.
    #[error(
        "transport of channel {channel} has {given} endpoints: give one for each of {nodes} nodes of this process"
    )]
    Endpoints {
        /// The channel.
        channel: ChannelId,
        /// Endpoints given.
        given: usize,
        /// Endpoints needed.
        nodes: usize,
    },
    /// A cluster too large for this process's memory.
    #[error(
        "the cluster needs {:.1} GiB of memory here, which is not available: use fewer nodes or workers, fewer keys, \
         shorter values, more processes, or Layout::sparse",
        *bytes as f64 / f64::from(1 << 30)
    )]
    Memory {
        /// Bytes needed by main copies, directories, engines and stacks of the nodes in this
        /// process.
        bytes: u128,
    },
    /// The group of processes cannot go on.
    #[cfg(feature = "tcp")]
    #[error("{0}")]
    Group(#[source] GroupError),
    /// This process cannot open an endpoint for others.
    #[cfg(feature = "tcp")]
    #[error("channel {channel}: {error}")]
    Listen {
        /// The channel.
        channel: ChannelId,
        /// The cause.
        #[source]
        error: NetError,
    },
    /// The transport of this process has failed; the message is the transport's.
    #[error("{message}")]
    Network {
        /// The message, in one line.
        message: String,
    },
    /// Another process of the group cannot go on.
    #[error("node {node} cannot go on: {message}")]
    Process {
        /// The node of that process.
        node: NodeId,
        /// The cause, in one line.
        message: String,
    },
    /// Another process of the group has other settings.
    #[error("node {node} has {theirs}, this node has {ours}: give all nodes the same settings")]
    Differs {
        /// The node of that process.
        node: NodeId,
        /// This process's setting, with its name.
        ours: String,
        /// The other process's setting.
        theirs: String,
    },
    /// The operating system refused a thread.
    #[error("{0}")]
    Thread(#[source] SpawnError),
    /// A function given to the builder panicked in a thread of its own; the panic's message went to
    /// standard error.
    #[error("{what} panicked: {}", OneLine(message))]
    Panicked {
        /// The function, or its caller.
        what: String,
        /// The panic's message.
        message: String,
    },
    /// The cluster failed before it was built.
    #[error("{0}")]
    Run(#[source] RunError),
}

/// Errors that keep a cluster from running to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The cluster has finished, and its workers exist only once.
    #[error("the cluster has finished: build another one")]
    Finished,
    /// The cluster has not finished, and values are on their way.
    #[error("the cluster is running: wait until run or finish has returned")]
    Running,
    /// This process has no such worker.
    #[error("this process has no worker {worker} of node {node}: ask for one of its own nodes")]
    UnknownWorker {
        /// The node asked for.
        node: NodeId,
        /// The worker asked for.
        worker: WorkerId,
    },
    /// A worker that was already handed out; each exists once.
    #[error("worker {worker} of node {node} was handed out before: it exists once, so keep it")]
    Taken {
        /// Its node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker that has not ended, but must first.
    #[error("worker {worker} of node {node} is in use: drop it before the cluster finishes")]
    InUse {
        /// Its node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
    },
    /// An operation failed; its error says who is to blame.
    #[error("{0}")]
    Op(#[from] OpError),
    /// The operating system refused a worker thread; no worker of this process has worked.
    #[error("{0}")]
    Thread(#[source] SpawnError),
    /// Another process of the group cannot go on.
    #[error("node {node} cannot go on: {}", OneLine(message))]
    Process {
        /// The node of that process.
        node: NodeId,
        /// The cause, in one line.
        message: String,
    },
    /// The group of processes cannot go on.
    #[cfg(feature = "tcp")]
    #[error("{0}")]
    Group(#[source] GroupError),
    /// A worker panicked; the panic's message went to standard error.
    #[error("worker {worker} of node {node} panicked: {}", OneLine(message))]
    WorkerPanicked {
        /// The worker's node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
        /// The panic's message.
        message: String,
    },
    /// A worker's closure returned an error ([`crate::Cluster::try_run`]).
    #[error("worker {worker} of node {node} failed: {}", OneLine(message))]
    WorkerFailed {
        /// The worker's node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
        /// The error's text.
        message: String,
    },
    /// A peer broke the protocol, as seen by `node`.
    #[error("node {node}: {error}")]
    Protocol {
        /// The node that noticed.
        node: NodeId,
        /// The violation.
        #[source]
        error: ProtocolError,
    },
    /// A frame could not be decoded.
    #[error("node {node}, frame of node {from}: {error}")]
    Frame {
        /// The receiving node.
        node: NodeId,
        /// The sending node.
        from: NodeId,
        /// The decoding error.
        #[source]
        error: DecodeError,
    },
    /// A transport failed; the message is the transport's.
    #[error("transport of node {node}, channel {channel}: {message}")]
    Transport {
        /// The node of the endpoint.
        node: NodeId,
        /// The channel of the endpoint.
        channel: ChannelId,
        /// The message, in one line.
        message: String,
    },
    /// A node that is needed is gone; the operations of workers answer [`OpError::PeerLost`].
    #[error("{}", PeerLoss { node: *node, address: *address, loss: *loss })]
    PeerLost {
        /// The first node noticed to be gone.
        node: NodeId,
        /// Its address, if it has one.
        address: Option<SocketAddr>,
        /// The reason of the loss.
        loss: Loss,
    },
    /// A channel thread panicked; its message went to standard error.
    #[error("the thread of channel {channel} of node {node} panicked: see its message above")]
    ChannelPanicked {
        /// The node of the thread.
        node: NodeId,
        /// The channel of the thread.
        channel: ChannelId,
    },
}

impl RunError {
    /// Converts the error of a failed meeting of processes.
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

/// Errors of [`crate::Cluster::try_run`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryRunError<E> {
    /// A worker's closure returned an error before anything else went wrong.
    #[error("worker {worker} of node {node}: {error}")]
    Worker {
        /// The worker's node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
        /// The error.
        #[source]
        error: E,
    },
    /// The cluster failed: a worker panicked, a node was lost, or for another of its reasons.
    #[error("{0}")]
    Cluster(#[from] RunError),
}

/// Returns the message of a panic.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or(payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
        .to_owned()
}
