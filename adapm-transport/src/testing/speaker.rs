//! One side of a handshake with the channel that it makes, without a pipe: packets in, bytes out.

use adapm_core::NodeId;
use adapm_core::link::Seq;

use crate::net::hello::{
    Dialing, Ending, Identity, Incarnation, Listening, Message, Met, Step, Token,
};
use crate::net::noise::{Channel, Entropy, LinkSecret, Recordings};
use crate::net::packet::{Draft, Fault, Incoming, Kind, Packet};

/// One side of a connection, up to and behind the handshake.
#[derive(Debug)]
pub struct Speaker {
    side: Side,
    channel: Channel,
}

#[derive(Debug)]
enum Side {
    Dialing(Dialing),
    Listening(Listening),
}

/// What a packet of a handshake has come to.
#[derive(Debug)]
pub enum Heard {
    /// These bytes are the answer.
    Say(Vec<u8>),
    /// The peer has said who it is; a listening side accepts or refuses it.
    Met(Met),
    /// The handshake is over.
    Ended(Ending),
    /// What came is no packet of the other side.
    Fault(Fault),
}

impl Speaker {
    /// A side that dials, and its first packet; as [`Dialing::new`].
    #[must_use]
    pub fn dial(
        own: Identity,
        token: Option<&Token>,
        to: (NodeId, Option<Incarnation>, Option<LinkSecret>),
        expects: Seq,
        entropy: Entropy,
    ) -> (Self, Vec<u8>) {
        let (dialing, message) = Dialing::new(own, token, to, expects, entropy);
        let mut speaker = Self { side: Side::Dialing(dialing), channel: Channel::default() };
        let bytes = speaker.bytes(message);
        (speaker, bytes)
    }

    /// A side that listens.
    #[must_use]
    pub fn listen(own: Identity, token: Option<Token>, entropy: Entropy) -> Self {
        let side = Side::Listening(Listening::new(own, token, entropy));
        Self { side, channel: Channel::default() }
    }

    /// The other side has sent a packet of the handshake.
    pub fn hear(&mut self, packet: Incoming, recordings: &mut Recordings) -> Heard {
        let packet = match self.channel.believe(packet) {
            Ok(packet) => packet,
            Err(fault) => return Heard::Fault(fault),
        };
        let Kind::Greeting(greeting) = packet.kind else { return Heard::Fault(Fault::Kind(0)) };
        let bytes = &packet.frame.head;
        let step = match &mut self.side {
            Side::Dialing(dialing) => dialing.handle(greeting, bytes),
            Side::Listening(listening) => listening.handle(greeting, bytes, recordings),
        };
        match step {
            Ok(Step::Open { last, channel, first }) => {
                let mut said = last.map(|message| self.bytes(message)).unwrap_or_default();
                self.channel = channel;
                said.extend(first.map(|message| self.bytes(message)).unwrap_or_default());
                Heard::Say(said)
            }
            Ok(Step::Met(met)) => Heard::Met(met),
            Err(ending) => Heard::Ended(ending),
        }
    }

    /// The last packet of a listening side: both sessions go on, with the link of that secret if
    /// there was one.
    ///
    /// # Panics
    /// If this side dials.
    pub fn accept(&mut self, expects: Seq, link: Option<&LinkSecret>) -> Vec<u8> {
        let Side::Listening(listening) = &self.side else {
            panic!("a dialing side accepts nobody")
        };
        let message = listening.accept(expects, link);
        self.bytes(message)
    }

    /// A message of a handshake, as this side protects it.
    pub fn bytes(&mut self, message: Message) -> Vec<u8> {
        self.channel.protect(message.into_draft()).parts().concat()
    }

    /// A packet of any kind, as this side protects it.
    pub fn protect(&mut self, draft: Draft) -> Vec<u8> {
        self.channel.protect(draft).parts().concat()
    }

    /// A packet of the other side.
    ///
    /// # Errors
    /// If it is not what the other side has sent next.
    pub fn believe(&mut self, packet: Incoming) -> Result<Packet, Fault> {
        self.channel.believe(packet)
    }
}
