//! [`Group`]: what a program holds of the group that its process belongs to.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use adapm_core::NodeId;
use adapm_core::transport::CloseReason;

use super::config::{GroupConfig, Rendezvous};
use super::error::GroupError;
use super::folder::JobFolder;
use super::handle::Handle;
use super::join::{self, Attempt, Joined};
use super::membership::Membership;
use super::place::RendezvousFile;
use super::shared::LossWatch;
use crate::error::PeerLoss;
use crate::net::{Address, Kind, Net, NetError};

/// The processes of one cluster, as one of them sees them; see the [module](crate::group) for an
/// example.
///
/// A thread of its own keeps the links alive. *Collectives* ([`Group::all_gather`],
/// [`Group::gather`]) are called by all nodes in the same order; calls that differ are an error on
/// all of them.
///
/// [`Group::leave`] says goodbye. Dropping the group says that this node has finished if something
/// has used it and all that did have ended in order ([`Group::begin_use`]), the group has not
/// failed, and the thread does not panic; else that this node has failed.
pub struct Group {
    config: GroupConfig,
    handle: Handle,
    listens: IpAddr,
    advertise: IpAddr,
    // Dropped in this order: a folder goes once it is empty.
    _file: Option<RendezvousFile>,
    _folder: Option<JobFolder>,
}

impl Group {
    /// Joins the others: returns when all have joined and have links to each other.
    ///
    /// Nodes may start in any order. `watch` is shown who has joined, on every change and about
    /// once a second.
    ///
    /// # Errors
    /// Who is missing or cannot be reached after [`GroupConfig::join_timeout`], an address that
    /// cannot be used, or why one node has refused another. All nodes that are there learn of it.
    pub fn join(
        mut config: GroupConfig,
        watch: &mut dyn FnMut(&Membership),
    ) -> Result<Self, GroupError> {
        let folder = match &config.rendezvous {
            Rendezvous::JobFile(path) => Some(JobFolder::of(path)?),
            _ => None,
        };
        let joined = Attempt::new(&config, watch)?.run()?;
        let Joined { handle, listens, advertise, file, token } = joined;
        config.token = token;
        Ok(Self { config, handle, listens, advertise, _file: file, _folder: folder })
    }

    /// Gives `bytes` to all and returns what all have given, by node. A collective; any size.
    ///
    /// # Errors
    /// A node is lost, has left, or calls something else.
    pub fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.all_gather_for("all_gather", bytes)
    }

    /// As [`Group::all_gather`], with a name for what it is about, which must be the same on all
    /// nodes; the first 64 characters count.
    ///
    /// # Errors
    /// As [`Group::all_gather`].
    pub fn all_gather_for(&self, label: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.handle.collect(label, true, bytes)
    }

    /// Gives `bytes` to node 0, which gets what all have given, by node; the others get `None`. A
    /// collective; any size.
    ///
    /// # Errors
    /// As [`Group::all_gather`].
    pub fn gather(&self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, GroupError> {
        let parts = self.handle.collect("gather", false, bytes)?;
        Ok((self.node() == NodeId(0)).then_some(parts))
    }

    /// Asks all nodes, this one included, to stop, for a reason of the caller's; the first reason
    /// counts. What to do is theirs: flags are raised ([`Group::on_stop`]), and
    /// [`Group::stop_code`] tells the reason.
    pub fn stop(&self, code: u8) {
        self.handle.stop(code);
    }

    /// Connects `flag` with the flags of all nodes: raising it here asks all to stop with code 0,
    /// and it is raised when anybody asks. Seen within 50 ms.
    pub fn on_stop(&self, flag: Arc<AtomicBool>) {
        self.handle.on_stop(flag);
    }

    /// The reason to stop, if somebody has asked to.
    #[must_use]
    pub fn stop_code(&self) -> Option<u8> {
        self.handle.shared.lock().stop
    }

    /// Tells `watch` of the first lost node, at once if that is known. It is called by the thread
    /// that notices, must not block, and is forgotten when its last owner drops it.
    pub fn on_loss(&self, watch: &Arc<LossWatch>) {
        self.handle.watch(watch);
    }

    /// Notes that a node was found lost by other means. The group fails once it is known which node
    /// is lost for all: this one, or, if nothing was heard of it, whichever [`GroupError`] tells.
    pub fn report(&self, loss: PeerLoss) {
        self.handle.report(loss);
    }

    /// Notes that something, as a cluster, begins to use the group. Until its [`Group::end_use`],
    /// dropping the group says that this node has failed.
    pub fn begin_use(&self) {
        self.handle.begin_use();
    }

    /// Notes that what has begun to use the group has ended in order; once for each
    /// [`Group::begin_use`], without one of no effect.
    pub fn end_use(&self) {
        self.handle.end_use();
    }

    /// Leaves the group and waits until the others have heard, at most about
    /// [`GroupConfig::dead_after`]. If a node is lost, that is what they are told. Calls after it
    /// answer [`GroupError::Ended`].
    pub fn leave(&self, close_reason: CloseReason) {
        self.handle.leave(close_reason);
    }

    /// Opens an endpoint of this process for parameters, of the kind and at the address of the
    /// settings; `channel` is any number but 65,535. It is connected by the addresses that all
    /// nodes have exchanged ([`Group::address_of`]).
    ///
    /// # Errors
    /// What the system refuses.
    pub fn listen(&self, channel: u16, layout_digest: u64) -> Result<Net, NetError> {
        let kind = self.config.kind;
        let bind = if kind == Kind::Unix { String::new() } else { self.listens.to_string() };
        let mut settings = join::settings(&self.config, channel, kind, bind);
        settings.layout_digest = layout_digest;
        Net::listen(settings)
    }

    /// What others are to dial to reach an endpoint of this process.
    #[must_use]
    pub fn address_of(&self, net: &Net) -> Address {
        let mut address = net.address().clone();
        if let Address::Tcp(socket) | Address::Tokio(socket) | Address::Zmq(socket) = &mut address {
            socket.set_ip(self.advertise);
        }
        address
    }

    /// Which node this process is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.config.nodes
    }

    /// The number of this run: node 0 makes it up, all processes know it, and no other run has it.
    #[must_use]
    pub fn run(&self) -> u64 {
        // Known from the meeting on.
        self.handle.shared.lock().run.unwrap_or_default()
    }

    /// Who has joined, and who was refused since.
    #[must_use]
    pub fn membership(&self) -> Membership {
        self.handle.shared.lock().membership.clone()
    }

    /// Why nothing works any more, if so. While it is being found out which node is lost it waits
    /// for the answer, at most for a fifth of [`GroupConfig::dead_after`].
    #[must_use]
    pub fn failure(&self) -> Option<GroupError> {
        self.handle.failure()
    }

    /// Silence after which a node is lost.
    #[must_use]
    pub fn dead_after(&self) -> Duration {
        self.config.dead_after
    }

    /// Longest wait for all to be there.
    #[must_use]
    pub fn join_timeout(&self) -> Duration {
        self.config.join_timeout
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group of {} nodes, seen by {}", self.nodes(), self.node())
    }
}
