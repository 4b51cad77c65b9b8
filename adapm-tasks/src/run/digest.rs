//! A number that differs between data that differ: what processes compare before they train together.
//!
//! FNV-1a over words of 64 bits: finds differences, not malice. Not here: the checksum of a file ([`crate::run::file`]), which is over bytes.

/// A sum over what was added, in order.
#[derive(Clone, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Over nothing.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a number.
    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    /// Adds bytes, and how many they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.word(u64::from(*byte));
        }
    }

    /// Adds values, and how many they are.
    pub(crate) fn values(&mut self, values: &[f32]) {
        self.word(values.len() as u64);
        for value in values {
            self.word(u64::from(value.to_bits()));
        }
    }

    /// The number.
    pub(crate) fn sum(&self) -> u64 {
        self.0
    }
}
