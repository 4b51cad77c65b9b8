//! Handshake state machines (dialing and listening side), sans-I/O.

use core::cmp::Ordering;

use adapm_core::NodeId;
use adapm_core::link::Seq;

use super::error::{HandshakeError, TokenFault};
use super::message::{Hello, Identity, Incarnation, Message, Refuse, Welcome, decode};
use super::token::Token;
use crate::net::noise::{
    Channel, Entropy, Initiator, LinkSecret, Mark, Recordings, Secured, Side, respond,
};
use crate::net::packet::Greeting;

/// The outcome of a handshake message.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Send `last` in the clear; from then on use the channel, beginning with `first`; wait for the
    /// answer.
    Open {
        /// The last message that is not protected.
        last: Option<Message>,
        /// The channel that protects everything else, in both directions.
        channel: Channel,
        /// The first message that is protected.
        first: Option<Message>,
    },
    /// The peer has identified itself, and it belongs here. A dialing node goes on at once; a
    /// listening node accepts or refuses.
    Met(Met),
}

/// A peer that has identified itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The peer.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
    /// The life of this node that the peer has met before.
    pub knows: Option<Incarnation>,
    /// The packet it expects next.
    pub expects: Seq,
    /// Its proof of knowing the link; `None`: without a token, claims prove nothing.
    pub claim: Option<Claim>,
}

/// The claim of a peer with the token to know the link that it has, or begins, with this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The secret of a link that begins with this handshake.
    link: LinkSecret,
    hash: [u8; 32],
    side: Side,
    mark: Option<Mark>,
}

/// The reason why a handshake has failed. It is sure if a node of the cluster has certainly given
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// This node refuses the peer, and is to notify it.
    Ours {
        /// The reason.
        refusal: HandshakeError,
        /// True if a node of the cluster has certainly caused the refusal.
        is_sure: bool,
    },
    /// The peer refuses this node.
    Theirs {
        /// The reason, from this node's point of view.
        refusal: HandshakeError,
        /// True if the peer knows the token, and the secret of the link if there is one.
        is_sure: bool,
    },
}

/// The dialing side.
#[derive(Debug)]
pub struct Dialing {
    own: Identity,
    to: NodeId,
    knows: Option<Incarnation>,
    expects: Seq,
    has_token: bool,
    /// The secret of the link, if there is one.
    link: Option<LinkSecret>,
    stage: DialStage,
}

#[derive(Debug)]
enum DialStage {
    /// Waits for the key of the other side.
    Opening(Option<Initiator>),
    /// Has identified itself.
    Hello(Option<Handshake>),
    Over,
}

/// The listening side.
#[derive(Debug)]
pub struct Listening {
    own: Identity,
    token: Option<Token>,
    stage: ListenStage,
}

#[derive(Debug)]
enum ListenStage {
    /// Waits for the key of the other side.
    Opening(Entropy),
    /// Waits for the other side to identify itself.
    Hello(Option<Handshake>),
    /// Knows the other side; with the hash for marks.
    Met(Option<[u8; 32]>),
}

/// A finished Noise handshake.
#[derive(Debug)]
struct Handshake {
    hash: [u8; 32],
    link: LinkSecret,
}

impl Dialing {
    /// Starts a handshake with `to`, whose life `knows` was met before on a link with the secret
    /// `link`; the session expects packet `expects`.
    #[must_use]
    pub fn new(
        own: Identity,
        token: Option<&Token>,
        (to, knows, link): (NodeId, Option<Incarnation>, Option<LinkSecret>),
        expects: Seq,
        entropy: Entropy,
    ) -> (Self, Message) {
        let started = token.map(|token| Initiator::start(token, entropy));
        let (noise, key) = started.map_or((None, Vec::new()), |(noise, key)| (Some(noise), key));
        let stage = DialStage::Opening(noise);
        let has_token = token.is_some();
        (
            Self { own, to, knows, expects, has_token, link, stage },
            Message::key(Greeting::Open, key),
        )
    }

    /// Handles a message of the peer.
    ///
    /// # Errors
    /// If one side refuses the other; the handshake is over.
    pub fn handle(&mut self, greeting: Greeting, bytes: &[u8]) -> Result<Step, Ending> {
        let stage = core::mem::replace(&mut self.stage, DialStage::Over);
        match (greeting, stage) {
            (Greeting::Refuse, stage) => Err(self.told(&stage, bytes)),
            (Greeting::Opened, DialStage::Opening(noise)) => self.handle_opened(noise, bytes),
            (Greeting::Welcome, DialStage::Hello(handshake)) => {
                let met = self.handle_welcome(handshake, bytes);
                met.map(Step::Met).map_err(|refusal| Ending::Ours { refusal, is_sure: true })
            }
            (_, stage) => {
                let is_sure = !self.has_token || matches!(stage, DialStage::Hello(_));
                Err(Ending::Ours { refusal: HandshakeError::Malformed, is_sure })
            }
        }
    }

