//! A fingerprint of all events: equal seeds must give equal ones.

use adapm_core::Instant;

/// A hash over all events of a run, in order (FNV-1a, a word at a time, with a final mix).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl TraceHash {
    /// Adds an event: time, kind, and up to three numbers with details.
    pub fn add(&mut self, when: Instant, kind: &'static str, what: [u64; 3]) {
        for byte in kind.bytes() {
            self.word(u64::from(byte));
        }
        self.word(when.nanos());
        for packed in what {
            self.word(packed);
        }
    }

    /// Returns the hash of all events so far.
    #[must_use]
    pub fn value(self) -> u64 {
        let mut hash = self.0;
        hash ^= hash >> 32;
        hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
        hash ^ hash >> 32
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
}
