//! The interface of the control thread to its transport beyond frames: dialing and the state of
//! each peer. And its implementation, the control endpoint: a [`Net`] over TCP, on a channel of its
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
    /// Returns the address of this endpoint for others; `None` if all peers are known from the
    /// start.
    fn info(&self) -> Option<SocketAddr>;

    /// Starts to dial those peers whose addresses have become known; returns at once.
    fn meet(&mut self, addresses: &[Option<SocketAddr>]);

    /// Starts to dial a peer that may be at any of these addresses; returns at once.
    fn seek(&mut self, node: NodeId, addresses: &[SocketAddr]);

    /// Returns true if frames pass in both directions.
    fn is_up(&self, node: NodeId) -> bool;

    /// Returns the round-trip time.
    fn rtt(&self, node: NodeId) -> Option<Duration>;

    /// Returns why there is no link, if it is known.
    fn fault(&self, node: NodeId) -> Option<String>;

    /// Returns the number that node 0 has generated for this run, once node 0 was met.
    fn run(&self) -> Option<u64>;

    /// Converts an error of this transport.
    fn failure(&self, error: Self::Error) -> GroupError {
        GroupError::Network { message: error.to_string() }
    }

    /// Returns why this node is to blame for the missing link to that one, if it is.
    fn own_trouble(&self, node: NodeId) -> Option<String>;

    /// Returns the next rejected stranger with the reason, and the number of rejections.
    fn poll_refusal(&mut self) -> Option<(String, u32)>;
}

/// The control endpoint: a [`Net`] over TCP, on a channel of its own.
pub(super) struct NetMesh {
    net: Net,
    /// The address for others to dial.
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
