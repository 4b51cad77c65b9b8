//! A stranger, which speaks the wire format by hand, sends anything, and inspects the answers.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::NodeId;
use adapm_core::link::{self, Seq};
use adapm_core::transport::Frame;
use adapm_transport::net::Token;
use adapm_transport::net::hello::{
    ClusterId, Ending, HandshakeError, Identity, Incarnation, Listening, Message, Met,
};
use adapm_transport::net::noise::{LinkSecret, Recordings};
use adapm_transport::net::packet::{
    CLEAR_BYTES, Draft, Fault, Greeting, Incoming, Kind, Packet, PacketReader, Spares, finish,
};
use adapm_transport::testing::{Heard, Speaker};
use adapm_verify::silence::patience;

use crate::sound::{DIGEST, token};

/// One connection.
pub(crate) struct Stranger {
    pub(crate) stream: TcpStream,
    reader: PacketReader,
    /// Protects its packets, once it has a key; before, and without one, everything is in the
    /// clear.
    speaker: Option<Speaker>,
}

/// The identity that a stranger claims, and the link that it wants.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    pub(crate) token: Option<Token>,
    pub(crate) to: u16,
    pub(crate) knows: Option<Incarnation>,
    pub(crate) link: Option<LinkSecret>,
    pub(crate) expects: Seq,
}

impl Caller {
    /// Creates `identity` with the right token, which meets node `to` for the first time.
    pub(crate) fn new(identity: Identity, to: u16) -> Self {
        Self { identity, token: Some(token(1)), to, knows: None, link: None, expects: Seq(0) }
    }
}

impl Stranger {
    /// Connects and sends nothing.
    pub(crate) fn dial(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).expect("the node listens"))
    }

    /// Takes the next connection of `listener`.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        Self::of(listener.accept().expect("the node dials").0)
    }

    /// Speaks on an existing connection.
    pub(crate) fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(patience())).expect("not zero");
        stream.set_write_timeout(Some(patience())).expect("not zero");
        stream.set_nodelay(true).expect("it is TCP");
        Self { stream, reader: PacketReader::new(16 << 20), speaker: None }
    }

    /// Dials and shakes hands, as `identity`, with node `to`, on a link that goes on at `expects`.
    pub(crate) fn meet(
        address: SocketAddr,
        identity: Identity,
        to: u16,
        expects: Seq,
    ) -> Result<(Self, Met), HandshakeError> {
        Self::meet_as(address, Caller { expects, ..Caller::new(identity, to) })
    }

    /// Dials and shakes hands as that caller.
    pub(crate) fn meet_as(
        address: SocketAddr,
        caller: Caller,
    ) -> Result<(Self, Met), HandshakeError> {
        let Caller { identity, token, to, knows, link, expects } = caller;
        let mut stranger = Self::dial(address);
        let to = (NodeId(to), knows, link);
        let (speaker, open) = Speaker::dial(identity, token.as_ref(), to, expects, fresh());
        stranger.speaker = Some(speaker);
        stranger.say(&open);
        loop {
            match stranger.hear_greeting(&mut Recordings::default()) {
                Heard::Say(next) => stranger.say(&next),
                Heard::Met(met) => return Ok((stranger, met)),
                Heard::Ended(Ending::Theirs { refusal, .. }) => return Err(refusal),
                other => panic!("the node is wrong: {other:?}"),
            };
        }
    }

    /// Listens as `identity` with the right token, up to the welcome.
    pub(crate) fn serve(&mut self, identity: Identity) -> Met {
        self.speaker = Some(Speaker::listen(identity, Some(token(1)), fresh()));
        let mut recordings = Recordings::default();
        loop {
            match self.hear_greeting(&mut recordings) {
                Heard::Say(next) => self.say(&next),
                Heard::Met(met) => return met,
                other => panic!("the node is wrong: {other:?}"),
            };
        }
    }

    /// Sends, as the listening side, that both sessions go on.
    pub(crate) fn welcome(&mut self) {
        let welcome = self.speaker.as_mut().expect("it has served").accept(Seq(0), None);
        self.say(&welcome);
    }

    fn hear_greeting(&mut self, recordings: &mut Recordings) -> Heard {
        let packet = self.hear_any().expect("a node answers a greeting");
        self.speaker.as_mut().expect("a handshake has begun").hear(packet, recordings)
    }

    /// Sends bytes. Returns false if the other side has closed already.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a step of the handshake.
    pub(crate) fn greet(&mut self, greeting: Greeting, bytes: &[u8]) -> bool {
        let frame = Frame { head: bytes.to_vec(), ..Frame::default() };
        self.send(Kind::Greeting(greeting), 0, 0, frame)
    }

    /// Sends a packet of the link.
    pub(crate) fn link(&mut self, kind: link::Kind, seq: u64, ack: u64, head: &[u8]) -> bool {
        let frame = Frame { head: head.to_vec(), ..Frame::default() };
        self.send(Kind::Link(kind), seq, ack, frame)
    }

    /// Sends a packet of the link for each of these numbers, a thousand at a time.
    pub(crate) fn flood(
        &mut self,
        kind: link::Kind,
        seqs: impl Iterator<Item = u64>,
        head: &[u8],
    ) -> bool {
        let mut some = Vec::new();
        for (number, seq) in seqs.enumerate() {
            let frame = Frame { head: head.to_vec(), ..Frame::default() };
            some.extend(self.bytes_of(Kind::Link(kind), seq, 0, frame));
            if number % 1_000 == 999 && !self.say(&std::mem::take(&mut some)) {
                return false;
            }
        }
        self.say(&some)
    }

    fn send(&mut self, kind: Kind, seq: u64, ack: u64, frame: Frame) -> bool {
        let bytes = self.bytes_of(kind, seq, ack, frame);
        self.say(&bytes)
    }

    /// Returns a packet as it goes over this connection.
    pub(crate) fn bytes_of(&mut self, kind: Kind, seq: u64, ack: u64, frame: Frame) -> Vec<u8> {
        match &mut self.speaker {
            Some(speaker) => speaker.protect(Draft::new(kind, Seq(seq), Seq(ack), frame)),
            None => bytes_of(kind, seq, ack, frame),
        }
    }

    /// Returns the next packet.
    pub(crate) fn hear(&mut self) -> Result<Packet, Fault> {
        let packet = self.hear_any()?;
        match &mut self.speaker {
            Some(speaker) => speaker.believe(packet),
            None => packet.check(),
        }
    }

    /// Returns the next packet, unverified.
    pub(crate) fn hear_any(&mut self) -> Result<Incoming, Fault> {
        match self.reader.read(&mut self.stream, &mut Spares::default())? {
            Some(packet) => Ok(packet),
            None => panic!("nothing is said and nothing ends"),
        }
    }

    /// Reads until the connection ends. Returns the reason if the node has given one.
    pub(crate) fn hear_end(&mut self) -> Option<HandshakeError> {
        let mut told = None;
        loop {
            match self.hear() {
                Ok(packet) if packet.kind == Kind::Greeting(Greeting::Refuse) => {
                    let mut anybody = Listening::new(identity(0), None, fresh());
                    let ending = anybody.handle(
                        Greeting::Refuse,
                        &packet.frame.head,
                        &mut Recordings::default(),
                    );
                    told = match ending {
                        Err(Ending::Theirs { refusal, .. }) => Some(refusal),
                        other => panic!("a refusal that makes no sense: {other:?}"),
                    };
                }
                Ok(_) => {}
                Err(_) => return told,
            }
        }
    }

    /// Reads until the connection ends. Returns the number of bytes received.
    pub(crate) fn drain(&mut self) -> u64 {
        let mut piece = [0; 4096];
        let mut bytes = 0;
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return bytes,
                Ok(count) => bytes += count as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("the connection stays open")
                }
                Err(_) => return bytes,
            }
        }
    }
}

