//! Handshakes: the decision on who may have the link, refusals, dialing, and admission of incoming
//! connections.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;

use adapm_core::NodeId;
use adapm_core::transport::Loss;

use super::door::random;
use super::links::Links;
use crate::net::config::NetConfig;
use crate::net::connection::{Role, Slot};
use crate::net::error::{LinkFault, NetError};
use crate::net::hello::{
    Dialing, Ending, HandshakeError, Identity, Incarnation, Listening, Message, Met, Step, Token,
};
use crate::net::noise::Recordings;
use crate::net::packet::{Fault, Greeting, PROTOCOL_VERSION};
use crate::net::peer::Recognized;
use crate::net::pipe::Pipe;

/// This node's side of handshakes.
#[derive(Debug)]
pub(super) struct Handshakes {
    own: Identity,
    token: Option<Token>,
    recordings: Recordings,
    greeting_time: Duration,
}

impl Handshakes {
    pub(super) fn new(config: &NetConfig, incarnation: Incarnation) -> Self {
        let own = Identity {
            cluster: config.cluster,
            node: config.node,
            nodes: config.nodes as u32,
            channel: config.channel,
            layout_digest: config.layout_digest,
            incarnation,
        };
        Self {
            own,
            token: config.token.clone(),
            recordings: Recordings::default(),
            greeting_time: config.greeting_time,
        }
    }

    /// Admits an incoming connection. If there are too many unidentified ones, the oldest is
    /// closed: a node that belongs here needs one round trip to identify itself, and keeps the
    /// place until 64 others have come.
    pub(super) fn admit(&mut self, links: &mut Links, pipe: Pipe, remote: Option<SocketAddr>) {
        if let Some(oldest) = links.pipes().surplus_stranger() {
            self.give_up(links, oldest, LinkFault::Crowded);
        }
        // Without random bytes no peer can be trusted.
        let Ok(entropy) = random() else { return };
        let exchange = Listening::new(self.own, self.token.clone(), entropy);
        let now = links.now();
        let deadline = now + self.greeting_time;
        links.pipes_mut().insert(pipe, Role::Listening(Box::new(exchange)), remote, now, deadline);
    }

    /// Dials `node`.
    pub(super) fn dial(&mut self, links: &mut Links, node: NodeId) {
        let now = links.now();
        let peer = links.peer_mut(node);
        peer.dial_at = None;
        let (Some(address), None, None) = (peer.address.clone(), peer.pipe, peer.dialing) else {
            return;
        };
        let (pipe, entropy) = match (links.pipes_mut().dial(&address), random()) {
            (Ok(pipe), Ok(entropy)) => (pipe, entropy),
            (Err(Fault::Io(error)), _) if error.kind() == io::ErrorKind::Unsupported => {
                return links.reports_mut().fail(NetError::KindMissing { kind: address.kind() });
            }
            (Err(fault), _) => return links.redial_later(node, LinkFault::Fault(fault)),
            (_, Err(_)) => return links.redial_later(node, out_of_order()),
        };
        let peer = links.peer(node);
        let (knows, link, expects) = (peer.incarnation, peer.link.clone(), peer.session.expects());
        let (exchange, message) =
            Dialing::new(self.own, self.token.as_ref(), (node, knows, link), expects, entropy);
        // A way that swallows everything may recover long before the system's own next retry.
        let redial_time = self.greeting_time.min(links.config().suspect_after.max(REDIAL_TIME_MIN));
        let deadline = now + (if knows.is_some() { redial_time } else { self.greeting_time });
        let role = Role::Dialing(node, Box::new(exchange));
        match links.pipes_mut().insert(pipe, role, address.socket(), now, deadline) {
            Some(slot) => {
                links.peer_mut(node).dialing = Some(slot);
                say(links, slot, message);
            }
            None => links.redial_later(node, out_of_order()),
        }
    }

