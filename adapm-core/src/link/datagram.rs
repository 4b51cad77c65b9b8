//! The bytes of a datagram: who sends it and to whom it replies, one packet of a session, and the
//! part of a frame that it carries.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 | version |
//! | 1 | kind (low half) and flags (high half) |
//! | 2..6 | life of the sender |
//! | 6..10 | life of the receiver, 0 if the sender has not met it; the end of a hello |
//! | 10..18, 18..26 | number and acknowledgement |
//! | 26..42 | selective acknowledgement: bit `i` is set if packet `acknowledgement + i` has come |
//! | 42..44, 44..46 | bytes of the head and of the values, which follow |
//!
//! All numbers are little-endian. Anything else is an error: a length that does not fit, an unknown
//! kind or flag, content where none belongs.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::link::packet::{Content, Header, Kind, LinkError, Seq};

/// Most bytes of a datagram: those of the largest one over UDP.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Most bytes of a datagram that belong to no frame.
pub const DATAGRAM_HEADER_BYTES: usize = 46;

/// A datagram as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    /// The life of the sender.
    pub(crate) from: NonZeroU32,
    /// The life of the receiver, if the sender has met it.
    pub(crate) to: Option<NonZeroU32>,
    /// A packet; `None`: a hello.
    pub(crate) packet: Option<DatagramPacket<'a>>,
}

/// Packets that have come and are not acknowledged, as they came out of order or are not taken yet:
/// bit `i` stands for the packet `i` numbers behind the first that is not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selective(pub(crate) u128);

impl Selective {
    /// Number of packets that it can tell of.
    pub(crate) const PACKETS: u64 = u128::BITS as u64;

    /// Returns those of `numbers`, which are in order, from `ack` on.
    pub(crate) fn new(ack: Seq, numbers: impl Iterator<Item = Seq>) -> Self {
        let bits = numbers.map_while(|number| {
            let bit = u32::try_from(number.0.checked_sub(ack.0)?).ok()?;
            1_u128.checked_shl(bit)
        });
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Returns the numbers, for the acknowledgement that it came with, in order.
    pub(crate) fn numbers(self, ack: Seq) -> impl DoubleEndedIterator<Item = Seq> {
        let bits = (0..Self::PACKETS).filter(move |bit| self.0 >> bit & 1 == 1);
        bits.map(move |bit| Seq(ack.0.saturating_add(bit)))
    }
}

/// The packet of a session in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramPacket<'a> {
    pub(crate) header: Header,
    /// The packets from its acknowledgement on that have come.
    pub(crate) received: Selective,
    pub(crate) head: &'a [u8],
    pub(crate) values: &'a [u8],
}

impl DatagramPacket<'_> {
    /// Returns true if it has a number, and waits for its acknowledgement.
    pub(crate) fn is_numbered(&self) -> bool {
        matches!(self.header.kind, Kind::Data | Kind::Part | Kind::Bye)
    }
}

/// Writes a hello to `out`.
pub(crate) fn write_hello(out: &mut Vec<u8>, from: NonZeroU32, to: Option<NonZeroU32>) {
    write_start(out, HELLO, from, to);
}

/// Writes a packet to `out`.
pub(crate) fn write_packet(
    out: &mut Vec<u8>,
    (from, to): (NonZeroU32, NonZeroU32),
    header: Header,
    received: Selective,
    content: Option<&Content>,
) {
    let kind = match header.kind {
        Kind::Data => DATA,
        Kind::Part => PART,
        Kind::Bye => BYE,
        Kind::Ack => ACK,
        Kind::Heartbeat => HEARTBEAT,
    };
    let asks = if header.wants_ack { WANTS_ACK } else { 0 };
    write_start(out, kind | asks, from, Some(to));
    out.extend_from_slice(&header.seq.0.to_le_bytes());
    out.extend_from_slice(&header.ack.0.to_le_bytes());
    out.extend_from_slice(&received.0.to_le_bytes());
    let (head, values) =
        content.map_or((&[][..], &[][..]), |content| (content.head(), content.values()));
    for part in [head, values] {
        let len = u16::try_from(part.len()).expect("packets are cut below the largest datagram");
        out.extend_from_slice(&len.to_le_bytes());
    }
    out.extend_from_slice(head);
    out.extend_from_slice(values);
}

/// Reads a datagram.
///
/// # Errors
/// If no sound node can have sent it.
pub(crate) fn read(bytes: &[u8]) -> Result<Datagram<'_>, LinkError> {
    parse(bytes).ok_or(LinkError::Malformed)
}

fn write_start(out: &mut Vec<u8>, kind: u8, from: NonZeroU32, to: Option<NonZeroU32>) {
    out.clear();
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&from.get().to_le_bytes());
    out.extend_from_slice(&to.map_or(0, NonZeroU32::get).to_le_bytes());
}

