//! Target `handshake`: whatever a stranger sends, at either side and in any pieces, a handshake
//! ends without a panic and in bounded memory; no peer without the token is accepted, and none
//! learns a node's identity before it has proven the token.
//!
//! The stranger builds packets from those of this handshake and of an earlier one between honest
//! nodes, from a regular handshake with another token or none, and from noise; the packets come
//! through the reader as over a pipe. Sometimes it knows the token, and even the secret of the
//! link: then its claimed identity decides. Not here: deadlines, and the endpoint's handling of a
//! peer.

use std::sync::OnceLock;

use adapm_core::NodeId;
use adapm_core::link::Seq;
use adapm_transport::net::hello::{
    Ending, GREETING_BYTES_MAX, HandshakeError, Identity, Incarnation, Message, Met,
};
use adapm_transport::net::noise::{LinkSecret, Recordings};
use adapm_transport::net::packet::{
    CLEAR_BYTES, Draft, Greeting, HEADER_BYTES, Incoming, PacketReader, Spares, finish,
};
use adapm_transport::net::{ClusterId, Token};
use adapm_transport::testing::{Heard, Pieces, Speaker};
use adapm_verify::arb::Choices;

/// The victim, and the nodes of its cluster.
const VICTIM: NodeId = NodeId(1);
const NODES: u32 = 4;

/// Maximum number of packets in one input.
const PACKETS_MAX: usize = 12;

/// Maximum bytes of a packet from an unknown peer.
const MEMORY_MAX: usize = 4 << 10;

/// Shakes hands as `bytes` choose. Returns true if the stranger got beyond its first message.
pub fn handshake(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let mut scene = Scene::new(&mut choices);
    for _ in 0..PACKETS_MAX {
        if choices.is_exhausted() || scene.is_over {
            break;
        }
        let packet = scene.packet(&mut choices);
        scene.arrive(&packet, &mut choices);
    }
    scene.is_deep
}

struct Scene {
    victim: Speaker,
    dials: bool,
    /// True if the victim has a token that the stranger does not know.
    is_guarded: bool,
    /// The link that the victim has with node 0, and true if the stranger knows its secret.
    link: Option<(LinkSecret, bool)>,
    reader: PacketReader,
    spares: Spares,
    recordings: Recordings,
    /// Packets that the stranger has received, which it can reuse.
    pool: Vec<Vec<u8>>,
    /// A regular handshake of the stranger, with its next packet.
    book: Speaker,
    next: Option<Vec<u8>>,
    said: usize,
    is_deep: bool,
    is_over: bool,
}

impl Scene {
    fn new(choices: &mut Choices<'_>) -> Self {
        let shape = choices.below(16);
        let (dials, has_token, knows_token) = (shape & 1 == 0, shape & 6 != 0, shape & 8 != 0);
        let token = has_token.then(|| token(1));
        let theirs = match (knows_token, choices.below(3)) {
            (true, _) => token.clone(),
            (false, 0) => None,
            (false, _) => Some(self::token(2)),
        };
        let identity = liar(choices);
        let own = self::identity(VICTIM);
        let to = NodeId(choices.below(4) as u16);
        let link = (has_token && choices.flag()).then(|| (earlier().link.clone(), choices.flag()));
        let secret = link.as_ref().map(|(link, _)| link.clone());
        let mut pool = earlier().said.clone();
        let (victim, book, next) = if dials {
            let to = (NodeId(0), link.as_ref().map(|_| Incarnation(100)), secret);
            let (victim, open) = Speaker::dial(own, token.as_ref(), to, Seq(3), [0x11; 32]);
            pool.push(open);
            (victim, Speaker::listen(identity, theirs, [0x22; 32]), None)
        } else {
            let knows = choices.flag().then_some(Incarnation(5));
            let known = link.as_ref().filter(|(_, is_known)| *is_known).and(secret);
            let expects = Seq(choices.number());
            let (book, open) =
                Speaker::dial(identity, theirs.as_ref(), (to, knows, known), expects, [0x22; 32]);
            (Speaker::listen(own, token, [0x11; 32]), book, Some(open))
        };
        Self {
            victim,
            dials,
            is_guarded: has_token && !knows_token,
            link,
            reader: PacketReader::new(GREETING_BYTES_MAX),
            spares: Spares::default(),
            recordings: Recordings::default(),
            pool,
            book,
            next,
            said: 0,
            is_deep: false,
            is_over: false,
        }
    }

