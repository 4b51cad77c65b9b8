//! A parser of packet headers in a stream of bytes, to tell where in a packet it was cut.
//!
//! It trusts the lengths it reads: after a corrupted header nothing is known until the next
//! connection.

/// Bytes of a packet's header; the lengths of its head and of its values are at 4 and 8,
/// little-endian.
const HEADER_BYTES: usize = 36;
/// The same if the bit [`IS_SEALED`] of the kind, at 2, is set.
const SEALED_HEADER_BYTES: usize = 64;
const IS_SEALED: u8 = 0x40;

/// One direction of one connection.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// The received part of an incomplete header.
    header: Vec<u8>,
    /// Bytes of head and values still to come.
    body_bytes: u64,
    packets: u64,
}

impl Follower {
    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.body_bytes > 0 {
                let skipped =
                    bytes.len().min(usize::try_from(self.body_bytes).unwrap_or(usize::MAX));
                self.body_bytes -= skipped as u64;
                bytes = &bytes[skipped..];
            } else {
                let is_sealed = self.header.get(2).is_some_and(|kind| kind & IS_SEALED != 0);
                let header_bytes = if is_sealed { SEALED_HEADER_BYTES } else { HEADER_BYTES };
                let wanted = if self.header.len() < 3 { 3 } else { header_bytes };
                let taken = bytes.len().min(wanted - self.header.len());
                self.header.extend_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                if self.header.len() < wanted {
                    return;
                }
                if wanted < HEADER_BYTES {
                    continue;
                }
                self.body_bytes = self.length(4) + self.length(8);
                self.header.clear();
            }
            self.packets += u64::from(self.body_bytes == 0);
        }
    }

    /// Returns true in the middle of a packet.
    pub(crate) fn is_inside(&self) -> bool {
        !self.header.is_empty() || self.body_bytes > 0
    }

    /// Returns true in the middle of a packet's head or values, after a whole header.
    pub(crate) fn is_inside_body(&self) -> bool {
        self.body_bytes > 0
    }

    /// Returns the number of whole packets.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    fn length(&self, at: usize) -> u64 {
        let bytes = self.header[at..at + 4].try_into().expect("four bytes of a header");
        u64::from(u32::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::{Follower, HEADER_BYTES, IS_SEALED, SEALED_HEADER_BYTES};

    #[test]
    fn knows_where_a_packet_ends_however_it_comes() {
        for (kind, header_bytes) in [(0, HEADER_BYTES), (IS_SEALED, SEALED_HEADER_BYTES)] {
            let mut packet = vec![0; header_bytes];
            (packet[2], packet[4], packet[8]) = (kind, 3, 2);
            packet.extend([0xee; 5]);
            packet.extend([0; HEADER_BYTES]);
            for cut in 1..packet.len() {
                let mut follower = Follower::default();
                follower.feed(&packet[..cut]);
                assert_eq!(follower.is_inside(), cut != header_bytes + 5, "after {cut} bytes");
                assert_eq!(
                    follower.is_inside_body(),
                    (header_bytes..header_bytes + 5).contains(&cut)
                );
                follower.feed(&packet[cut..]);
                assert!(!follower.is_inside());
                assert_eq!(follower.packets(), 2);
            }
        }
    }
}