fn parse(bytes: &[u8]) -> Option<Datagram<'_>> {
    let (&[version, kind], bytes) = bytes.split_first_chunk()?;
    let (from, bytes) = bytes.split_first_chunk()?;
    let (to, bytes) = bytes.split_first_chunk()?;
    let from = NonZeroU32::new(u32::from_le_bytes(*from))?;
    let to = NonZeroU32::new(u32::from_le_bytes(*to));
    if version != VERSION {
        return None;
    }
    let packet = match kind {
        HELLO => bytes.is_empty().then_some(None),
        _ => parse_packet(kind, bytes).filter(|_| to.is_some()).map(Some),
    };
    Some(Datagram { from, to, packet: packet? })
}

fn parse_packet(kind: u8, bytes: &[u8]) -> Option<DatagramPacket<'_>> {
    let flags = kind & 0xf0;
    let kind = match kind & 0x0f {
        DATA => Kind::Data,
        PART => Kind::Part,
        BYE => Kind::Bye,
        ACK => Kind::Ack,
        HEARTBEAT => Kind::Heartbeat,
        _ => return None,
    };
    let (seq, bytes) = bytes.split_first_chunk()?;
    let (ack, bytes) = bytes.split_first_chunk()?;
    let (received, bytes) = bytes.split_first_chunk()?;
    let (head, bytes) = bytes.split_first_chunk()?;
    let (values, bytes) = bytes.split_first_chunk()?;
    let (head, values) = (u16::from_le_bytes(*head), u16::from_le_bytes(*values));
    let is_whole = bytes.len() == usize::from(head) + usize::from(values);
    let may_carry = matches!(kind, Kind::Data | Kind::Part | Kind::Bye);
    if flags & !WANTS_ACK != 0 || !is_whole || !(may_carry || bytes.is_empty()) {
        return None;
    }
    let (head, values) = bytes.split_at(usize::from(head));
    let (seq, ack) = (Seq(u64::from_le_bytes(*seq)), Seq(u64::from_le_bytes(*ack)));
    Some(DatagramPacket {
        header: Header { kind, seq, ack, wants_ack: flags & WANTS_ACK != 0 },
        received: Selective(u128::from_le_bytes(*received)),
        head,
        values,
    })
}

const VERSION: u8 = 2;
const HELLO: u8 = 0;
const DATA: u8 = 1;
const PART: u8 = 2;
const BYE: u8 = 3;
const ACK: u8 = 4;
const HEARTBEAT: u8 = 5;
const WANTS_ACK: u8 = 0x10;

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec;

    use super::*;
    use crate::transport::Frame;

    fn life(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("not zero")
    }

    fn packet() -> Vec<u8> {
        let mut frame = Frame { head: vec![7, 8, 9], ..Frame::default() };
        frame.values.push_bytes(&[1, 2, 3, 4]);
        let header = Header { kind: Kind::Part, seq: Seq(3), ack: Seq(1 << 40), wants_ack: true };
        let mut bytes = vec![0; 3];
        let content = Content::whole(Arc::new(frame));
        write_packet(&mut bytes, (life(5), life(6)), header, Selective(5), Some(&content));
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = packet();
        assert_eq!(bytes.len(), DATAGRAM_HEADER_BYTES + 7);
        let Datagram { from, to, packet } = read(&bytes).expect("it was written");
        let packet = packet.expect("it is no hello");
        assert_eq!((from, to), (life(5), Some(life(6))));
        assert_eq!((packet.head, packet.values), (&[7, 8, 9][..], &[1, 2, 3, 4][..]));
        let header = Header { kind: Kind::Part, seq: Seq(3), ack: Seq(1 << 40), wants_ack: true };
        assert!(packet.header == header && packet.received == Selective(5));

        let mut hello = Vec::new();
        write_hello(&mut hello, life(9), None);
        assert_eq!(read(&hello), Ok(Datagram { from: life(9), to: None, packet: None }));
    }

    #[test]
    fn a_selective_acknowledgement_names_numbers_within_its_reach() {
        let numbers = [5, 7, 132, 133, 500].map(Seq);
        let received = Selective::new(Seq(5), numbers.into_iter());
        assert!(received.numbers(Seq(5)).eq([5, 7, 132].map(Seq)));
        assert_eq!(Selective::new(Seq(5), [].into_iter()).numbers(Seq(5)).next(), None);
    }

    #[test]
    fn a_cut_or_longer_datagram_is_refused() {
        let bytes = packet();
        // Behind ten bytes a hello would end, but this is none.
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len]), Err(LinkError::Malformed), "{len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(read(&longer), Err(LinkError::Malformed));
    }

    #[test]
    fn unknown_kinds_flags_and_versions_are_refused() {
        for (at, value) in [(0, 0), (0, 1), (1, 6), (1, 0x21), (1, 0x80), (1, 4), (1, 0)] {
            let mut bytes = packet();
            bytes[at] = value;
            assert_eq!(read(&bytes), Err(LinkError::Malformed), "byte {at} is {value}");
        }
        let mut nobody = packet();
        nobody[2..6].fill(0);
        assert_eq!(read(&nobody), Err(LinkError::Malformed));
        let mut unmet = packet();
        unmet[6..10].fill(0);
        assert_eq!(read(&unmet), Err(LinkError::Malformed));
    }
}
