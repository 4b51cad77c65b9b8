//! Events of links, and their shared state.

use adapm_core::{Instant, NodeId};

use crate::rng::Rng;
use crate::sim::wire::Wire;

/// The shared state of all links.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) wire: Wire,
    pub(super) rng: Rng,
    /// End of each node's pause.
    pub(super) paused_until: Vec<Instant>,
}

/// The two nodes of a link, the lower one first: it dials.
pub(super) type Pair = (NodeId, NodeId);

/// A future event of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEvent {
    pub(super) pair: Pair,
    pub(super) what: What,
}

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// This side reads what has arrived.
    Arrive(Side),
    /// This side's node has finished a frame.
    Depart(Side),
    /// This side's session asks to be called.
    Alarm(Side),
    /// The dialer replaces that pipe, if it does not work.
    Dial(u32),
}

/// An end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// The node with the lower id: it makes the pipes.
    Dialer,
    /// The other one.
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
