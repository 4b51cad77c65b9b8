//! What the control thread needs of its transport beyond frames: to dial, and to tell how it stands
//! with each peer. And the control endpoint that gives it: a [`Net`] over TCP, on a channel of its
//! own.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport};

use super::collective::ROOT;
use super::error::GroupError;
use crate::net::{Address, Net, NetError, NetWaker, PeerState};

/// A transport that finds its peers while it is used.
pub(super) trait Mesh: Transport {
    /// Where this endpoint is reached, as it tells others; `None`: nowhere, all peers are known
    /// from the start.
    fn info(&self) -> Option<SocketAddr>;

    /// Starts to dial those peers whose addresses have become known; returns at once.
    fn meet(&mut self, addresses: &[Option<SocketAddr>]);

    /// Starts to dial a peer that may be at any of these addresses; returns at once.
    fn seek(&mut self, node: NodeId, addresses: &[SocketAddr]);

    /// Whether frames go to and fro.
    fn is_up(&self, node: NodeId) -> bool;

    /// Time there and back.
    fn rtt(&self, node: NodeId) -> Option<Duration>;

    /// Why there is no link, if it is known.
    fn fault(&self, node: NodeId) -> Option<String>;

    /// A number that node 0 has made up for this run, once it was met.
    fn run(&self) -> Option<u64>;

    /// What an error of this transport is to the group.
    fn failure(&self, error: Self::Error) -> GroupError {
        GroupError::Network { message: error.to_string() }
    }

    /// Why it is this node that cannot be linked with that one, if so.
    fn own_trouble(&self, node: NodeId) -> Option<String>;

    /// The next one from outside who was turned away and why, and how many times.
    fn poll_refusal(&mut self) -> Option<(String, u32)>;
}

/// The control endpoint: a [`Net`] over TCP, on a channel of its own.
pub(super) struct NetMesh {
    net: Net,
    /// What others are to dial.
    advertise: IpAddr,
}

impl NetMesh {
    pub(super) fn new(net: Net, advertise: IpAddr) -> Self {
        Self { net, advertise }
    }
}

impl Transport for NetMesh {
    type Error = NetError;
    type Waker = NetWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<NetError>> {
        self.net.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, NetError> {
        self.net.recv(wait, frame)
    }

    fn waker(&self) -> NetWaker {
        self.net.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.net.leave(reason);
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        Transport::address(&self.net, node)
    }
}

impl Mesh for NetMesh {
    fn info(&self) -> Option<SocketAddr> {
        let port = self.net.address().socket()?.port();
        Some(SocketAddr::new(self.advertise, port))
    }

    fn meet(&mut self, addresses: &[Option<SocketAddr>]) {
        let addresses: Vec<_> = addresses.iter().map(|address| address.map(Address::Tcp)).collect();
        self.net.connect(&addresses);
    }

    fn seek(&mut self, node: NodeId, addresses: &[SocketAddr]) {
        let addresses: Vec<_> = addresses.iter().copied().map(Address::Tcp).collect();
        self.net.connect_any(node, &addresses);
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.net
            .peer(node)
            .is_some_and(|peer| matches!(peer.state, PeerState::Up | PeerState::Suspect))
    }

    fn rtt(&self, node: NodeId) -> Option<Duration> {
        self.net.peer(node).and_then(|peer| peer.rtt)
    }

    fn fault(&self, node: NodeId) -> Option<String> {
        self.net.peer(node).and_then(|peer| peer.refused)
    }

    fn run(&self) -> Option<u64> {
        self.net.life_of(ROOT)
    }

    fn failure(&self, error: NetError) -> GroupError {
        error.into()
    }

    fn own_trouble(&self, node: NodeId) -> Option<String> {
        self.net.own_trouble(node).map(|error| error.to_string())
    }

    fn poll_refusal(&mut self) -> Option<(String, u32)> {
        self.net.poll_notice().map(|notice| (notice.to_string(), notice.times))
    }
}
