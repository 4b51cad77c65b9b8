//! A reproducible disturbance of the line: at regular intervals a byte is changed, lost, or
//! followed by another.

/// A disturbance of one direction.
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

    /// Returns the bytes as they arrive.
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
