//! Target `handshake`: whatever a stranger sends, at either side and in any pieces, a handshake ends without a panic and in
//! bounded memory; nobody is believed who does not know the token, and nobody learns more than that before.
//!
//! The stranger makes packets of what it has heard of this handshake and of an earlier one between honest nodes, of what it
//! would say itself with another token or none, and of noise; the packets come through the reader as over a pipe. Sometimes
//! it knows the token: then what it says of itself decides. Not here: deadlines, and what an endpoint does with a peer.

use std::sync::OnceLock;

use adapm_core::NodeId;
use adapm_core::link::Seq;
use adapm_core::testing::arb::Choices;
use adapm_transport::net::hello::{
    Dialing, Ending, GREETING_BYTES_MAX, Identity, Incarnation, Listening, Message, Met, Refusal, Step,
};
use adapm_transport::net::packet::{Greeting, Kind, Outgoing, PacketReader, Spares};
use adapm_transport::net::{ClusterId, Token};
use adapm_transport::testing::Pieces;

/// The victim, and the nodes of its cluster.
const VICTIM: NodeId = NodeId(1);
const NODES: u32 = 4;

/// Packets of one input at most.
const PACKETS_MAX: usize = 12;

/// Bytes that the content of a packet may take while the peer is not known.
const MEMORY_MAX: usize = 4 << 10;

/// Shakes hands as `bytes` choose; true if the stranger came further than its first message.
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

/// The side under test.
enum Victim {
    Dialing(Dialing),
    Listening(Listening),
}

