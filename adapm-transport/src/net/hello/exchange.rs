//! Both sides of a handshake as machines that eat messages and return messages.

use core::cmp::Ordering;

use adapm_core::NodeId;
use adapm_core::link::Seq;

use super::message::{Hello, Identity, Incarnation, Message, Nonce, Welcome, decode};
use super::refusal::{Refusal, TokenFault};
use super::token::{Mark, Token};
use crate::net::packet::Greeting;

/// What a handshake has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Send this and wait for the answer.
    Send(Message),
    /// The peer is who it says it is. A dialing node goes on at once; a listening node accepts or refuses it.
    Met(Met),
}

/// A peer that has proven itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The peer.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
    /// Which life of this node it has met before.
    pub knows: Option<Incarnation>,
    /// The packet it expects next.
    pub expects: Seq,
}

/// Why a handshake has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// This node refuses the peer, and is to tell it.
    Ours(Refusal),
    /// The peer refuses this node; the reason as this node sees it.
    Theirs(Refusal),
}

/// The dialing side.
#[derive(Debug)]
pub struct Dialing {
    own: Identity,
    token: Option<Token>,
    to: NodeId,
    hello: Vec<u8>,
    met: Option<Met>,
}

/// The listening side.
#[derive(Debug)]
pub struct Listening {
    own: Identity,
    token: Option<Token>,
    nonce: Nonce,
    /// What was said, and by whom, once there was a hello.
    said: Option<(Hello, Vec<u8>, Vec<u8>)>,
}

impl Dialing {
    /// Starts a handshake with `to`, of which the life `knows` was met before; `expects` is where the session stands.
    pub fn new(
        own: Identity,
        token: Option<Token>,
        to: NodeId,
        knows: Option<Incarnation>,
        expects: Seq,
        nonce: Nonce,
    ) -> (Self, Message) {
        let hello = Hello { identity: own, to, knows, expects: expects.0, has_token: token.is_some(), nonce };
        let message = Message::new(Greeting::Hello, &hello);
        (Self { own, token, to, hello: message.bytes.clone(), met: None }, message)
    }

    /// The peer has sent something.
    ///
    /// # Errors
    /// If one of both refuses the other; the handshake is over.
    pub fn handle(&mut self, greeting: Greeting, bytes: &[u8]) -> Result<Step, Ending> {
        match (greeting, self.met) {
            (Greeting::Refuse, _) => Err(told(bytes)),
            (Greeting::Welcome, None) => self.handle_welcome(bytes).map_err(Ending::Ours),
            (Greeting::Ready, Some(met)) => {
                let expects = decode(bytes).map_err(Ending::Ours)?;
                Ok(Step::Met(Met { expects: Seq(expects), ..met }))
            }
            _ => Err(Ending::Ours(Refusal::Malformed)),
        }
    }

    fn handle_welcome(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        let (mark, rest): (Option<Mark>, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| Refusal::Malformed)?;
        let welcome: Welcome = decode(rest)?;
        let theirs = welcome.identity;
        if theirs.cluster != self.own.cluster {
            return Err(Refusal::Cluster);
        }
        check_mark(self.token.as_ref(), mark, [LISTENER, &self.hello, rest])?;
        if theirs.node != self.to {
            return Err(Refusal::WrongNode { meant: self.to, found: theirs.node });
        }
        check_peer(&self.own, &theirs)?;
        let expects = Seq::default();
        self.met = Some(Met { node: theirs.node, incarnation: theirs.incarnation, knows: None, expects });
        let proof = self.token.as_ref().map(|token| token.mark([DIALER, &self.hello, rest]));
        Ok(Step::Send(Message::new(Greeting::Proof, &proof)))
    }
}

impl Listening {
    /// Waits for the hello of whoever has connected.
    #[must_use]
    pub fn new(own: Identity, token: Option<Token>, nonce: Nonce) -> Self {
        Self { own, token, nonce, said: None }
    }

