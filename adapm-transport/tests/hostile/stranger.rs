//! Whoever is not a node: speaks the wire format by hand, says what it likes, and sees what is answered.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use adapm_core::NodeId;
use adapm_core::link::{self, Seq};
use adapm_core::testing::silence::patience;
use adapm_core::transport::Frame;
use adapm_transport::net::hello::{ClusterId, Dialing, Ending, Identity, Incarnation, Met, Refusal, Step};
use adapm_transport::net::packet::{Fault, Greeting, Kind, Outgoing, Packet, PacketReader, Spares, seal};

use crate::crew::{DIGEST, token};

/// One connection.
pub(crate) struct Stranger {
    pub(crate) stream: TcpStream,
    reader: PacketReader,
}

impl Stranger {
    /// Connects and says nothing.
    pub(crate) fn dial(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).expect("the node listens"))
    }

    /// Takes the next connection of `listener`.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        Self::of(listener.accept().expect("the node dials").0)
    }

    /// Speaks on a connection that stands.
    pub(crate) fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(patience())).expect("not zero");
        stream.set_write_timeout(Some(patience())).expect("not zero");
        stream.set_nodelay(true).expect("it is TCP");
        Self { stream, reader: PacketReader::new(16 << 20) }
    }

    /// Dials and shakes hands, as `identity`, with node `to`, on a link that goes on at `expects`.
    pub(crate) fn meet(
        address: SocketAddr,
        identity: Identity,
        to: u16,
        expects: Seq,
    ) -> Result<(Self, Met), Refusal> {
        Self::meet_as(address, identity, to, None, expects)
    }

    /// The same, on the grounds that it has met the life `knows` of that node before.
    pub(crate) fn meet_knowing(
        address: SocketAddr,
        identity: Identity,
        to: u16,
        knows: Incarnation,
    ) -> Result<(Self, Met), Refusal> {
        Self::meet_as(address, identity, to, Some(knows), Seq(0))
    }

    fn meet_as(
        address: SocketAddr,
        identity: Identity,
        to: u16,
        knows: Option<Incarnation>,
        expects: Seq,
    ) -> Result<(Self, Met), Refusal> {
        let mut stranger = Self::dial(address);
        let (mut dialing, mut message) =
            Dialing::new(identity, Some(token(1)), NodeId(to), knows, expects, [9; 32]);
        loop {
            stranger.greet(message.greeting, &message.bytes);
            let packet = stranger.hear().expect("a node answers a greeting");
            let Kind::Greeting(greeting) = packet.kind else { panic!("no greeting: {packet:?}") };
            match dialing.handle(greeting, &packet.frame.head) {
                Ok(Step::Send(next)) => message = next,
                Ok(Step::Met(met)) => return Ok((stranger, met)),
                Err(Ending::Theirs(refusal)) => return Err(refusal),
                Err(Ending::Ours(refusal)) => panic!("the node is wrong: {refusal}"),
            }
        }
    }

    /// Sends bytes; that the other side has closed already is no error.
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
    pub(crate) fn flood(&mut self, kind: link::Kind, seqs: impl Iterator<Item = u64>, head: &[u8]) -> bool {
        let frame = || Frame { head: head.to_vec(), ..Frame::default() };
        let packets: Vec<Vec<u8>> = seqs.map(|seq| bytes_of(Kind::Link(kind), seq, 0, frame())).collect();
        packets.chunks(1_000).all(|some| self.say(&some.concat()))
    }

    fn send(&mut self, kind: Kind, seq: u64, ack: u64, frame: Frame) -> bool {
        self.say(&bytes_of(kind, seq, ack, frame))
    }

    /// The next packet.
    pub(crate) fn hear(&mut self) -> Result<Packet, Fault> {
        match self.reader.read(&mut self.stream, &mut Spares::default())? {
            Some(packet) => Ok(packet),
            None => panic!("nothing is said and nothing ends"),
        }
    }

    /// Reads until the connection ends; the reason if the node has told one.
    pub(crate) fn hear_end(&mut self) -> Option<Refusal> {
        let mut told = None;
        loop {
            match self.hear() {
                Ok(packet) if packet.kind == Kind::Greeting(Greeting::Refuse) => {
                    let (mut dialing, _) = Dialing::new(identity(3), None, NodeId(0), None, Seq(0), [9; 32]);
                    told = match dialing.handle(Greeting::Refuse, &packet.frame.head) {
                        Err(Ending::Theirs(refusal)) => Some(refusal),
                        other => panic!("a refusal that makes no sense: {other:?}"),
                    };
                }
                Ok(_) => {}
                Err(_) => return told,
            }
        }
    }

    /// Reads until the connection ends, whatever comes; how many bytes came.
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

/// A packet as it goes over the wire.
pub(crate) fn bytes_of(kind: Kind, seq: u64, ack: u64, frame: Frame) -> Vec<u8> {
    Outgoing::new(kind, Seq(seq), Seq(ack), Some(Arc::new(frame))).parts().concat()
}

/// A header of a sender that claims these lengths, with whatever checksum of what is to follow.
pub(crate) fn claim(kind: u8, head: u32, values: u32) -> Vec<u8> {
    let mut bytes = bytes_of(Kind::Link(link::Kind::Data), 0, 0, Frame::default());
    bytes[2] = kind;
    bytes[4..8].copy_from_slice(&head.to_le_bytes());
    bytes[8..12].copy_from_slice(&values.to_le_bytes());
    seal((&mut bytes[..]).try_into().expect("a header alone"));
    bytes
}

/// A greeting as another version of the protocol would send it: everything behind the first four bytes may differ.
pub(crate) fn packet_of_version(version: u8, greeting: Greeting) -> Vec<u8> {
    let mut bytes = bytes_of(Kind::Greeting(greeting), 0, 0, Frame { head: vec![3; 50], ..Frame::default() });
    bytes[3] = version;
    bytes
}

/// What a sound node would say of itself.
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

/// Where a stranger listens.
pub(crate) fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port")
}
