//! One node's endpoint of one channel over pipes: [`Net`], a [`Transport`] between processes.
//!
//! The endpoint has no thread: everything happens inside calls of [`Transport`]. Incoming frames
//! are not queued: the endpoint reads the next packet of a pipe when its user asks for a frame, one
//! pipe after the other, so that a slow user slows its peers through the windows of their links and
//! nothing piles up here.
//!
//! ```text
//!   Net          calls of Transport, one turn of work
//!    ├── Handshakes     admission to links
//!    └── Links          sessions with peers, losses
//!         └── Pipes        connections, the listening side, events of the system (door)
//! ```
//!
//! Each part uses those below it, and none above or beside it.

mod door;
mod handshakes;
mod links;
mod pipes;

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant as Wall;

use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport, Wake, Way};
use adapm_core::{Instant, NodeId};

use super::address::{Address, Kind};
use super::config::NetConfig;
use super::connection::{Role, Slot};
use super::error::{LinkFault, NetError, NetNotice};
use super::hello::Incarnation;
use super::notifier::Notifier;
use super::packet::{self, Packet};
use super::peer::{NetStats, Peer, PeerStatus};
use door::random;
use handshakes::Handshakes;
use links::Links;
use pipes::Pipes;

/// One node's endpoint of one channel, in its own process or not.
///
/// Memory: frames that the links keep for retransmission ([`adapm_core::link::LinkConfig`]), up to
/// 32 MiB of recycled frames, and per pipe 64 KiB, up to 1 MiB that waits to be written, and the
/// arriving packet.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_core::transport::{Frame, Received, Transport};
/// use adapm_transport::net::{Net, NetConfig};
///
/// let mut here = Net::listen(NetConfig::new(NodeId(0), 2))?;
/// let mut there = Net::listen(NetConfig::new(NodeId(1), 2))?;
/// there.connect(&[Some(here.address().clone())]);
///
/// let mut frame = Frame { head: vec![1, 2, 3], ..Frame::default() };
/// there.send(NodeId(0), &mut frame).expect("frames may be sent before the link is up");
/// let peer = std::thread::spawn(move || {
///     // An endpoint does its work while it receives.
///     there.recv(None, &mut Frame::default())
/// });
/// assert_eq!(here.recv(None, &mut frame)?, Received::Frame(NodeId(1)));
/// assert_eq!(frame.head, [1, 2, 3]);
/// here.leave(adapm_core::transport::CloseReason::Failed);
/// assert!(matches!(peer.join().expect("no panic")?, Received::Lost(NodeId(0), _)));
/// # Ok::<(), adapm_transport::net::NetError>(())
/// ```
#[derive(Debug)]
pub struct Net {
    address: Address,
    handshakes: Handshakes,
    links: Links,
    /// Frames since the last look at all pipes.
    since_look: u32,
    /// The time to look at all pipes, even if one of them always has more.
    look_at: Instant,
    has_left: bool,
}

/// A handle that ends the wait of a [`Net`]. Harmless after the endpoint is gone.
#[derive(Clone, Debug)]
pub struct NetWaker(Arc<Notifier>);

impl Transport for Net {
    type Error = NetError;
    type Waker = NetWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<NetError>> {
        self.links.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, NetError> {
        let end = match wait {
            Some(Duration::ZERO) | None => None,
            Some(wait) => Wall::now().checked_add(wait),
        };
        let now = self.links.flush_batches();
        self.since_look += 1;
        if self.links.reports().is_just_woken()
            || self.since_look >= LOOK_EVERY
            || now >= self.look_at
        {
            self.look(Some(Duration::ZERO))?;
        }
        let mut is_over = false;
        loop {
            if let Some(received) = self.take(frame)? {
                return Ok(received);
            }
            if is_over {
                self.links.reports_mut().note_timeout();
                return Ok(Received::TimedOut);
            }
            let left = match (wait, end) {
                (Some(Duration::ZERO), _) => Some(Duration::ZERO),
                (_, Some(end)) => Some(end.saturating_duration_since(Wall::now())),
                _ => None,
            };
            is_over = left == Some(Duration::ZERO);
            self.look(left)?;
        }
    }

    fn waker(&self) -> NetWaker {
        NetWaker(Arc::clone(self.links.pipes().notifier()))
    }

    fn leave(&mut self, reason: CloseReason) {
        self.say_goodbye(reason);
        self.see_off(reason);
    }

    fn way(&self, node: NodeId) -> Way {
        self.links.way(node)
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.links.peers().get(node.index()).and_then(Peer::socket)
    }
}

impl Net {
    /// Opens an endpoint, which listens from here on and knows no peers yet.
    ///
    /// # Errors
    /// If the node id is not one of the cluster, or the system or the rules do not allow listening
    /// there.
    pub fn listen(config: NetConfig) -> Result<Self, NetError> {
        let NetConfig { node, nodes, link, .. } = config;
        let count = u16::try_from(nodes).ok().filter(|_| node.index() < nodes);
        let count = count.ok_or(NetError::Nodes { node, nodes })?;
        let incarnation = Incarnation(u64::from_le_bytes(random()?));
        let (pipes, address) = Pipes::open(&config, incarnation)?;
        Ok(Self {
            address,
            handshakes: Handshakes::new(&config, incarnation),
            links: Links::new(node, count, link, pipes),
            since_look: 0,
            look_at: Instant::ZERO,
            has_left: false,
        })
    }

