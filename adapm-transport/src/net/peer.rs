//! What an endpoint remembers of one peer, across all its pipes, and what it tells of itself and
//! its peers, for memberships, messages and tests.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use adapm_core::link::{self, LinkConfig, Session};
use adapm_core::{Instant, NodeId};

use super::address::Address;
use super::connection::Slot;
use super::error::LinkFault;
use super::hello::{Claim, Incarnation, Met};
use super::noise::LinkSecret;
use super::pipe::Pipe;

/// One peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) session: Session,
    /// Whether this node dials it; else it dials this node.
    is_dialed: bool,
    /// Where it listens.
    pub(super) address: Option<Address>,
    /// Where else it may be, until it was met.
    others: VecDeque<Address>,
    /// Where it dialed from.
    pub(super) remote: Option<SocketAddr>,
    /// Its life, once it was met.
    pub(super) incarnation: Option<Incarnation>,
    /// What only this node and that life of the peer know, if there is a token.
    pub(super) link: Option<LinkSecret>,
    /// The same of handshakes before, of which the peer may have heard the end instead.
    earlier: Vec<LinkSecret>,
    /// A packet of the link has come: the peer knows that it was met, and by which handshake.
    is_heard: bool,
    /// The pipe in use.
    pub(super) pipe: Option<Slot>,
    /// The pipe on which this node says hello.
    pub(super) dialing: Option<Slot>,
    /// When to dial next.
    pub(super) dial_at: Option<Instant>,
    backoff: Duration,
    /// Dials that are left after the peer has said goodbye: it may not know yet that it was heard.
    parting_dials: u32,
    pub(super) rtt: Option<Duration>,
    pub(super) resumed: u64,
    /// Faults of pipes since the last frame that arrived whole.
    pub(super) faults: u32,
    pub(super) fault: Option<LinkFault>,
    /// It will never be heard of again, and whoever uses the endpoint knows or is about to.
    pub(super) is_lost: bool,
    /// The goodbye of this node needs nothing more.
    pub(super) is_drained: bool,
    /// Frames were sent since the last `recv`: `Some` bytes of them were not written at once.
    pub(super) batched: Option<usize>,
}

impl Peer {
    pub(super) fn new(node: NodeId, is_dialed: bool, link: LinkConfig) -> Self {
        Self {
            node,
            session: Session::new(link),
            is_dialed,
            address: None,
            others: VecDeque::new(),
            remote: None,
            incarnation: None,
            link: None,
            earlier: Vec::new(),
            is_heard: false,
            pipe: None,
            dialing: None,
            dial_at: None,
            backoff: BACKOFF_MIN,
            parting_dials: PARTING_DIALS,
            rtt: None,
            resumed: 0,
            faults: 0,
            fault: None,
            is_lost: false,
            is_drained: false,
            batched: None,
        }
    }

    /// Notes where the peer may be; returns true if it is to be dialed anew. Of no use once it was
    /// met.
    pub(super) fn learn_addresses(&mut self, addresses: &[Address]) -> bool {
        let Some(first) = addresses.first().filter(|_| self.incarnation.is_none()) else {
            return false;
        };
        let is_known = self.address.as_ref().is_some_and(|known| addresses.contains(known));
        if !is_known {
            self.address = Some(first.clone());
        }
        let current = self.address.clone();
        self.others = addresses
            .iter()
            .filter(|address| Some(*address) != current.as_ref())
            .cloned()
            .collect();
        !is_known
    }

    /// Dialing has come to nothing: the next address comes first.
    pub(super) fn turn_addresses(&mut self) {
        if self.incarnation.is_none()
            && let Some(next) = self.others.pop_front()
        {
            self.others.extend(self.address.replace(next));
        }
    }

    /// Whom a peer that has said to be this one turns out to be.
    ///
    /// A listening node has met its peer when it says so, and the peer knows that only when it
    /// hears it: until a packet has come on the link, the same life may begin it once more.
    pub(super) fn recognize(&self, met: &Met) -> Recognized {
        let Some(known) = self.incarnation else { return Recognized::Unmet };
        let is_same = known == met.incarnation;
        match (&self.link, &met.claim) {
            (Some(_), Some(_)) if is_same && self.common_link(met).is_some() => Recognized::Same,
            (Some(_), Some(claim)) if claim.begins().is_some() && is_same && !self.is_heard => {
                Recognized::Same
            }
            (None, None) if is_same => Recognized::Same,
            (None, None) => Recognized::Restarted,
            _ => Recognized::Other,
        }
    }

    /// Notes whom this node has met; returns true if it had met that peer before.
    pub(super) fn note_met(&mut self, met: &Met) -> bool {
        if let Some(common) = self.common_link(met) {
            self.link = Some(common.clone());
        } else if let Some(link) = met.claim.as_ref().and_then(Claim::begins) {
            self.earlier.extend(self.link.replace(link.clone()));
            let surplus = self.earlier.len().saturating_sub(EARLIER_MAX);
            self.earlier.drain(..surplus);
            self.is_heard = false;
        }
        self.incarnation.replace(met.incarnation).is_some()
    }