    fn handle_opened(&mut self, noise: Option<Initiator>, bytes: &[u8]) -> Result<Step, Ending> {
        let secured = match (noise, bytes) {
            (None, []) => None,
            (noise, bytes) => {
                let secured = noise.and_then(|noise| noise.finish(bytes));
                let malformed =
                    Ending::Ours { refusal: HandshakeError::Malformed, is_sure: !self.has_token };
                Some(secured.ok_or(malformed)?)
            }
        };
        let (channel, handshake) = split(secured);
        let mark = self.link.as_ref().zip(handshake.as_ref());
        let hello = Hello {
            identity: self.own,
            to: self.to,
            knows: self.knows,
            expects: self.expects.0,
            mark: mark.map(|(link, handshake)| link.mark(Side::Dialer, &handshake.hash)),
        };
        self.stage = DialStage::Hello(handshake);
        let hello = Some(Message::new(Greeting::Hello, &hello));
        Ok(Step::Open { last: None, channel, first: hello })
    }

    fn handle_welcome(
        &self,
        handshake: Option<Handshake>,
        bytes: &[u8],
    ) -> Result<Met, HandshakeError> {
        let welcome: Welcome = decode(bytes)?;
        let theirs = welcome.identity;
        if theirs.cluster != self.own.cluster {
            return Err(HandshakeError::Cluster);
        }
        if theirs.node != self.to {
            return Err(HandshakeError::WrongNode { meant: self.to, found: theirs.node });
        }
        check_peer(&self.own, &theirs)?;
        Ok(Met {
            node: theirs.node,
            incarnation: theirs.incarnation,
            knows: None,
            expects: Seq(welcome.expects),
            claim: handshake.map(|handshake| handshake.claim(Side::Listener, welcome.mark)),
        })
    }

    /// Handles a refusal at that stage. Only the node that was met can end an existing link.
    fn told(&self, stage: &DialStage, bytes: &[u8]) -> Ending {
        let refuse: Refuse = match decode(bytes) {
            Ok(refuse) => refuse,
            Err(refusal) => return Ending::Ours { refusal, is_sure: !self.has_token },
        };
        let is_sure = match (stage, &self.link) {
            (DialStage::Hello(Some(handshake)), Some(link)) => {
                refuse.mark.is_some_and(|mark| link.knows(&mark, Side::Listener, &handshake.hash))
            }
            (DialStage::Hello(_), _) => true,
            _ => !self.has_token,
        };
        Ending::Theirs { refusal: refuse.refusal.flipped(), is_sure }
    }
}

impl Listening {
    /// Creates a listening side, which waits for the first message.
    #[must_use]
    pub fn new(own: Identity, token: Option<Token>, entropy: Entropy) -> Self {
        Self { own, token, stage: ListenStage::Opening(entropy) }
    }

    /// Handles a message of the peer. After [`Step::Met`] answer with [`Listening::accept`] or
    /// [`Listening::refuse`].
    ///
    /// # Errors
    /// If one side refuses the other; the handshake is over.
    pub fn handle(
        &mut self,
        greeting: Greeting,
        bytes: &[u8],
        recordings: &mut Recordings,
    ) -> Result<Step, Ending> {
        let stage = core::mem::replace(&mut self.stage, ListenStage::Met(None));
        let is_sure = self.token.is_none() || !matches!(stage, ListenStage::Opening(_));
        let step = match (greeting, stage) {
            (Greeting::Refuse, _) => {
                let refuse = decode(bytes).map(|refuse: Refuse| refuse.refusal.flipped());
                return Err(match refuse {
                    Ok(refusal) => Ending::Theirs { refusal, is_sure },
                    Err(refusal) => Ending::Ours { refusal, is_sure },
                });
            }
            (Greeting::Open, ListenStage::Opening(entropy)) => {
                self.handle_open(bytes, entropy, recordings)
            }
            (Greeting::Hello, ListenStage::Hello(handshake)) => self.handle_hello(handshake, bytes),
            _ => Err(HandshakeError::Malformed),
        };
        step.map_err(|refusal| Ending::Ours { refusal, is_sure })
    }

    /// Returns the last message: both sessions go on, this one at `expects`, with the link of the
    /// secret `link` if there was one.
    #[must_use]
    pub fn accept(&self, expects: Seq, link: Option<&LinkSecret>) -> Message {
        let welcome = Welcome { identity: self.own, expects: expects.0, mark: self.mark(link) };
        Message::new(Greeting::Welcome, &welcome)
    }