    /// Sets the addresses of peers, by node id, and starts to dial those with lower ids; returns at
    /// once.
    ///
    /// May be called again once more of them are known. The address of a peer that was met stays;
    /// another one for a peer that was not met replaces the first.
    pub fn connect(&mut self, addresses: &[Option<Address>]) {
        for (index, address) in addresses.iter().enumerate().take(self.nodes()) {
            if let (Ok(id), Some(address)) = (u16::try_from(index), address) {
                self.connect_any(NodeId(id), core::slice::from_ref(address));
            }
        }
    }

    /// Sets several possible addresses of one peer, as a name can have several: they are dialed in
    /// turn until it is met. Otherwise like [`Net::connect`].
    pub fn connect_any(&mut self, node: NodeId, addresses: &[Address]) {
        self.links.connect(node, addresses);
    }

    /// Returns the next notice. Notices carry no further detail.
    pub fn poll_notice(&mut self) -> Option<NetNotice> {
        self.links.poll_notice()
    }

    /// Returns the address at which others dial this endpoint.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the node of this endpoint.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.handshakes.own().node
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.links.peers().len()
    }

    /// Returns a random number of the present life of that node's endpoint, the same for all that
    /// know it; `None` if it was not met.
    #[must_use]
    pub fn life_of(&self, node: NodeId) -> Option<u64> {
        let peer = self.links.peers().get(node.index())?;
        let own = (node == self.node()).then_some(self.handshakes.own().incarnation);
        own.or(peer.incarnation).map(|incarnation| incarnation.0)
    }

    /// Returns the status of each peer, by node id.
    pub fn peers(&self) -> impl Iterator<Item = PeerStatus> {
        let peers = self.links.peers().iter().filter(|peer| peer.node != self.node());
        peers.map(|peer| self.links.status_of(peer))
    }

    /// Returns the status of one peer; `None` if there is no such peer.
    #[must_use]
    pub fn peer(&self, node: NodeId) -> Option<PeerStatus> {
        let peer = self.links.peers().get(node.index()).filter(|peer| peer.node != self.node());
        peer.map(|peer| self.links.status_of(peer))
    }

    /// Returns why this node cannot take part in the link with `node`, if its own system has
    /// refused it for a second, or for the suspect time if that is less.
    #[must_use]
    pub fn own_trouble(&self, node: NodeId) -> Option<NetError> {
        self.links.own_trouble(node)
    }

    /// Returns the traffic so far.
    #[must_use]
    pub fn stats(&self) -> NetStats {
        self.links.stats()
    }

    /// Returns a report that needs no waiting, in the order of [`adapm_core::link::Reports`].
    fn take(&mut self, frame: &mut Frame) -> Result<Option<Received>, NetError> {
        if let Some(woken) = self.links.reports_mut().poll_before_frames() {
            return Ok(Some(woken));
        }
        if self.links.reports().admits_frame()
            && let Some(node) = self.next_frame(frame)
        {
            self.links.reports_mut().note_frame();
            return Ok(Some(Received::Frame(node)));
        }
        self.links.reports_mut().poll_behind_frames()
    }
}

impl Wake for NetWaker {
    fn wake(&self) {
        self.0.wake();
    }
}

impl Net {
    /// Waits until there is news, a deadline has come, or `wait` is over; then looks at everything.
    fn look(&mut self, wait: Option<Duration>) -> Result<(), NetError> {
        self.since_look = 0;
        let now = self.links.wait(wait)?;
        self.look_at = now + LOOK_TIME;
        if let Some(mut accepting) = self.links.pipes_mut().begin_accepting(now) {
            while let Some((pipe, remote)) = self.links.pipes_mut().accept(&mut accepting, now) {
                self.handshakes.admit(&mut self.links, pipe, remote);
            }
        }
        self.handle_due(now);
        Ok(())
    }

    /// Returns the next frame of the pipes that may have one, in turn.
    fn next_frame(&mut self, frame: &mut Frame) -> Option<NodeId> {
        for _ in 0..PACKETS_PER_TURN {
            let (slot, read) = self.links.pipes_mut().next_packet()?;
            match read {
                Ok(None) => {}
                Ok(Some(packet)) => {
                    if let Some(node) = self.handle_packet(slot, packet, frame) {
                        return Some(node);
                    }
                }
                Err(fault) => {
                    self.handshakes.give_up(&mut self.links, slot, LinkFault::Fault(fault))
                }
            }
        }
        None
    }

