//! Handshakes: who may have the link, and what becomes of those who may not.

use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::PACKET_BYTES_MAX;
use adapm_core::transport::Loss;

use super::Net;
use crate::net::clock::later;
use crate::net::connection::{Role, Slot};
use crate::net::error::Trouble;
use crate::net::hello::{Ending, Message, Met, Refusal, Step};
use crate::net::packet::Greeting;
use crate::net::peer::Recognized;

impl Net {
    /// A message of a handshake has come.
    pub(super) fn greet(&mut self, slot: Slot, greeting: Greeting, bytes: &[u8]) {
        let now = self.clock.now();
        let Some(connection) = self.connections.at(slot) else { return };
        let rtt = Duration::from_nanos(now.nanos_since(connection.asked));
        let (step, dialed) = match &mut connection.role {
            Role::Dialing(node, exchange) => (exchange.handle(greeting, bytes), Some(*node)),
            Role::Listening(exchange) => (exchange.handle(greeting, bytes, &mut self.recordings), None),
            Role::Attached(_) | Role::Closing => return,
        };
        match (step, dialed) {
            (Ok(Step::Open { last, channel, first }), _) => {
                last.into_iter().for_each(|message| self.say(slot, message));
                if let Some(connection) = self.connections.at(slot) {
                    connection.channel = channel;
                }
                first.into_iter().for_each(|message| self.say(slot, message));
            }
            (Ok(Step::Met(met)), Some(_)) => self.meet_dialed(slot, met, rtt),
            (Ok(Step::Met(met)), None) => self.meet_caller(slot, met, rtt),
            (Err(Ending::Ours { refusal, is_sure }), _) => self.refuse(slot, refusal, is_sure),
            (Err(Ending::Theirs { refusal, is_sure }), Some(node)) => {
                self.remove(slot);
                self.handle_refused(node, refusal, is_sure);
            }
            (Err(Ending::Theirs { refusal, .. }), None) => self.give_up(slot, Trouble::Refused(refusal)),
        }
    }

    /// Sends a message of a handshake.
    pub(super) fn say(&mut self, slot: Slot, message: Message) {
        let now = self.clock.now();
        let Some(connection) = self.connections.at(slot) else { return };
        connection.asked = now;
        connection.pipe.push(connection.channel.protect(message.into_draft()));
        if connection.pipe.flush() {
            self.mark_ready(slot);
        }
    }

    /// Ends a handshake for a reason of this node's, tells the other side and whoever uses this one; `is_sure`: a node of the
    /// cluster is to blame, and not somebody on the way.
    pub(super) fn refuse(&mut self, slot: Slot, refusal: Refusal, is_sure: bool) {
        self.end(slot, Message::refuse(refusal), refusal, is_sure);
    }

    /// Ends a handshake with `message`, which says why.
    fn end(&mut self, slot: Slot, message: Message, refusal: Refusal, is_sure: bool) {
        let now = self.clock.now();
        self.say(slot, message);
        let Some(connection) = self.connections.at(slot) else { return };
        let remote = connection.remote;
        connection.pipe.shutdown();
        connection.deadline = Some(later(now, CLOSING_TIME));
        match core::mem::replace(&mut connection.role, Role::Closing) {
            Role::Dialing(node, _) => {
                self.peers[node.index()].dialing = None;
                self.handle_refused(node, refusal, is_sure);
            }
            Role::Attached(node) => {
                // Not a handshake any more: the peer should know better.
                self.remove(slot);
                self.count_fault(node);
            }
            Role::Listening(_) => self.notices.push(remote, Trouble::Refused(refusal)),
            Role::Closing => {}
        }
    }

    /// The peer that was dialed has said who it is.
    fn meet_dialed(&mut self, slot: Slot, met: Met, rtt: Duration) {
        let peer = &mut self.peers[met.node.index()];
        match peer.recognize(&met) {
            Recognized::Unmet | Recognized::Same => {
                peer.dialing = None;
                self.attach(slot, met, rtt);
            }
            Recognized::Restarted => {
                peer.dialing = None;
                self.remove(slot);
                self.lose(met.node, Loss::Restarted);
            }
            Recognized::Other => {
                let refusal = Refusal::NodeTaken { node: met.node, address: None };
                self.notices.push(peer.socket(), Trouble::Refused(refusal));
                // The node that was met may be alive: it is dialed until it is dead.
                self.refuse(slot, refusal, false);
            }
        }
    }

