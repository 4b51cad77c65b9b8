//! The parts of the scene: identities of the nodes, their messages, and the wire format.

use std::sync::OnceLock;

use adapm_core::NodeId;
use adapm_core::link::Seq;
use adapm_core::transport::Frame;

use crate::net::hello::{Dialing, GREETING_BYTES_MAX, Identity, Listening, Met, Step, Token};
use crate::net::noise::{Initiator, LinkSecret, Recordings, respond};
use crate::net::packet::{Greeting, Incoming, PacketReader, Spares};
use crate::testing::{Pieces, token};

/// Returns the meeting of `to` with `own`, which has the token and the secret `link`.
pub(super) fn introduced(
    own: Identity,
    to: Identity,
    link: Option<LinkSecret>,
    entropy: [[u8; 32]; 2],
) -> Met {
    let to_whom = (to.node, Some(to.incarnation), link);
    let (mut dialing, open) = Dialing::new(own, Some(&secret()), to_whom, Seq(0), entropy[0]);
    let mut listening = Listening::new(to, Some(secret()), entropy[1]);
    let mut recordings = Recordings::default();
    let opened = listening.handle(Greeting::Open, &open.bytes, &mut recordings);
    let Ok(Step::Open { last: Some(opened), .. }) = opened else { panic!("it has the token") };
    let step = dialing.handle(Greeting::Opened, &opened.bytes);
    let Ok(Step::Open { first, last, .. }) = step else { panic!("it has the token") };
    let hello = first.or(last).expect("it says who it is");
    match listening.handle(Greeting::Hello, &hello.bytes, &mut recordings) {
        Ok(Step::Met(met)) => met,
        other => panic!("it has the token: {other:?}"),
    }
}

/// Returns the packet that `bytes` consist of, if they are exactly one.
pub(super) fn packet_of(bytes: &[u8]) -> Option<Incoming> {
    let mut reader = PacketReader::new(GREETING_BYTES_MAX);
    let mut source = Pieces::blocking(bytes, vec![usize::MAX]);
    let packet = reader.read(&mut source, &mut Spares::default()).ok().flatten();
    packet.filter(|_| !reader.is_within())
}

/// Returns a frame with its sender and its number; some are cut into parts.
pub(super) fn frame(node: NodeId, number: u64) -> Frame {
    let mut frame = Frame { head: number.to_le_bytes().to_vec(), ..Frame::default() };
    frame.head.push(node.0 as u8);
    frame.values.resize(if number % 3 == 2 { 250 } else { (number % 3 * 4) as usize });
    frame.values.bytes_mut().fill(number as u8 ^ 0x5a);
    frame
}

/// Returns the secret of another link, which the impostor has itself.
pub(super) fn link_of_others() -> LinkSecret {
    static LINK: OnceLock<LinkSecret> = OnceLock::new();
    let link = LINK.get_or_init(|| {
        let (_, first) = Initiator::start(&secret(), [7; 32]);
        respond(&secret(), &first, [8; 32]).expect("it has the token").1.link
    });
    link.clone()
}

pub(super) fn secret() -> Token {
    token(1)
}

/// Returns the encoding of a number in a message.
pub(super) fn postcard_of(number: u64) -> [u8; 8] {
    let mut bytes = [0; 8];
    (0..8).for_each(|at| bytes[at] = (number >> (7 * at)) as u8 | 0x80);
    bytes
}
