//! Follows the packets in a stream of bytes by their headers, to tell where in a packet it was cut.
//!
//! It believes the lengths it reads: what follows a corrupted header is not known until the next
//! connection.

/// Bytes of a packet's header; the lengths of its head and of its values lie in it, little-endian,
/// at 4 and 8.
const HEADER_BYTES: usize = 36;
/// The same if a bit of the kind, at 2, says that the packet is sealed.
const SEALED_HEADER_BYTES: usize = 64;
const IS_SEALED: u8 = 0x40;

/// One direction of one connection.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    /// What has come of a header that is not whole.
    header: Vec<u8>,
    /// Of head and values, still to come.
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

    /// Whether a packet has begun and has not ended.
    pub(crate) fn is_inside(&self) -> bool {
        !self.header.is_empty() || self.body_bytes > 0
    }

    /// Whether a packet with a head or values has begun, and its header is whole.
    pub(crate) fn is_inside_body(&self) -> bool {
        self.body_bytes > 0
    }

    /// Packets that are whole.
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
