//! A pipe, which carries packets to one peer: whole and in order until it breaks, then never again.
//!
//! | | [`Pipe::Stream`] | [`Pipe::QueuedPipe`] |
//! | --- | --- | --- |
//! | carries | TCP, Unix sockets | anything with threads or tasks of its own |
//! | does its I/O | inside calls of the endpoint | elsewhere, behind two bounded queues ([`queued`](super::queued)) |
//! | reports events | through mio | through the endpoint's [`Notifier`](super::notifier::Notifier) |
//!
//! A pipe is usable at once, connected or not: pushed packets wait; a failure to connect is a
//! [`Fault`] of the next call. Everything else about a peer (handshake, session, redialing) is the
//! endpoint's, and the same for all kinds.

use core::fmt;
use core::net::SocketAddr;

use super::address::Address;
use super::packet::{Fault, Incoming, Outgoing, Spares};
use super::queued::QueuedPipe;
use crate::tcp::StreamPipe;

/// A pipe of any kind.
#[derive(Debug)]
pub(crate) enum Pipe {
    Stream(Box<StreamPipe>),
    QueuedPipe(QueuedPipe),
}

/// A factory of pipes of a kind that has threads or tasks of its own, for one endpoint.
///
/// An endpoint has at most one connector of each kind; it is created with the endpoint's
/// [`Notifier`](super::notifier::Notifier), which it must notify when there is something to accept
/// (pipes notify by themselves). Dropping it ends all its pipes, without waiting.
pub(crate) trait Connector: fmt::Debug + Send {
    /// Returns the address for others to dial; `None` if it does not listen.
    fn address(&self) -> Option<Address>;

    /// Starts to connect to `to` and returns at once.
    ///
    /// # Errors
    /// If no attempt is made.
    fn dial(&mut self, to: &Address) -> Result<QueuedPipe, Fault>;

    /// Returns the next accepted pipe and its remote address; never waits. At most 64 may wait to
    /// be taken: close further ones at once.
    fn accept(&mut self) -> Option<(QueuedPipe, Option<SocketAddr>)>;
}

/// Makes the same call on a pipe of either kind.
macro_rules! either {
    ($self:ident, $pipe:ident => $call:expr) => {
        match $self {
            Self::Stream($pipe) => $call,
            Self::QueuedPipe($pipe) => $call,
        }
    };
}

impl Pipe {
    /// Returns the next packet, or `None` if none has come.
    ///
    /// # Errors
    /// If the pipe is broken.
    pub(super) fn read(&mut self, spares: &mut Spares) -> Result<Option<Incoming>, Fault> {
        match self {
            Self::Stream(stream) => stream.read(spares),
            Self::QueuedPipe(carried) => carried.read(),
        }
    }

    /// Returns true if another packet may be pushed.
    pub(super) fn has_room(&self) -> bool {
        either!(self, pipe => pipe.has_room())
    }

    /// Appends a packet; it goes out with the next flush.
    pub(super) fn push(&mut self, packet: Outgoing) {
        either!(self, pipe => pipe.push(packet));
    }

    /// Writes as much as possible without waiting. Returns true if the pipe is broken: then read
    /// until the fault shows.
    pub(super) fn flush(&mut self) -> bool {
        match self {
            Self::Stream(stream) => {
                stream.flush();
                stream.is_broken()
            }
            Self::QueuedPipe(carried) => carried.flush(),
        }
    }

    /// Returns true if everything pushed was handed to the system.
    pub(super) fn is_flushed(&self) -> bool {
        either!(self, pipe => pipe.is_flushed())
    }

    /// Notifies the other side that nothing more comes, where the kind can.
    pub(super) fn shutdown(&mut self) {
        either!(self, pipe => pipe.shutdown());
    }

    /// Allows packets of `limit` bytes from the next one on, as the peer is known.
    pub(super) fn raise_limit(&mut self, limit: usize) {
        either!(self, pipe => pipe.raise_limit(limit));
    }

    /// Returns the number of bytes received, those of partial packets included.
    pub(super) fn bytes_in(&self) -> u64 {
        either!(self, pipe => pipe.bytes_in())
    }

    /// Returns the numbers of system calls for reading and writing.
    pub(super) fn calls(&self) -> (u64, u64) {
        match self {
            Self::Stream(stream) => stream.calls(),
            Self::QueuedPipe(_) => (0, 0),
        }
    }
}
