//! The pipes of one endpoint, with their roles.

use core::net::SocketAddr;

use adapm_core::{Instant, NodeId};

use super::hello::{Dialing, Listening};
use super::noise::Channel;
use super::pipe::Pipe;

/// One pipe, from its first byte to its last.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) pipe: Pipe,
    /// Protects the pipe's packets.
    pub(super) channel: Channel,
    pub(super) role: Role,
    /// The peer's address, if it has one.
    pub(super) remote: Option<SocketAddr>,
    /// The time at which it came in, or was dialed.
    pub(super) since: Instant,
    /// The time to give it up, unless it carries a link by then.
    pub(super) deadline: Option<Instant>,
    /// The time of the last request on it.
    pub(super) asked: Instant,
    /// True if it is listed as one that may have packets.
    pub(super) is_ready: bool,
    /// Bytes received by the last check for progress.
    pub(super) bytes_noted: u64,
}

/// The role of a pipe.
#[derive(Debug)]
pub(super) enum Role {
    /// Dialed by this node, which identifies itself.
    Dialing(NodeId, Box<Dialing>),
    /// Accepted by this node.
    Listening(Box<Listening>),
    /// Carries the link with a peer.
    Attached(NodeId),
    /// Waits until the other side has read the last message.
    Closing,
}

/// Index of a connection; reused after it has ended.
pub(super) type Slot = usize;

/// All pipes of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Option<Connection>>,
}

impl Connections {
    /// Returns the slot of the next connection.
    pub(super) fn vacant(&self) -> Slot {
        self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len())
    }

    pub(super) fn insert(&mut self, slot: Slot, connection: Connection) {
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(connection);
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Connection> {
        self.slots.get_mut(slot)?.take()
    }

    pub(super) fn at(&mut self, slot: Slot) -> Option<&mut Connection> {
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Connection> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &Connection)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, connection)| Some((slot, connection.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut Connection)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(slot, connection)| Some((slot, connection.as_mut()?)))
    }

    /// Returns the oldest unidentified connection from outside; `None` if there is room for one
    /// more.
    pub(super) fn surplus_stranger(&self) -> Option<Slot> {
        let is_stranger =
            |connection: &Connection| matches!(connection.role, Role::Listening(_) | Role::Closing);
        let strangers = || self.iter().filter(|(_, connection)| is_stranger(connection));
        let (oldest, _) = strangers().min_by_key(|(_, connection)| connection.since)?;
        (strangers().count() >= STRANGERS_MAX).then_some(oldest)
    }
}

/// Maximum number of unidentified connections from outside.
const STRANGERS_MAX: usize = 64;
