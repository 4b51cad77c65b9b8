//! Events of links, and the state that all links share.

use adapm_core::{Instant, NodeId};

use crate::rng::Rng;
use crate::sim::wire::Wire;

/// The state that all links share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wire: Wire,
    pub(super) rng: Rng,
    /// The end of each node's last pause.
    pub(super) paused_until: Vec<Instant>,
}

/// The two nodes of a link, the lower one first: it dials.
pub(super) type Pair = (NodeId, NodeId);

/// A future event of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEvent {
    pub(super) pair: Pair,
    pub(super) kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventKind {
    /// This side reads an arrived item.
    Arrive(Side),
    /// This side's node has finished a frame.
    Depart(Side),
    /// This side's session has asked to be called at this time.
    Alarm(Side),
    /// The dialer replaces the pipe of this number, unless it is up.
    Dial(u32),
}

/// An end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The node with the lower id, which dials.
    Dialer,
    /// The node with the higher id.
    Listener,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Dialer, Self::Listener];

    pub(super) fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Listener,
            Self::Listener => Self::Dialer,
        }
    }
}