    /// Says goodbye to all peers, once.
    fn say_goodbye(&mut self, reason: CloseReason) {
        if !core::mem::replace(&mut self.has_left, true) {
            self.links.say_goodbye(reason);
        }
    }

    /// Works on until all peers have the goodbye, or have ended themselves, or a time limit.
    fn see_off(&mut self, reason: CloseReason) {
        let started = Wall::now();
        let dead_after = self.links.config().dead_after;
        let patience = match reason {
            CloseReason::Finished => dead_after,
            CloseReason::Failed | CloseReason::Lost(_) => dead_after.min(FAILED_WAIT),
        };
        let is_over = |patience: Duration| started.elapsed() >= patience;
        while !is_over(patience) && self.links.owes_goodbye(!is_over(patience.min(STRANGER_WAIT))) {
            self.work();
        }
        // The last acknowledgements must not be discarded with the pipes: peers close their side
        // when they have them.
        self.links.pipes_mut().shut_down();
        let ended = Wall::now();
        while ended.elapsed() < LINGER_TIME && self.links.awaits_hang_up() {
            self.work();
        }
    }

    fn handle_packet(&mut self, slot: Slot, packet: Packet, frame: &mut Frame) -> Option<NodeId> {
        let role = &self.links.pipes().get(slot)?.role;
        match (role, packet.kind) {
            (Role::Closing, _) => None,
            (Role::Attached(node), packet::Kind::Link(kind)) => {
                let node = *node;
                self.links.handle_packet(node, kind, packet, frame)
            }
            (Role::Dialing(..) | Role::Listening(_), packet::Kind::Greeting(greeting)) => {
                self.handshakes.greet(&mut self.links, slot, greeting, &packet.frame.head);
                None
            }
            _ => {
                self.handshakes.refuse_malformed(&mut self.links, slot);
                None
            }
        }
    }

    /// Does all due work.
    fn handle_due(&mut self, now: Instant) {
        for at in 0..self.links.peers().len() {
            let node = self.links.peers()[at].node;
            if self.links.handle_due(node, now) {
                self.handshakes.dial(&mut self.links, node);
            }
        }
        for slot in self.links.pipes().late(now) {
            self.handshakes.give_up(&mut self.links, slot, LinkFault::Slow);
        }
    }

    /// Does one turn of receiving, and drops the result.
    fn work(&mut self) {
        let mut frame = Frame::default();
        for _ in 0..FRAMES_AT_ONCE {
            if self.next_frame(&mut frame).is_none() {
                break;
            }
        }
        self.links.reports_mut().clear();
        if self.look(Some(WORK_TIME)).is_err() {
            // The wait cannot work without the system; the loop stays bounded by its own clock.
            std::thread::yield_now();
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // Peers that are told need not wait for the silence.
        self.say_goodbye(CloseReason::Failed);
    }
}

/// Returns endpoints of `nodes` nodes on this machine, that of node `i` at index `i`, about to be
/// connected: for tests, benchmarks and examples.
///
/// ```
/// use adapm_transport::net::{self, Kind};
///
/// let ends = net::network(3, Kind::Tcp)?;
/// assert_eq!(ends[2].peers().count(), 2);
/// # Ok::<(), adapm_transport::net::NetError>(())
/// ```
///
/// # Errors
/// If the system does not let this process listen.
pub fn network(nodes: usize, kind: Kind) -> Result<Vec<Net>, NetError> {
    network_with(nodes, |config| config.kind = kind)
}

/// Like [`network`], with settings that `adjust` may change per node.
///
/// # Errors
/// If an endpoint cannot be opened.
pub fn network_with(nodes: usize, adjust: impl Fn(&mut NetConfig)) -> Result<Vec<Net>, NetError> {
    let mut ends = Vec::with_capacity(nodes);
    for id in 0..nodes {
        let node =
            u16::try_from(id).map_err(|_| NetError::Nodes { node: NodeId(u16::MAX), nodes })?;
        let mut config = NetConfig::new(NodeId(node), nodes);
        adjust(&mut config);
        ends.push(Net::listen(config)?);
    }
    let addresses: Vec<Option<Address>> =
        ends.iter().map(|end| Some(end.address().clone())).collect();
    for end in &mut ends {
        end.connect(&addresses);
    }
    Ok(ends)
}

/// Frames after which all pipes are looked at, even if one of them always has more.
const LOOK_EVERY: u32 = 32;

/// Time after which all pipes are looked at, if the user takes long for each frame.
const LOOK_TIME: Duration = Duration::from_millis(2);
/// Packets without a frame after which others get their turn.
const PACKETS_PER_TURN: usize = 64;
/// Longest wait for peers after a failure.
const FAILED_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for peers that were never met.
const STRANGER_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for peers that have ended to hang up.
const LINGER_TIME: Duration = Duration::from_millis(200);
/// Frames between two looks while leaving.
const FRAMES_AT_ONCE: u32 = 256;
/// Duration of one look while leaving.
const WORK_TIME: Duration = Duration::from_millis(20);