    /// Somebody who has dialed has said to be a node of this cluster.
    fn meet_caller(&mut self, slot: Slot, met: Met, rtt: Duration) {
        let peer = &self.peers[met.node.index()];
        let taken = Refusal::NodeTaken { node: met.node, address: peer.remote };
        let is_up = peer.pipe.is_some() && !peer.session.is_suspect();
        match peer.recognize(&met) {
            // Nobody takes the place of one that is lost, either.
            Recognized::Other if peer.is_lost => return self.turn_away(slot, &met, Refusal::Restarted),
            Recognized::Other => return self.turn_away(slot, &met, taken),
            Recognized::Restarted if is_up => return self.turn_away(slot, &met, taken),
            Recognized::Restarted => {
                self.turn_away(slot, &met, Refusal::Restarted);
                return self.lose(met.node, Loss::Restarted);
            }
            Recognized::Unmet | Recognized::Same => {}
        }
        if met.knows.is_some_and(|known| known != self.own.incarnation) {
            return self.turn_away(slot, &met, Refusal::Restarted);
        }
        if peer.is_lost && !peer.session.has_left() {
            return self.turn_away(slot, &met, Refusal::GivenUp);
        }
        // The old pipe goes first: what it still holds would move the point that the peer is told to go on from.
        self.break_pipe(met.node);
        let peer = &self.peers[met.node.index()];
        let Some(connection) = self.connections.get(slot) else { return };
        let Role::Listening(exchange) = &connection.role else { return };
        let welcome = exchange.accept(peer.session.expects(), peer.common_link(&met));
        self.peers[met.node.index()].remote = connection.remote;
        self.say(slot, welcome);
        self.attach(slot, met, rtt);
    }

    /// Refuses somebody who has said who it is.
    fn turn_away(&mut self, slot: Slot, met: &Met, refusal: Refusal) {
        let Some(connection) = self.connections.get(slot) else { return };
        let Role::Listening(exchange) = &connection.role else { return };
        let message = exchange.refuse(refusal, self.peers[met.node.index()].common_link(met));
        self.end(slot, message, refusal, true);
    }

    /// The link goes on on this pipe.
    fn attach(&mut self, slot: Slot, met: Met, rtt: Duration) {
        let now = self.clock.now();
        let peer = &mut self.peers[met.node.index()];
        let Some(connection) = self.connections.at(slot) else { return };
        connection.role = Role::Attached(met.node);
        connection.deadline = None;
        connection.pipe.raise_limit(PACKET_BYTES_MAX);
        // A handshake is no sign of life: pipes can come up forever over a way on which nothing else passes.
        connection.bytes_noted = connection.pipe.bytes_in();
        peer.pipe = Some(slot);
        if let Err(error) = peer.session.handle_up(now, met.expects) {
            if error.blames_peer() {
                return self.lose(met.node, Loss::Misbehaved);
            }
            // Given up meanwhile: its loss is told, this pipe is of no use.
            return self.break_pipe(met.node);
        }
        if peer.note_met(&met) {
            peer.resumed += 1;
            self.stats.resumes += 1;
        }
        self.stats.greetings += 1;
        peer.rtt = Some(rtt);
        peer.trouble = None;
        peer.forget_backoff();
        self.tend(met.node);
        self.pump(met.node);
    }

    /// One of both has refused the other, which this node had dialed. What is not sure is no more than a reason to try again:
    /// whoever can change what is on the way must not end a run by a word.
    fn handle_refused(&mut self, node: NodeId, refusal: Refusal, is_sure: bool) {
        self.put_off(node, Trouble::Refused(refusal));
        let peer = &mut self.peers[node.index()];
        let was_met = peer.incarnation.is_some();
        let is_of_peer = matches!(refusal, Refusal::Restarted | Refusal::NodeTaken { .. });
        if !is_sure {
            return;
        }
        if peer.is_lost || peer.session.has_left() {
            // Somebody else listens where a peer was that has ended.
            peer.dial_at = None;
        } else if refusal == Refusal::Restarted && was_met {
            self.lose(node, Loss::Restarted);
        } else if refusal == Refusal::GivenUp && was_met {
            self.lose(node, Loss::GaveUp);
        } else if refusal.is_final() && (is_of_peer || !was_met) {
            // Of a peer that was met before, only itself can say that it is over: else it is dialed on, until it is dead.
            peer.dial_at = None;
            self.fail(node, refusal);
        }
    }
}

/// How long a refused peer may take to read why.
const CLOSING_TIME: Duration = Duration::from_secs(1);