    /// A packet of the link has come.
    pub(super) fn note_heard(&mut self) {
        if !self.is_heard {
            self.is_heard = true;
            self.earlier.clear();
        }
    }

    /// Whether a packet of the link has come.
    #[cfg(test)]
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// The secret of the link, if whoever has said to be the peer knows it.
    pub(super) fn common_link(&self, met: &Met) -> Option<&LinkSecret> {
        let mut links = self.link.iter().chain(&self.earlier);
        links.find(|link| met.claim.as_ref().is_some_and(|claim| claim.knows(link)))
    }

    /// The peer has been met: the next dial, if there has to be one, is not put off.
    pub(super) fn forget_backoff(&mut self) {
        self.backoff = BACKOFF_MIN;
    }

    /// The peer has left and knows that it was heard.
    pub(super) fn part(&mut self) {
        self.parting_dials = 0;
    }

    /// Dials at once if there is sense in it.
    pub(super) fn dial_now(&mut self, now: Instant) {
        self.dial_at = self.may_dial().then_some(now);
    }

    /// Dials again, later each time.
    pub(super) fn dial_later(&mut self, now: Instant) {
        self.dial_at = self.may_dial().then(|| now + self.backoff);
        self.backoff = (2 * self.backoff).min(BACKOFF_MAX);
    }

    fn may_dial(&mut self) -> bool {
        let is_settled = self.pipe.is_some() || self.dialing.is_some();
        if !self.is_dialed
            || self.address.is_none()
            || is_settled
            || (self.is_lost && !self.session.has_left())
        {
            return false;
        }
        if self.session.has_left() {
            self.parting_dials = self.parting_dials.saturating_sub(1);
            return self.parting_dials > 0;
        }
        !self.is_drained
    }

    /// Returns true if this node dials the peer.
    pub(super) fn is_dialed(&self) -> bool {
        self.is_dialed
    }

    /// Where it is, for people.
    pub(super) fn socket(&self) -> Option<SocketAddr> {
        self.address.as_ref().and_then(Address::socket).or(self.remote)
    }

    pub(super) fn status(&self) -> PeerStatus {
        let state = if self.is_lost {
            PeerState::Lost
        } else if self.session.has_left() {
            PeerState::Left
        } else if self.session.is_suspect() {
            PeerState::Suspect
        } else if self.pipe.is_some() {
            PeerState::Up
        } else if self.address.is_some() || self.incarnation.is_some() {
            PeerState::Connecting
        } else {
            PeerState::Missing
        };
        let refused =
            if self.pipe.is_some() { None } else { self.fault.map(|fault| fault.to_string()) };
        PeerStatus {
            node: self.node,
            state,
            address: self.socket(),
            rtt: self.rtt,
            resumed: self.resumed,
            refused,
        }
    }
}

/// Who a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recognized {
    /// The first one with this id.
    Unmet,
    /// The one that was met.
    Same,
    /// Another life, as far as anybody can say without a token.
    Restarted,
    /// Somebody else, or another life: the one that was met may be alive.
    Other,
}

/// How it stands with one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The peer.
    pub node: NodeId,
    /// How it stands.
    pub state: PeerState,
    /// Where it is dialed, else where it dialed from.
    pub address: Option<SocketAddr>,
    /// Time from a packet to its answer, as the last handshake has met it.
    pub rtt: Option<Duration>,
    /// How often a new connection has replaced one that broke.
    pub resumed: u64,
    /// Why the last connection came to nothing, if none is up.
    pub refused: Option<String>,
}

/// How it stands with one peer, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerState {
    /// Nothing is known of it.
    Missing,
    /// It is being dialed, for the first time or again, or will dial again.
    Connecting,
    /// All is well.
    Up,
    /// Nothing was heard of it for longer than is usual.
    Suspect,
    /// It has ended as it should.
    Left,
    /// It is lost for good.
    Lost,
}

/// What an endpoint has sent and received since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetStats {
    /// Packets with frames that were sent, repeated ones included.
    pub frames_sent: u64,
    /// Frames that were received, each counted once.
    pub frames_received: u64,
    /// Frames that came again after a resumption, and were dropped.
    pub duplicates: u64,
    /// Packets that only said that this node lives.
    pub heartbeats_sent: u64,
    /// Packets that only acknowledged.
    pub acks_sent: u64,
    /// All packets but those of handshakes.
    pub packets_sent: u64,
    /// Bytes of all packets but those of handshakes.
    pub bytes_sent: u64,
    /// Bytes read.
    pub bytes_received: u64,
    /// Handshakes that came to a link, first and repeated ones.
    pub greetings: u64,
    /// Links that went on on a new connection.
    pub resumes: u64,
    /// Calls of the system to read.
    pub reads: u64,
    /// Calls of the system to write.
    pub writes: u64,
}

impl NetStats {
    /// Adds a packet that was sent.
    pub(super) fn count_sent(&mut self, kind: link::Kind, bytes: usize) {
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

const BACKOFF_MIN: Duration = Duration::from_millis(10);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
const PARTING_DIALS: u32 = 6;
/// Handshakes of a peer that was not heard since whose secrets are kept: it dials one at a time.
const EARLIER_MAX: usize = 4;
