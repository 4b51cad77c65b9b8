//! [`Group`]: the public handle of the group that a process belongs to.

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

/// The processes of one cluster, from the view of one of them; see the [module](crate::group) for
/// an example.
///
/// A thread of its own keeps the links alive. *Collectives* ([`Group::all_gather`],
/// [`Group::gather`]) are called by all nodes in the same order; a different order is an error on
/// all of them.
///
/// [`Group::leave`] sends the goodbye. Dropping the group reports that this node has finished if
/// the group was used and all uses have ended in order ([`Group::begin_use`]), it has not failed,
/// and the thread does not panic; otherwise it reports that this node has failed.
pub struct Group {
    config: GroupConfig,
    handle: Handle,
    listens: IpAddr,
    advertise: IpAddr,
    // Dropped in this order: a folder is removed once it is empty.
    _file: Option<RendezvousFile>,
    _folder: Option<JobFolder>,
}

impl Group {
    /// Joins the others. Returns when all have joined and have links to each other.
    ///
    /// Nodes may start in any order. `watch` is called with the membership on every change and
    /// about once a second.
    ///
    /// # Errors
    /// Nodes missing or unreachable after [`GroupConfig::join_timeout`], an unusable address, or
    /// the refusal of one node by another. All nodes that are there learn of it.
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

    /// Contributes `bytes` and returns the contributions of all nodes, by node. A collective; any
    /// size.
    ///
    /// # Errors
    /// A node is lost, has left, or makes a different call.
    pub fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.all_gather_for("all_gather", bytes)
    }

    /// Like [`Group::all_gather`], with a label, which must be the same on all nodes; its first 64
    /// characters count.
    ///
    /// # Errors
    /// As [`Group::all_gather`].
    pub fn all_gather_for(&self, label: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.handle.collect(label, true, bytes)
    }

    /// Contributes `bytes`; node 0 gets the contributions of all nodes, by node, the others get
    /// `None`. A collective; any size.
    ///
    /// # Errors
    /// As [`Group::all_gather`].
    pub fn gather(&self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, GroupError> {
        let parts = self.handle.collect("gather", false, bytes)?;
        Ok((self.node() == NodeId(0)).then_some(parts))
    }

    /// Asks all nodes, this one included, to stop, for a reason of the caller's; the first reason
    /// counts. The reaction is up to them: flags are raised ([`Group::on_stop`]), and
    /// [`Group::stop_code`] returns the reason.
    pub fn stop(&self, code: u8) {
        self.handle.stop(code);
    }

    /// Connects `flag` with the flags of all nodes: raising it here asks all to stop with code 0,
    /// and it is raised when any node asks. Seen within 50 ms.
    pub fn on_stop(&self, flag: Arc<AtomicBool>) {
        self.handle.on_stop(flag);
    }

    /// Returns the reason to stop, if any node has asked to.
    #[must_use]
    pub fn stop_code(&self) -> Option<u8> {
        self.handle.shared.lock().stop
    }

    /// Calls `watch` with the first lost node, at once if it is already known; not with one that is
    /// needed and has left in order, which calls of the group name. The call comes from the thread
    /// that notices, must not block, and ends with the last owner of `watch`.
    pub fn on_loss(&self, watch: &Arc<LossWatch>) {
        self.handle.watch(watch);
    }

    /// Reports a node that was found lost by other means. The group fails once it is known which
    /// node is lost to all: this one or, if nothing was received of it, the one that [`GroupError`]
    /// names.
    pub fn report(&self, loss: PeerLoss) {
        self.handle.report(loss);
    }

    /// Records the start of a use of the group, such as a cluster. Until its [`Group::end_use`],
    /// dropping the group reports that this node has failed.
    pub fn begin_use(&self) {
        self.handle.begin_use();
    }

    /// Records the orderly end of a use, once per [`Group::begin_use`]; without one it does
    /// nothing.
    pub fn end_use(&self) {
        self.handle.end_use();
    }

    /// Leaves the group and waits until the others know, at most about [`GroupConfig::dead_after`].
    /// If a node is lost, that is reported to the others instead. Later calls answer
    /// [`GroupError::Ended`].
    pub fn leave(&self, close_reason: CloseReason) {
        self.handle.leave(close_reason);
    }

    /// Opens an endpoint of this process for parameters, of the kind and at the address of the
    /// settings; `channel` is any number but 65,535. It is connected by the addresses that all
    /// nodes have exchanged ([`Group::address_of`]).
    ///
    /// # Errors
    /// The system's refusal.
    pub fn listen(&self, channel: u16, layout_digest: u64) -> Result<Net, NetError> {
        let kind = self.config.kind;
        let bind = if kind == Kind::Unix { String::new() } else { self.listens.to_string() };
        let mut settings = join::settings(&self.config, channel, kind, bind);
        settings.layout_digest = layout_digest;
        Net::listen(settings)
    }

    /// Returns the address at which others reach an endpoint of this process.
    #[must_use]
    pub fn address_of(&self, net: &Net) -> Address {
        let mut address = net.address().clone();
        if let Address::Tcp(socket) | Address::Tokio(socket) | Address::Zmq(socket) = &mut address {
            socket.set_ip(self.advertise);
        }
        address
    }

    /// Returns the node of this process.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.config.nodes
    }

    /// Returns the number of this run, generated by node 0: the same in all its processes, and
    /// different for every run.
    #[must_use]
    pub fn run(&self) -> u64 {
        // Known since the meeting.
        self.handle.shared.lock().run.unwrap_or_default()
    }

    /// Returns the nodes that have joined, and later refusals.
    #[must_use]
    pub fn membership(&self) -> Membership {
        self.handle.shared.lock().membership.clone()
    }

    /// Returns why the group has failed, if it has. While the lost node is being determined, waits
    /// for the verdict, at most a fifth of [`GroupConfig::dead_after`].
    #[must_use]
    pub fn failure(&self) -> Option<GroupError> {
        self.handle.failure()
    }

    /// Returns the silence after which a node is lost.
    #[must_use]
    pub fn dead_after(&self) -> Duration {
        self.config.dead_after
    }

    /// Returns the longest wait for all nodes to join.
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
