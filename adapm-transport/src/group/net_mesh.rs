//! The control endpoint: a [`Net`] over TCP, on a channel of its own.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{Farewell, Frame, Received, SendError, Transport};

use super::collective::ROOT;
use super::error::GroupError;
use super::mesh::Mesh;
use crate::net::{Address, Net, NetError, NetWaker, PeerState};

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

    fn leave(&mut self, farewell: Farewell) {
        self.net.leave(farewell);
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        Transport::address(&self.net, node)
    }
}

impl Mesh for NetMesh {
    fn card(&self) -> Option<SocketAddr> {
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
        self.net.peer(node).is_some_and(|peer| matches!(peer.state, PeerState::Up | PeerState::Suspect))
    }

    fn rtt(&self, node: NodeId) -> Option<Duration> {
        self.net.peer(node).and_then(|peer| peer.rtt)
    }

    fn trouble(&self, node: NodeId) -> Option<String> {
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