    /// Returns the next bytes of the stranger.
    fn packet(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        let mut packet = match choices.below(8) {
            // The regular answer to the last packet.
            0..5 => self.by_the_book(choices),
            5 => return (0..choices.below(64)).map(|_| choices.below(256) as u8).collect(),
            6 => self.pool[choices.below(self.pool.len() as u64) as usize].clone(),
            _ => self.patched(choices),
        };
        if choices.below(16) == 15 {
            let at = choices.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << choices.below(8);
            if let Some(clear) = packet.first_chunk_mut::<CLEAR_BYTES>().filter(|_| choices.flag())
            {
                finish(clear);
            }
        }
        packet
    }

    fn by_the_book(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        if let Some(next) = self.next.take() {
            return next;
        }
        let last = self.pool.last().cloned().expect("there was an earlier handshake");
        let known =
            self.link.as_ref().filter(|(_, is_known)| *is_known).map(|(link, _)| link.clone());
        let Some(packet) = packet_of(&last) else { return last };
        match self.book.hear(packet, &mut Recordings::default()) {
            Heard::Say(bytes) => bytes,
            // Only a listening side has to answer that.
            Heard::Met(_) if self.dials => self.book.accept(Seq(choices.number()), known.as_ref()),
            Heard::Met(_) => self.patched(choices),
            Heard::Ended(Ending::Ours { refusal, .. } | Ending::Theirs { refusal, .. }) => {
                self.book.bytes(Message::refuse(refusal))
            }
            Heard::Fault(_) => last,
        }
    }

    /// Returns a packet with parts of two others, under a right checksum or the stranger's keys.
    fn patched(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        let kinds = [
            Greeting::Open,
            Greeting::Opened,
            Greeting::Hello,
            Greeting::Welcome,
            Greeting::Refuse,
        ];
        let mut bytes = Vec::new();
        for _ in 0..choices.below(3) {
            let part = &self.pool[choices.below(self.pool.len() as u64) as usize];
            let from = HEADER_BYTES.min(part.len())
                + choices.below(part.len().saturating_sub(HEADER_BYTES) as u64 + 1) as usize;
            let from = from.min(part.len());
            let to = from + choices.below((part.len() - from) as u64 + 1) as usize;
            bytes.extend_from_slice(&part[from..to]);
        }
        for _ in 0..choices.below(4) {
            let at = choices.below(bytes.len() as u64 + 1) as usize;
            bytes.insert(at, choices.below(256) as u8);
        }
        let draft = Draft::greeting(kinds[choices.below(5) as usize], bytes);
        if choices.flag() { self.book.protect(draft) } else { draft.check().parts().concat() }
    }

    /// Delivers bytes to the victim, in pieces.
    fn arrive(&mut self, bytes: &[u8], choices: &mut Choices<'_>) {
        let mut source = Pieces::blocking(bytes, vec![1 + choices.below(200) as usize]);
        while !self.is_over && !source.is_used_up() {
            match self.reader.read(&mut source, &mut self.spares) {
                Ok(Some(packet)) => self.hear(packet),
                Ok(None) => {}
                Err(_) => self.is_over = true,
            }
        }
    }

    /// Delivers a packet of the stranger to the victim.
    fn hear(&mut self, packet: Incoming) {
        assert!(packet.bytes() <= MEMORY_MAX, "a stranger takes {} bytes", packet.bytes());
        self.said += 1;
        match self.victim.hear(packet, &mut self.recordings) {
            Heard::Say(bytes) => {
                assert!(bytes.len() <= MEMORY_MAX, "a message too long for its receiver");
                assert!(
                    !(self.dials && self.is_guarded),
                    "a listener is believed that does not know the token"
                );
                self.pool.push(bytes);
                self.is_deep = true;
            }
            Heard::Met(met) => {
                assert!(!self.is_guarded, "somebody is believed who does not know the token");
                self.check(&met);
                (self.is_deep, self.is_over) = (true, true);
            }
            Heard::Ended(Ending::Ours { refusal, .. }) => {
                let tells = matches!(
                    refusal,
                    HandshakeError::Token(_) | HandshakeError::Malformed | HandshakeError::Repeated
                );
                assert!(tells || !self.is_guarded, "a stranger is told {refusal:?}");
                self.end(refusal);
            }
            Heard::Ended(Ending::Theirs { refusal, is_sure }) => {
                let knows_link = self.link.as_ref().is_none_or(|(_, is_known)| *is_known);
                assert!(!(is_sure && self.is_guarded), "a stranger ends a run by {refusal:?}");
                assert!(
                    !(is_sure && self.dials) || knows_link,
                    "a member ends the link of another by {refusal:?}"
                );
                self.end(refusal);
            }
            Heard::Fault(_) => self.is_over = true,
        }
    }

