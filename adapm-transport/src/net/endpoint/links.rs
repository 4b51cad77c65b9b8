//! The links of an endpoint: passes packets between pipes and sessions, carries out the sessions'
//! events, replaces pipes, and reports losses.
//!
//! Not here: handshakes ([`super::handshakes`]); acknowledgement, retransmission and failure
//! detection ([`adapm_core::link`]).

use core::net::SocketAddr;
use core::time::Duration;

use adapm_core::link::{
    self, Arrival, Event, LinkConfig, PACKET_BYTES_MAX, Reports, SendRefusal, losses_of,
};
use adapm_core::transport::{CloseReason, Frame, Loss, SendError, Way};
use adapm_core::{Instant, NodeId};

use super::pipes::Pipes;
use crate::net::address::Address;
use crate::net::clock::AwakeTime;
use crate::net::connection::{Role, Slot};
use crate::net::error::{LinkFault, NetError, NetNotice, Notices};
use crate::net::hello::{HandshakeError, Met};
use crate::net::packet::{Draft, Fault, Packet};
use crate::net::peer::{NetStats, Peer, PeerStatus};

/// The links of one node.
#[derive(Debug)]
pub(super) struct Links {
    own: NodeId,
    config: LinkConfig,
    clock: AwakeTime,
    /// By node id; the entry of this node itself is never used.
    peers: Vec<Peer>,
    pipes: Pipes,
    reports: Reports<NetError>,
    notices: Notices,
    stats: NetStats,
}

impl Links {
    /// Creates the links of node `own` in a cluster of `nodes`, before any handshake.
    pub(super) fn new(own: NodeId, nodes: u16, config: LinkConfig, pipes: Pipes) -> Self {
        Self {
            own,
            config,
            clock: AwakeTime::new(config.suspect_after),
            peers: (0..nodes).map(|id| Peer::new(NodeId(id), id < own.0, config)).collect(),
            pipes,
            reports: Reports::default(),
            notices: Notices::default(),
            stats: NetStats::default(),
        }
    }

    /// Sets the addresses at which a peer may listen.
    pub(super) fn connect(&mut self, node: NodeId, addresses: &[Address]) {
        let now = self.clock.advance();
        let own = self.own;
        let Some(peer) = self.peers.get_mut(node.index()).filter(|peer| peer.node != own) else {
            return;
        };
        if peer.learn_addresses(addresses) {
            peer.dial_now(now);
        }
    }

