//! All links of one node over datagrams: meeting, sessions, what comes early, fairness, losses,
//! goodbyes.
//!
//! Not here: sockets, addresses, clocks and threads, which are the transport's; encryption and
//! authentication.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::id::NodeId;
use crate::link::config::LinkConfig;
use crate::link::datagram::{
    self, DATAGRAM_BYTES_MAX, DATAGRAM_HEADER_BYTES, Datagram, DatagramPacket, Selective,
};
use crate::link::packet::{Header, Kind, LinkError, SendRefusal, Seq};
use crate::link::reports::{Reports, losses_of};
use crate::link::session::{Arrival, Event, Session};
use crate::time::Instant;
use crate::transport::{CloseReason, Frame, Loss, Received, Way};

/// The links of one node to all its peers over datagrams that may be lost, repeated, reordered or
/// cut: all that a transport needs but the socket.
///
/// Each datagram names the lives of both ends, numbers that each process makes up. Packets count
/// only once both have met, so that datagrams of an earlier process are harmless. A peer that was
/// never met is waited for. One that was met and restarts is lost, as [`Loss::Restarted`]: once the
/// process that was met has been silent for [`LinkConfig::suspect_after`].
///
/// Call [`Links::poll_datagram`] until `None` after each of the other calls, and
/// [`Links::handle_timeout`] at the [`Links::deadline`].
///
/// Memory: per peer what waits for its acknowledgement, and what came early or was not taken yet,
/// each at most [`LinkConfig::window_packets`] packets and [`LinkConfig::window_bytes`] bytes; of
/// the first one larger frame instead, of the second one more packet, and the parts of one frame.
/// What does not fit is dropped, and comes again.
///
/// ```
/// use core::num::NonZeroU32;
/// use core::time::Duration;
/// use adapm_core::link::{LinkConfig, Links};
/// use adapm_core::transport::{Frame, Received};
/// use adapm_core::{Instant, NodeId};
///
/// let config = LinkConfig::datagrams(Duration::from_secs(10));
/// let life = |number| NonZeroU32::new(number).expect("a random number that is not zero");
/// let mut ends = [0, 1].map(|id| Links::new(NodeId(id), 2, life(70 + u32::from(id)), config));
///
/// let mut frame = Frame { head: vec![1, 2, 3], ..Frame::default() };
/// ends[0].send(NodeId(1), &mut frame).expect("frames may be sent before both have met");
/// let (now, mut datagram) = (Instant::ZERO, Vec::new());
/// let received = loop {
///     for from in [0, 1] {
///         while let Some(to) = ends[from].poll_datagram(now, &mut datagram) {
///             ends[to.index()].handle_datagram(now, NodeId(from as u16), &datagram)?;
///         }
///     }
///     if let Some(received) = ends[1].poll_received(now, &mut frame) {
///         break received;
///     }
/// };
/// assert_eq!((received, &frame.head[..]), (Received::Frame(NodeId(0)), &[1, 2, 3][..]));
/// # Ok::<(), adapm_core::link::LinkError>(())
/// ```
#[derive(Debug)]
pub struct Links {
    own: NodeId,
    life: NonZeroU32,
    config: LinkConfig,
    /// By node id; this node's own is never used.
    peers: Vec<Peer>,
    reports: Reports<Infallible>,
    /// Peers whose turn it is to receive from, and to send to.
    turns: (usize, usize),
    /// Time of the last call.
    now: Instant,
    closing: Option<Closing>,
}

/// One peer.
#[derive(Debug)]
struct Peer {
    session: Session,
    /// Its life, once both have met.
    met: Option<NonZeroU32>,
    /// The life that it claims, before.
    claim: Option<NonZeroU32>,
    hello_at: Instant,
    hello_wait: Duration,
    early: Early,
    is_lost: bool,
    is_drained: bool,
}