    /// The peer has sent something. After [`Step::Met`] answer with [`Listening::accept`] or [`Message::refuse`].
    ///
    /// # Errors
    /// If one of both refuses the other; the handshake is over.
    pub fn handle(&mut self, greeting: Greeting, bytes: &[u8]) -> Result<Step, Ending> {
        match (greeting, self.said.is_some()) {
            (Greeting::Refuse, _) => Err(told(bytes)),
            (Greeting::Hello, false) => self.handle_hello(bytes).map_err(Ending::Ours),
            (Greeting::Proof, true) => self.handle_proof(bytes).map_err(Ending::Ours),
            _ => Err(Ending::Ours(Refusal::Malformed)),
        }
    }

    /// The last message: both sessions go on, this one at `expects`.
    #[must_use]
    pub fn accept(expects: Seq) -> Message {
        Message::ready(expects)
    }

    fn handle_hello(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        let hello: Hello = decode(bytes)?;
        if hello.identity.cluster != self.own.cluster {
            return Err(Refusal::Cluster);
        }
        match (&self.token, hello.has_token) {
            (Some(_), false) => return Err(Refusal::Token(TokenFault::OnlyOurs)),
            (None, true) => return Err(Refusal::Token(TokenFault::OnlyTheirs)),
            _ => {}
        }
        let welcome = Welcome { identity: self.own, nonce: self.nonce };
        let welcome = Message::new(Greeting::Welcome, &welcome).bytes;
        let mark = self.token.as_ref().map(|token| token.mark([LISTENER, bytes, &welcome]));
        let message = Message::welcome(&welcome, mark);
        self.said = Some((hello, bytes.to_vec(), welcome));
        Ok(Step::Send(message))
    }

    fn handle_proof(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        let (hello, said, answered) = self.said.as_ref().expect("the caller has seen it");
        check_mark(self.token.as_ref(), decode(bytes)?, [DIALER, said, answered])?;
        if hello.to != self.own.node {
            return Err(Refusal::WrongNode { meant: hello.to, found: self.own.node });
        }
        check_peer(&self.own, &hello.identity)?;
        match hello.identity.node.cmp(&self.own.node) {
            Ordering::Greater => {}
            Ordering::Equal => return Err(Refusal::NodeTaken { node: self.own.node, address: None }),
            // The node with the higher id dials.
            Ordering::Less => return Err(Refusal::Malformed),
        }
        Ok(Step::Met(Met {
            node: hello.identity.node,
            incarnation: hello.identity.incarnation,
            knows: hello.knows,
            expects: Seq(hello.expects),
        }))
    }
}

/// Whether `mark` is there if and only if there is a token, and is right.
fn check_mark(token: Option<&Token>, mark: Option<Mark>, parts: [&[u8]; 3]) -> Result<(), Refusal> {
    match (token, mark) {
        (None, None) => Ok(()),
        (Some(token), Some(mark)) if token.knows(parts, &mark) => Ok(()),
        (Some(_), Some(_)) => Err(Refusal::Token(TokenFault::Differs)),
        (Some(_), None) => Err(Refusal::Token(TokenFault::OnlyOurs)),
        (None, Some(_)) => Err(Refusal::Token(TokenFault::OnlyTheirs)),
    }
}

/// Whether both belong together.
fn check_peer(own: &Identity, theirs: &Identity) -> Result<(), Refusal> {
    if theirs.nodes != own.nodes {
        return Err(Refusal::Nodes { ours: own.nodes, theirs: theirs.nodes });
    }
    if u32::from(theirs.node.0) >= own.nodes {
        return Err(Refusal::NodeOutOfRange { node: theirs.node, nodes: own.nodes });
    }
    if theirs.channel != own.channel {
        return Err(Refusal::Channel { ours: own.channel, theirs: theirs.channel });
    }
    if theirs.layout_digest != own.layout_digest {
        return Err(Refusal::Layout);
    }
    Ok(())
}

fn told(bytes: &[u8]) -> Ending {
    match decode::<Refusal>(bytes) {
        Ok(refusal) => Ending::Theirs(refusal.flipped()),
        Err(refusal) => Ending::Ours(refusal),
    }
}

const LISTENER: &[u8] = b"adapm listener";
const DIALER: &[u8] = b"adapm dialer";
