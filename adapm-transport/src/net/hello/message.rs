//! The messages of the handshake, encoded with postcard in the heads of packets.

use core::fmt;

use adapm_core::NodeId;
use serde::{Deserialize, Serialize};

use super::error::HandshakeError;
use crate::net::noise::Mark;
use crate::net::packet::{Draft, Greeting};

/// Which cluster a node belongs to: nodes of different ones refuse each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// One life of an endpoint: another one has forgotten everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

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

/// What the dialing node says first, once nobody else can hear it.
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
    /// The mark of the link with which it goes on, if it has one.
    pub mark: Option<Mark>,
}

/// The listening node's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Who listens.
    pub identity: Identity,
    /// The packet that it expects next.
    pub expects: u64,
    /// The mark of the link with which both go on, if they do.
    pub mark: Option<Mark>,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refuse {
    /// Why, as its sender sees it.
    pub refusal: HandshakeError,
    /// The mark of the link of which the peer has given one, if it was right.
    pub mark: Option<Mark>,
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
        let bytes =
            postcard::to_allocvec(content).expect("the messages of the handshake are plain data");
        Self { greeting, bytes }
    }

    /// The end of an attempt, for this reason of a sender that knows no more of the peer.
    #[must_use]
    pub fn refuse(refusal: HandshakeError) -> Self {
        Self::new(Greeting::Refuse, &Refuse { refusal, mark: None })
    }

    /// The key of a connection; empty: its sender has no token.
    pub(super) fn key(greeting: Greeting, bytes: Vec<u8>) -> Self {
        Self { greeting, bytes }
    }

    /// The packet with it, which nothing protects yet.
    #[must_use]
    pub fn into_draft(self) -> Draft {
        Draft::greeting(self.greeting, self.bytes)
    }
}

/// What `bytes` say, if they say one such message and nothing more.
pub(super) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, HandshakeError> {
    match postcard::take_from_bytes(bytes) {
        Ok((content, [])) => Ok(content),
        _ => Err(HandshakeError::Malformed),
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
