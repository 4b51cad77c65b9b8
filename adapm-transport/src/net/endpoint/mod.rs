//! One node's endpoint of one channel over pipes: [`Net`], a [`Transport`] between processes.
//!
//! The endpoint has no thread: everything happens inside calls of [`Transport`]. Frames are not queued on their way in: the
//! endpoint reads the next packet of a pipe when its user asks for a frame, one pipe after the other, so that a slow user
//! slows its peers through the windows of their links and nothing piles up here.
//!
//! | file | does |
//! | --- | --- |
//! | `open` | listening and connecting |
//! | `drive` | waiting, news of pipes, times |
//! | `serve` | packets of links, what sessions tell, losses |
//! | `greet` | handshakes, on both sides |
//! | `leave` | the end |

mod drive;
mod greet;
mod leave;
mod open;
mod serve;
mod shortage;

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant as Wall;

use adapm_core::link::{LinkConfig, SendRefusal};
use adapm_core::transport::{Farewell, Frame, Loss, Received, SendError, Transport, Wake, Way};
use adapm_core::{Instant, NodeId};
use mio::{Events, Poll};

use super::address::{Address, Kind};
use super::bell::Bell;
use super::clock::Clock;
use super::connection::{Connections, Slot};
use super::error::{NetError, NetNotice, Notices, Trouble};
use super::hello::{Identity, Token};
use super::noise::Recordings;
use super::packet::{Fault, Spares};
use super::peer::Peer;
use super::pipe::Carrier;
use super::status::{NetStats, PeerStatus};
use crate::tcp::Listener;
use shortage::Shortage;

/// One node's endpoint of one channel, in its own process or not.
///
/// Memory: what the links keep for retransmission ([`LinkConfig`]), up to 32 MiB of recycled frames, and per pipe 64 KiB,
/// up to 1 MiB that waits to be written, and the packet that arrives.
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
/// here.leave(adapm_core::transport::Farewell::Failed);
/// assert!(matches!(peer.join().expect("no panic")?, Received::Lost(NodeId(0), _)));
/// # Ok::<(), adapm_transport::net::NetError>(())
/// ```
#[derive(Debug)]
pub struct Net {
    own: Identity,
    token: Option<Token>,
    recordings: Recordings,
    link: LinkConfig,
    greeting_time: Duration,
    kind: Kind,
    address: Address,
    poll: Poll,
    events: Events,
    bell: Arc<Bell>,
    listener: Option<Listener>,
    /// When to accept connections, if there may be some.
    accept_at: Option<Instant>,
    /// Whether connections that have come cannot be taken in.
    shortage: Shortage,
    carriers: Vec<(Kind, Box<dyn Carrier>)>,
    /// By node id; this node's own is never used.
    peers: Vec<Peer>,
    connections: Connections,
    /// Connections that may have packets, in the order in which they are served.
    ready: VecDeque<Slot>,
    /// Losses to be told.
    verdicts: VecDeque<(NodeId, Loss)>,
    /// Failures to be told, at most one per peer.
    failures: VecDeque<NetError>,
    notices: Notices,
    spares: Spares,
    clock: Clock,
    /// A way that was full has room.
    has_room: bool,
    /// Whether the last `recv` returned `Woken`: then a frame that waits goes first.
    just_woken: bool,
    /// Whether a frame has just passed a loss or a failure that is to be told.
    just_passed: bool,
    /// Frames since the last look at all pipes.
    since_look: u32,
    /// When to look at all pipes, even if one of them always has more.
    look_at: Instant,
    has_left: bool,
    stats: NetStats,
}

/// Ends the wait of a [`Net`]. Harmless after the endpoint is gone.
#[derive(Clone, Debug)]
pub struct NetWaker(Arc<Bell>);

