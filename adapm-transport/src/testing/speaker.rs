//! One side of a handshake and its channel, without a pipe: packets in, bytes out.

use adapm_core::NodeId;
use adapm_core::link::Seq;

use crate::net::hello::{
    Dialing, Ending, Identity, Incarnation, Listening, Message, Met, Step, Token,
};
use crate::net::noise::{Channel, Entropy, LinkSecret, Recordings};
use crate::net::packet::{Draft, Fault, Incoming, Kind, Packet};

/// One side of a connection, during and after the handshake.
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

/// The outcome of a handshake packet.
#[derive(Debug)]
pub enum Heard {
    /// The bytes of the answer.
    Say(Vec<u8>),
    /// The identity of the peer; a listening side accepts or refuses it.
    Met(Met),
    /// The handshake is over.
    Ended(Ending),
    /// The packet is not one of the other side.
    Fault(Fault),
}

impl Speaker {
    /// Creates a dialing side, and its first packet; see [`Dialing::new`].
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

    /// Creates a listening side.
    #[must_use]
    pub fn listen(own: Identity, token: Option<Token>, entropy: Entropy) -> Self {
        let side = Side::Listening(Listening::new(own, token, entropy));
        Self { side, channel: Channel::default() }
    }

    /// Handles a handshake packet of the other side.
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

    /// Returns the last packet of a listening side: both sessions go on, with the link of that
    /// secret if there was one.
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

    /// Returns a handshake message, as protected by this side.
    pub fn bytes(&mut self, message: Message) -> Vec<u8> {
        self.channel.protect(message.into_draft()).parts().concat()
    }

    /// Returns a packet of any kind, as protected by this side.
    pub fn protect(&mut self, draft: Draft) -> Vec<u8> {
        self.channel.protect(draft).parts().concat()
    }

    /// Opens a packet of the other side.
    ///
    /// # Errors
    /// If it is not the next packet of the other side.
    pub fn believe(&mut self, packet: Incoming) -> Result<Packet, Fault> {
        self.channel.believe(packet)
    }
}