/// Returns a packet as it goes over the wire in the clear.
pub(crate) fn bytes_of(kind: Kind, seq: u64, ack: u64, frame: Frame) -> Vec<u8> {
    Draft::new(kind, Seq(seq), Seq(ack), frame).check().parts().concat()
}

/// Returns a message of a handshake in the clear.
pub(crate) fn in_the_clear(message: Message) -> Vec<u8> {
    message.into_draft().check().parts().concat()
}

/// Returns a header that claims these lengths, with an arbitrary checksum of the content.
pub(crate) fn claim(kind: u8, head: u32, values: u32) -> Vec<u8> {
    let mut bytes = bytes_of(Kind::Link(link::Kind::Data), 0, 0, Frame::default());
    bytes[2] = kind;
    bytes[4..8].copy_from_slice(&head.to_le_bytes());
    bytes[8..12].copy_from_slice(&values.to_le_bytes());
    finish((&mut bytes[..CLEAR_BYTES]).try_into().expect("a header alone"));
    bytes
}

/// Returns bytes that no other handshake of this test has used.
pub(crate) fn fresh() -> [u8; 32] {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0x5a; 32];
    bytes[8..16].copy_from_slice(&NUMBER.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    bytes
}

/// Returns a greeting of another version of the protocol: everything after the first four bytes may
/// differ.
pub(crate) fn packet_of_version(version: u8, greeting: Greeting) -> Vec<u8> {
    let mut bytes =
        bytes_of(Kind::Greeting(greeting), 0, 0, Frame { head: vec![3; 50], ..Frame::default() });
    bytes[3] = version;
    bytes
}

/// Returns the identity of a sound node.
pub(crate) fn identity(node: u16) -> Identity {
    Identity {
        cluster: ClusterId::default(),
        node: NodeId(node),
        nodes: 4,
        channel: 0,
        layout_digest: DIGEST,
        incarnation: Incarnation(1_000 + u64::from(node)),
    }
}

/// Opens the listener of a stranger.
pub(crate) fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port")
}