/// Packets that came and are not delivered.
#[derive(Debug, Default)]
struct Early {
    packets: BTreeMap<Seq, EarlyPacket>,
    bytes: usize,
    /// The first number that has not come.
    missing: Seq,
}

#[derive(Debug)]
struct EarlyPacket {
    kind: Kind,
    wants_ack: bool,
    content: Frame,
}

/// The end of this node.
#[derive(Clone, Copy, Debug)]
struct Closing {
    since: Instant,
    /// Longest time until peers have the goodbye.
    patience: Duration,
    /// Time of the last packet that waits for an answer.
    heard: Instant,
}

impl Links {
    /// Creates the links of node `own` of `nodes` nodes, none of which was met. `life` is a random
    /// number that no earlier process of this node has used.
    #[must_use]
    pub fn new(own: NodeId, nodes: u16, life: NonZeroU32, mut config: LinkConfig) -> Self {
        let most = DATAGRAM_BYTES_MAX - DATAGRAM_HEADER_BYTES;
        config.packet_bytes = config.packet_bytes.clamp(PACKET_BYTES_MIN, most);
        let peers = (0..nodes).map(|_| Peer::new(config)).collect();
        Self {
            own,
            life,
            config,
            peers,
            reports: Reports::default(),
            turns: (0, 0),
            now: Instant::ZERO,
            closing: None,
        }
    }

    /// Takes the content of `frame` for `to` and may leave recycled memory in it. Frames to a node
    /// that is lost or has left are dropped.
    ///
    /// # Errors
    /// [`SendRefusal::Full`] if there is no room: [`Received::Woken`] reports some.
    /// [`SendRefusal::Ended`] if there is no such peer. The frame is then unchanged.
    pub fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendRefusal> {
        let own = self.own;
        let peer = self.peers.get_mut(to.index()).filter(|_| to != own);
        let peer = peer.ok_or(SendRefusal::Ended)?;
        if peer.is_lost {
            return Ok(());
        }
        match peer.session.send(frame) {
            Err(SendRefusal::Ended) => Ok(()),
            sent => sent,
        }
    }