    /// Handles a message of a handshake.
    pub(super) fn greet(
        &mut self,
        links: &mut Links,
        slot: Slot,
        greeting: Greeting,
        bytes: &[u8],
    ) {
        let now = links.now();
        let Some(connection) = links.pipes_mut().at(slot) else { return };
        let rtt = Duration::from_nanos(now.nanos_since(connection.asked));
        let (step, dialed) = match &mut connection.role {
            Role::Dialing(node, exchange) => (exchange.handle(greeting, bytes), Some(*node)),
            Role::Listening(exchange) => {
                (exchange.handle(greeting, bytes, &mut self.recordings), None)
            }
            Role::Attached(_) | Role::Closing => return,
        };
        match (step, dialed) {
            (Ok(Step::Open { last, channel, first }), _) => {
                last.into_iter().for_each(|message| say(links, slot, message));
                if let Some(connection) = links.pipes_mut().at(slot) {
                    connection.channel = channel;
                }
                first.into_iter().for_each(|message| say(links, slot, message));
            }
            (Ok(Step::Met(met)), Some(_)) => self.meet_dialed(links, slot, &met, rtt),
            (Ok(Step::Met(met)), None) => self.meet_caller(links, slot, &met, rtt),
            (Err(Ending::Ours { refusal, is_sure }), _) => refuse(links, slot, refusal, is_sure),
            (Err(Ending::Theirs { refusal, is_sure }), Some(node)) => {
                links.pipes_mut().remove(slot);
                handle_refused(links, node, refusal, is_sure);
            }
            (Err(Ending::Theirs { refusal, .. }), None) => {
                self.give_up(links, slot, LinkFault::Refused(refusal));
            }
        }
    }

    /// Handles a packet that is invalid at this stage of the handshake.
    pub(super) fn refuse_malformed(&mut self, links: &mut Links, slot: Slot) {
        refuse(links, slot, HandshakeError::Malformed, self.token.is_none());
    }

    /// Gives up a connection of any role.
    pub(super) fn give_up(&mut self, links: &mut Links, slot: Slot, fault: LinkFault) {
        let Some(connection) = links.pipes().get(slot) else { return };
        let remote = connection.remote;
        match (&connection.role, fault) {
            (Role::Attached(node), _) => {
                let (node, is_sealed) = (*node, connection.channel.is_sealed());
                links.give_up_pipe(node, fault, is_sealed);
            }
            (
                Role::Dialing(..) | Role::Listening(_),
                LinkFault::Fault(Fault::Version { theirs }),
            ) => {
                let refusal = HandshakeError::Version { ours: PROTOCOL_VERSION, theirs };
                refuse(links, slot, refusal, self.token.is_none());
            }
            (Role::Dialing(node, _), _) => {
                let node = *node;
                links.pipes_mut().remove(slot);
                links.redial_later(node, fault);
            }
            (Role::Listening(_), _) => {
                // A mere probe for a listener is not worth a notice.
                if fault != LinkFault::Fault(Fault::Ended) {
                    links.notice(remote, fault);
                }
                links.pipes_mut().remove(slot);
            }
            (Role::Closing, _) => links.pipes_mut().remove(slot),
        }
    }

    pub(super) fn own(&self) -> &Identity {
        &self.own
    }

    /// Meets the dialed peer, which has identified itself.
    fn meet_dialed(&mut self, links: &mut Links, slot: Slot, met: &Met, rtt: Duration) {
        let peer = links.peer_mut(met.node);
        match peer.recognize(met) {
            Recognized::Unmet | Recognized::Same => {
                peer.dialing = None;
                links.attach(slot, met, rtt);
            }
            Recognized::Restarted => {
                peer.dialing = None;
                links.pipes_mut().remove(slot);
                links.lose(met.node, Loss::Restarted);
            }
            Recognized::Other => {
                let refusal = HandshakeError::NodeTaken { node: met.node, address: None };
                let remote = peer.socket();
                links.notice(remote, LinkFault::Refused(refusal));
                // The node that was met may be alive: it is dialed until it is dead.
                refuse(links, slot, refusal, false);
            }
        }
    }

    /// Meets an incoming peer, which has identified itself as a node of this cluster.
    fn meet_caller(&mut self, links: &mut Links, slot: Slot, met: &Met, rtt: Duration) {
        let peer = links.peer(met.node);
        let taken = HandshakeError::NodeTaken { node: met.node, address: peer.remote };
        let is_up = peer.pipe.is_some() && !peer.session.is_suspect();
        match peer.recognize(met) {
            // The place of a lost node is not free, either.
            Recognized::Other if peer.is_lost => {
                return turn_away(links, slot, met, HandshakeError::Restarted);
            }
            Recognized::Other => return turn_away(links, slot, met, taken),
            Recognized::Restarted if is_up => return turn_away(links, slot, met, taken),
            Recognized::Restarted => {
                turn_away(links, slot, met, HandshakeError::Restarted);
                return links.lose(met.node, Loss::Restarted);
            }
            Recognized::Unmet | Recognized::Same => {}
        }
        if met.knows.is_some_and(|known| known != self.own.incarnation) {
            return turn_away(links, slot, met, HandshakeError::Restarted);
        }
        if peer.is_lost && !peer.session.has_left() {
            return turn_away(links, slot, met, HandshakeError::GivenUp);
        }
        // The old pipe is closed first: its unread packets would move the position that the peer is
        // told to go on from.
        links.break_pipe(met.node);
        let peer = links.peer(met.node);
        let Some(connection) = links.pipes().get(slot) else { return };
        let Role::Listening(exchange) = &connection.role else { return };
        let welcome = exchange.accept(peer.session.expects(), peer.common_link(met));
        links.peer_mut(met.node).remote = connection.remote;
        say(links, slot, welcome);
        links.attach(slot, met, rtt);
    }
}