struct Scene {
    victim: Victim,
    /// Whether the victim has a token that the stranger does not know.
    is_guarded: bool,
    reader: PacketReader,
    spares: Spares,
    /// Whatever the stranger can make messages of.
    pool: Vec<Message>,
    /// How the stranger would do it by the book.
    book: Victim,
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
        let mut pool = earlier().to_vec();
        let (victim, book) = if dials {
            let (dialing, hello) = Dialing::new(own, token, NodeId(0), None, Seq(3), [1; 32]);
            pool.push(hello);
            (Victim::Dialing(dialing), Victim::Listening(Listening::new(identity, theirs, [2; 32])))
        } else {
            let knows = choices.flag().then_some(Incarnation(5));
            let (dialing, hello) = Dialing::new(identity, theirs, to, knows, Seq(choices.number()), [2; 32]);
            pool.push(hello);
            (Victim::Listening(Listening::new(own, token, [1; 32])), Victim::Dialing(dialing))
        };
        Self {
            victim,
            is_guarded: has_token && !knows_token,
            reader: PacketReader::new(GREETING_BYTES_MAX),
            spares: Spares::default(),
            pool,
            book,
            said: 0,
            is_deep: false,
            is_over: false,
        }
    }

    /// The next bytes of the stranger.
    fn packet(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        let message = match choices.below(8) {
            // What the stranger has at last, or what the book makes of it.
            0..3 => self.pool.last().cloned().expect("there was an earlier handshake"),
            3..5 => self.by_the_book(),
            5 => return (0..choices.below(64)).map(|_| choices.below(256) as u8).collect(),
            _ => self.patched(choices),
        };
        let mut packet = Outgoing::greeting(Kind::Greeting(message.greeting), message.bytes).parts().concat();
        if choices.below(16) == 15 {
            let at = choices.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << choices.below(8);
        }
        packet
    }

    fn by_the_book(&mut self) -> Message {
        let last = self.pool.last().cloned().expect("there was an earlier handshake");
        let step = self.book.handle(last.greeting, &last.bytes);
        match step {
            Ok(Step::Send(message)) => message,
            Ok(Step::Met(_)) => Listening::accept(Seq(9)),
            Err(Ending::Ours(refusal) | Ending::Theirs(refusal)) => Message::refuse(refusal),
        }
    }

    /// A message of parts of two others.
    fn patched(&self, choices: &mut Choices<'_>) -> Message {
        let kinds = [Greeting::Hello, Greeting::Welcome, Greeting::Proof, Greeting::Ready, Greeting::Refuse];
        let mut bytes = Vec::new();
        for _ in 0..choices.below(3) {
            let part = &self.pool[choices.below(self.pool.len() as u64) as usize].bytes;
            let from = choices.below(part.len() as u64) as usize;
            let to = from + choices.below((part.len() - from) as u64 + 1) as usize;
            bytes.extend_from_slice(&part[from..to]);
        }
        for _ in 0..choices.below(4) {
            let at = choices.below(bytes.len() as u64 + 1) as usize;
            bytes.insert(at, choices.below(256) as u8);
        }
        Message { greeting: kinds[choices.below(5) as usize], bytes }
    }

    /// The bytes arrive, in pieces.
    fn arrive(&mut self, bytes: &[u8], choices: &mut Choices<'_>) {
        let mut source = Pieces::blocking(bytes, vec![1 + choices.below(200) as usize]);
        while !self.is_over && !source.is_used_up() {
            match self.reader.read(&mut source, &mut self.spares) {
                Ok(Some(packet)) => {
                    let held = packet.frame.head.capacity() + packet.frame.values.len();
                    assert!(held <= MEMORY_MAX, "a stranger takes {held} bytes");
                    if let Kind::Greeting(greeting) = packet.kind {
                        self.hear(greeting, &packet.frame.head);
                    }
                }
                Ok(None) => {}
                Err(_) => self.is_over = true,
            }
        }
    }

    /// The victim hears a message of the stranger.
    fn hear(&mut self, greeting: Greeting, bytes: &[u8]) {
        self.said += 1;
        let step = self.victim.handle(greeting, bytes);
        match step {
            Ok(Step::Send(message)) => {
                let believes = matches!(self.victim, Victim::Dialing(_));
                assert!(
                    !(believes && self.is_guarded),
                    "a listener is believed that does not know the token"
                );
                assert!(message.bytes.len() <= GREETING_BYTES_MAX, "a message too long for its receiver");
                self.pool.push(message);
                self.is_deep = true;
            }
            Ok(Step::Met(met)) => {
                assert!(!self.is_guarded, "somebody is believed who does not know the token");
                self.check(&met);
                (self.is_deep, self.is_over) = (true, true);
            }
            Err(Ending::Ours(refusal)) => {
                let tells = matches!(refusal, Refusal::Cluster | Refusal::Token(_) | Refusal::Malformed);
                assert!(tells || !self.is_guarded, "a stranger is told {refusal:?}");
                let told = Message::refuse(refusal);
                assert!(told.bytes.len() <= GREETING_BYTES_MAX, "a refusal too long for its receiver");
                self.end(refusal);
            }
            Err(Ending::Theirs(refusal)) => self.end(refusal),
        }
    }

    fn end(&mut self, refusal: Refusal) {
        assert!(!refusal.to_string().contains(char::is_control), "a refusal is one line: {refusal:?}");
        self.is_over = true;
        self.is_deep |= self.said > 1;
    }

    /// Whom the victim has met can only be a node of its cluster that may be there.
    fn check(&self, met: &Met) {
        let dials = matches!(self.victim, Victim::Dialing(_));
        let may =
            if dials { met.node == NodeId(0) } else { met.node > VICTIM && u32::from(met.node.0) < NODES };
        assert!(may, "the victim has met {met:?}");
    }
}

impl Victim {
    fn handle(&mut self, greeting: Greeting, bytes: &[u8]) -> Result<Step, Ending> {
        match self {
            Self::Dialing(dialing) => dialing.handle(greeting, bytes),
            Self::Listening(listening) => listening.handle(greeting, bytes),
        }
    }
}

/// What honest nodes said with the same token at another time.
fn earlier() -> &'static [Message] {
    static EARLIER: OnceLock<Vec<Message>> = OnceLock::new();
    EARLIER.get_or_init(|| {
        let honest = |node: u16| (identity(NodeId(node)), Some(token(1)));
        let ((dialer, one), (listener, other)) = (honest(2), honest(1));
        let (mut dialing, hello) = Dialing::new(dialer, one, VICTIM, None, Seq(0), [8; 32]);
        let mut listening = Listening::new(listener, other, [9; 32]);
        let mut said = vec![hello];
        for _ in 0..2 {
            let last = said.last().expect("a hello");
            let Ok(Step::Send(answer)) = listening.handle(last.greeting, &last.bytes) else { break };
            let next = dialing.handle(answer.greeting, &answer.bytes);
            said.push(answer);
            let Ok(Step::Send(next)) = next else { break };
            said.push(next);
        }
        assert_eq!(said.len(), 3, "hello, welcome and proof");
        said
    })
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

/// What the stranger says of itself: mostly what fits.
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