    /// Sends a frame for the user.
    pub(super) fn send(
        &mut self,
        to: NodeId,
        frame: &mut Frame,
    ) -> Result<(), SendError<NetError>> {
        let nodes = self.peers.len();
        let own = self.own;
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
            // One of the two has ended: the frame is dropped, as after a loss.
            Err(_) => return Ok(()),
        }
        // The first frame goes out at once; further ones are batched until the next `recv`, which
        // saves calls of the system.
        match &mut peer.batched {
            Some(batched) if *batched + bytes < BATCH_BYTES => *batched += bytes,
            _ => {
                peer.batched = Some(0);
                self.clock.advance();
                self.pump(to);
            }
        }
        Ok(())
    }

    /// Writes the batched frames. Returns the time.
    pub(super) fn flush_batches(&mut self) -> Instant {
        let now = self.clock.advance();
        for at in 0..self.peers.len() {
            if self.peers[at].batched.take().is_some_and(|bytes| bytes > 0) {
                self.pump(self.peers[at].node);
            }
        }
        now
    }

    /// Waits until there is news, a deadline has come, or `wait` is over. Returns the time.
    pub(super) fn wait(&mut self, wait: Option<Duration>) -> Result<Instant, NetError> {
        let wait = match (wait, self.until_due()) {
            (Some(wait), Some(due)) => Some(wait.min(due)),
            (wait, due) => wait.or(due),
        };
        let now = self.pipes.wait(wait, &mut self.clock)?;
        // Pipes that were blocked may take packets again.
        for at in 0..self.peers.len() {
            if self.peers[at].pipe.is_some() && self.peers[at].session.wants_to_write() {
                self.pump(self.peers[at].node);
            }
        }
        Ok(now)
    }

    /// Runs the due timers of the link with `node`. Returns true if the peer is to be dialed.
    pub(super) fn handle_due(&mut self, node: NodeId, now: Instant) -> bool {
        if node == self.own {
            return false;
        }
        let at = node.index();
        if !self.is_unread(node) && !self.peers[at].is_lost {
            self.note_progress(node, now);
            self.peers[at].session.handle_timeout(now);
            self.handle_events(node);
        }
        if self.peers[at].session.deadline().is_some_and(|due| due <= now) {
            self.pump(node);
        }
        self.peers[at].dial_at.is_some_and(|due| due <= now)
    }

    /// Hands a packet of the link with `node` to its session. Returns `node` if `frame` then holds
    /// a frame for the user.
    pub(super) fn handle_packet(
        &mut self,
        node: NodeId,
        kind: link::Kind,
        mut packet: Packet,
        frame: &mut Frame,
    ) -> Option<NodeId> {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        peer.note_heard();
        let Packet { seq, ack, wants_ack, .. } = packet;
        let header = link::Header { kind, seq, ack, wants_ack };
        let delivered = match peer.session.handle_packet(now, header, &mut packet.frame, frame) {
            Ok(Arrival::Deliver) => true,
            Ok(Arrival::Part) => {
                peer.faults = 0;
                false
            }
            Ok(Arrival::Duplicate) => {
                self.stats.duplicates += 1;
                false
            }
            Ok(Arrival::Control) => false,
            Err(error) if error.blames_peer() => {
                self.lose(node, Loss::Misbehaved);
                return None;
            }
            Err(_) => {
                self.count_fault(node);
                return None;
            }
        };
        if delivered {
            peer.faults = 0;
            self.stats.frames_received += 1;
        }
        self.pipes.spares().keep(packet.frame);
        self.handle_events(node);
        let session = &self.peers[node.index()].session;
        if session.wants_to_write() || session.deadline().is_some_and(|due| due <= now) {
            self.pump(node);
        }
        delivered.then_some(node)
    }

    /// Begins or resumes the link with the peer of handshake `met`, on the pipe in `slot`.
    pub(super) fn attach(&mut self, slot: Slot, met: &Met, rtt: Duration) {
        let now = self.clock.now();
        let peer = &mut self.peers[met.node.index()];
        let Some(connection) = self.pipes.at(slot) else { return };
        connection.role = Role::Attached(met.node);
        connection.deadline = None;
        connection.pipe.raise_limit(PACKET_BYTES_MAX);
        // The bytes of a handshake do not count as a sign of life: some networks let handshakes
        // pass forever, and nothing larger.
        connection.bytes_noted = connection.pipe.bytes_in();
        peer.pipe = Some(slot);
        if let Err(error) = peer.session.handle_up(now, met.expects) {
            if error.blames_peer() {
                return self.lose(met.node, Loss::Misbehaved);
            }
            // The session gave the peer up during the handshake, and has reported its loss.
            return self.break_pipe(met.node);
        }
        if peer.note_met(met) {
            peer.resumed += 1;
            self.stats.resumes += 1;
        }
        self.stats.greetings += 1;
        peer.rtt = Some(rtt);
        peer.fault = None;
        peer.forget_backoff();
        self.handle_events(met.node);
        self.pump(met.node);
    }

    /// Handles the failure of the pipe in use. If it `is_sealed`, packets that do not open come
    /// from an attacker on the way, else from the peer.
    pub(super) fn give_up_pipe(&mut self, node: NodeId, fault: LinkFault, is_sealed: bool) {
        let peer = &mut self.peers[node.index()];
        peer.fault = Some(fault);
        if fault == LinkFault::Fault(Fault::Ended) && peer.session.has_left() {
            peer.part();
        }
        match fault {
            LinkFault::Fault(Fault::Ended | Fault::EndedWithin | Fault::Io(_)) => {
                self.break_pipe(node)
            }
            _ if is_sealed => self.break_tampered_pipe(node),
            _ => self.count_fault(node),
        }
    }

    /// Gives a node up for good: reports its loss and closes its pipes.
    pub(super) fn lose(&mut self, node: NodeId, loss: Loss) {
        self.report_loss(node, loss);
        self.hang_up(node);
    }

    /// Handles a final refusal of that node.
    pub(super) fn fail(&mut self, node: NodeId, refusal: HandshakeError) {
        let address = self.peers[node.index()].address.clone();
        if self.reports.failures() < self.peers.len() {
            self.reports.fail(NetError::Refused { node, address, refusal });
        }
    }

    /// Drops the pipe in use, and dials again if this node is the one that dials.
    pub(super) fn break_pipe(&mut self, node: NodeId) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        peer.session.handle_down();
        let slot = peer.pipe.take();
        peer.dial_now(now);
        if let Some(slot) = slot {
            self.pipes.remove(slot);
        }
    }

    /// Counts a fault of the pipe in use and replaces it; after [`FAULTS_MAX`] in a row the peer is
    /// lost.
    pub(super) fn count_fault(&mut self, node: NodeId) {
        let peer = &mut self.peers[node.index()];
        peer.faults += 1;
        if peer.faults >= FAULTS_MAX {
            self.lose(node, Loss::Misbehaved);
        } else {
            self.break_pipe(node);
        }
    }

    /// Handles a failed dial: tries the next address later.
    pub(super) fn redial_later(&mut self, node: NodeId, fault: LinkFault) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        peer.dialing = None;
        peer.fault = Some(fault);
        peer.turn_addresses();
        peer.dial_later(now);
    }

    /// Sends a goodbye to all peers, after everything sent before.
    pub(super) fn say_goodbye(&mut self, reason: CloseReason) {
        self.clock.advance();
        for at in 0..self.peers.len() {
            let node = self.peers[at].node;
            if node != self.own {
                self.peers[at].session.close(reason);
                self.handle_events(node);
                self.pump(node);
            }
        }
    }

    pub(super) fn peer_mut(&mut self, node: NodeId) -> &mut Peer {
        &mut self.peers[node.index()]
    }

    pub(super) fn pipes_mut(&mut self) -> &mut Pipes {
        &mut self.pipes
    }

    /// Returns the pending reports, frames excepted, with a wake if the user was woken.
    pub(super) fn reports_mut(&mut self) -> &mut Reports<NetError> {
        if self.pipes.notifier().take_wake() {
            self.reports.wake();
        }
        &mut self.reports
    }

    /// Records a notice.
    pub(super) fn notice(&mut self, remote: Option<SocketAddr>, fault: LinkFault) {
        self.notices.push(remote, fault);
    }

    /// Returns the next notice.
    pub(super) fn poll_notice(&mut self) -> Option<NetNotice> {
        self.notices.pop()
    }

    /// Returns the peer with that id, which must be in range.
    pub(super) fn peer(&self, node: NodeId) -> &Peer {
        &self.peers[node.index()]
    }

    /// Returns all nodes, this one included.
    pub(super) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    pub(super) fn pipes(&self) -> &Pipes {
        &self.pipes
    }

    pub(super) fn reports(&self) -> &Reports<NetError> {
        &self.reports
    }

    /// Returns the time of the last wait or send.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn config(&self) -> &LinkConfig {
        &self.config
    }

    pub(super) fn way(&self, node: NodeId) -> Way {
        self.peers.get(node.index()).map_or(Way::default(), |peer| peer.session.way())
    }

    /// Returns the error of this node's operating system that keeps the link with `node` down, if
    /// there is one: then the peer is not to blame.
    pub(super) fn own_trouble(&self, node: NodeId) -> Option<NetError> {
        let peer = self.peers.get(node.index()).filter(|peer| peer.pipe.is_none())?;
        match (peer.is_dialed(), peer.fault) {
            (true, Some(LinkFault::Fault(Fault::Io(error)))) if error.is_file_limit() => {
                Some(NetError::System { error })
            }
            (true, _) => None,
            (false, _) => {
                let time = self.config.suspect_after.min(SHORTAGE_TIME);
                let error = self.pipes.shortage(time, self.clock.now())?;
                Some(NetError::Accept { error })
            }
        }
    }

    /// Returns the status of a peer, with an error of this node's own system in place of the
    /// peer's fault.
    pub(super) fn status_of(&self, peer: &Peer) -> PeerStatus {
        let own = self.own_trouble(peer.node).map(|error| error.to_string());
        let status = peer.status();
        PeerStatus { refused: own.or(status.refused), ..status }
    }

    /// Returns the traffic so far.
    pub(super) fn stats(&self) -> NetStats {
        let mut stats = self.stats;
        self.pipes.add_to(&mut stats);
        stats
    }

    /// Returns true if the goodbye has not reached every peer. Peers that were never met count only
    /// if `includes_unmet`.
    pub(super) fn owes_goodbye(&self, includes_unmet: bool) -> bool {
        self.peers.iter().any(|peer| {
            let counts = peer.incarnation.is_some() || includes_unmet;
            let is_own = peer.node == self.own;
            let is_unwritten =
                peer.session.has_left() && peer.pipe.is_some() && !self.is_written(peer.pipe);
            !is_own && counts && (is_unwritten || !(peer.is_drained || peer.is_lost))
        })
    }

    /// Returns true if a peer that has ended has not closed its side.
    pub(super) fn awaits_hang_up(&self) -> bool {
        // A peer that has not ended keeps its side open: only one that has ended will close it.
        self.peers.iter().any(|peer| {
            let pipe = peer.pipe.and_then(|slot| self.pipes.get(slot));
            peer.session.has_left()
                && pipe.is_some_and(|connection| matches!(connection.role, Role::Attached(_)))
        })
    }

    /// Writes packets of the session with `node`, as far as the pipe takes them.
    fn pump(&mut self, node: NodeId) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        let Some(slot) = peer.pipe else { return };
        let Some(connection) = self.pipes.at(slot) else { return };
        loop {
            while connection.pipe.has_room()
                && let Some((header, content)) = peer.session.poll_packet(now)
            {
                let packet = connection.channel.protect(Draft::link(header, content));
                self.stats.count_sent(header.kind, packet.len());
                connection.pipe.push(packet);
            }
            if connection.pipe.flush() {
                // Received bytes are read first; then the reader finds the fault.
                return self.pipes.mark_ready(slot);
            }
            if !peer.session.wants_to_write() || !connection.pipe.is_flushed() {
                return;
            }
        }
    }

    /// Handles the events of the session with `node`.
    fn handle_events(&mut self, node: NodeId) {
        while let Some(event) = self.peers[node.index()].session.poll_event() {
            match event {
                // A new pipe helps if this one is stuck, on either side.
                Event::Suspect | Event::Stalled => self.break_pipe(node),
                Event::Recovered => {}
                Event::Stuck(stall) => {
                    let remote = self.peers[node.index()].socket();
                    self.notices.push(remote, LinkFault::Stuck(node, stall));
                }
                Event::Dead(loss) => match self.own_trouble(node) {
                    // This node's own system is to blame for the silence, not the peer.
                    Some(error) => self.reports.fail(error),
                    None => self.lose(node, loss),
                },
                Event::Left(reason) => {
                    for (lost, loss) in losses_of(self.own, node, reason) {
                        if lost == node {
                            // Its pipe stays: it may still acknowledge this node's goodbye.
                            self.report_loss(node, loss);
                        } else if lost.index() < self.peers.len() {
                            self.lose(lost, loss);
                        }
                    }
                }
                Event::Room => self.reports.wake(),
                Event::Drained => self.peers[node.index()].is_drained = true,
            }
        }
    }

    /// Reports that a node is lost, once. After a goodbye only a failure that the goodbye itself
    /// announces is a loss.
    fn report_loss(&mut self, node: NodeId, loss: Loss) {
        let peer = &mut self.peers[node.index()];
        if !peer.is_lost
            && (!peer.session.has_left() || matches!(loss, Loss::Failed | Loss::GaveUp))
        {
            peer.is_lost = true;
            self.reports.lose(node, loss);
        }
    }

    /// Drops all pipes to `node` and stops dialing it.
    fn hang_up(&mut self, node: NodeId) {
        let peer = &mut self.peers[node.index()];
        peer.session.handle_down();
        peer.dial_at = None;
        for slot in [peer.pipe.take(), peer.dialing.take()].into_iter().flatten() {
            self.pipes.remove(slot);
        }
    }

    /// Handles bytes on the pipe in use that the peer has not sealed: an attacker on the way is to
    /// blame, not the peer.
    fn break_tampered_pipe(&mut self, node: NodeId) {
        self.break_pipe(node);
        let now = self.clock.now();
        // The attack can repeat with every pipe, so pipes are replaced at growing intervals.
        self.peers[node.index()].dial_later(now);
    }

    /// Counts received bytes as signs of life, even if they are less than a packet.
    ///
    /// A peer that sends less than the header of a packet claims is found out: its later packets
    /// fill the gap, and the checksum fails. That is soon, as packets are small.
    fn note_progress(&mut self, node: NodeId, now: Instant) {
        let peer = &mut self.peers[node.index()];
        if let Some(connection) = peer.pipe.and_then(|slot| self.pipes.at(slot)) {
            let bytes = connection.pipe.bytes_in();
            if bytes > connection.bytes_noted {
                connection.bytes_noted = bytes;
                peer.session.handle_bytes(now);
            }
        }
    }

    /// Returns the time until the next deadline; `None` if there is none.
    fn until_due(&self) -> Option<Duration> {
        let now = self.clock.now();
        let blocked_until = now + BLOCKED_WAIT;
        let links =
            self.peers.iter().filter(|peer| !peer.is_lost || peer.session.has_left()).filter_map(
                |peer| {
                    let due = peer.session.deadline()?;
                    let pipe = peer.pipe.and_then(|slot| self.pipes.get(slot));
                    // Due packets that cannot be written wait for the pipe: no busy loop.
                    let is_blocked = pipe.is_some_and(|connection| !connection.pipe.has_room());
                    Some(if is_blocked { due.max(blocked_until) } else { due })
                },
            );
        let dials = self.peers.iter().filter_map(|peer| peer.dial_at);
        let due = links.chain(dials).chain(self.pipes.due()).min()?;
        Some(Duration::from_nanos(due.nanos_since(now)))
    }

    /// Returns true if the pipe in use may hold packets of that node: the length of its silence is
    /// then unknown.
    fn is_unread(&self, node: NodeId) -> bool {
        let pipe = self.peers[node.index()].pipe.and_then(|slot| self.pipes.get(slot));
        pipe.is_some_and(|connection| connection.is_ready)
    }

    fn is_written(&self, slot: Option<Slot>) -> bool {
        let connection = slot.and_then(|slot| self.pipes.get(slot));
        connection.is_none_or(|connection| connection.pipe.is_flushed())
    }
}

/// Successive faults after which the peer is to blame and not the pipe.
const FAULTS_MAX: u32 = 8;
/// Time without accepting connections after which that is reported as the reason for a missing
/// link.
const SHORTAGE_TIME: Duration = Duration::from_secs(1);
/// Maximum bytes of batched frames per peer.
const BATCH_BYTES: usize = 64 << 10;
/// Wait for a blocked pipe before deadlines are checked again.
const BLOCKED_WAIT: Duration = Duration::from_millis(20);
