//! Endpoints that introduce themselves: the first frame to each peer describes the layout of this
//! node and its homes, so that nodes which differ in these do not run on in silence.
//!
//! Not here: groups of processes, whose handshake does that ([`crate::processes`]).

use std::net::SocketAddr;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, Way};

use crate::Notice;
use crate::link::{Endpoint, WakeFn};

/// An endpoint whose peers must have the same layout and homes.
pub(super) struct Introduced {
    inner: Box<dyn Endpoint>,
    own: NodeId,
    /// [`adapm_core::Layout::digest`] of this node and that of its homes, combined.
    digest: u64,
    /// By node: the peer was sent the introduction.
    told: Vec<bool>,
    /// By node: the peer has introduced itself.
    known: Vec<bool>,
}

impl Introduced {
    /// Wraps the endpoint of node `own` of `nodes`.
    pub(super) fn new(inner: Box<dyn Endpoint>, own: NodeId, nodes: usize, digest: u64) -> Self {
        Self { inner, own, digest, told: vec![false; nodes], known: vec![false; nodes] }
    }

    /// Sends the introduction to a peer that does not have it. Returns false if the way is full.
    fn introduce(&mut self, to: NodeId) -> Result<bool, String> {
        let told = &mut self.told[to.index()];
        if !*told {
            let head = [MAGIC, &self.digest.to_le_bytes()].concat();
            *told = self.inner.send(to, &mut Frame { head, ..Frame::default() })?;
        }
        Ok(*told)
    }

    /// Introduces this node to all peers before it ends because of another layout, so that those
    /// which differ end with that reason instead of a loss.
    fn introduce_to_all(&mut self) {
        let own = self.own;
        for node in (0..).map(NodeId).take(self.told.len()).filter(|node| *node != own) {
            // A peer that cannot be reached has ended, too.
            let _ = self.introduce(node);
        }
    }

    /// Checks the first frame of a peer.
    fn meet(&mut self, from: NodeId, frame: &Frame) -> Result<(), String> {
        let digest = frame.head.strip_prefix(MAGIC).and_then(|digest| digest.try_into().ok());
        let Some(digest) = digest.map(u64::from_le_bytes).filter(|_| frame.values.is_empty())
        else {
            return Err(format!(
                "{from} did not introduce itself: build it with `Nodes::only` of the same version, or see \
                 `Nodes::without_introduction`"
            ));
        };
        let own = self.digest;
        if digest != own {
            return Err(format!(
                "{from} has another layout or other homes (digest {digest:016x}, here {own:016x}): the number \
                 of keys, the lengths of values, their type and the table of homes must be the same on all nodes"
            ));
        }
        self.known[from.index()] = true;
        Ok(())
    }
}

impl Endpoint for Introduced {
    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<bool, String> {
        if !self.introduce(to)? {
            return Ok(false);
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, String> {
        loop {
            match self.inner.recv(wait, frame)? {
                Received::Frame(from) if self.known.get(from.index()) == Some(&false) => {
                    self.meet(from, frame).inspect_err(|_| self.introduce_to_all())?;
                }
                received => return Ok(received),
            }
        }
    }

    fn wake_fn(&self) -> WakeFn {
        self.inner.wake_fn()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.inner.leave(reason);
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.inner.address(node)
    }

    fn way(&self, node: NodeId) -> Way {
        self.inner.way(node)
    }

    fn is_connected(&self) -> bool {
        self.inner.is_connected()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.inner.poll_notice()
    }
}

/// Begins an introduction; its last byte is the version.
const MAGIC: &[u8] = b"adapm layout \x01";

#[cfg(test)]
mod tests {
    use adapm_transport::inproc;

    use super::*;

    #[test]
    fn peers_hear_of_the_other_layout_though_the_first_to_notice_is_gone() {
        let ends = (0..).map(NodeId).zip(inproc::network(3));
        let ends = ends.map(|(node, end)| {
            let digest = u64::from(node == NodeId(2));
            Introduced::new(Box::new(end), node, 3, digest)
        });
        let mut ends: Vec<Introduced> = ends.collect();
        let mut frame = Frame { head: vec![7], ..Frame::default() };
        assert_eq!(ends[2].send(NodeId(0), &mut frame), Ok(true));
        let mut differs = |end: &mut Introduced| {
            let received = end.recv(Some(Duration::ZERO), &mut frame);
            assert!(received.is_err_and(|error| error.contains("has another layout")));
        };
        differs(&mut ends[0]);
        drop(ends.remove(0));
        // The frame that n0 sent on its way out ends n2; that of n2 then ends n1, which has sent
        // nothing.
        differs(&mut ends[1]);
        drop(ends.remove(1));
        differs(&mut ends[0]);
    }
}
