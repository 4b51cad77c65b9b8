//! Tickets: proof that the node that answers an entry has received that entry.
//!
//! An entry goes to the node that is believed to own its key, which may pass it on; the owner
//! answers. So an answer comes from the node that was asked, or from one to which the entry was
//! passed on. A request or operation carries a secret of its message. A node that passes an entry
//! on derives the ticket of that key from the secret; the ticket travels with the entry and comes
//! back with the answer. So a node knows the tickets of the entries that it has received, and of no
//! others, not even of those in the same original message. An answer without a ticket is believed
//! only from the node that was asked.
//!
//! Nothing is stored: a node derives its secrets from
//! [`NodeConfig::secret`](crate::config::NodeConfig::secret) and its records of unanswered entries.
//! The function is SipHash-2-4 (Aumasson, Bernstein, 2012).

use crate::id::{Key, NodeId, Ticket};

/// The secrets of one node's messages.
#[derive(Clone, Copy)]
pub(crate) struct Tickets {
    secret: [u64; 2],
    /// Number of messages with operations so far.
    operations: u64,
}

impl Tickets {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self { secret, operations: 0 }
    }

    /// Returns the secret of the request to `to` in a round, given by the low bits of its number.
    pub(crate) fn of_request(&self, round: u32, to: NodeId) -> Ticket {
        some(siphash(self.secret, [u64::from(round), REQUEST | u64::from(to.0)]))
    }

    /// Returns the secret of the next message with operations to `to`.
    pub(crate) fn of_operation(&mut self, to: NodeId) -> Ticket {
        self.operations += 1;
        some(siphash(self.secret, [self.operations, OPERATION | u64::from(to.0)]))
    }
}

impl Ticket {
    /// The ticket of entries that were asked directly.
    pub const NONE: Self = Self(0);

    /// Returns the ticket of `key`, derived from the secret of a message.
    #[must_use]
    pub fn of_key(self, key: Key) -> Self {
        some(siphash([self.0, ENTRY], [key.0, ENTRY]))
    }
}

/// Returns a ticket that is not [`Ticket::NONE`].
fn some(hash: u64) -> Ticket {
    Ticket(hash.max(1))
}

/// Returns SipHash-2-4 of two words under a key of two words.
fn siphash(key: [u64; 2], words: [u64; 2]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    // The last word has the length, 16 bytes, in its highest byte.
    for word in [words[0], words[1], 16 << 56] {
        state[3] ^= word;
        round(&mut state);
        round(&mut state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

/// Purposes of hashes, above the bits of a node: no two purposes share an input.
const REQUEST: u64 = 1 << 32;
const OPERATION: u64 = 2 << 32;
const ENTRY: u64 = 3 << 32;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// The vector of 16 bytes from the reference implementation: key 00..0f, message 00..0f.
    #[test]
    fn the_function_is_siphash() {
        let words = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash(words, words), 0x3f2a_cc7f_57c2_9bdb);
    }

    #[test]
    fn no_two_entries_share_a_ticket() {
        let mut tickets = Tickets::new([1, 2]);
        let requests = (0..10).flat_map(|round| (0..10).map(move |node| (round, NodeId(node))));
        let mut all: Vec<Ticket> =
            requests.map(|(round, to)| tickets.of_request(round, to)).collect();
        all.extend((0..100).map(|_| tickets.of_operation(NodeId(1))));
        let of_keys: Vec<Ticket> =
            all.iter().flat_map(|ticket| (0..10).map(|key| ticket.of_key(Key(key)))).collect();
        all.extend(of_keys);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), all[0] > Ticket::NONE), (count, true));
    }
}