    fn end(&mut self, refusal: HandshakeError) {
        assert!(
            !refusal.to_string().contains(char::is_control),
            "a refusal is one line: {refusal:?}"
        );
        self.is_over = true;
        self.is_deep |= self.said > 1;
    }

    /// Checks that the peer met by the victim is a possible node of its cluster, and has the link's
    /// secret only if it knows it.
    fn check(&self, met: &Met) {
        let may = if self.dials {
            met.node == NodeId(0)
        } else {
            met.node > VICTIM && u32::from(met.node.0) < NODES
        };
        assert!(may, "the victim has met {met:?}");
        let claims = |link: &LinkSecret| met.claim.as_ref().is_some_and(|claim| claim.knows(link));
        let is_stolen =
            self.link.as_ref().is_some_and(|(link, is_known)| !is_known && claims(link));
        assert!(!is_stolen, "a link is taken over without its secret");
    }
}

/// Packets of honest nodes with the same token at another time, and the secret of their link.
struct Earlier {
    said: Vec<Vec<u8>>,
    link: LinkSecret,
}

fn earlier() -> &'static Earlier {
    static EARLIER: OnceLock<Earlier> = OnceLock::new();
    EARLIER.get_or_init(|| {
        let (said, _, met) = meeting();
        let link = met
            .claim
            .and_then(|claim| claim.begins().cloned())
            .expect("they have met for the first time");
        Earlier { said, link }
    })
}

/// Returns both sides of a successful handshake.
pub(crate) fn shaken_hands() -> [Speaker; 2] {
    meeting().1
}

fn meeting() -> (Vec<Vec<u8>>, [Speaker; 2], Met) {
    let to = (VICTIM, None, None);
    let (mut dialing, open) =
        Speaker::dial(identity(NodeId(2)), Some(&token(1)), to, Seq(0), [0x88; 32]);
    let mut listening = Speaker::listen(identity(VICTIM), Some(token(1)), [0x99; 32]);
    let mut recordings = Recordings::default();
    let mut hear = |speaker: &mut Speaker, bytes: &[u8]| {
        speaker.hear(packet_of(bytes).expect("a sound packet"), &mut recordings)
    };
    let Heard::Say(opened) = hear(&mut listening, &open) else { panic!("the same token") };
    let Heard::Say(hello) = hear(&mut dialing, &opened) else { panic!("the same token") };
    let Heard::Met(met) = hear(&mut listening, &hello) else { panic!("the same cluster") };
    let welcome = listening.accept(Seq(0), None);
    assert!(matches!(hear(&mut dialing, &welcome), Heard::Met(_)), "the same cluster");
    (vec![open, opened, hello, welcome], [dialing, listening], met)
}

/// Returns the packet at the beginning of `bytes`.
fn packet_of(bytes: &[u8]) -> Option<Incoming> {
    let mut source = Pieces::blocking(bytes, vec![usize::MAX]);
    PacketReader::new(GREETING_BYTES_MAX).read(&mut source, &mut Spares::default()).ok().flatten()
}

fn identity(node: NodeId) -> Identity {
    Identity {
        cluster: ClusterId(7),
        node,
        nodes: NODES,
        channel: 1,
        layout_digest: 99,
        incarnation: Incarnation(u64::from(node.0) + 100),
    }
}

/// Chooses the identity that the stranger claims: mostly a fitting one.
fn liar(choices: &mut Choices<'_>) -> Identity {
    let mut identity = identity(NodeId([0, 2, 3, 0, 2, 3, 1, 9][choices.below(8) as usize]));
    match choices.below(16) {
        0 => identity.cluster = ClusterId(choices.number()),
        1 => identity.nodes = choices.number() as u32,
        2 => identity.channel = choices.below(8) as u16,
        3 => identity.layout_digest = choices.number(),
        _ => {}
    }
    identity
}

fn token(seed: u8) -> Token {
    adapm_transport::testing::token(seed)
}
