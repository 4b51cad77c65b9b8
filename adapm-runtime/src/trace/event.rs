//! One event, as a line of text and parsed from it.

use std::fmt;

use adapm_core::{Instant, Key, NodeId};

/// Something that happened to a key at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// The time, by the node's clock.
    pub at: Instant,
    /// The key.
    pub key: Key,
    /// The node at which it happened.
    pub node: NodeId,
    /// The event.
    pub what: Happening,
}

/// Events of a key at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// The main copy is here; a replica that was here has become the main copy.
    MainArrived,
    /// The main copy was given away.
    MainLeft {
        /// The new owner.
        to: NodeId,
    },
    /// A replica is usable here.
    ReplicaSetUp {
        /// The node that granted it.
        owner: NodeId,
    },
    /// The replica is gone.
    ReplicaDropped,
    /// The node began to act on intent for the key.
    IntentActive,
    /// The last intent that was acted on has expired.
    IntentExpired,
}

impl Happening {
    /// Returns the event's word in the file.
    fn word(self) -> &'static str {
        match self {
            Self::MainArrived => "main-arrived",
            Self::MainLeft { .. } => "main-left",
            Self::ReplicaSetUp { .. } => "replica-set-up",
            Self::ReplicaDropped => "replica-dropped",
            Self::IntentActive => "intent-active",
            Self::IntentExpired => "intent-expired",
        }
    }

    /// Parses the word, and the other node of events that have one.
    pub(super) fn parse<'a>(word: &str, mut other: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut node = || number(other.next()?, 'n').map(NodeId);
        let happening = match word {
            "main-arrived" => Self::MainArrived,
            "main-left" => Self::MainLeft { to: node()? },
            "replica-set-up" => Self::ReplicaSetUp { owner: node()? },
            "replica-dropped" => Self::ReplicaDropped,
            "intent-active" => Self::IntentActive,
            "intent-expired" => Self::IntentExpired,
            _ => return None,
        };
        other.next().is_none().then_some(happening)
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::MainLeft { to: other } | Self::ReplicaSetUp { owner: other } => {
                write!(f, " {other}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, key, node, what } = self;
        write!(f, "{} {key} {node} {what}", at.nanos())
    }
}

/// Parses a decimal number after `prefix`.
pub(super) fn number<T: std::str::FromStr>(text: &str, prefix: char) -> Option<T> {
    let digits = text.strip_prefix(prefix)?;
    // Unlike `from_str` of the integers, accepts no sign.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
