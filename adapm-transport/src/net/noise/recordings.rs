//! First messages that may have been recorded and replayed.

use std::collections::{HashSet, VecDeque};

/// The keys of the last handshakes with this node.
///
/// Each handshake has a key of its own, so a repeated one is a recording. It would admit no peer,
/// but an answer costs a Diffie-Hellman. Only keys of nodes that know the token are kept, so
/// strangers cannot displace them.
#[derive(Debug, Default)]
pub struct Recordings {
    known: HashSet<[u8; KEY_BYTES]>,
    order: VecDeque<[u8; KEY_BYTES]>,
}

impl Recordings {
    /// Returns true if this first message has come before.
    #[must_use]
    pub fn has(&self, first: &[u8]) -> bool {
        first.first_chunk().is_some_and(|key| self.known.contains(key))
    }

    /// Keeps the key of a valid first message; beyond 4,096 the oldest is dropped.
    pub fn keep(&mut self, first: &[u8]) {
        let Some(key) = first.first_chunk().filter(|key| self.known.insert(**key)) else { return };
        self.order.push_back(*key);
        if self.order.len() > KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// Bytes of an ephemeral key, with which a first message begins.
const KEY_BYTES: usize = 32;
const KEYS_MAX: usize = 4_096;
