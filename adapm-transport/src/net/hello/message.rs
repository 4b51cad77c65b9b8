//! The messages of the handshake, encoded with postcard in the heads of packets.

use core::fmt;

use adapm_core::NodeId;
use adapm_core::link::Seq;
use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use super::token::Mark;
use crate::net::packet::Greeting;

/// Which cluster a node belongs to: nodes of different ones refuse each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// One life of an endpoint: another one has forgotten everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

/// Fresh random bytes, so that no handshake looks like another.
pub type Nonce = [u8; 32];

/// What both sides say about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node.
    pub node: NodeId,
    /// Number of nodes.
    pub nodes: u32,
    /// The channel of the endpoint.
    pub channel: u16,
    /// What the node's layout of keys and values hashes to.
    pub layout_digest: u64,
    /// The endpoint's life.
    pub incarnation: Incarnation,
}

/// The dialing node's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Who dials.
    pub identity: Identity,
    /// Whom it means to reach.
    pub to: NodeId,
    /// Which life of that node it has met.
    pub knows: Option<Incarnation>,
    /// The packet that it expects next.
    pub expects: u64,
    /// Whether it has a token.
    pub has_token: bool,
    /// Random bytes.
    pub nonce: Nonce,
}

/// The listening node's answer, before its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Who listens.
    pub identity: Identity,
    /// Random bytes.
    pub nonce: Nonce,
}

/// A message of the handshake, as it goes into a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The step.
    pub greeting: Greeting,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Message {
    pub(super) fn new(greeting: Greeting, content: &impl Serialize) -> Self {
        let bytes = postcard::to_allocvec(content).expect("the messages of the handshake are plain data");
        Self { greeting, bytes }
    }

    /// The end of an attempt, for this reason of the sender's.
    #[must_use]
    pub fn refuse(refusal: Refusal) -> Self {
        Self::new(Greeting::Refuse, &refusal)
    }

    pub(super) fn welcome(welcome: &[u8], mark: Option<Mark>) -> Self {
        let mut message = Self::new(Greeting::Welcome, &mark);
        message.bytes.extend_from_slice(welcome);
        message
    }

    pub(super) fn ready(expects: Seq) -> Self {
        Self::new(Greeting::Ready, &expects.0)
    }
}

/// What `bytes` say, if they say one such message and nothing more.
pub(super) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Refusal> {
    match postcard::take_from_bytes(bytes) {
        Ok((content, [])) => Ok(content),
        _ => Err(Refusal::Malformed),
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
