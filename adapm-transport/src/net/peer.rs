//! An endpoint's state of one peer, across all its pipes, and the status that it reports for
//! memberships, messages and tests.

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
    /// True if this node dials the peer; else the peer dials this node.
    is_dialed: bool,
    /// The peer's listening address.
    pub(super) address: Option<Address>,
    /// Other possible addresses, until it was met.
    others: VecDeque<Address>,
    /// The address from which it dialed.
    pub(super) remote: Option<SocketAddr>,
    /// Its life, once it was met.
    pub(super) incarnation: Option<Incarnation>,
    /// The secret shared only with that life of the peer, if there is a token.
    pub(super) link: Option<LinkSecret>,
    /// Secrets of earlier handshakes: the peer may know one of these instead.
    earlier: Vec<LinkSecret>,
    /// A packet of the link has come: the peer knows that it was met, and by which handshake.
    is_heard: bool,
    /// The pipe in use.
    pub(super) pipe: Option<Slot>,
    /// The pipe on which this node is in a handshake.
    pub(super) dialing: Option<Slot>,
    /// The time of the next dial.
    pub(super) dial_at: Option<Instant>,
    backoff: Duration,
    /// Dials left after the peer's goodbye, which it may not know to have arrived.
    parting_dials: u32,
    pub(super) rtt: Option<Duration>,
    pub(super) resumed: u64,
    /// Faults of pipes since the last frame that arrived whole.
    pub(super) faults: u32,
    pub(super) fault: Option<LinkFault>,
    /// It is given up for good, and the user of the endpoint knows or is about to.
    pub(super) is_lost: bool,
    /// This node's goodbye needs nothing more.
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

    /// Records the peer's possible addresses. Returns true if it is to be dialed anew. Has no
    /// effect once it was met.
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

    /// Moves to the next address after a failed dial.
    pub(super) fn turn_addresses(&mut self) {
        if self.incarnation.is_none()
            && let Some(next) = self.others.pop_front()
        {
            self.others.extend(self.address.replace(next));
        }
    }

    /// Identifies a peer that claims to be this one.
    ///
    /// A listening node has met its peer when the peer identifies itself, but the peer knows that
    /// only from the answer: until a packet has come on the link, the same life may begin it once
    /// more.
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

    /// Records that this node has met the peer. Returns true if it had met it before.
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

    /// Records that a packet of the link has come.
    pub(super) fn note_heard(&mut self) {
        if !self.is_heard {
            self.is_heard = true;
            self.earlier.clear();
        }
    }

    /// Returns true if a packet of the link has come.
    #[cfg(test)]
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// Returns the secret of the link, if the claimant knows it.
    pub(super) fn common_link(&self, met: &Met) -> Option<&LinkSecret> {
        let mut links = self.link.iter().chain(&self.earlier);
        links.find(|link| met.claim.as_ref().is_some_and(|claim| claim.knows(link)))
    }

    /// Resets the backoff once the peer has been met.
    pub(super) fn forget_backoff(&mut self) {
        self.backoff = BACKOFF_MIN;
    }

    /// Records that the peer has left and knows that its goodbye arrived.
    pub(super) fn part(&mut self) {
        self.parting_dials = 0;
    }

    /// Dials at once if that makes sense.
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

    /// Returns its address, for people.
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

/// The identity of a claimed peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recognized {
    /// The first one with this id.
    Unmet,
    /// The one that was met.
    Same,
    /// Another life, as far as this node can know without a token.
    Restarted,
    /// Another process, or another life: the one that was met may be alive.
    Other,
}

/// The status of one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The peer.
    pub node: NodeId,
    /// The state of its link.
    pub state: PeerState,
    /// The address at which it is dialed, else the one from which it dialed.
    pub address: Option<SocketAddr>,
    /// Round-trip time, measured by the last handshake.
    pub rtt: Option<Duration>,
    /// Number of new connections that have replaced broken ones.
    pub resumed: u64,
    /// The reason of the last failed connection, if none is up.
    pub refused: Option<String>,
}

/// The state of the link with one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerState {
    /// Nothing is known of it.
    Missing,
    /// It is being dialed, for the first time or again, or will dial again.
    Connecting,
    /// The link is up.
    Up,
    /// Silent for longer than usual.
    Suspect,
    /// It has ended in order.
    Left,
    /// It is lost for good.
    Lost,
}

/// The traffic of an endpoint since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetStats {
    /// Packets with frames that were sent, repeated ones included.
    pub frames_sent: u64,
    /// Frames that were received, each counted once.
    pub frames_received: u64,
    /// Frames that came again after a resumption, and were dropped.
    pub duplicates: u64,
    /// Packets that were only heartbeats.
    pub heartbeats_sent: u64,
    /// Packets that were only acknowledgements.
    pub acks_sent: u64,
    /// All packets but those of handshakes.
    pub packets_sent: u64,
    /// Bytes of all packets but those of handshakes.
    pub bytes_sent: u64,
    /// Bytes read.
    pub bytes_received: u64,
    /// Successful handshakes, first and repeated ones.
    pub greetings: u64,
    /// Links that went on on a new connection.
    pub resumes: u64,
    /// System calls for reading.
    pub reads: u64,
    /// System calls for writing.
    pub writes: u64,
}

impl NetStats {
    /// Counts a sent packet.
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

    /// Adds the traffic of a pipe.
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
/// Maximum number of kept secrets of handshakes without a later packet: a peer dials one at a time.
const EARLIER_MAX: usize = 4;