/// Refuses a peer that has identified itself.
fn turn_away(links: &mut Links, slot: Slot, met: &Met, refusal: HandshakeError) {
    let Some(connection) = links.pipes().get(slot) else { return };
    let Role::Listening(exchange) = &connection.role else { return };
    let message = exchange.refuse(refusal, links.peer(met.node).common_link(met));
    end(links, slot, message, refusal, true);
}

/// Ends a handshake for a reason of this node's, and tells the other side and the user of this one;
/// `is_sure`: a node of the cluster is to blame, and not an attacker on the way.
fn refuse(links: &mut Links, slot: Slot, refusal: HandshakeError, is_sure: bool) {
    end(links, slot, Message::refuse(refusal), refusal, is_sure);
}

/// Ends a handshake with `message`, which carries the reason.
fn end(links: &mut Links, slot: Slot, message: Message, refusal: HandshakeError, is_sure: bool) {
    let now = links.now();
    say(links, slot, message);
    let Some(connection) = links.pipes_mut().at(slot) else { return };
    let remote = connection.remote;
    connection.pipe.shutdown();
    connection.deadline = Some(now + CLOSING_TIME);
    match core::mem::replace(&mut connection.role, Role::Closing) {
        Role::Dialing(node, _) => {
            links.peer_mut(node).dialing = None;
            handle_refused(links, node, refusal, is_sure);
        }
        Role::Attached(node) => {
            // Not a handshake any more: the peer should know better.
            links.pipes_mut().remove(slot);
            links.count_fault(node);
        }
        Role::Listening(_) => links.notice(remote, LinkFault::Refused(refusal)),
        Role::Closing => {}
    }
}

/// Handles the refusal of a dialed connection by either side. An unsure one is only a reason to try
/// again: an attacker on the way must not be able to end a run.
fn handle_refused(links: &mut Links, node: NodeId, refusal: HandshakeError, is_sure: bool) {
    links.redial_later(node, LinkFault::Refused(refusal));
    let peer = links.peer_mut(node);
    let was_met = peer.incarnation.is_some();
    let is_of_peer =
        matches!(refusal, HandshakeError::Restarted | HandshakeError::NodeTaken { .. });
    if !is_sure {
        return;
    }
    if peer.is_lost || peer.session.has_left() {
        // Another process listens where a peer was that has ended.
        peer.dial_at = None;
    } else if refusal == HandshakeError::Restarted && was_met {
        links.lose(node, Loss::Restarted);
    } else if refusal == HandshakeError::GivenUp && was_met {
        links.lose(node, Loss::GaveUp);
    } else if refusal.is_final() && (is_of_peer || !was_met) {
        // Only the peer itself can end a link that it was met on: otherwise it is dialed until it
        // is dead.
        peer.dial_at = None;
        links.fail(node, refusal);
    }
}

/// Sends a message of a handshake.
fn say(links: &mut Links, slot: Slot, message: Message) {
    let now = links.now();
    let Some(connection) = links.pipes_mut().at(slot) else { return };
    connection.asked = now;
    connection.pipe.push(connection.channel.protect(message.into_draft()));
    if connection.pipe.flush() {
        links.pipes_mut().mark_ready(slot);
    }
}

/// Returns the fault of a system that lacks resources for a handshake.
fn out_of_order() -> LinkFault {
    LinkFault::Fault(Fault::Io(io::ErrorKind::Other.into()))
}

/// Time for a refused peer to read the reason.
const CLOSING_TIME: Duration = Duration::from_secs(1);
/// Minimum time for a handshake with a peer that was met before.
const REDIAL_TIME_MIN: Duration = Duration::from_secs(1);