    /// Returns the refusal for this reason, for a peer that has proven to know the secret `link` if
    /// there is one.
    #[must_use]
    pub fn refuse(&self, refusal: HandshakeError, link: Option<&LinkSecret>) -> Message {
        Message::new(Greeting::Refuse, &Refuse { refusal, mark: self.mark(link) })
    }

    fn mark(&self, link: Option<&LinkSecret>) -> Option<Mark> {
        let ListenStage::Met(Some(hash)) = &self.stage else { return None };
        link.map(|link| link.mark(Side::Listener, hash))
    }

    fn handle_open(
        &mut self,
        key: &[u8],
        entropy: Entropy,
        recordings: &mut Recordings,
    ) -> Result<Step, HandshakeError> {
        let (answer, secured) = match (&self.token, key) {
            (None, []) => (Vec::new(), None),
            (None, _) => return Err(HandshakeError::Token(TokenFault::OnlyTheirs)),
            (Some(_), []) => return Err(HandshakeError::Token(TokenFault::OnlyOurs)),
            (Some(_), key) if recordings.has(key) => return Err(HandshakeError::Repeated),
            (Some(token), key) => {
                let answered = respond(token, key, entropy);
                let (answer, secured) =
                    answered.ok_or(HandshakeError::Token(TokenFault::Differs))?;
                recordings.keep(key);
                (answer, Some(secured))
            }
        };
        let (channel, handshake) = split(secured);
        self.stage = ListenStage::Hello(handshake);
        Ok(Step::Open { last: Some(Message::key(Greeting::Opened, answer)), channel, first: None })
    }

    fn handle_hello(
        &mut self,
        handshake: Option<Handshake>,
        bytes: &[u8],
    ) -> Result<Step, HandshakeError> {
        let hello: Hello = decode(bytes)?;
        let theirs = hello.identity;
        if theirs.cluster != self.own.cluster {
            return Err(HandshakeError::Cluster);
        }
        if hello.to != self.own.node {
            return Err(HandshakeError::WrongNode { meant: hello.to, found: self.own.node });
        }
        check_peer(&self.own, &theirs)?;
        match theirs.node.cmp(&self.own.node) {
            Ordering::Greater => {}
            Ordering::Equal => {
                return Err(HandshakeError::NodeTaken { node: self.own.node, address: None });
            }
            // The node with the higher id dials.
            Ordering::Less => return Err(HandshakeError::Malformed),
        }
        self.stage = ListenStage::Met(handshake.as_ref().map(|handshake| handshake.hash));
        Ok(Step::Met(Met {
            node: theirs.node,
            incarnation: theirs.incarnation,
            knows: hello.knows,
            expects: Seq(hello.expects),
            claim: handshake.map(|handshake| handshake.claim(Side::Dialer, hello.mark)),
        }))
    }
}

impl Claim {
    /// Returns true if the peer knows the secret of that link.
    #[must_use]
    pub fn knows(&self, link: &LinkSecret) -> bool {
        self.mark.is_some_and(|mark| link.knows(&mark, self.side, &self.hash))
    }

    /// Returns the secret of the link that begins with this handshake, if the peer claims that.
    #[must_use]
    pub fn begins(&self) -> Option<&LinkSecret> {
        self.mark.is_none().then_some(&self.link)
    }
}

impl Handshake {
    fn claim(self, side: Side, mark: Option<Mark>) -> Claim {
        Claim { link: self.link, hash: self.hash, side, mark }
    }
}

/// Separates the channel that a handshake has made from the rest of its outcome.
fn split(secured: Option<Secured>) -> (Channel, Option<Handshake>) {
    match secured {
        None => (Channel::default(), None),
        Some(Secured { channel, hash, link }) => (channel, Some(Handshake { hash, link })),
    }
}

/// Checks that both sides belong together.
fn check_peer(own: &Identity, theirs: &Identity) -> Result<(), HandshakeError> {
    if theirs.nodes != own.nodes {
        return Err(HandshakeError::Nodes { ours: own.nodes, theirs: theirs.nodes });
    }
    if u32::from(theirs.node.0) >= own.nodes {
        return Err(HandshakeError::NodeOutOfRange { node: theirs.node, nodes: own.nodes });
    }
    if theirs.channel != own.channel {
        return Err(HandshakeError::Channel { ours: own.channel, theirs: theirs.channel });
    }
    if theirs.layout_digest != own.layout_digest {
        return Err(HandshakeError::Layout);
    }
    Ok(())
}
