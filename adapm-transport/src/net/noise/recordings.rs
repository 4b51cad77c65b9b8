//! First messages that somebody may have recorded and sends again.

use std::collections::{HashSet, VecDeque};

/// The keys of the last handshakes with this node.
///
/// Each handshake has a key of its own, so one that comes again is a recording. It would get nobody
/// in, but an answer costs a Diffie-Hellman. Only those of nodes that know the token are kept:
/// strangers cannot make it forget them.
#[derive(Debug, Default)]
pub struct Recordings {
    known: HashSet<[u8; KEY_BYTES]>,
    order: VecDeque<[u8; KEY_BYTES]>,
}

impl Recordings {
    /// Whether this first message has come before.
    #[must_use]
    pub fn has(&self, first: &[u8]) -> bool {
        first.first_chunk().is_some_and(|key| self.known.contains(key))
    }

    /// Keeps the key of a first message that was sound; of more than 4,096 the oldest is forgotten.
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

/// An ephemeral key, with which a first message begins.
const KEY_BYTES: usize = 32;
const KEYS_MAX: usize = 4_096;
