//! Packets of links, what sessions tell, and losses.

use adapm_core::NodeId;
use adapm_core::link::{self, Arrival, Event};
use adapm_core::transport::{Farewell, Frame, Loss};

use super::Net;
use crate::net::connection::{Role, Slot};
use crate::net::error::{NetError, Trouble};
use crate::net::hello::Refusal;
use crate::net::packet::{Draft, Fault, Kind, Packet};
use crate::net::pipe::Pipe;
use crate::net::status::NetStats;

impl Net {
    /// The next frame of a pipe that may have one, pipe by pipe.
    pub(super) fn next_frame(&mut self, frame: &mut Frame) -> Option<NodeId> {
        for _ in 0..PACKETS_PER_TURN {
            let slot = self.ready.pop_front()?;
            let Some(connection) = self.connections.at(slot) else { continue };
            connection.is_ready = false;
            let read = connection.pipe.read(&mut self.spares);
            match read.and_then(|packet| packet.map(|packet| connection.channel.believe(packet)).transpose())
            {
                Ok(None) => {}
                Ok(Some(packet)) => {
                    self.mark_ready(slot);
                    if let Some(node) = self.handle_packet(slot, packet, frame) {
                        return Some(node);
                    }
                }
                Err(fault) => self.give_up(slot, Trouble::Fault(fault)),
            }
        }
        None
    }

