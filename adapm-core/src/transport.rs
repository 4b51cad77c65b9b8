//! The transport contract: opaque frames between the nodes of one channel, and notice of lost
//! peers.
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
    /// Returns the number of bytes of head and values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.values.len()
    }

    /// Returns true if there is neither head nor value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the content but keeps the memory.
    pub fn clear(&mut self) {
        self.head.clear();
        self.values.clear();
    }
}

/// A handle that ends the wait of a transport's [`Transport::recv`] from any thread.
pub trait Wake: Clone + Send + Sync + 'static {
    /// Makes the current or the next `recv` return [`Received::Woken`]. Several calls may be
    /// merged.
    ///
    /// If the previous `recv` returned `Woken` too, a waiting frame goes first, so that threads
    /// that keep waking starve no peer; the wake then stays for the next `recv`.
    fn wake(&self);
}

/// The reason that a frame was not sent; it is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError<E> {
    /// The queue to that node is full: keep the frame and try again after the next `recv`.
    #[error("the queue to that node is full: try again")]
    Full,
    /// The transport has failed.
    #[error("{0}")]
    Transport(E),
}

/// The reason that `recv` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A frame of that node was written to the argument.
    Frame(NodeId),
    /// A waker was called, or there is room again for a frame refused with [`SendError::Full`].
    Woken,
    /// The wait is over.
    TimedOut,
    /// That node is lost for good; reported once per node. Frames to it are dropped from here on.
    Lost(NodeId, Loss),
}

/// The reason that a peer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// It has sent nothing for this long.
    #[error("it has been silent for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    /// It seems alive, but does not receive what is sent to it.
    #[error("{0}")]
    Stuck(Stall),
    /// Its link is alive, but it has answered nothing for this long.
    #[error("its link lives, but it has answered nothing for {:.1} s", .0.as_secs_f64())]
    Unresponsive(Duration),
    /// It reported that it ends because something failed there; its own error has the details.
    #[error("it ended with an error of its own")]
    Failed,
    /// It was restarted and has lost its state.
    #[error("it was restarted and has lost its state")]
    Restarted,
    /// It broke the protocol.
    #[error("it broke the protocol")]
    Misbehaved,
    /// That other node reported it as lost.
    #[error("node {0} has lost it")]
    Reported(NodeId),
    /// It has given this node up as lost, and ends.
    #[error("it has given this node up as lost")]
    GaveUp,
}

/// A link on which connections are established but packets do not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Time without a new acknowledgement.
    pub time: Duration,
    /// Connections established meanwhile.
    pub pipes: u32,
    /// Size of the largest packet that has arrived, in bytes; 0 if none has.
    pub passed: usize,
    /// Size of the packet that does not, in bytes.
    pub stuck: usize,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, pipes, passed, stuck } = self;
        if *pipes == 0 {
            let seconds = time.as_secs_f64();
            return write!(f, "it sends, but has acknowledged nothing for {seconds:.1} s");
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

/// The load of the link to a peer, for drivers that decide whether the peer answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Unacknowledged pieces of frames to it: at least as many as frames.
    pub unacknowledged: usize,
    /// Pieces of frames received from it in total.
    pub received: u64,
}

/// The position of the last request to a peer among the frames sent to it: shows if its answer may
/// be late because of the link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastRequest {
    sent: u64,
    /// Frames sent up to the request.
    asked: u64,
    /// Pieces received at the last check.
    received: u64,
}

impl LastRequest {
    /// Counts a sent frame.
    pub fn note_sent(&mut self, is_request: bool) {
        self.sent += 1;
        if is_request {
            self.asked = self.sent;
        }
    }

    /// Returns true if the request has not been acknowledged yet, or part of a frame has arrived
    /// from the peer since the last call. `waiting` frames have not been given to the link.
    pub fn is_held_up(&mut self, way: Way, waiting: usize) -> bool {
        // As frames arrive in order, those that have not arrived are the last ones.
        let is_under_way = (waiting + way.unacknowledged) as u64 > self.sent - self.asked;
        core::mem::replace(&mut self.received, way.received) != way.received || is_under_way
    }
}

/// The reason that a node gives its peers when it ends, with [`Transport::leave`].
///
/// | n2 leaves with | n1 receives | other nodes receive |
/// | --- | --- | --- |
/// | `Finished` | nothing | nothing |
/// | `Failed` | n2 is lost: [`Loss::Failed`] | the same |
/// | `Lost(n1)` | n2 is lost: [`Loss::GaveUp`] | n1 is lost: [`Loss::Reported`] by n2; n2 is lost: [`Loss::Failed`] |
///
/// Each loss comes after the frames that n2 sent before it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// All work is done: this node is not needed any more.
    Finished,
    /// Something failed here.
    Failed,
    /// This node cannot continue without that one.
    Lost(NodeId),
}

/// A carrier of opaque frames between this node and its peers: once, whole, in order per pair of
/// nodes.
///
/// No node sends to itself. A peer that is slow to call its endpoint is not lost: a transport that
/// gives up silent peers must wait longer than a driver, or the patience of a test, may pause.
pub trait Transport {
    /// The transport's error.
    type Error: core::error::Error;
    /// The handle that ends a wait.
    type Waker: Wake;

    /// Sends `frame` to `to`; never blocks.
    ///
    /// After `Ok` the frame's content is unspecified: the transport copied or took it, and may
    /// leave recycled memory.
    ///
    /// The queue to a node is bounded, with room for one frame of the largest size
    /// ([`crate::wire::FRAME_BYTES_MAX`]) beyond what is unacknowledged: a large frame that fits an
    /// empty queue only is refused for ever if something always waits for its acknowledgement.
    ///
    /// # Errors
    /// [`SendError::Full`] if the queue to `to` has no room, otherwise the transport's failure; the
    /// frame is then unchanged.
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

    /// Returns a handle that ends a wait from any thread.
    fn waker(&self) -> Self::Waker;

    /// Notifies all peers that this node ends, and waits a bounded time until they have received
    /// all earlier frames; called last.
    ///
    /// An endpoint dropped without this call counts as failed, so a transport that wraps another
    /// must pass it on. Does nothing by default: for transports whose peers see each other end.
    fn leave(&mut self, reason: CloseReason) {
        let _ = reason;
    }

    /// Returns the load of the link to a peer. Defaults to none, for transports whose frames arrive
    /// at once.
    fn way(&self, node: NodeId) -> Way {
        let _ = node;
        Way::default()
    }

    /// Returns the address of a peer, if it has one; for error messages.
    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        let _ = node;
        None
    }
}