    /// Takes a datagram that came from the address of `from`. Datagrams that come again, too late
    /// or from another life of the peer are dropped.
    ///
    /// # Errors
    /// If no sound peer can have sent it; nothing of its packet is taken.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: NodeId,
        bytes: &[u8],
    ) -> Result<(), LinkError> {
        let (own, life) = (self.own, self.life);
        let peer = self.peers.get_mut(from.index()).filter(|_| from != own);
        let peer = peer.ok_or(LinkError::Stranger)?;
        let Datagram { from: sender, to, packet } = datagram::read(bytes)?;
        self.now = now;
        if peer.is_lost && !peer.session.has_left() {
            return Ok(());
        }
        if to == Some(life) && peer.met.is_none() {
            peer.session.handle_up(now, Seq::default())?;
            peer.met = Some(sender);
        }
        if peer.met.is_none() {
            // Both must know each other's life: the answer is due at once.
            (peer.claim, peer.hello_at) = (Some(sender), now);
            return Ok(());
        }
        if peer.met != Some(sender) {
            // Its datagrams name this life, and those of the one that was met have ended. Late ones
            // of an earlier process come as well, but not for so long.
            if to == Some(life) && peer.session.is_suspect() {
                self.lose(from, Loss::Restarted);
            }
            return Ok(());
        }
        match packet {
            Some(packet) if to == Some(life) => {
                // A packet without a number, such as a heartbeat, waits for no answer.
                if packet.is_numbered()
                    && let Some(closing) = &mut self.closing
                {
                    closing.heard = now;
                }
                peer.handle_packet(now, packet, &self.config)?;
                self.hear_events(from);
            }
            // A hello: the peer has not heard that it was met.
            _ => peer.session.owe_now(now),
        }
        Ok(())
    }

    /// Does what is due by the time; harmless at any time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            if peer.is_lost {
                continue;
            }
            // Until what has come is taken it is not known how long the peer was silent.
            if peer.early.has_next(&peer.session) {
                peer.session.repeat_lost(now);
            } else {
                peer.session.handle_timeout(now);
                self.hear_events(NodeId(at as u16));
            }
        }
    }

    /// Notes that a waker was called: [`Links::poll_received`] reports it.
    pub fn handle_wake(&mut self) {
        self.reports.wake();
    }

    /// Notes that `recv` returns [`Received::TimedOut`]: a wake goes before a frame again. Without
    /// this call a frame may go first once more.
    pub fn note_timeout(&mut self) {
        self.reports.note_timeout();
    }

    /// Says goodbye to all peers, behind everything sent before.
    pub fn close(&mut self, now: Instant, reason: CloseReason) {
        self.now = now;
        let dead_after = self.config.dead_after;
        let patience = match reason {
            CloseReason::Finished => dead_after,
            CloseReason::Failed | CloseReason::Lost(_) => dead_after.min(FAILED_WAIT),
        };
        self.closing.get_or_insert(Closing { since: now, patience, heard: now });
        let own = self.own.index();
        for at in (0..self.peers.len()).filter(|at| *at != own) {
            self.peers[at].session.close(reason);
            self.hear_events(NodeId(at as u16));
        }
    }

    /// Writes the next datagram to `out` and returns its receiver: peer by peer in turn. `None`:
    /// nothing is due.
    pub fn poll_datagram(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<NodeId> {
        self.now = now;
        let nodes = self.peers.len();
        for turn in 0..nodes {
            let at = (self.turns.1 + turn) % nodes;
            if at != self.own.index() && self.peers[at].write(now, self.life, &self.config, out) {
                self.turns.1 = at + 1;
                return Some(NodeId(at as u16));
            }
        }
        None
    }

    /// Returns the next report, and overwrites `frame` with the frame if it is one: peer by peer in
    /// turn, in the order that [`crate::transport::Transport::recv`] asks for.
    pub fn poll_received(&mut self, now: Instant, frame: &mut Frame) -> Option<Received> {
        self.now = now;
        if let Some(woken) = self.reports.poll_before_frames() {
            return Some(woken);
        }
        if self.reports.admits_frame()
            && let Some(node) = self.next_frame(now, frame)
        {
            self.reports.note_frame();
            return Some(Received::Frame(node));
        }
        let Ok(received) = self.reports.poll_behind_frames();
        received
    }

    /// Returns the time to call [`Links::handle_timeout`] and [`Links::poll_datagram`] at the
    /// latest; `None`: not before something else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let peers = self.peers.iter().enumerate().filter(|(at, _)| *at != self.own.index());
        let due = peers.filter_map(|(_, peer)| peer.deadline());
        // Those that are over say nothing more.
        let ends = self.closing.into_iter().flat_map(|closing| self.ends_of(closing));
        due.chain(ends.filter(|end| *end > self.now)).min()
    }

    /// Returns true if nothing more has to reach a peer after [`Links::close`], or it has taken too
    /// long, and no peer asks whether its own goodbye has arrived.
    #[must_use]
    pub fn is_closed(&self, now: Instant) -> bool {
        let Some(closing) = self.closing else { return false };
        let [patience, strangers, linger] = self.ends_of(closing);
        let mut peers = self.peers.iter().enumerate().filter(|(at, _)| *at != self.own.index());
        let is_waiting = peers.clone().any(|(_, peer)| {
            let is_reachable = peer.met.is_some() || now < strangers;
            is_reachable && !peer.is_drained && !peer.is_lost
        });
        let may_ask = now < linger && peers.any(|(_, peer)| peer.session.has_left());
        now >= patience || !(is_waiting || may_ask)
    }

    /// Returns the load of the link to a peer.
    #[must_use]
    pub fn way(&self, node: NodeId) -> Way {
        self.peers.get(node.index()).map_or(Way::default(), |peer| peer.session.way())
    }

    /// Returns the packets and bytes that are kept: those that wait for their acknowledgement, and
    /// those that came early.
    #[must_use]
    pub fn kept(&self) -> (usize, usize) {
        self.peers.iter().fold((0, 0), |(packets, bytes), peer| {
            let (unacknowledged, unacknowledged_bytes) = peer.session.unacknowledged();
            let early = &peer.early;
            (
                packets + unacknowledged + early.packets.len(),
                bytes + unacknowledged_bytes + early.bytes,
            )
        })
    }

    /// The end of the patience, of that with peers that were never met, and of the answers.
    fn ends_of(&self, closing: Closing) -> [Instant; 3] {
        let strangers = closing.since + closing.patience.min(STRANGER_WAIT);
        [closing.since + closing.patience, strangers, closing.heard + LINGER_TIME]
    }

    /// Returns the next peer in turn with a frame that is whole.
    fn next_frame(&mut self, now: Instant, frame: &mut Frame) -> Option<NodeId> {
        let nodes = self.peers.len();
        for turn in 0..nodes {
            let at = (self.turns.0 + turn) % nodes;
            let node = NodeId(at as u16);
            let taken = self.peers[at].take_frame(now, frame);
            self.hear_events(node);
            match taken {
                Ok(true) => {
                    self.turns.0 = at + 1;
                    return Some(node);
                }
                Ok(false) => {}
                Err(_) => self.lose(node, Loss::Misbehaved),
            }
        }
        None
    }

    fn hear_events(&mut self, node: NodeId) {
        while let Some(event) = self.peers[node.index()].session.poll_event() {
            match event {
                Event::Suspect | Event::Stalled | Event::Recovered | Event::Stuck(_) => {}
                Event::Dead(loss) => self.lose(node, loss),
                Event::Left(reason) => {
                    for (lost, loss) in losses_of(self.own, node, reason) {
                        self.lose(lost, loss);
                    }
                }
                Event::Room => self.reports.wake(),
                Event::Drained => self.peers[node.index()].is_drained = true,
            }
        }
    }

    /// Reports a loss, once. A peer that has left is lost for its own reason only.
    fn lose(&mut self, node: NodeId, loss: Loss) {
        let Some(peer) = self.peers.get_mut(node.index()) else { return };
        let has_left = peer.session.has_left();
        if !peer.is_lost && (!has_left || matches!(loss, Loss::Failed | Loss::GaveUp)) {
            peer.is_lost = true;
            self.reports.lose(node, loss);
            if !has_left {
                // A session that goes on would answer a peer that counts as gone.
                peer.session.handle_down();
            }
            peer.early = Early::default();
        }
    }
}

