//! The messages of the handshake, encoded with postcard in the heads of packets.

use core::fmt;

use adapm_core::NodeId;
use serde::{Deserialize, Serialize};

use super::error::HandshakeError;
use crate::net::noise::Mark;
use crate::net::packet::{Draft, Greeting};

/// The id of a cluster: nodes of different clusters refuse each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// One life of an endpoint, which begins without any memory of earlier lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

/// The identity of one side.
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
    /// The digest of the node's layout of keys and values.
    pub layout_digest: u64,
    /// The endpoint's life.
    pub incarnation: Incarnation,
}

/// The first message of the dialing node under the protection of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The dialing node.
    pub identity: Identity,
    /// The node that it means to reach.
    pub to: NodeId,
    /// The life of that node that it has met.
    pub knows: Option<Incarnation>,
    /// The packet that it expects next.
    pub expects: u64,
    /// The mark of the link that it resumes, if it has one.
    pub mark: Option<Mark>,
}

/// The listening node's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The listening node.
    pub identity: Identity,
    /// The packet that it expects next.
    pub expects: u64,
    /// The mark of the link that both resume, if they do.
    pub mark: Option<Mark>,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refuse {
    /// The reason, from its sender's point of view.
    pub refusal: HandshakeError,
    /// The mark of the link that the peer has named, if the peer's mark was right.
    pub mark: Option<Mark>,
}

/// A message of the handshake, ready for a packet.
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

    /// Creates a refusal for this reason by a sender that knows nothing else about the peer.
    #[must_use]
    pub fn refuse(refusal: HandshakeError) -> Self {
        Self::new(Greeting::Refuse, &Refuse { refusal, mark: None })
    }

    /// Creates a message with the key of a connection; empty if its sender has no token.
    pub(super) fn key(greeting: Greeting, bytes: Vec<u8>) -> Self {
        Self { greeting, bytes }
    }

    /// Returns the packet with the message, still unprotected.
    #[must_use]
    pub fn into_draft(self) -> Draft {
        Draft::greeting(self.greeting, self.bytes)
    }
}

/// Decodes `bytes`, which must be exactly one such message.
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
