//! Endpoints that introduce themselves: the first frame to each peer says what values this node
//! holds, so that nodes of different layouts do not run on in silence.
//!
//! Not here: groups of processes, whose handshake does that ([`crate::processes`]).

use std::net::SocketAddr;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, Way};

use crate::Notice;
use crate::link::{Endpoint, WakeFn};

/// An endpoint whose peers must have the same layout.
pub(super) struct Introduced {
    inner: Box<dyn Endpoint>,
    /// [`adapm_core::Layout::digest`] of this node.
    digest: u64,
    /// By node: the peer was sent the introduction.
    told: Vec<bool>,
    /// By node: the peer has introduced itself.
    known: Vec<bool>,
}

impl Introduced {
    pub(super) fn new(inner: Box<dyn Endpoint>, nodes: usize, digest: u64) -> Self {
        Self { inner, digest, told: vec![false; nodes], known: vec![false; nodes] }
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
                "{from} has another layout (digest {digest:016x}, here {own:016x}): the number of keys, the \
                 lengths of values and their type must be the same on all nodes"
            ));
        }
        self.known[from.index()] = true;
        Ok(())
    }
}

impl Endpoint for Introduced {
    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<bool, String> {
        if !self.told[to.index()] {
            let head = [MAGIC, &self.digest.to_le_bytes()].concat();
            if !self.inner.send(to, &mut Frame { head, ..Frame::default() })? {
                return Ok(false);
            }
            self.told[to.index()] = true;
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, String> {
        loop {
            match self.inner.recv(wait, frame)? {
                Received::Frame(from) if self.known.get(from.index()) == Some(&false) => {
                    self.meet(from, frame)?;
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
