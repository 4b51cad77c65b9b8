//! Collectives of a group as a state machine without I/O: every node contributes bytes; all nodes,
//! or node 0, get all contributions.
//!
//! ```text
//!   n1                                   n2
//!   Begin 7 "ranks", first 64 KiB  --->          n2 is still in 6: the begin is kept, nothing more comes
//!                                 <---   Begin 7 "ranks", first 64 KiB
//!   Piece 7, 1 MiB                 --->          only to those that have begun: what waits is bounded
//!   ...
//! ```
//!
//! A node is done when all others have begun, it has sent its part and has theirs; so it is at most
//! one collective ahead of any other. Each node reports to all others which one it begins: a
//! different order of calls is detected on all nodes at once.
//!
//! Not here: threads, waiting, lost nodes.

use adapm_core::NodeId;

use super::message::{Begin, Message};

/// Bytes sent with a begin: small collectives cost one message per pair.
pub(super) const FIRST_BYTES: usize = 64 << 10;

/// Characters of a label that count; no node sends more.
pub(super) const LABEL_CHARS_MAX: usize = 64;

/// Bytes of a piece.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// The fault of a peer's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It calls another collective than this node.
    Differs { node: NodeId, ours: String, theirs: String },
    /// It sent what no sound node sends.
    Misbehaved { node: NodeId },
}

/// The collectives of one node, one at a time.
#[derive(Debug)]
pub(super) struct Collectives {
    node: NodeId,
    peers: Vec<Peer>,
    /// The current collective's number, or the last one's.
    number: u64,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    label: String,
    to_all: bool,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Peer {
    /// The begin of the collective after the current one, if the peer is ahead.
    ahead: Option<(Begin, Vec<u8>)>,
    /// Bytes that it has announced for the current one.
    expected: Option<u64>,
    received: Vec<u8>,
    /// Bytes sent to it; `None` before the begin of the current collective.
    sent: Option<usize>,
}

impl Collectives {
    pub(super) fn new(node: NodeId, nodes: usize) -> Self {
        Self {
            node,
            peers: (0..nodes).map(|_| Peer::default()).collect(),
            number: 0,
            current: None,
        }
    }

    /// Enters the next collective; the one before must be over.
    pub(super) fn begin(
        &mut self,
        label: String,
        to_all: bool,
        bytes: Vec<u8>,
    ) -> Result<(), Fault> {
        debug_assert!(self.current.is_none(), "one collective at a time");
        self.number += 1;
        self.current = Some(Current { label, to_all, bytes });
        for peer in &mut self.peers {
            (peer.expected, peer.sent) = (None, None);
            peer.received = Vec::new();
        }
        for index in 0..self.peers.len() {
            if let Some((begin, bytes)) = self.peers[index].ahead.take() {
                self.join(id(index), &begin, bytes)?;
            }
        }
        Ok(())
    }

    /// Handles the begin of a peer.
    pub(super) fn handle_begin(
        &mut self,
        from: NodeId,
        begin: Begin,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let fits = bytes.len() == begin.total.min(FIRST_BYTES as u64) as usize
            && begin.label.chars().count() <= LABEL_CHARS_MAX;
        let peer = &mut self.peers[from.index()];
        let now = self.current.is_some() && peer.expected.is_none() && begin.number == self.number;
        let ahead = begin.number == self.number + 1 && peer.ahead.is_none();
        match (fits, now) {
            (true, true) => self.join(from, &begin, bytes.to_vec()),
            (true, false) if ahead => {
                peer.ahead = Some((begin, bytes.to_vec()));
                Ok(())
            }
            _ => Err(Fault::Misbehaved { node: from }),
        }
    }

    /// Handles a further piece of a peer's part.
    pub(super) fn handle_piece(
        &mut self,
        from: NodeId,
        number: u64,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let peer = &mut self.peers[from.index()];
        let after = (peer.received.len() + bytes.len()) as u64;
        let fits = (1..=PIECE_BYTES).contains(&bytes.len())
            && peer.expected.is_some_and(|total| after <= total);
        if self.current.is_none() || number != self.number || !fits {
            return Err(Fault::Misbehaved { node: from });
        }
        peer.received.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next message to `to` and its bytes, if any; it counts as sent.
    pub(super) fn poll_send(&mut self, to: NodeId) -> Option<(Message, &[u8])> {
        let number = self.number;
        let current = self.current.as_ref().filter(|_| to != self.node)?;
        let wants = current.to_all || to == ROOT;
        let bytes: &[u8] = if wants { &current.bytes } else { &[] };
        let peer = &mut self.peers[to.index()];
        let Some(start) = peer.sent else {
            let end = bytes.len().min(FIRST_BYTES);
            peer.sent = Some(end);
            let (label, to_all, total) =
                (current.label.clone(), current.to_all, bytes.len() as u64);
            return Some((Message::Begin(Begin { number, label, to_all, total }), &bytes[..end]));
        };
        if peer.expected.is_none() || start == bytes.len() {
            return None;
        }
        let end = bytes.len().min(start + PIECE_BYTES);
        peer.sent = Some(end);
        Some((Message::Piece { number }, &bytes[start..end]))
    }

    /// Returns the parts by node once the collective is over; empty if they are not for this node.
    pub(super) fn poll_outcome(&mut self) -> Option<Vec<Vec<u8>>> {
        if (0..self.peers.len()).any(|index| self.needs(id(index))) {
            return None;
        }
        let current = self.current.take()?;
        if !current.to_all && self.node != ROOT {
            return Some(Vec::new());
        }
        let mut parts: Vec<_> =
            self.peers.iter_mut().map(|peer| std::mem::take(&mut peer.received)).collect();
        parts[self.node.index()] = current.bytes;
        Some(parts)
    }

    /// Returns true if a collective is under way that cannot end without that peer: it is yet to
    /// send or to be sent a part.
    pub(super) fn needs(&self, node: NodeId) -> bool {
        let Some(current) = self.current.as_ref().filter(|_| node != self.node) else {
            return false;
        };
        let part = if current.to_all || node == ROOT { current.bytes.len() } else { 0 };
        let peer = &self.peers[node.index()];
        peer.sent != Some(part) || peer.expected != Some(peer.received.len() as u64)
    }

    /// Returns true if a collective is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    fn join(&mut self, from: NodeId, begin: &Begin, first: Vec<u8>) -> Result<(), Fault> {
        let current = self.current.as_ref().expect("called while one is current");
        if (&begin.label, begin.to_all) != (&current.label, current.to_all) {
            let ours = current.label.clone();
            return Err(Fault::Differs { node: from, ours, theirs: begin.label.clone() });
        }
        let wanted = current.to_all || self.node == ROOT;
        if !wanted && begin.total > 0 {
            return Err(Fault::Misbehaved { node: from });
        }
        let peer = &mut self.peers[from.index()];
        peer.expected = Some(begin.total);
        peer.received = first;
        Ok(())
    }
}

fn id(index: usize) -> NodeId {
    NodeId(u16::try_from(index).expect("node ids are 16 bits wide"))
}

/// The node that receives gathered parts.
pub(super) const ROOT: NodeId = NodeId(0);

#[cfg(test)]
#[path = "collective_tests.rs"]
mod tests;
