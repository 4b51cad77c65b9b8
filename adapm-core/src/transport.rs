//! The transport contract: opaque frames between the nodes of one channel, and word of peers that
//! are lost.
//!
//! [`crate::engine::Engine`] never calls a transport; a driver encodes its messages into frames and
//! hands them over. Check an implementation with `adapm_verify::transport_suite!`.

use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use crate::id::NodeId;
use crate::value::Block;

/// One encoded message: a head and a raw, aligned value block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The encoded control part.
    pub head: Vec<u8>,
    /// The values.
    pub values: Block,
}

impl Frame {
    /// Bytes of head and values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.values.len()
    }

    /// Whether there is neither head nor value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the content and keeps the memory.
    pub fn clear(&mut self) {
        self.head.clear();
        self.values.clear();
    }
}

/// Ends the wait of a transport's [`Transport::recv`] from any thread.
pub trait Wake: Clone + Send + Sync + 'static {
    /// Makes the current or the next `recv` return [`Received::Woken`]. Several calls may end in
    /// one.
    ///
    /// If the `recv` before returned `Woken` too, a frame that waits goes first, so that threads
    /// that keep waking starve no peer; the wake then stays for the `recv` after it.
    fn wake(&self);
}

/// Why a frame was not sent; it is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError<E> {
    /// The way to that node is full: keep the frame and try again after the next `recv`.
    #[error("the queue to that node is full: try again")]
    Full,
    /// The transport has failed.
    #[error("{0}")]
    Transport(E),
}

/// Why `recv` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A frame of that node was written to the argument.
    Frame(NodeId),
    /// A waker was called, or room came up for a frame refused with [`SendError::Full`].
    Woken,
    /// The wait is over.
    TimedOut,
    /// That node will never be heard of again; told once per node. Frames to it are dropped from
    /// here on.
    Lost(NodeId, Loss),
}

/// Why a peer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Nothing was heard of it for this long.
    #[error("nothing was heard of it for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    /// It lives, or seems to, and what is sent to it does not arrive.
    #[error("{0}")]
    Stuck(Stall),
    /// Its link lives, and it has answered nothing for this long.
    #[error("its link lives, but it has answered nothing for {:.1} s", .0.as_secs_f64())]
    Unresponsive(Duration),
    /// It said that it ends because something failed there; its own error tells what.
    #[error("it ended with an error of its own")]
    Failed,
    /// It was started anew and has forgotten everything.
    #[error("it was restarted and has lost its state")]
    Restarted,
    /// It sent what no sound node sends.
    #[error("it sent what no sound node sends")]
    Misbehaved,
    /// That other node has lost it.
    #[error("node {0} has lost it")]
    Reported(NodeId),
    /// It has given this node up as lost, and ends.
    #[error("it has given this node up as lost")]
    GaveUp,
}

/// How a way fails on which connections come up and what is sent does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// How long no acknowledgement has moved.
    pub time: Duration,
    /// Connections that came up meanwhile.
    pub pipes: u32,
    /// Bytes of the largest packet that has arrived; 0: none has.
    pub passed: usize,
    /// Bytes of the packet that does not.
    pub stuck: usize,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, pipes, passed, stuck } = self;
        if *pipes == 0 {
            let seconds = time.as_secs_f64();
            return write!(
                f,
                "it is heard of, but acknowledges nothing of what was sent for {seconds:.1} s"
            );
        }
        if (1..1_000.min(*stuck)).contains(passed) {
            write!(f, "packets up to {passed} bytes pass")?;
        } else if (1..*stuck).contains(passed) {
            write!(f, "packets up to {:.1} KB pass", *passed as f64 / 1e3)?;
        } else {
            f.write_str("handshakes pass")?;
        }
        write!(
            f,
            ", one of {:.1} KB does not, on {pipes} connections in a row: check the MTU of the network and of the interfaces \
             on both sides",
            *stuck as f64 / 1e3
        )
    }
}

/// What the way to a peer carries, for drivers that judge whether the peer answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Pieces of frames to it that it has not acknowledged: as many at least as frames.
    pub unacknowledged: usize,
    /// Pieces of frames that have come of it since it was met.
    pub received: u64,
}

/// Where the last request to a peer stands among the frames that were sent to it: whether its
/// answer may be late because of the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastRequest {
    sent: u64,
    /// Frames sent up to the request.
    asked: u64,
    /// What had been received when that was looked at last.
    received: u64,
}

impl LastRequest {
    /// A frame follows those that were sent before.
    pub fn note_sent(&mut self, is_request: bool) {
        self.sent += 1;
        if is_request {
            self.asked = self.sent;
        }
    }

    /// Returns true if the request has not been acknowledged yet, or part of a frame has come of
    /// the peer since the last call. `waiting` frames have not been given to the way.
    pub fn is_held_up(&mut self, way: Way, waiting: usize) -> bool {
        // As frames arrive in order, those that have not arrived are the last ones.
        let is_under_way = (waiting + way.unacknowledged) as u64 > self.sent - self.asked;
        core::mem::replace(&mut self.received, way.received) != way.received || is_under_way
    }
}

/// What a node tells its peers when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// All work is done: nobody needs this node any more.
    Finished,
    /// Something failed here.
    Failed,
    /// This node cannot go on without that one.
    Lost(NodeId),
}

/// Carries opaque frames between this node and its peers: once, whole, in order per pair of nodes.
pub trait Transport {
    /// What can fail.
    type Error: core::error::Error;
    /// The handle that ends a wait.
    type Waker: Wake;

    /// Sends `frame` to `to`; never blocks.
    ///
    /// After `Ok` the frame's content is unspecified: the transport copied or took it. It may leave
    /// recycled memory.
    ///
    /// # Errors
    /// [`SendError::Full`] if the way to `to` has no room, else what failed; the frame is then
    /// unchanged.
    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>>;

    /// Waits at most `wait` (`None`: forever; zero: not at all) for a frame, and overwrites `frame`
    /// with it.
    ///
    /// The wait is a duration, not an instant, so that a driver and its transport need not share a
    /// time origin.
    ///
    /// # Errors
    /// If the transport has failed.
    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error>;

    /// A handle that ends a wait from any thread.
    fn waker(&self) -> Self::Waker;

    /// Tells all peers that this node ends, and waits a bounded time until they have what was sent
    /// before; called last.
    ///
    /// An endpoint that is dropped without it has failed. Nothing to do where peers see each other
    /// end.
    fn leave(&mut self, reason: CloseReason) {
        let _ = reason;
    }

    /// What the way to a peer carries. Nothing to tell where frames arrive at once.
    fn way(&self, node: NodeId) -> Way {
        let _ = node;
        Way::default()
    }

    /// Where a peer is reached, if it has an address; for messages to people.
    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        let _ = node;
        None
    }
}
