//! A disturbance of the line that is the same on every run: at every so many bytes one is changed,
//! lost, or has company.

/// Spoils the bytes of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    every: u64,
    seen: u64,
}

impl Noise {
    /// Spoils one byte of `every`; 0 spoils none.
    #[must_use]
    pub fn new(every: u64) -> Self {
        Self { every, seen: 0 }
    }

    /// The bytes as they arrive.
    #[must_use]
    pub fn spoil(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut arrived = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.seen += 1;
            // Nothing from 1 on is a multiple of 0.
            if !self.seen.is_multiple_of(self.every) {
                arrived.push(*byte);
                continue;
            }
            match self.seen / self.every % 3 {
                0 => arrived.push(byte ^ 0x10),
                1 => {}
                _ => arrived.extend_from_slice(&[*byte, b'?', 0, b'!', b'#']),
            }
        }
        arrived
    }
}