    /// Writes what the session with `node` has for the pipe, as far as that takes it.
    pub(super) fn pump(&mut self, node: NodeId) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        let Some(slot) = peer.pipe else { return };
        let Some(connection) = self.connections.at(slot) else { return };
        loop {
            while connection.pipe.has_room()
                && let Some((header, content)) = peer.session.poll_packet(now)
            {
                let packet = connection.channel.protect(Draft::link(header, content));
                self.stats.count_sent(header.kind, packet.len());
                connection.pipe.push(packet);
            }
            if connection.pipe.flush() {
                // What has come is read first; then the reader finds the fault.
                return self.mark_ready(slot);
            }
            if !peer.session.wants_to_write() || !connection.pipe.is_flushed() {
                return;
            }
        }
    }

    /// Hears what the session with `node` tells.
    pub(super) fn tend(&mut self, node: NodeId) {
        while let Some(event) = self.peers[node.index()].session.poll_event() {
            match event {
                // A new pipe helps if this one is stuck, on either side.
                Event::Suspect => self.break_pipe(node),
                Event::Recovered => {}
                Event::Stuck(stall) => {
                    let remote = self.peers[node.index()].socket();
                    self.notices.push(remote, Trouble::Stuck(node, stall));
                }
                Event::Dead(loss) => match self.own_trouble(node) {
                    // Nobody else is to blame for the silence.
                    Some(error) => self.failures.push_back(error),
                    None => self.lose(node, loss),
                },
                Event::Left(Farewell::Finished) => {}
                Event::Left(Farewell::Failed) => self.convict(node, Loss::Failed),
                Event::Left(Farewell::Lost(other)) => {
                    let is_third = other.index() < self.peers.len() && other != node;
                    if other == self.own.node {
                        self.convict(node, Loss::GaveUp);
                    } else if is_third {
                        self.lose(other, Loss::Reported(node));
                    }
                    self.convict(node, Loss::Failed);
                }
                Event::Room => self.has_room = true,
                Event::Drained => self.peers[node.index()].is_drained = true,
            }
        }
    }

    /// That node will not be heard of again: tells of it and hangs up.
    pub(super) fn lose(&mut self, node: NodeId, loss: Loss) {
        self.convict(node, loss);
        self.hang_up(node);
    }

    /// Tells that a node is lost, once.
    fn convict(&mut self, node: NodeId, loss: Loss) {
        let peer = &mut self.peers[node.index()];
        if !peer.is_lost && (!peer.session.has_left() || matches!(loss, Loss::Failed | Loss::GaveUp)) {
            peer.is_lost = true;
            self.verdicts.push_back((node, loss));
        }
    }

    /// The attempt to work with that node has failed for good.
    pub(super) fn fail(&mut self, node: NodeId, refusal: Refusal) {
        let address = self.peers[node.index()].address.clone();
        if self.failures.len() < self.peers.len() {
            self.failures.push_back(NetError::Refused { node, address, refusal });
        }
    }

    /// Drops all pipes to `node` and dials no more.
    fn hang_up(&mut self, node: NodeId) {
        let peer = &mut self.peers[node.index()];
        peer.session.handle_down();
        peer.dial_at = None;
        for slot in [peer.pipe.take(), peer.dialing.take()].into_iter().flatten() {
            self.remove(slot);
        }
    }

    /// Drops the pipe in use, and dials again if that is this node's part.
    pub(super) fn break_pipe(&mut self, node: NodeId) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        peer.session.handle_down();
        let slot = peer.pipe.take();
        peer.dial_now(now);
        if let Some(slot) = slot {
            self.remove(slot);
        }
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(connection) = self.connections.remove(slot) {
            self.stats.count_pipe(&connection.pipe);
        }
    }

    fn handle_packet(&mut self, slot: Slot, packet: Packet, frame: &mut Frame) -> Option<NodeId> {
        let role = &self.connections.get(slot)?.role;
        match (role, packet.kind) {
            (Role::Closing, _) => None,
            (Role::Attached(node), Kind::Link(kind)) => self.serve(*node, kind, packet, frame),
            (Role::Dialing(..) | Role::Listening(_), Kind::Greeting(greeting)) => {
                self.greet(slot, greeting, &packet.frame.head);
                None
            }
            _ => {
                self.refuse(slot, Refusal::Malformed, self.token.is_none());
                None
            }
        }
    }

    /// Hands a packet of a link to its session; returns the node if it is a frame for the user.
    fn serve(
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
        self.spares.keep(packet.frame);
        self.tend(node);
        let session = &self.peers[node.index()].session;
        if session.wants_to_write() || session.deadline().is_some_and(|due| due <= now) {
            self.pump(node);
        }
        delivered.then_some(node)
    }

    /// What the pipe in use has brought was not sealed by the peer: whoever did that is on the way, and the peer is not to blame.
    fn break_spoiled(&mut self, node: NodeId) {
        self.break_pipe(node);
        let now = self.clock.now();
        // It may do so as often as there are pipes.
        self.peers[node.index()].dial_later(now);
    }

    /// The pipe in use has brought what it should not: a new one may help, but not forever.
    pub(super) fn count_fault(&mut self, node: NodeId) {
        let peer = &mut self.peers[node.index()];
        peer.faults += 1;
        if peer.faults >= FAULTS_MAX {
            self.lose(node, Loss::Misbehaved);
        } else {
            self.break_pipe(node);
        }
    }

    /// A connection has come to nothing, whatever it was for.
    pub(super) fn give_up(&mut self, slot: Slot, trouble: Trouble) {
        let Some(connection) = self.connections.get(slot) else { return };
        let remote = connection.remote;
        match (&connection.role, trouble) {
            (Role::Attached(node), _) => {
                let node = *node;
                let peer = &mut self.peers[node.index()];
                peer.trouble = Some(trouble);
                if trouble == Trouble::Fault(Fault::Ended) && peer.session.has_left() {
                    peer.part();
                }
                match trouble {
                    Trouble::Fault(Fault::Ended | Fault::EndedWithin | Fault::Io(_)) => self.break_pipe(node),
                    _ if connection.channel.is_sealed() => self.break_spoiled(node),
                    _ => self.count_fault(node),
                }
            }
            (Role::Dialing(..), Trouble::Fault(Fault::Version { theirs })) => {
                self.refuse(slot, version(theirs), self.token.is_none());
            }
            (Role::Dialing(node, _), _) => {
                let node = *node;
                self.remove(slot);
                self.put_off(node, trouble);
            }
            (Role::Listening(_), Trouble::Fault(Fault::Version { theirs })) => {
                self.refuse(slot, version(theirs), self.token.is_none());
            }
            (Role::Listening(_), _) => {
                // Whoever only looks whether somebody listens is not worth a word.
                if trouble != Trouble::Fault(Fault::Ended) {
                    self.notices.push(remote, trouble);
                }
                self.remove(slot);
            }
            (Role::Closing, _) => self.remove(slot),
        }
    }

    /// Dialing has come to nothing: tries again later.
    pub(super) fn put_off(&mut self, node: NodeId, trouble: Trouble) {
        let now = self.clock.now();
        let peer = &mut self.peers[node.index()];
        peer.dialing = None;
        peer.trouble = Some(trouble);
        peer.turn_addresses();
        peer.dial_later(now);
    }
}

impl NetStats {
    fn count_sent(&mut self, kind: link::Kind, bytes: usize) {
        self.packets_sent += 1;
        self.bytes_sent += bytes as u64;
        match kind {
            link::Kind::Data => self.frames_sent += 1,
            link::Kind::Heartbeat => self.heartbeats_sent += 1,
            link::Kind::Ack => self.acks_sent += 1,
            link::Kind::Part | link::Kind::Bye => {}
        }
    }

    /// Adds what a pipe has done.
    pub(super) fn count_pipe(&mut self, pipe: &Pipe) {
        let (reads, writes) = pipe.calls();
        self.bytes_received += pipe.bytes_in();
        self.reads += reads;
        self.writes += writes;
    }
}

fn version(theirs: u8) -> Refusal {
    Refusal::Version { ours: crate::net::packet::PROTOCOL_VERSION, theirs }
}

/// Packets without a frame after which others get their turn.
const PACKETS_PER_TURN: usize = 64;
/// Faults in a row after which the peer is to blame and not the pipe.
const FAULTS_MAX: u32 = 8;
