//! A transport over datagrams: one UDP socket per node. All that is hard, that frames arrive once,
//! whole and in order over a network that loses, repeats and reorders, and that peers which are
//! gone are missed, is done by [`Links`]; left are the socket, the addresses and the clock.
//!
//! Not here: addresses of other machines, encryption and authentication. Any host that can send to
//! the socket can disturb it: keep it on networks that you trust.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant as Wall};

use adapm_core::link::{DATAGRAM_BYTES_MAX, LinkConfig, Links, SendRefusal};
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport, Wake, Way};
use adapm_core::{Instant, NodeId};

/// The way of each datagram out of an endpoint: returns the datagrams to send, each with the node
/// that it is for. Tests put a bad network here.
pub type Exit = Box<dyn FnMut(NodeId, Vec<u8>) -> Vec<(NodeId, Vec<u8>)> + Send>;

/// One node's endpoint.
pub struct UdpEnd {
    links: Links,
    socket: UdpSocket,
    /// By node id, this node's own included.
    addresses: Arc<[SocketAddr]>,
    waker: UdpWaker,
    started: Wall,
    datagram: Vec<u8>,
    exit: Exit,
}

/// Ends the wait of one endpoint: by a datagram to itself.
#[derive(Clone)]
pub struct UdpWaker {
    woken: Arc<AtomicBool>,
    socket: Arc<UdpSocket>,
    own: SocketAddr,
}

/// Opens endpoints of `nodes` nodes on this machine, that of node `i` at index `i`.
///
/// # Panics
/// If the system provides no sockets.
#[must_use]
pub fn network(nodes: usize) -> Vec<UdpEnd> {
    network_through(nodes, |_| Box::new(|to, datagram| vec![(to, datagram)]))
}

/// Like [`network`], with the way out of each node's endpoint.
///
/// # Panics
/// If the system provides no sockets.
#[must_use]
pub fn network_through(nodes: usize, exit: impl Fn(NodeId) -> Exit) -> Vec<UdpEnd> {
    let open = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are free ports");
    let sockets: Vec<UdpSocket> = (0..nodes).map(|_| open()).collect();
    let address = |socket: &UdpSocket| socket.local_addr().expect("it is bound");
    let addresses: Arc<[SocketAddr]> = sockets.iter().map(address).collect();
    let ends = (0..).map(NodeId).zip(sockets);
    ends.map(|(node, socket)| UdpEnd::new(node, socket, &addresses, exit(node))).collect()
}

impl Wake for UdpWaker {
    fn wake(&self) {
        // If there is no room for the datagram, others wait there that end the wait as well.
        if !self.woken.swap(true, SeqCst) {
            self.socket.send_to(&[], self.own).ok();
        }
    }
}

impl Transport for UdpEnd {
    type Error = io::Error;
    type Waker = UdpWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<io::Error>> {
        match self.links.send(to, frame) {
            Ok(()) => {}
            Err(SendRefusal::Full) => return Err(SendError::Full),
            Err(_) => return Err(SendError::Transport(io::ErrorKind::NotFound.into())),
        }
        self.write();
        Ok(())
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> io::Result<Received> {
        let end = wait.and_then(|wait| Wall::now().checked_add(wait));
        self.read(Some(Duration::ZERO))?;
        loop {
            if self.waker.woken.swap(false, SeqCst) {
                self.links.handle_wake();
            }
            self.links.handle_timeout(self.now());
            let received = self.links.poll_received(self.now(), frame);
            self.write();
            if let Some(received) = received {
                return Ok(received);
            }
            let left = end.map(|end| end.saturating_duration_since(Wall::now()));
            if left == Some(Duration::ZERO) {
                self.links.note_timeout();
                return Ok(Received::TimedOut);
            }
            self.read(self.until_due().into_iter().chain(left).min())?;
        }
    }

    fn waker(&self) -> UdpWaker {
        self.waker.clone()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.links.close(self.now(), reason);
        let mut frame = Frame::default();
        while !self.links.is_closed(self.now()) {
            while self.links.poll_received(self.now(), &mut frame).is_some() {}
            self.links.handle_timeout(self.now());
            self.write();
            if self.read(self.until_due()).is_err() {
                return;
            }
        }
        self.write();
    }

    fn way(&self, node: NodeId) -> Way {
        self.links.way(node)
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.addresses.get(node.index()).copied()
    }
}

impl UdpEnd {
    fn new(node: NodeId, socket: UdpSocket, addresses: &Arc<[SocketAddr]>, exit: Exit) -> Self {
        let nodes = u16::try_from(addresses.len()).expect("ids of nodes are 16 bits");
        let life = RandomState::new().hash_one(node.0) as u32 | 1;
        let life = NonZeroU32::new(life).expect("it is odd");
        let config = LinkConfig::datagrams(Duration::from_secs(10));
        let own = addresses[node.index()];
        let waking = Arc::new(socket.try_clone().expect("there are free handles"));
        Self {
            links: Links::new(node, nodes, life, config),
            socket,
            addresses: Arc::clone(addresses),
            waker: UdpWaker { woken: Arc::default(), socket: waking, own },
            started: Wall::now(),
            datagram: Vec::new(),
            exit,
        }
    }

    /// Sends all that is due. What the system does not take is lost, and sent again later.
    fn write(&mut self) {
        while let Some(to) = self.links.poll_datagram(self.now(), &mut self.datagram) {
            for (to, datagram) in (self.exit)(to, std::mem::take(&mut self.datagram)) {
                self.socket.send_to(&datagram, self.addresses[to.index()]).ok();
            }
        }
    }

    /// Waits for a datagram, at most for `wait`, then takes all that are there, up to a bound.
    fn read(&mut self, wait: Option<Duration>) -> io::Result<()> {
        let mut bytes = [0; DATAGRAM_BYTES_MAX];
        let mut may_wait = wait != Some(Duration::ZERO);
        self.socket.set_nonblocking(!may_wait)?;
        if may_wait {
            self.socket.set_read_timeout(wait)?;
        }
        for _ in 0..DATAGRAMS_AT_ONCE {
            match self.socket.recv_from(&mut bytes) {
                Ok((len, from)) => {
                    if let Some(node) = self.addresses.iter().position(|peer| *peer == from) {
                        // A datagram that is refused is dropped: it may be a wake, or from a
                        // stranger.
                        let (now, node) = (self.now(), NodeId(node as u16));
                        self.links.handle_datagram(now, node, &bytes[..len]).ok();
                    }
                }
                Err(error) if !is_passing(&error) => return Err(error),
                Err(_) => break,
            }
            if std::mem::take(&mut may_wait) {
                self.socket.set_nonblocking(true)?;
            }
        }
        Ok(())
    }

    fn until_due(&self) -> Option<Duration> {
        let due = self.links.deadline()?;
        Some(Duration::from_nanos(due.nanos_since(self.now())))
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }
}

impl Drop for UdpEnd {
    /// An endpoint that is dropped before it has left has failed.
    fn drop(&mut self) {
        self.links.close(self.now(), CloseReason::Failed);
        self.write();
    }
}

/// Returns true if the socket has nothing at the moment, or reports that a peer is gone.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, TimedOut, WouldBlock};
    let passing = [WouldBlock, TimedOut, Interrupted, ConnectionRefused, ConnectionReset];
    passing.contains(&error.kind())
}

/// Datagrams that are taken before frames are looked at.
const DATAGRAMS_AT_ONCE: usize = 64;
