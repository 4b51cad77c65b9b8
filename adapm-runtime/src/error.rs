//! Why building or running a cluster fails; operations have [`adapm_core::error::OpError`].
//!
//! The variant says who is to blame: the caller, the system, another process, a peer. A lost node
//! is never the caller's fault, whatever call has noticed it. Texts are one line: what, where, what
//! to do. What lies behind an error is its source.

use std::any::Any;
use std::net::SocketAddr;

use adapm_core::error::{ConfigError, DecodeError, OneLine, OpError, ProtocolError};
use adapm_core::transport::Loss;
use adapm_core::{ChannelId, NodeId, WorkerId};
use adapm_transport::error::PeerLoss;
#[cfg(feature = "tcp")]
use adapm_transport::group::GroupError;
#[cfg(feature = "tcp")]
use adapm_transport::net::NetError;
use adapm_transport::threads::SpawnError;

use crate::sampling::SamplingError;

/// Why a cluster cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Numbers that cannot work.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Keys that cannot be sampled so.
    #[error("{0}")]
    Sampling(#[from] SamplingError),
    /// A sparse layout cannot be replicated in full: nobody knows which keys will exist.
    #[error("system full needs a dense layout: use Layout::dense")]
    SparseFull,
    /// A transport did not come with one endpoint per node of this process.
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
    /// A cluster that cannot be kept in this process's memory.
    #[error(
        "the cluster needs {:.1} GiB of memory here, which cannot be had: use fewer nodes or workers, fewer keys, \
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
        /// Of which channel.
        channel: ChannelId,
        /// Why.
        #[source]
        error: NetError,
    },
    /// This process has no link to a peer; the message is the transport's.
    #[error("{message}")]
    Network {
        /// One line.
        message: String,
    },
    /// Another process of the group cannot go on.
    #[error("node {node} cannot go on: {message}")]
    Process {
        /// Its node.
        node: NodeId,
        /// Why, in one line.
        message: String,
    },
    /// Another process of the group has other settings.
    #[error("node {node} has {theirs}, this node has {ours}: give all nodes the same settings")]
    Differs {
        /// Its node.
        node: NodeId,
        /// This process's setting, with its name.
        ours: String,
        /// The other's.
        theirs: String,
    },
    /// The operating system refused a thread.
    #[error("{0}")]
    Thread(#[source] SpawnError),
    /// A function that the builder was given panicked in a thread of its own; the panic's message
    /// went to standard error.
    #[error("{what} panicked: {}", OneLine(message))]
    Panicked {
        /// Which, or whose.
        what: String,
        /// With what it panicked.
        message: String,
    },
    /// The cluster failed before it was built.
    #[error("{0}")]
    Run(#[source] RunError),
}

/// Why a cluster did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The cluster has finished; its workers existed once.
    #[error("the cluster has finished: build another one")]
    Finished,
    /// The cluster has not finished: values are on their way.
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
    /// A worker was handed out before: it exists once.
    #[error("worker {worker} of node {node} was handed out before: it exists once, so keep it")]
    Taken {
        /// Its node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker that must end first has not.
    #[error("worker {worker} of node {node} is in use: drop it before the cluster finishes")]
    InUse {
        /// Its node.
        node: NodeId,
        /// The worker.
        worker: WorkerId,
    },
    /// An operation could not be done; its error says who is to blame.
    #[error("{0}")]
    Op(#[from] OpError),
    /// The operating system refused a worker thread; no worker of this process has worked.
    #[error("{0}")]
    Thread(#[source] SpawnError),
    /// Another process of the group cannot go on.
    #[error("node {node} cannot go on: {}", OneLine(message))]
    Process {
        /// Its node.
        node: NodeId,
        /// Why, in one line.
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
        /// With what it panicked.
        message: String,
    },
    /// The work of a worker answered an error ([`crate::Cluster::try_run`]).
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
        /// Who noticed.
        node: NodeId,
        /// What happened.
        #[source]
        error: ProtocolError,
    },
    /// A frame could not be decoded.
    #[error("node {node}, frame of node {from}: {error}")]
    Frame {
        /// Who received it.
        node: NodeId,
        /// Who sent it.
        from: NodeId,
        /// What is wrong with it.
        #[source]
        error: DecodeError,
    },
    /// A transport failed; the message is the transport's.
    #[error("transport of node {node}, channel {channel}: {message}")]
    Transport {
        /// Whose endpoint.
        node: NodeId,
        /// Of which channel.
        channel: ChannelId,
        /// One line.
        message: String,
    },
    /// A node that is needed is gone; the operations of workers answer [`OpError::PeerLost`].
    #[error("{}", PeerLoss { node: *node, address: *address, loss: *loss })]
    PeerLost {
        /// The node that was noticed first to be gone.
        node: NodeId,
        /// Where it was reached, if it has an address.
        address: Option<SocketAddr>,
        /// Why it is lost.
        loss: Loss,
    },
    /// A channel thread panicked; its message went to standard error.
    #[error("the thread of channel {channel} of node {node} panicked: see its message above")]
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

/// Why a cluster's work has no result ([`crate::Cluster::try_run`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryRunError<E> {
    /// The work of a worker answered an error, before anything else went wrong.
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
    /// The cluster failed: a worker panicked, a node was lost, or another of its reasons.
    #[error("{0}")]
    Cluster(#[from] RunError),
}

/// What a panic says.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or(payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
        .to_owned()
}
