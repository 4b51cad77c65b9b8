//! Packets under the keys of one connection.

use core::fmt;

use ring::aead::LessSafeKey;

use super::primitives::{key, open, seal};
use crate::net::packet::{CLEAR_BYTES, Draft, Fault, Incoming, Outgoing, Packet, TAG_BYTES};

/// Both directions of one connection: protects outgoing packets, and accepts incoming ones only if
/// they are as they were sent.
///
/// Sealed head and values of the packet number c of a direction have the nonces 2c and 2c + 1. The
/// header is associated with the head, and the head's tag with the values: no part can be exchanged
/// for one of another packet. The number is never sent, so a dropped, repeated or moved packet
/// fails to open just like a changed one. Each key is replaced after 16,384 packets (Noise, section
/// 11.3), so that a key stolen from memory opens nothing of the distant past.
///
/// After the first fault nothing opens any more: the link goes on over another connection, with
/// other keys.
///
/// A packet costs a copy of its content and one pass of AES-GCM over that, on each side.
#[derive(Debug, Default)]
pub struct Channel(Option<Box<Ways>>);

#[derive(Debug)]
struct Ways {
    out: Way,
    back: Way,
    is_broken: bool,
}

/// One direction.
struct Way {
    key: LessSafeKey,
    packets: u64,
}

impl Channel {
    /// Creates a channel that seals with the key `out` and opens with the key `back`. The default
    /// channel uses checksums instead.
    pub(super) fn sealed(out: &[u8; 32], back: &[u8; 32]) -> Self {
        Self(Some(Box::new(Ways { out: Way::new(out), back: Way::new(back), is_broken: false })))
    }

    /// Returns true if only holders of the token can read or forge a packet.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.0.is_some()
    }

    /// Protects the next packet of this side.
    #[must_use]
    pub fn protect(&mut self, draft: Draft) -> Outgoing {
        let Some(ways) = &mut self.0 else { return draft.check() };
        let (key, number) = ways.out.next();
        draft.seal(|clear, head, values| {
            let first = seal(key, 2 * number, clear, head);
            if values.is_empty() {
                return [first, [0; TAG_BYTES]];
            }
            [first, seal(key, 2 * number + 1, &first, values)]
        })
    }

    /// Opens the next packet of the other side.
    ///
    /// # Errors
    /// If it is not the next packet that the other side has sent: [`Fault::Checksum`] or
    /// [`Fault::Unopened`].
    pub fn believe(&mut self, packet: Incoming) -> Result<Packet, Fault> {
        let Some(ways) = &mut self.0 else { return packet.check() };
        if ways.is_broken {
            return Err(Fault::Unopened);
        }
        let (key, number) = ways.back.next();
        let opened = packet.open(|clear: &[u8; CLEAR_BYTES], [first, second], head, values| {
            open(key, 2 * number, clear, first, head)
                && if values.is_empty() {
                    second == [0; TAG_BYTES]
                } else {
                    open(key, 2 * number + 1, &first, second, values)
                }
        });
        ways.is_broken = opened.is_err();
        opened
    }
}

#[cfg(test)]
impl Channel {
    /// Returns the key that a thief finds in memory, which opens the next packet.
    pub(super) fn stolen_key(&self) -> &LessSafeKey {
        &self.0.as_ref().expect("a sealed channel").back.key
    }
}

impl Way {
    fn new(bytes: &[u8; 32]) -> Self {
        Self { key: key(bytes), packets: 0 }
    }

    /// Returns the key and the number of the next packet.
    fn next(&mut self) -> (&LessSafeKey, u64) {
        let number = self.packets;
        if number > 0 && number.is_multiple_of(PACKETS_PER_KEY) {
            let mut bytes = [0; 32];
            seal(&self.key, u64::MAX, &[], &mut bytes);
            self.key = key(&bytes);
        }
        self.packets += 1;
        (&self.key, number)
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("packets", &self.packets).finish_non_exhaustive()
    }
}

/// Packets of one direction after which its key is replaced.
const PACKETS_PER_KEY: u64 = 1 << 14;
