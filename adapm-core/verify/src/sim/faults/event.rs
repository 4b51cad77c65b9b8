//! What links do later, and what they share.

use adapm_core::{Instant, NodeId};

use crate::rng::Rng;
use crate::sim::wire::Wire;

/// What all links share.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) wire: Wire,
    pub(super) rng: Rng,
    /// When each node goes on after a pause.
    pub(super) paused_until: Vec<Instant>,
}

/// The two nodes of a link, the lower one first: it dials.
pub(super) type Pair = (NodeId, NodeId);

/// Something that a link does later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEvent {
    pub(super) pair: Pair,
    pub(super) what: What,
}

/// What it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// This side reads what has arrived.
    Arrive(Side),
    /// This side's node has finished a frame.
    Depart(Side),
    /// This side's session wants to be called.
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