impl Transport for Net {
    type Error = NetError;
    type Waker = NetWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<NetError>> {
        let nodes = self.peers.len();
        let own = self.own.node;
        let Some(peer) = self.peers.get_mut(to.index()).filter(|peer| peer.node != own) else {
            return Err(SendError::Transport(NetError::UnknownNode { node: to, nodes }));
        };
        if peer.is_lost {
            return Ok(());
        }
        let bytes = frame.len();
        match peer.session.send(frame) {
            Ok(()) => {}
            Err(SendRefusal::Full) => return Err(SendError::Full),
            // The peer needs nothing any more, or this node has said that it ends.
            Err(_) => return Ok(()),
        }
        // The first frame goes out at once; more of them wait for company until the next `recv`.
        match &mut peer.batched {
            Some(batched) if *batched + bytes < BATCH_BYTES => *batched += bytes,
            _ => {
                peer.batched = Some(0);
                self.clock.look();
                self.pump(to);
            }
        }
        Ok(())
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, NetError> {
        let end = match wait {
            Some(Duration::ZERO) | None => None,
            Some(wait) => Wall::now().checked_add(wait),
        };
        let now = self.clock.look();
        self.flush_batches();
        self.since_look += 1;
        if self.just_woken || self.since_look >= LOOK_EVERY || now >= self.look_at {
            self.look(Some(Duration::ZERO))?;
        }
        let mut is_over = false;
        loop {
            if let Some(received) = self.take(frame)? {
                return Ok(received);
            }
            if is_over {
                self.just_woken = false;
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
        NetWaker(Arc::clone(&self.bell))
    }

    fn leave(&mut self, farewell: Farewell) {
        self.say_goodbye(farewell);
        self.see_off(farewell);
    }

    fn way(&self, node: NodeId) -> Way {
        self.peers.get(node.index()).map_or(Way::default(), |peer| peer.session.way())
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.peers.get(node.index()).and_then(Peer::socket)
    }
}

impl Net {
    /// The next thing of which no more can be learnt here.
    pub fn poll_notice(&mut self) -> Option<NetNotice> {
        self.notices.pop()
    }

    /// How others dial this endpoint.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The node of this endpoint.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.own.node
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.peers.len()
    }

    /// A number that this life of that node's endpoint has made up, the same for all that know it; `None`: it was not met.
    #[must_use]
    pub fn life_of(&self, node: NodeId) -> Option<u64> {
        let peer = self.peers.get(node.index())?;
        let own = (node == self.own.node).then_some(self.own.incarnation);
        own.or(peer.incarnation).map(|incarnation| incarnation.0)
    }

    /// How it stands with each peer, by node id.
    pub fn peers(&self) -> impl Iterator<Item = PeerStatus> {
        self.peers.iter().filter(|peer| peer.node != self.own.node).map(|peer| self.status_of(peer))
    }

    /// How it stands with one peer; `None` if there is no such peer.
    #[must_use]
    pub fn peer(&self, node: NodeId) -> Option<PeerStatus> {
        let peer = self.peers.get(node.index()).filter(|peer| peer.node != self.own.node);
        peer.map(|peer| self.status_of(peer))
    }

    /// Why this node cannot take part in the link with `node`, if it is this node's own system that refuses, and has done so
    /// for a second, or for as long as a peer may be silent without being suspected if that is less.
    #[must_use]
    pub fn own_trouble(&self, node: NodeId) -> Option<NetError> {
        let peer = self.peers.get(node.index()).filter(|peer| peer.pipe.is_none())?;
        match (peer.is_dialed(), peer.trouble) {
            (true, Some(Trouble::Fault(Fault::Io(error)))) if error.is_file_limit() => {
                Some(NetError::System { error })
            }
            (true, _) => None,
            (false, _) => {
                let time = self.link.suspect_after.min(SHORTAGE_TIME);
                let error = self.shortage.lasts(time, self.clock.now())?;
                Some(NetError::Accept { error })
            }
        }
    }

    fn status_of(&self, peer: &Peer) -> PeerStatus {
        let own = self.own_trouble(peer.node).map(|error| error.to_string());
        let status = peer.status();
        PeerStatus { refused: own.or(status.refused), ..status }
    }

    /// What was sent and received so far.
    #[must_use]
    pub fn stats(&self) -> NetStats {
        let mut stats = self.stats;
        for (_, connection) in self.connections.iter() {
            stats.count_pipe(&connection.pipe);
        }
        stats
    }

    /// What there is to tell without waiting.
    ///
    /// Wakes are looked at before and behind frames, losses last: whoever was woken because all is over need not hear that
    /// his peers have ended since. A loss waits for one frame at most.
    fn take(&mut self, frame: &mut Frame) -> Result<Option<Received>, NetError> {
        if !self.just_woken && self.take_wake() {
            return Ok(Some(Received::Woken));
        }
        let has_verdict = !self.verdicts.is_empty() || !self.failures.is_empty();
        if !(has_verdict && self.just_passed)
            && let Some(node) = self.next_frame(frame)
        {
            self.just_woken = false;
            self.just_passed = has_verdict;
            return Ok(Some(Received::Frame(node)));
        }
        self.just_passed = false;
        if self.take_wake() {
            return Ok(Some(Received::Woken));
        }
        if let Some(error) = self.failures.pop_front() {
            return Err(error);
        }
        Ok(self.verdicts.pop_front().map(|(node, loss)| Received::Lost(node, loss)))
    }

    fn take_wake(&mut self) -> bool {
        let is_woken = self.bell.take_wake() || self.has_room;
        if is_woken {
            self.has_room = false;
            self.just_woken = true;
        }
        is_woken
    }

    /// Writes the frames that have waited for company.
    fn flush_batches(&mut self) {
        for at in 0..self.peers.len() {
            if self.peers[at].batched.take().is_some_and(|bytes| bytes > 0) {
                self.pump(self.peers[at].node);
            }
        }
    }
}

impl Wake for NetWaker {
    fn wake(&self) {
        self.0.wake();
    }
}

/// How long it may be that connections cannot be taken in before that is why a peer has no link.
const SHORTAGE_TIME: Duration = Duration::from_secs(1);
/// Bytes that wait for company at most.
const BATCH_BYTES: usize = 64 << 10;
/// Frames after which all pipes are looked at, even if one of them always has more.
const LOOK_EVERY: u32 = 32;
/// Time after which they are, if the user of the frames takes long for each.
const LOOK_TIME: Duration = Duration::from_millis(2);
