//! The pipes of one endpoint and what each of them is for.

use core::net::SocketAddr;

use adapm_core::{Instant, NodeId};

use super::hello::{Dialing, Listening};
use super::noise::Channel;
use super::pipe::Pipe;

/// One pipe, from its first byte to its last.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) pipe: Pipe,
    /// Protects what the pipe carries.
    pub(super) channel: Channel,
    pub(super) role: Role,
    /// Where the other side is, if that has an address.
    pub(super) remote: Option<SocketAddr>,
    /// When it came in, or was dialed.
    pub(super) since: Instant,
    /// When to give it up, unless it carries a link by then.
    pub(super) deadline: Option<Instant>,
    /// When it was asked something last.
    pub(super) asked: Instant,
    /// Whether it is listed as one that may have packets.
    pub(super) is_ready: bool,
    /// Bytes that had come when it was last looked whether more have.
    pub(super) bytes_noted: u64,
}

/// What a pipe is for.
#[derive(Debug)]
pub(super) enum Role {
    /// This node has dialed and says hello.
    Dialing(NodeId, Box<Dialing>),
    /// Somebody has dialed this node.
    Listening(Box<Listening>),
    /// It carries the link with a peer.
    Attached(NodeId),
    /// All is said: it waits until the other side has read it.
    Closing,
}

/// Index of a connection; used again after it has ended.
pub(super) type Slot = usize;

/// All pipes of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Option<Connection>>,
}

impl Connections {
    /// The slot that the next connection will have.
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

    /// Of the connections from outside of which it is not known who they are, the one that came
    /// first; `None`: there is room for one more.
    pub(super) fn surplus_stranger(&self) -> Option<Slot> {
        let is_stranger =
            |connection: &Connection| matches!(connection.role, Role::Listening(_) | Role::Closing);
        let strangers = || self.iter().filter(|(_, connection)| is_stranger(connection));
        let (oldest, _) = strangers().min_by_key(|(_, connection)| connection.since)?;
        (strangers().count() >= STRANGERS_MAX).then_some(oldest)
    }
}

/// Connections from outside that may be unknown at a time.
const STRANGERS_MAX: usize = 64;