impl Peer {
    fn new(config: LinkConfig) -> Self {
        Self {
            session: Session::over_datagrams(config),
            met: None,
            claim: None,
            hello_at: Instant::ZERO,
            hello_wait: HELLO_WAIT_MIN,
            early: Early::default(),
            is_lost: false,
            is_drained: false,
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        packet: DatagramPacket<'_>,
        config: &LinkConfig,
    ) -> Result<(), LinkError> {
        let is_numbered = packet.is_numbered();
        let DatagramPacket { header, received, head, values } = packet;
        let session = &mut self.session;
        // The acknowledgement counts whatever becomes of the rest.
        session.handle_acknowledgement(now, header, received)?;
        if !is_numbered {
            return Ok(());
        }
        let (expects, bytes) = (session.expects(), head.len() + values.len());
        if header.seq < expects || !self.early.admits(header.seq, expects, bytes, config) {
            session.owe_now(now);
            return Ok(());
        }
        let mut content = Frame { head: head.to_vec(), ..Frame::default() };
        content.values.push_bytes(values);
        let Header { seq, kind, wants_ack, .. } = header;
        self.early.push(seq, EarlyPacket { kind, wants_ack, content });
        if self.early.has_gap() {
            session.owe_now(now);
        }
        Ok(())
    }

    /// Takes what came in order until a frame is whole. Returns false if none is.
    fn take_frame(&mut self, now: Instant, frame: &mut Frame) -> Result<bool, LinkError> {
        while let Some(packet) = self.early.pop(self.session.expects()) {
            let EarlyPacket { kind, wants_ack, mut content } = packet;
            let seq = self.session.expects();
            let header = Header { kind, seq, ack: Seq::default(), wants_ack };
            if self.session.handle_packet(now, header, &mut content, frame)? == Arrival::Deliver {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the next datagram to `out`. Returns false if nothing is due.
    fn write(
        &mut self,
        now: Instant,
        life: NonZeroU32,
        config: &LinkConfig,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(met) = self.met else {
            let is_due = !self.is_lost && self.hello_at <= now;
            if is_due {
                datagram::write_hello(out, life, self.claim);
                self.hello_at = now + self.hello_wait;
                self.hello_wait = (2 * self.hello_wait).min(config.heartbeat.max(HELLO_WAIT_MIN));
            }
            return is_due;
        };
        let Some((header, content)) = self.session.poll_packet(now) else { return false };
        let received = self.early.received(header.ack);
        datagram::write_packet(out, (life, met), header, received, content.as_ref());
        true
    }

    fn deadline(&self) -> Option<Instant> {
        if self.is_lost && !self.session.has_left() {
            return None;
        }
        match (self.met, self.early.has_next(&self.session)) {
            (None, _) => Some(self.hello_at),
            (Some(_), false) => self.session.deadline(),
            (Some(_), true) => self.session.write_deadline(),
        }
    }
}

impl Early {
    /// Returns true if a packet is new and within the bounds. The one that the session `expects`
    /// always is: otherwise nothing behind it could be delivered.
    fn admits(&self, seq: Seq, expects: Seq, bytes: usize, config: &LinkConfig) -> bool {
        let is_near = seq.0.saturating_sub(self.missing.0) <= config.window_packets as u64;
        let has_room =
            self.packets.len() < config.window_packets && self.bytes + bytes <= config.window_bytes;
        let is_new = seq >= self.missing && !self.packets.contains_key(&seq);
        is_new && (seq == expects || (is_near && has_room))
    }

    fn push(&mut self, seq: Seq, packet: EarlyPacket) {
        self.bytes += packet.content.len();
        self.packets.insert(seq, packet);
        while self.packets.contains_key(&self.missing) {
            self.missing = self.missing.next();
        }
    }

    fn pop(&mut self, seq: Seq) -> Option<EarlyPacket> {
        let packet = self.packets.remove(&seq)?;
        self.bytes -= packet.content.len();
        Some(packet)
    }

    fn has_next(&self, session: &Session) -> bool {
        self.packets.contains_key(&session.expects())
    }

    /// Returns true if packets came behind one that is missing.
    fn has_gap(&self) -> bool {
        self.packets.range(self.missing..).next().is_some()
    }

    /// Returns the packets that are here behind those that `ack` acknowledges.
    fn received(&self, ack: Seq) -> Selective {
        Selective::new(ack, self.packets.range(ack..).map(|(seq, _)| *seq))
    }
}

/// Least bytes of a frame in a datagram: a goodbye fits.
const PACKET_BYTES_MIN: usize = 16;
/// First wait between two hellos; the longest is a heartbeat.
const HELLO_WAIT_MIN: Duration = Duration::from_millis(10);
/// Longest wait for peers after a failure.
const FAILED_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for peers that were never met.
const STRANGER_WAIT: Duration = Duration::from_secs(1);
/// Silence after which peers that have ended are taken to know that they were heard.
const LINGER_TIME: Duration = Duration::from_millis(100);
